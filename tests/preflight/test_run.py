"""preflight as a whole, on recorded hosts: what happens to the host while it is looked at changes the verdict."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import build_named
from tests.probe.stressed import BROKEN, put, works
from tunectl.checking.runner import usual_s
from tunectl.host import stressng
from tunectl.host.hardware import FEWER_SMIS
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome
from tunectl.preflight.feeding import SECONDS
from tunectl.preflight.run import Flight, Request, run_preflight
from tunectl.preflight.thermal import NAMES
from tunectl.work import Work

CPU = "sys/devices/system/cpu"
Edit = Callable[[], object]


def nothing() -> None:
    """The host stays as it is."""


def flown(root: Path, during: Edit = nothing, told: list[Work] | None = None, **more: Any) -> Flight:
    """preflight over a recorded host to which `during` happens while its checks run; `told` gets what was told."""
    happened: list[str] = []

    def tell(work: Work) -> None:
        if told is not None:
            told.append(work)
        if work.now.startswith("checking") and not happened:
            happened.append(work.now)
            during()

    request = Request(
        root=Sysroot(str(root)),
        host_path=str(root / "etc/tunectl/host.toml"),
        host_required=True,
        state=str(root / "var/lib/tunectl"),
        invocation=("tunectl", "preflight"),
        today="2026-11-22",
        duration_s=0.1,
        window_s=0.01,
        strict=False,
        tell=tell,
        intrude=False,
        stay_off=lambda _: None,
        **more,
    )
    flight = run_preflight(request)
    assert happened
    return flight


def throttled(flight: Flight) -> list[str]:
    return [one.target for one in flight.thermal["findings"] if one.outcome is Outcome.DRIFTED]


@pytest.fixture
def lab4(tmp_path: Path) -> Path:
    """acpi-cpufreq with a bios_limit of 3.5 GHz; throttle counters are added."""
    root = build_named(tmp_path / "lab4", "lab4", tuned_boot=frozenset({2, 3}))
    write_host_file(root, LOW_LATENCY)
    for cpu in range(4):
        counters = root / f"{CPU}/cpu{cpu}/thermal_throttle"
        counters.mkdir(exist_ok=True)
        for name in ("core", "package"):
            (counters / f"{name}_throttle_count").write_text("0\n")
    return root


def test_ctrl_c_leaves_what_was_found_and_is_never_go(lab4: Path) -> None:
    def end() -> None:
        raise KeyboardInterrupt

    flight, whole = flown(lab4, end), flown(lab4)
    assert len(flight.unproved) == len(whole.unproved) + 1  # the same once more, to its end
    assert flight.plan
    assert whole.plan
    assert flight.plan.findings == whole.plan.findings
    assert {one.outcome for one in flight.check} == {Outcome.UNREADABLE}
    assert flight.verdict in ("unknown", "no-go")
    assert flight.thermal["verdict"] == "ok"
    assert "sudo tunectl preflight" in [task.text for fix in flight.unproved for task in fix.tasks]


def test_the_time_left_is_that_of_all_that_is_asked_for(lab4: Path) -> None:
    told: list[Work] = []
    flown(lab4, told=told, load=("memory",), feed=True)
    assert told[0] == Work("reading the settings", usual_s(0.01) + 0.1 + 0.1 + SECONDS)
    assert {work.left_s for work in told if work.now.startswith("checking")} == {None}  # it runs down by the clock
    told.clear()
    flown(lab4, told=told, load=(), feed=False)
    assert told[0].left_s == usual_s(0.01) + 0.1


def test_a_cool_host_is_not_throttled(lab4: Path) -> None:
    flight = flown(lab4)
    assert (flight.thermal["verdict"], throttled(flight)) == ("ok", [])


def test_heat_that_comes_while_the_host_is_checked_is_in_the_verdict(lab4: Path) -> None:
    counter = lab4 / f"{CPU}/cpu2/thermal_throttle/core_throttle_count"
    flight = flown(lab4, lambda: counter.write_text("3\n"))
    assert throttled(flight) == ["thermal.throttle[package0]"]
    assert flight.thermal["verdict"] == "throttled"
    assert flight.verdict == "no-go"
    assert "thermal.throttle" in [reason.about for reason in flight.reasons]


def test_heat_that_goes_while_the_host_is_checked_is_in_the_verdict(lab4: Path) -> None:
    limit = lab4 / f"{CPU}/cpufreq/policy3/bios_limit"
    limit.write_text("1200000\n")
    flight = flown(lab4, lambda: limit.write_text("3500000\n"))
    assert throttled(flight) == ["thermal.bios_limit[3]"]
    assert "thermal.bios_limit" in [reason.about for reason in flight.reasons]


@pytest.mark.slow
def test_every_part_reaches_the_verdict(tmp_path: Path) -> None:
    stock = build_named(tmp_path / "xeon2s", "xeon2s")
    write_host_file(stock, LOW_LATENCY.replace("2-3", "2,18"))
    flight = flown(stock)
    about = {reason.about for reason in flight.reasons}
    assert about >= {"cpufreq.governor", "check.other_tuners"}
    assert str(flight.probe_problem) in [reason.text for reason in flight.reasons]


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("does_work", [True, False], ids=["a load that works", "a load that ends at once"])
def test_the_host_file_has_the_host_measured_beside_a_load(
    does_work: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs a CPU beside the probed one")
    program = works() if does_work else BROKEN["ends at once"][0]
    monkeypatch.setenv(stressng.OVERRIDE, str(put(tmp_path, program)))
    (tmp_path / "host.toml").write_text(
        f'profile = "low-latency"\nisolated = "{cpus[-1]}"\nallow_split_siblings = true\n'
        '[preflight]\nload = ["memory", "timers"]\n'
    )
    request = Request(
        root=Sysroot(),
        host_path=str(tmp_path / "host.toml"),
        host_required=True,
        state=str(tmp_path / "state"),
        invocation=("tunectl",),
        today="2026-11-22",
        duration_s=0.2,
        window_s=0.01,
        strict=False,
        tell=lambda _: None,
        intrude=True,
        stay_off=lambda _: None,
    )
    flight = run_preflight(request)
    assert flight.probe, flight.reasons
    assert not flight.probe.load
    assert flight.load == ("memory", "timers")
    loaded = flight.loaded
    assert bool(loaded and loaded.load and loaded.load.ran) == does_work, flight.reasons
    assert bool(flight.load_problem) != does_work
    assert loaded is None or loaded.budget.limits == flight.probe.budget.limits
    assert run_preflight(replace(request, load=())).load == ()


def test_a_waiver_holds_for_heat_too(lab4: Path) -> None:
    waiver = '[[waivers]]\nknob = "thermal.bios_limit"\nreason = "a quiet room"\nuntil = 2027-01-01\n'
    write_host_file(lab4, LOW_LATENCY + waiver)
    (lab4 / f"{CPU}/cpufreq/policy3/bios_limit").write_text("1200000\n")
    flight = flown(lab4)
    assert (flight.thermal["verdict"], throttled(flight)) == ("ok", [])
    assert "thermal.bios_limit" not in [reason.about for reason in flight.reasons]


def test_a_waiver_for_a_thermal_finding_that_there_is_not_is_named(lab4: Path) -> None:
    """A misspelt name is listed as that of a knob or a check is; one that had nothing to waive today is no mistake."""
    waivers = ("throttel", *(name.removeprefix("thermal.") for name in sorted(NAMES)))
    rows = [f'[[waivers]]\nknob = "thermal.{name}"\nreason = "r"\nuntil = 2099-01-01\n' for name in waivers]
    write_host_file(lab4, LOW_LATENCY + "".join(rows))
    flight = flown(lab4)
    idle = [one for one in flight.findings if one.knob == "waiver" and one.instance.startswith("thermal.")]
    assert [(one.target, one.outcome) for one in idle] == [("waiver[thermal.throttel]", Outcome.UNSUPPORTED)]


def test_smis_that_come_while_it_runs_are_counted_and_judged(tmp_path: Path) -> None:
    """Low latency permits none; a host file may."""
    root = build_named(tmp_path / "xeon2s", "xeon2s")
    write_host_file(root, 'profile = "low-latency"\nisolated = "2-3,18-19"\n')
    msr = root / "dev/cpu/0/msr"
    msr.parent.mkdir(parents=True)
    msr.write_bytes(bytes(0x34) + (7).to_bytes(8, "little"))

    def smis(now: int, more: str = "") -> tuple[int | None, list[str], int, str]:
        """How many, the reasons about them, the things to do about them, what the headline says of them."""
        write_host_file(root, f'profile = "low-latency"\nisolated = "2-3,18-19"\n{more}')
        flight = flown(root, lambda: msr.write_bytes(bytes(0x34) + now.to_bytes(8, "little")))
        assert flight.smis.count is None or flight.smis.seconds > 0
        said = next((term for term in flight.headline.split("; ") if term.startswith("SMI")), "")
        return (
            flight.smis.count,
            [reason.text for reason in flight.reasons if "SMI" in reason.text],
            flight.unproved.count(FEWER_SMIS),
            re.sub(r"in [\d.]+ m?s", "in N s", said),
        )

    assert smis(7) == (0, [], 0, "SMIs in N s: 0 (limit 0/s)")
    count, (reason,), to_do, said = smis(10)
    assert (count, to_do, said) == (3, 1, "SMIs in N s: 3 (limit 0/s)")
    assert reason.startswith("3 SMIs in ")
    assert reason.endswith(" while the checks ran, allowed 0/s (smis_per_s)")
    assert smis(11, "[budget]\nsmis_per_s = 1000\n") == (1, [], 0, "SMIs in N s: 1 (limit 1,000/s)")
    msr.unlink()
    msr = root / "dev/cpu/9/msr"
    assert smis(12) == (None, [], 0, "")  # of a recorded host nobody asks
