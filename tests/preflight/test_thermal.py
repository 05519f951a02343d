"""The thermal state: what throttles is found, what is absent is no "ok", and no isolated CPU is disturbed."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.builder import bind_cooler, build_named
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.config import kernel_config
from tunectl.hostfile.shape import Thermal
from tunectl.model import Finding, HostId, Outcome, Scope, Severity
from tunectl.monitor.rules.history import Limits
from tunectl.monitor.sources import HEAT, take_snapshot
from tunectl.monitor.watched_host import WatchedHost
from tunectl.preflight.thermal import NAMES, Core, judge_thermal, verdict_of_heat
from tunectl.tuning.inspection import Inspection
from tunectl.tuning.journal import Journal

CPU = "sys/devices/system/cpu"
Edit = Callable[[Path], object]


def watched(host: Path, isolated: set[int], limits: Thermal) -> WatchedHost:
    root = Sysroot(str(host))
    facts = read_scope_facts(root)
    scope = Scope(facts.present, facts.online, frozenset(isolated), facts.nr_cpus)
    config = kernel_config(facts)._replace(scope=scope, thermal=limits)
    return WatchedHost(Inspection(root, HostId(), config, Journal(str(host)), (), "2026-11-21"))


def stays(_: Path) -> None:
    """Nothing happens to the host."""


def judged(
    host: Path, isolated: set[int], edit: Edit = stays, clocks: Mapping[int, Core] | None = None, **limits: Any
) -> dict[str, Any]:
    """The host judged over a time in which `edit` happened to it."""
    looked_at = watched(host, isolated, Thermal(**limits))
    before = take_snapshot(looked_at, HEAT)
    edit(host)
    after = take_snapshot(looked_at, HEAT)
    findings, evidence = judge_thermal(before, after, Limits.of(looked_at.config), clocks)
    verdict, reason = verdict_of_heat(findings)
    return {"verdict": verdict, "reason": reason, "findings": findings, "evidence": evidence}


def by_target(result: dict[str, Any]) -> dict[str, Finding]:
    return {finding.target: finding for finding in result["findings"]}


def drifted(result: dict[str, Any]) -> list[str]:
    return [finding.target for finding in result["findings"] if finding.outcome == Outcome.DRIFTED]


def write(path: str, value: object) -> Edit:
    def edit(host: Path) -> None:
        (host / path).write_text(f"{value}\n")

    return edit


@pytest.fixture
def xeon(tmp_path: Path) -> Path:
    """Two sockets; CPU n and n+16 share a core; throttle counters, base_frequency of 3.5 GHz."""
    return build_named(tmp_path / "xeon", "xeon2s", tuned_boot=frozenset({2, 18}))


@pytest.fixture
def lab4(tmp_path: Path) -> Path:
    """acpi-cpufreq with a bios_limit and the frequencies 3.5, 2.4 and 1.2 GHz."""
    return build_named(tmp_path / "lab4", "lab4", tuned_boot=frozenset({2, 3}))


def test_a_cool_host_is_ok(xeon: Path) -> None:
    result = judged(xeon, {2, 18})
    assert result["verdict"] == "ok"
    assert result["reason"] == ""
    assert drifted(result) == []
    assert by_target(result)["thermal.throttle[package0]"].outcome == Outcome.COMPLIANT
    assert result["evidence"]["base_khz"]["2"]["khz"] == 3500000


def test_one_event_is_counted_once_for_a_core_and_once_for_a_package(xeon: Path) -> None:
    def hot(host: Path) -> None:
        for cpu in (3, 19):  # siblings
            write(f"{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count", 4)(host)
        for cpu in (*range(8), *range(16, 24)):  # the whole first package
            write(f"{CPU}/cpu{cpu}/thermal_throttle/package_throttle_count", 2)(host)

    result = judged(xeon, {2, 18}, hot)
    assert result["verdict"] == "throttled"
    assert drifted(result) == ["thermal.throttle[package0]"]
    found = by_target(result)
    assert found["thermal.throttle[package0]"].observed == 4
    assert "fan" in str(found["thermal.throttle[package0]"].fix)
    assert found["thermal.throttle[package1]"].outcome is Outcome.COMPLIANT


def test_thermal_interrupts_tell_of_heat_where_nothing_counts_it(xeon: Path) -> None:
    def hot(host: Path) -> None:
        table = host / "proc/interrupts"
        lines = table.read_text().splitlines()
        row = next(number for number, line in enumerate(lines) if line.strip().startswith("TRM"))
        label, rest = lines[row].split(":")
        lines[row] = f"{label}: {rest.replace('0', '3', 1)}"
        table.write_text("\n".join([*lines, ""]))

    # The end of an event interrupts, too, and so does a threshold or a power limit.
    assert drifted(judged(xeon, {2, 18}, hot)) == []
    for cpu in range(32):
        shutil.rmtree(xeon / f"{CPU}/cpu{cpu}/thermal_throttle")
    assert drifted(judged(xeon, {2, 18}, hot)) == ["thermal.interrupts[host]"]


def test_a_fan_failure_shows_in_the_firmwares_limit(lab4: Path) -> None:
    result = judged(lab4, {2, 3}, write(f"{CPU}/cpufreq/policy2/bios_limit", 1200000))
    assert result["verdict"] == "throttled"
    finding = by_target(result)["thermal.bios_limit[2]"]
    assert finding.outcome == Outcome.DRIFTED
    assert (finding.observed, finding.desired) == (1200000, 3150000)
    assert drifted(result) == ["thermal.bios_limit[2]"]


def test_a_limit_that_stood_at_the_start_counts(lab4: Path) -> None:
    write(f"{CPU}/cpufreq/policy3/bios_limit", 1200000)(lab4)
    assert drifted(judged(lab4, {2, 3}, write(f"{CPU}/cpufreq/policy3/bios_limit", 3500000))) == [
        "thermal.bios_limit[3]"
    ]


def test_a_lowered_maximum_is_found_and_min_ratio_decides(lab4: Path) -> None:
    edit = write(f"{CPU}/cpufreq/policy2/scaling_max_freq", 2400000)
    assert drifted(judged(lab4, {2, 3}, edit)) == ["thermal.max_frequency[2]"]
    assert drifted(judged(lab4, {2, 3}, min_ratio=0.6)) == []
    assert drifted(judged(lab4, {2, 3}, base_frequency_khz=2400000)) == []


def test_a_share_of_the_highest_frequency_caps_a_clock_whose_own_limit_is_high(xeon: Path) -> None:
    share = f"{CPU}/intel_pstate/max_perf_pct"
    low = judged(xeon, {2, 18}, write(share, 30))
    assert drifted(low) == ["thermal.max_frequency[2]", "thermal.max_frequency[18]"]
    found = by_target(low)["thermal.max_frequency[2]"]
    assert (found.observed, found.desired) == (1400000, 3150000)
    assert (low["verdict"], drifted(judged(xeon, {2, 18}))) == ("throttled", drifted(low)), "it stood at the start"
    write(share, 90)(xeon)
    assert drifted(judged(xeon, {2, 18})) == []
    write(f"{CPU}/cpufreq/policy2/scaling_max_freq", 1200000)(xeon)  # the lower of the two is in force
    assert by_target(judged(xeon, {2, 18}))["thermal.max_frequency[2]"].observed == 1200000
    write(share, "?")(xeon)
    assert by_target(judged(xeon, {2, 18}))["thermal.max_frequency"].outcome is Outcome.UNREADABLE


@pytest.mark.parametrize(("temp", "is_hot"), [(89_999, False), (90_000, True)])
def test_a_zone_slows_the_cpus_at_its_trip_and_not_below(lab4: Path, temp: int, is_hot: bool) -> None:
    zone, cooler = "sys/class/thermal/thermal_zone0", "sys/class/thermal/cooling_device0"
    (lab4 / cooler).mkdir()
    write(f"{cooler}/type", "Processor")(lab4)
    bind_cooler(lab4, 0, 0)
    write(f"{zone}/trip_point_0_type", "passive")(lab4)
    write(f"{zone}/trip_point_0_temp", 90_000)(lab4)
    assert drifted(judged(lab4, {2, 3}, write(f"{zone}/temp", temp))) == ["thermal.zone[thermal_zone0]"] * is_hot
    # Hot at the start, and cool again: it was hot while it was watched.
    assert drifted(judged(lab4, {2, 3}, write(f"{zone}/temp", 20_000))) == ["thermal.zone[thermal_zone0]"] * is_hot


def test_one_throttling_and_the_first_state_of_a_cooler_count(xeon: Path, lab4: Path) -> None:
    once = write(f"{CPU}/cpu2/thermal_throttle/core_throttle_count", 1)
    assert drifted(judged(xeon, {2, 18}, once)) == ["thermal.throttle[package0]"]
    cooler = "sys/class/thermal/cooling_device0"
    (lab4 / cooler).mkdir()
    for name, value in (("type", "Processor"), ("max_state", 10), ("cur_state", 0)):
        write(f"{cooler}/{name}", value)(lab4)
    assert drifted(judged(lab4, {2, 3})) == []
    alone = ["thermal.cooling[cooling_device0]"]
    unknown = judged(lab4, {2, 3}, write(f"{cooler}/cur_state", 1))
    assert drifted(unknown) == alone
    assert "fan" in str(by_target(unknown)[alone[0]].fix)
    write("sys/class/thermal/thermal_zone0/trip_point_0_type", "passive")(lab4)
    write("sys/class/thermal/thermal_zone0/trip_point_0_temp", 90_000)(lab4)
    bind_cooler(lab4, 0, 0)
    by_hand = judged(lab4, {2, 3})
    assert drifted(by_hand) == alone
    assert str(by_target(by_hand)[alone[0]].fix).startswith(f"echo 0 | sudo tee /{cooler}/")


def test_the_probes_clock_is_judged(xeon: Path) -> None:
    good = judged(xeon, {2, 18}, clocks={2: (3600000.0, 3590000.0), 18: (3600000.0, None)})
    assert drifted(good) == []
    assert by_target(good)["thermal.clock[18]"].outcome == Outcome.COMPLIANT
    bad = judged(xeon, {2, 18}, clocks={2: (3600000.0, 1200000.0), 18: (None, None)})
    assert drifted(bad) == ["thermal.clock[2]"]
    assert by_target(bad)["thermal.clock[2]"].observed == 1200000
    assert by_target(bad)["thermal.clock[18]"].outcome == Outcome.UNREADABLE
    assert {one.knob for one in good["findings"]} == NAMES - {"thermal.interrupts"}
    assert bad["evidence"]["core_khz"]["2"] == {"before": 3600000.0, "after": 1200000.0}


def test_forced_idle_time_is_named_as_itself_and_no_fan_is_blamed(xeon: Path) -> None:
    cooler = "sys/class/thermal/cooling_device7"
    (xeon / cooler).mkdir(parents=True)
    for name, value in (("type", "intel_powerclamp"), ("max_state", 50), ("cur_state", -1)):
        write(f"{cooler}/{name}", value)(xeon)
    slow = {2: (3600000.0, 1200000.0)}
    off = by_target(judged(xeon, {2, 18}, clocks=slow))
    assert off["thermal.cooling[cooling_device7]"].outcome == Outcome.COMPLIANT
    assert "fan" in str(off["thermal.clock[2]"].fix)
    on = by_target(judged(xeon, {2, 18}, write(f"{cooler}/cur_state", 30), clocks=slow))
    assert on["thermal.cooling[cooling_device7]"].severity is Severity.STALL
    for target in ("thermal.cooling[cooling_device7]", "thermal.clock[2]"):
        assert str(on[target].fix).startswith(f"echo 0 | sudo tee /{cooler}/cur_state;")
        assert "fan" not in str(on[target].fix)


def test_a_virtual_machine_without_any_source_is_unknown_and_fails_nothing(tmp_path: Path) -> None:
    result = judged(build_named(tmp_path / "vm2", "vm2"), {1})
    assert result["verdict"] == "unknown"
    assert {finding.outcome for finding in result["findings"]} == {Outcome.UNSUPPORTED}


def test_a_permitted_maximum_alone_is_no_proof(tmp_path: Path) -> None:
    result = judged(build_named(tmp_path / "epyc", "epyc"), {2, 18})
    assert by_target(result)["thermal.max_frequency[2]"].outcome == Outcome.COMPLIANT
    assert result["verdict"] == "unknown"


def test_an_unknown_base_is_not_guessed_from_turbo(lab4: Path) -> None:
    for number in range(4):
        (lab4 / f"{CPU}/cpufreq/policy{number}/scaling_available_frequencies").unlink()
    cpuinfo = lab4 / "proc/cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace(" @ 3.50GHz", ""))
    highest = int((lab4 / f"{CPU}/cpu2/cpufreq/cpuinfo_max_freq").read_text())
    for number in (2, 3):  # as a base may be, and no more than that is known
        (lab4 / f"{CPU}/cpu{number}/cpufreq/bios_limit").write_text(f"{highest * 6 // 10}\n")
    result = judged(lab4, {2, 3})
    assert by_target(result)["thermal.bios_limit[2]"].outcome == Outcome.UNREADABLE
    assert "base_frequency_khz" in by_target(result)["thermal.bios_limit[2]"].reason
    assert result["verdict"] == "unknown"


def test_what_would_interrupt_an_isolated_cpu_is_never_opened(xeon: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    really = os.open

    def spy(path: str, *rest: Any, **options: Any) -> int:
        opened.append(str(path))
        return really(path, *rest, **options)

    looked_at = watched(xeon, {2, 18}, Thermal())
    (xeon / "sys/class/thermal/thermal_zone2").mkdir()
    write("sys/class/thermal/thermal_zone2/type", "TCPU")(xeon)
    monkeypatch.setattr(os, "open", spy)
    take_snapshot(looked_at, HEAT)
    monkeypatch.undo()
    isolated = [path for path in opened if f"{CPU}/cpu2/" in path or f"{CPU}/cpu18/" in path]
    assert isolated
    names = {path.rpartition("/")[2] for path in isolated}
    assert not names & {
        "scaling_cur_freq",
        "cpuinfo_cur_freq",
        "base_frequency",
        "nominal_freq",
        "energy_performance_preference",
    }
    assert not [path for path in opened if "hwmon" in path or "/msr" in path]
    assert not [path for path in opened if path.endswith("/temp")]  # x86_pkg_temp and TCPU read MSRs


def test_what_a_source_cannot_read_is_unreadable_and_never_ok(xeon: Path) -> None:
    shutil.rmtree(xeon / "sys/devices/system/cpu/cpu5/thermal_throttle")
    dark = judged(xeon, {2, 18}, lambda host: (host / "proc/interrupts").unlink())
    assert by_target(dark)["thermal.interrupts"].outcome is Outcome.UNREADABLE
    gone = f"{CPU}/cpu3/thermal_throttle/core_throttle_count"
    result = judged(xeon, {2, 18}, lambda host: (host / gone).unlink())
    blind = by_target(result)
    assert result["verdict"] == "unknown"
    assert blind["thermal.throttle[package0]"].outcome is Outcome.UNREADABLE
    assert blind["thermal.throttle[package1]"].outcome is Outcome.COMPLIANT


def test_a_clock_that_cannot_be_is_not_known(xeon: Path) -> None:
    result = judged(xeon, {2, 18}, clocks={2: (3_600_000.0, 17.0), 18: (4e12, None)})
    assert {by_target(result)[f"thermal.clock[{cpu}]"].outcome for cpu in (2, 18)} == {Outcome.UNREADABLE}


def test_this_machine_answers() -> None:
    root = Sysroot()
    result = judged(Path("/"), {max(read_scope_facts(root).online)})
    assert result["verdict"] in ("ok", "throttled", "unknown")
    assert result["findings"]
