"""Drift: every knob within its time, at once after an event, and as `verify` would judge it."""

import itertools
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.hosts.tree import Tree
from tests.hosts.user_files import write_irq_thread
from tests.monitor.watched import CPU, Watched, of, watch
from tunectl.host.devices import DeviceEvent
from tunectl.knobs import KNOBS
from tunectl.model import Finding, Outcome
from tunectl.monitor.model import Freshness
from tunectl.monitor.sources import drift, knobs

pytestmark = pytest.mark.slow


@pytest.fixture(params=[8, 1000], ids=["by its files", "in its turn"])
def xeon(lent_xeon: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Drifted in many knobs, as a stock host is; its interrupts are where they should be. Both ways of watching."""
    monkeypatch.setattr(knobs, "_MANY", request.param)
    return Watched(lent_xeon, frozenset({2, 18}))


def seen_after(host: Watched, target: str, snapshots: int = 11) -> int | None:
    """After how many snapshots a target is shown as drifted."""
    for number in range(1, snapshots + 1):
        sample = of(host.look(), "knob").get(target)
        if sample and sample.value == "drifted":
            return number
    return None


def test_the_order_is_that_of_the_table(xeon: Watched) -> None:
    """And so the same in every run, whatever order a set of names has in it."""
    shown = [one.seen.knob for one in xeon.look().of("knob") if isinstance(one.seen, Finding)]
    plan = xeon.watched_host.inspection.assess()
    assert list(dict.fromkeys(shown)) == [one for one in dict.fromkeys(f.knob for f in plan.findings) if one in shown]
    assert shown == sorted(shown, key=list(KNOBS).index)


def test_the_samples_are_what_verify_finds(xeon: Watched) -> None:
    found = of(xeon.look(), "knob")
    plan = xeon.watched_host.inspection.assess()
    bad = {one.target: one for one in plan.findings if one.outcome is Outcome.DRIFTED}
    assert bad
    assert {name for name, one in found.items() if one.value == "drifted"} == set(bad)
    target, finding = next(iter(bad.items()))
    assert found[target].seen == finding
    assert (found["irq.affinity"].value, found["irq.affinity"].freshness) == ("compliant", Freshness.FRESH)


@pytest.mark.parametrize(
    ("path", "value", "target"),
    [
        ("proc/irq/60/effective_affinity_list", "18", "irq.affinity[60]"),
        ("proc/sys/kernel/timer_migration", "0", "kernel.timer_migration"),
        (f"{CPU}/cpu2/cpuidle/state3/disable", "0", "cpuidle.max_latency_us[2]"),
        (f"{CPU}/cpufreq/policy2/scaling_governor", "powersave", "cpufreq.governor[2]"),
    ],
)
@pytest.mark.slow
def test_any_knob_is_seen_to_drift_within_ten_looks(xeon: Watched, path: str, value: str, target: str) -> None:
    good = {
        "proc/sys/kernel/timer_migration": "1",
        **{f"{CPU}/cpu{cpu}/cpuidle/state{n}/disable": "1" for cpu in (2, 18) for n in (1, 2, 3)},
        **{f"{CPU}/cpufreq/policy{cpu}/scaling_governor": "performance" for cpu in range(32)},
    }
    for name, text in good.items():
        xeon.write(name, text)
    samples = of(xeon.look(), "knob")
    assert samples.get(target) is None or samples[target].value == "compliant"
    xeon.write(path, value)
    seen = seen_after(xeon, target)
    assert seen is not None
    assert seen <= 10
    xeon.write(path, good.get(path, "0"))
    xeon.look(10)
    found = of(xeon.look(10), "knob")[target]  # it stays named, so that its end can be told
    assert isinstance(found.seen, Finding)
    assert (found.value, found.seen.outcome) == ("compliant", Outcome.COMPLIANT)


@pytest.mark.parametrize("kind", ["event", "manager", "interrupt", "journal"])
def test_what_is_suspicious_has_every_knob_judged_at_once(xeon: Watched, kind: str) -> None:
    xeon.look()
    xeon.look(10)
    xeon.write("proc/irq/67/effective_affinity_list", "18")
    if kind == "event":
        xeon.watched_host.announce(DeviceEvent("add", "queues", "rx-0", ""))
    elif kind == "manager":
        (xeon.root / "sys/fs/cgroup/system.slice/thermald.service").mkdir()
    elif kind == "interrupt":
        table = xeon.root / "proc/interrupts"
        text = table.read_text()
        row = next(line for line in text.split("\n") if line.startswith(" 60:"))
        table.write_text(text.replace(row, row + "\n" + row.replace(" 60:", " 99:")))
    else:
        (xeon.root / "var/lib/tunectl").mkdir(parents=True)
        (xeon.root / "var/lib/tunectl/journal.jsonl").write_text("")
    assert of(xeon.look(0.1), "knob")["irq.affinity[67]"].value == "drifted"


@pytest.mark.parametrize(("harmful", "value"), [(False, "compliant"), (True, "refused")])
def test_a_refusal_without_an_effect_is_no_drift(harmful: bool, value: str) -> None:
    assert drift._sample(Finding("irq.affinity", "33", Outcome.REFUSED, harmful=harmful)).value == value


def test_a_new_interrupt_is_judged_within_ten_looks_though_nobody_told(xeon: Watched) -> None:
    xeon.look()
    for name in ("smp_affinity_list", "effective_affinity_list"):
        (xeon.root / "proc/irq/200").mkdir(exist_ok=True)
        xeon.write(f"proc/irq/200/{name}", "18")
    assert seen_after(xeon, "irq.affinity[200]") is not None


def test_an_interrupt_that_is_balanced_among_good_cpus_costs_no_judgement(xeon: Watched) -> None:
    xeon.look()
    known: Any = xeon.watched_host.keep("drift", dict)
    kept = known.knobs
    if "irq.affinity" not in kept.owners.values():
        pytest.skip("here interrupts are judged in their turn")
    other = (xeon.root / "proc/irq/40/effective_affinity_list").read_text()
    assert other != (xeon.root / "proc/irq/60/effective_affinity_list").read_text()
    (xeon.root / "proc/irq/60/effective_affinity_list").write_text(other)
    assert not kept.differs("proc/irq/60/effective_affinity_list")
    xeon.write("proc/irq/60/effective_affinity_list", "18")
    assert kept.differs("proc/irq/60/effective_affinity_list")


def test_a_starved_host_has_slow_rounds_and_no_slow_looks(xeon: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item takes 0.2 s of a CPU that others keep busy: the round gets longer, a snapshot does not."""
    target = "proc/sys/kernel/timer_migration"
    monkeypatch.setattr(knobs, "_AT_ONCE", 1)  # a round of many items
    xeon.write(target, "1")
    xeon.look()
    kept: Any = xeon.watched_host.keep("drift", dict)
    ticks = itertools.count(step=0.2)
    starved = SimpleNamespace(monotonic=lambda: next(ticks), thread_time=time.thread_time)
    monkeypatch.setattr(drift, "time", starved)
    xeon.write(target, "0")
    done, place = [], kept.place
    for _ in range(len(kept.round)):
        xeon.look()
        done.append((kept.place - place) % len(kept.round))
        place = kept.place
    assert max(done) == 3, "more than half a second"
    assert min(done) >= 1, "it goes on"
    assert of(xeon.look(), "knob")["kernel.timer_migration"].value == "drifted"


def test_what_changes_all_the_time_does_not_eat_the_cpu(xeon: Watched) -> None:
    xeon.look()
    kept: Any = xeon.watched_host.keep("drift", dict)
    kept.next_at = xeon.clock + 5
    for number in range(4):
        xeon.watched_host.announce(DeviceEvent("change", "net", f"eth{number}", ""))
        xeon.look()
        assert kept.urgent
    xeon.look(2)
    assert not kept.urgent


def test_an_unreadable_knob_is_no_data_and_an_absent_one_absent(xeon: Watched) -> None:
    xeon.write("proc/sys/kernel/timer_migration", "rubbish")
    xeon.remove("proc/sys/kernel/nmi_watchdog")
    found = of(xeon.look(), "knob")
    unreadable, absent = found["kernel.timer_migration"], found["kernel.nmi_watchdog"]
    assert (unreadable.value, unreadable.freshness) == ("unreadable", Freshness.NO_DATA)
    assert (absent.value, absent.freshness) == ("unsupported", Freshness.ABSENT)


def test_a_journal_that_cannot_be_understood_is_told_in_every_look_and_tried_seldom(xeon: Watched) -> None:
    directory = xeon.root / "var/lib/tunectl"
    directory.mkdir(parents=True)
    (directory / "journal.jsonl").mkdir()  # no file at all
    reasons = [of(xeon.look(), "source")["drift"].reason for _ in range(3)]
    assert len(set(reasons)) == 1
    assert "journal" in reasons[0]
    (directory / "journal.jsonl").rmdir()
    xeon.look(10)
    snapshot = xeon.look()
    assert of(snapshot, "source") == {}
    assert of(snapshot, "knob")


@pytest.mark.parametrize("many", [8, 1000])
def test_a_thread_that_lost_its_priority_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """It stands beside times that rise with every snapshot: no file is compared for it."""
    monkeypatch.setattr(knobs, "_MANY", many)
    asked = '[network]\ninterfaces = ["eth0"]\n[knobs]\n"irq.thread_priority" = 60\n'
    host = watch(tmp_path, "lab4", {2, 3}, asked)
    write_irq_thread(Tree(host.root), 931, "irq/31-virtio0", "0", priority=60)
    target = "irq.thread_priority[31]"
    assert of(host.look(), "knob").get(target) is None
    write_irq_thread(Tree(host.root), 931, "irq/31-virtio0", "0", priority=50)
    assert seen_after(host, target) is not None
