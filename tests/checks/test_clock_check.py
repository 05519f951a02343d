"""check.clocksource and check.clocksource_stable."""

from pathlib import Path

import pytest

from tests.checks.conftest import Judge
from tests.hosts.builder import build_named
from tunectl.model import Outcome

pytestmark = pytest.mark.slow

CHECK = "test_clock.py"
CLOCK = "sys/devices/system/clocksource/clocksource0"


def _set(root: Path, current: str, available: str) -> None:
    (root / CLOCK / "current_clocksource").write_text(f"{current}\n")
    (root / CLOCK / "available_clocksource").write_text(f"{available} \n")


def test_another_clock_is_found_on_a_recording_too(lab4: Path, judge: Judge) -> None:
    _set(lab4, "hpet", "tsc hpet acpi_pm")
    finding = judge(lab4, {2}, CHECK)["check.clocksource"]
    assert finding.outcome == Outcome.DRIFTED
    assert (finding.observed, finding.desired) == ("hpet", "tsc")
    assert str(*finding.fix.commands) == f"echo tsc | sudo tee /{CLOCK}/current_clocksource"


@pytest.mark.parametrize(
    ("available", "word", "is_cause"),
    [
        ("hpet", "tsc=unstable", True),
        ("hpet", "notsc", True),
        ("hpet", "tsc=reliable", False),
        ("tsc hpet", "clocksource=hpet", True),
        ("tsc hpet", "clocksource=acpi_pm", False),
    ],
)
def test_an_argument_that_chose_the_clock_is_the_cause(
    lab4: Path, judge: Judge, available: str, word: str, is_cause: bool
) -> None:
    """And neither firmware nor whoever wrote current_clocksource."""
    _set(lab4, "hpet", available)
    line = lab4 / "proc/cmdline"
    line.write_text(f"{line.read_text().rstrip()} {word}\n")
    finding = judge(lab4, {2}, CHECK)["check.clocksource"]
    assert finding.outcome == Outcome.DRIFTED
    assert (f"this boot had {word}" in finding.reason) is is_cause
    assert (f"take {word} out of the kernel command line" in str(finding.fix)) is is_cause
    assert ("firmware" in str(finding.fix)) is (not is_cause and available == "hpet")


@pytest.mark.parametrize(
    ("current", "outcome"),
    [("kvm-clock", "compliant"), ("hyperv_clocksource_tsc_page", "compliant"), ("xen", "drifted"), ("hpet", "drifted")],
)
def test_a_clock_that_the_hypervisor_shares_costs_no_system_call(
    lab4: Path, judge: Judge, current: str, outcome: str
) -> None:
    _set(lab4, current, f"{current} tsc acpi_pm")
    assert judge(lab4, {2}, CHECK)["check.clocksource"].outcome == outcome


def test_a_machine_without_a_steady_counter_is_not_blamed(lab4: Path, judge: Judge) -> None:
    _set(lab4, "hpet", "hpet acpi_pm")
    cpuinfo = lab4 / "proc/cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace(" nonstop_tsc", ""))
    assert judge(lab4, {2}, CHECK)["check.clocksource"].outcome == Outcome.UNSUPPORTED


def test_no_file_is_not_known(lab4: Path, judge: Judge) -> None:
    (lab4 / CLOCK / "current_clocksource").unlink()
    assert judge(lab4, {2}, CHECK)["check.clocksource"].outcome == Outcome.UNREADABLE


@pytest.mark.parametrize("name", ["lab4", "arm64"])
def test_the_cpus_own_counter_is_silent(tmp_path: Path, judge: Judge, name: str) -> None:
    found = judge(build_named(tmp_path / name, name), {2}, CHECK)
    assert found["check.clocksource"].outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(("last", "outcome"), [("hpet", Outcome.DRIFTED), ("tsc", Outcome.COMPLIANT)])
def test_a_switch_in_the_window_is_found(lab4: Path, judge: Judge, last: str, outcome: Outcome) -> None:
    finding = judge(lab4, {2}, CHECK, clocksources=("tsc", "tsc", last))["check.clocksource_stable"]
    assert finding.outcome == outcome
    assert ("changed from tsc to hpet" in finding.reason) is (last == "hpet")
