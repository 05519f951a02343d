"""The rules of the drivers at their edges: which CPUs are read, which states go, which interrupt is wrong."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.trees import write
from tunectl.cpulist import CpuSet, parse_shown
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.irqaffinity import IrqFacts
from tunectl.knobs.row import Facts, View
from tunectl.model import Outcome, Reading, Scope, Setting, State, Target
from tunectl.tuning.plan import diff

CPU = "sys/devices/system/cpu"
DRIVER = f"{CPU}/cpuidle/current_driver"
HOST = frozenset(range(4))
HOUSEKEEPING, ISOLATED = frozenset({0, 1}), frozenset({2, 3})


def view(tmp_path: Path, files: Mapping[str, str], *, online: CpuSet = HOST, live: bool = False, **more: Any) -> View:
    """Four CPUs of which 2-3 are isolated, with these files below `tmp_path`."""
    for path, text in files.items():
        write(tmp_path, path, f"{text}\n")
    root = Sysroot(str(tmp_path))
    root.live = live  # taken for a running host: that alone decides what may be read
    return View(root, Scope(HOST, online, ISOLATED, 4), **more)


def readings(name: str, seen: View, want: Any) -> dict[str, Reading]:
    """What the row's driver reads, by instance."""
    return {one.instance: one for one in KNOBS[name].driver.observe(KNOBS[name], seen, want)}


def written(name: str, seen: View, want: Any) -> dict[str, str]:
    """What `apply` would write for the row."""
    plan = diff([Setting(name, want, "")], list(readings(name, seen, want).values()), Facts(), (), "2026-11-22")
    batch = [(KNOBS[name], change) for change in plan.changes]
    return {step.path: step.content for step in KNOBS[name].driver.steps(seen, batch)}


# An isolated CPU that is off: switched on first (cpu.online reads it), and every other row leaves it alone until then.


def test_only_the_row_that_switches_cpus_on_reads_those_that_are_off(tmp_path: Path) -> None:
    names = ("power/pm_qos_resume_latency_us", "cpuidle/state0/disable", "cpuidle/state0/latency")
    files = {f"{CPU}/cpu{n}/{name}": "0" for n in HOST for name in names}
    files |= {f"{CPU}/cpu2/online": "1", f"{CPU}/cpu3/online": "0", DRIVER: "intel_idle"}
    seen = view(tmp_path, files, online=HOST - {3})
    switched = readings("cpu.online", seen, True)
    assert {cpu: one.value for cpu, one in switched.items()} == {"2": True, "3": False}
    assert list(readings("cpuidle.resume_latency_us", seen, 0)) == ["2"]
    assert list(readings("cpuidle.max_latency_us", seen, 0)) == ["2"]


@pytest.mark.parametrize(
    ("control", "fix"),
    [
        ("off", "echo on | sudo tee /sys/devices/system/cpu/smt/control; "),
        ("forceoff", "boot without nosmt=force, "),
        *((other, "sudo tunectl apply") for other in ("on", "notsupported", "")),
    ],
)
def test_a_cpu_that_smt_keeps_off_is_not_said_to_come_back_by_itself(tmp_path: Path, control: str, fix: str) -> None:
    files = {
        f"{CPU}/cpu2/online": "1",
        f"{CPU}/cpu3/online": "0",
        **({f"{CPU}/smt/control": control} if control else {}),
    }
    found = list(readings("cpu.online", view(tmp_path, files, online=HOST - {3}), True).values())
    on, off = diff([Setting("cpu.online", True, "")], found, Facts(), (), "2026-11-22").findings
    assert (on.outcome, off.outcome) == (Outcome.COMPLIANT, Outcome.DRIFTED)
    assert str(off.fix).startswith(fix)
    assert (str(off.fix) == "sudo tunectl apply") == (f"smt/control is {control}" not in off.reason)


def test_with_every_isolated_cpu_off_there_is_nothing_to_read(tmp_path: Path) -> None:
    files = {f"{CPU}/cpu{n}/power/pm_qos_resume_latency_us": "0" for n in HOST} | {DRIVER: "intel_idle"}
    seen = view(tmp_path, files, online=HOUSEKEEPING)
    for name in ("cpuidle.resume_latency_us", "cpuidle.max_latency_us"):
        assert {one.state for one in readings(name, seen, 0).values()} == {State.ABSENT}


@pytest.mark.parametrize(
    ("driver", "states", "limit"),
    [
        ("intel_idle", State.READ, State.READ),
        ("haltpoll", State.ABSENT, State.READ),  # its latencies are its own; its governor does ask for a limit of 0
        ("none", State.READ, State.MOOT),
    ],
)
def test_the_cpuidle_driver_says_what_the_latencies_mean(
    tmp_path: Path, driver: str, states: State, limit: State
) -> None:
    place = f"{CPU}/cpu2"
    files = {f"{place}/cpuidle/state1/latency": "1", f"{place}/cpuidle/state1/disable": "0", DRIVER: driver}
    seen = view(tmp_path, files | {f"{place}/power/pm_qos_resume_latency_us": "0"}, online=HOST - {3})
    assert {one.state for one in readings("cpuidle.max_latency_us", seen, 2).values()} == {states}
    assert {one.state for one in readings("cpuidle.resume_latency_us", seen, 2).values()} == {limit}


# Idle states: a state may take as long to leave as the limit says; a microsecond more, and it is disabled.

LATENCIES = {"state0": 0, "state1": 9, "state2": 10, "state3": 11}


def idle(disabled: str = "") -> dict[str, str]:
    """CPU 2's states, and which of them are disabled already."""
    place = f"{CPU}/cpu2/cpuidle"
    files = {f"{place}/{state}/latency": str(us) for state, us in LATENCIES.items()}
    return {**files, **{f"{place}/{state}/disable": str(int(state in disabled.split())) for state in LATENCIES}}


@pytest.mark.parametrize(
    ("limit", "disabled"),
    [(8, ["state1", "state2", "state3"]), (9, ["state2", "state3"]), (10, ["state3"]), (11, [])],
)
def test_a_state_at_the_limit_stays_and_the_next_one_goes(tmp_path: Path, limit: int, disabled: list[str]) -> None:
    seen = view(tmp_path, idle(), online=frozenset({0, 1, 2}))
    expected = {f"{CPU}/cpu2/cpuidle/{state}/disable": "1" for state in disabled}
    assert written("cpuidle.max_latency_us", seen, limit) == expected


@pytest.mark.parametrize(("disabled", "deepest"), [("", 11), ("state3", 10), ("state2 state3", 9), ("state2", 11)])
def test_the_deepest_state_that_is_enabled_counts(tmp_path: Path, disabled: str, deepest: int) -> None:
    seen = view(tmp_path, idle(disabled), online=frozenset({0, 1, 2}))
    assert readings("cpuidle.max_latency_us", seen, 10)["2"].value == deepest


# What is read of an isolated CPU by interrupting it: never where the kernel isolates it or a partition holds it now.

BIAS = "cpufreq.energy_perf_bias"
PARTITION = "sys/fs/cgroup/isolated.slice"


def biases(isolated: str = "", nohz_full: str = "", partition: str = "", effective: str = "") -> dict[str, str]:
    """Every CPU's energy bias, and how this boot keeps CPUs to themselves."""
    files = {f"{CPU}/cpu{n}/power/energy_perf_bias": "6" for n in HOST}
    files |= {f"{CPU}/isolated": isolated, f"{CPU}/nohz_full": nohz_full}
    if partition:
        files |= {f"{PARTITION}/cpuset.cpus.partition": partition, f"{PARTITION}/cpuset.cpus.effective": effective}
        files |= {f"{PARTITION}/cpuset.cpus": "2-3"}
    return files


@pytest.mark.parametrize(
    ("files", "left_alone"),
    [
        (biases(), ""),  # only wanted: nothing is kept off these CPUs yet
        (biases(isolated="2"), "2"),
        (biases(nohz_full="3"), "3"),
        (biases(partition="isolated", effective="2-3"), "2-3"),
        (biases(partition="isolated", effective="3"), "3"),  # what it holds, not what was asked for
        (biases(isolated="1", partition="isolated", effective="2"), "1-2"),
        (biases(partition="isolated invalid (Cpu list in cpuset.cpus not exclusive)", effective="2-3"), ""),
        (biases(partition="root", effective="2-3"), ""),  # the scheduler still balances onto them
        (biases(partition="member", effective="2-3"), ""),
    ],
)
def test_a_cpu_that_is_kept_to_itself_is_not_interrupted(
    tmp_path: Path, files: dict[str, str], left_alone: str
) -> None:
    seen = readings(BIAS, view(tmp_path, files, live=True), 0)
    untouched = {int(cpu) for cpu, one in seen.items() if one.state is State.UNREADABLE}
    assert untouched == parse_shown(left_alone)
    assert {one.state for cpu, one in seen.items() if int(cpu) not in untouched} <= {State.READ}


def test_the_first_apply_of_a_boot_and_a_recorded_host_are_read_whole(tmp_path: Path) -> None:
    files = biases(isolated="2", partition="isolated", effective="3")
    for seen in (view(tmp_path, files, live=True, settling=True), view(tmp_path, files)):
        assert {one.state for one in readings(BIAS, seen, 0).values()} == {State.READ}


# An interrupt: right when it is delivered to wanted CPUs and its whole mask is wanted, so that no other CPU gets it
# when one goes offline. Of one that the kernel manages nobody can write the mask: there the delivery counts.


def irq(asked: str, effective: str) -> dict[str, str]:
    """Interrupt 32, of a driver."""
    files = {"proc/irq/32/smp_affinity_list": asked, "sys/kernel/irq/32/actions": "eth0-rx"}
    return files if effective == "not told" else {**files, "proc/irq/32/effective_affinity_list": effective}


@pytest.mark.parametrize(
    ("asked", "effective", "recorded", "live"),
    [
        ("0-1", "0", Outcome.COMPLIANT, Outcome.COMPLIANT),
        ("0-3", "0", Outcome.DRIFTED, Outcome.DRIFTED),  # it is where it should be, and may go elsewhere
        ("2-3", "0", Outcome.DRIFTED, Outcome.DRIFTED),  # only the asked mask is wrong: the next one goes there
        ("0-1", "2", Outcome.DRIFTED, Outcome.COMPLIANT),  # only the delivery: a running kernel moves it with the next
        ("0-1", "1-2", Outcome.DRIFTED, Outcome.COMPLIANT),
        ("0-3", "3", Outcome.DRIFTED, Outcome.DRIFTED),
        ("2-3", "3", Outcome.DRIFTED, Outcome.DRIFTED),
        ("0-1", "", Outcome.COMPLIANT, Outcome.COMPLIANT),  # not started yet
        ("1-2", "", Outcome.DRIFTED, Outcome.DRIFTED),
        ("0-1", "not told", Outcome.COMPLIANT, Outcome.COMPLIANT),  # before 4.14
        ("1-2", "not told", Outcome.DRIFTED, Outcome.DRIFTED),
    ],
)
def test_an_interrupt_is_judged_by_both_of_its_masks(
    tmp_path: Path, asked: str, effective: str, recorded: Outcome, live: Outcome
) -> None:
    knob = KNOBS["irq.affinity"]
    reading = readings("irq.affinity", view(tmp_path, irq(asked, effective)), HOUSEKEEPING)["32"]
    assert knob.judge is not None
    outcomes = [knob.judge(knob, HOUSEKEEPING, reading, Facts(live=running)).outcome for running in (False, True)]
    assert outcomes == [recorded, live]


def test_where_a_mask_lets_an_interrupt_go_is_named(tmp_path: Path) -> None:
    knob = KNOBS["irq.affinity"]
    reading = readings("irq.affinity", view(tmp_path, irq("0-3", "0")), HOUSEKEEPING)["32"]
    assert knob.judge is not None
    judged = knob.judge(knob, HOUSEKEEPING, reading, Facts(live=True))
    assert (judged.observed, judged.desired, judged.changeable) == ("0-3", "0-1", True)
    assert "interrupt 32 (eth0-rx)" in judged.reason
    assert "CPU 2-3" in judged.reason


@pytest.mark.parametrize(
    "facts", [Facts(live=True), Facts(live=True, refused=frozenset({Target("irq.affinity", "32")}))]
)
def test_a_mask_that_the_kernel_manages_may_be_wider(tmp_path: Path, facts: Facts) -> None:
    """Since 6.12 its mode says so, before that a write that was refused."""
    knob = KNOBS["irq.affinity"]
    seen = view(tmp_path, irq("0-3", "0"))
    (tmp_path / "proc/irq/32/smp_affinity_list").chmod(0o644 if facts.refused else 0o444)
    reading = readings("irq.affinity", seen, HOUSEKEEPING)["32"]
    assert reading.of_facts(IrqFacts).settable is (None if facts.refused else False)
    assert knob.judge is not None
    judged = knob.judge(knob, HOUSEKEEPING, reading, facts)
    assert (judged.outcome, judged.observed) == (Outcome.COMPLIANT, "0")


@pytest.mark.parametrize(
    ("asked", "effective", "actions", "outcome"),
    [
        ("0-3", "", "", Outcome.COMPLIANT),
        ("0-3", "3", "", Outcome.COMPLIANT),  # its driver has gone
        ("0-3", "", "eth0", Outcome.DRIFTED),  # not started yet, and requested
        ("0-3", "", "(null)", Outcome.DRIFTED),  # a chip's own, which passes the interrupts of others on
        ("2-3", "", "", Outcome.DRIFTED),  # somebody has chosen these CPUs, and request_irq() keeps to them
    ],
)
def test_an_interrupt_that_no_driver_uses_cannot_fire(
    tmp_path: Path, asked: str, effective: str, actions: str, outcome: Outcome
) -> None:
    knob = KNOBS["irq.affinity"]
    files = {**irq(asked, effective), "sys/kernel/irq/32/actions": actions}
    reading = readings("irq.affinity", view(tmp_path, files), HOUSEKEEPING)["32"]
    assert knob.judge is not None
    refused = frozenset({Target("irq.affinity", "32")})
    assert knob.judge(knob, HOUSEKEEPING, reading, Facts(live=True)).outcome is outcome
    assert (knob.judge(knob, HOUSEKEEPING, reading, Facts(refused=refused)).outcome is Outcome.COMPLIANT) is (
        outcome is Outcome.COMPLIANT
    )


def test_interrupts_that_share_their_masks_are_judged_alike(tmp_path: Path) -> None:
    """Thousands share a few pairs of texts: what was found right once is not worked out again, and nothing else is."""
    pairs = [("0-1", "0"), ("2-3", "0"), ("0-1", "2"), ("0-1", "0"), ("2-3", "0")]
    files = {f"proc/irq/{n}/smp_affinity_list": asked for n, (asked, _) in enumerate(pairs)}
    files |= {f"proc/irq/{n}/effective_affinity_list": effective for n, (_, effective) in enumerate(pairs)}
    seen = readings("irq.affinity", view(tmp_path, files), HOUSEKEEPING)
    assert [seen[str(n)].facts is None for n in range(5)] == [True, False, False, True, False]


# Absent is not an error, and to look whether a file is there disturbs nobody.

DISTURBING_ROWS = sorted(
    name
    for name, knob in KNOBS.items()
    if getattr(knob.driver, "disturbs", False) or getattr(knob.driver, "interrupts", 0)
)


@pytest.mark.parametrize("name", DISTURBING_ROWS)
def test_a_row_that_would_disturb_is_absent_where_its_file_is(tmp_path: Path, name: str) -> None:
    seen = view(tmp_path, {f"{CPU}/isolated": "2-3", f"{CPU}/nohz_full": "2-3"}, live=True)
    (reading,) = readings(name, seen, KNOBS[name].codec.want(5, seen.scope) if "uncore" in name else 0).values()
    assert (reading.state, reading.instance) == (State.ABSENT, "")


def test_only_a_cpu_that_has_the_file_would_be_disturbed(tmp_path: Path) -> None:
    files = {f"{CPU}/isolated": "2-3", f"{CPU}/nohz_full": "", f"{CPU}/cpu0/power/energy_perf_bias": "6"}
    files |= {f"{CPU}/cpu3/power/energy_perf_bias": "6"}
    seen = readings(BIAS, view(tmp_path, files, live=True), 0)
    assert {cpu: one.state for cpu, one in seen.items()} == {
        "0": State.READ,
        "1": State.ABSENT,
        "2": State.ABSENT,
        "3": State.UNREADABLE,
    }
    assert seen["3"].reason == "reading it would interrupt CPU 3, which is isolated"
