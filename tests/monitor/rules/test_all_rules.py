"""All rules together: a restart in the middle, and samples of every kind."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.monitor.quantities import QUANTITIES
from tests.monitor.series import BASE_KHZ, ISOLATED, PACKAGE0, Watch, base, limits, sample, snapshot
from tunectl.fix import of_text
from tunectl.model import Finding, Outcome
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.model import AlertState, Freshness, Health, Sample
from tunectl.monitor.rules import judge
from tunectl.monitor.rules.history import History, Limits
from tunectl.tuners.conflicts import Objection


def governor(outcome: Outcome) -> Sample:
    """One knob, judged."""
    seen = Finding("cpufreq.governor", "2", outcome, "a", "b", "c")
    return sample("knob", seen.target, outcome, "drift", seen=seen)


def row(khz: int, outcome: Outcome, deliveries: int) -> list[Sample]:
    """What each source says in one look."""
    clock = sample("core_khz", "cpu2", khz, "clock", cpus={2})
    irq = sample("interrupts", "irq42", deliveries, "interrupts", cpus={3})
    return [*base(), *limits(khz), clock, governor(outcome), irq]


COOL = row(BASE_KHZ, Outcome.COMPLIANT, 7)
DARK = [one._replace(freshness=Freshness.NO_DATA, value=None) for one in COOL]
HOT = row(1_200_000, Outcome.DRIFTED, 9)
AFTER = [*COOL[:-1], HOT[-1]]


def restart(watch: Watch) -> None:
    """A new process: the snapshots are forgotten, the alerts are read back."""
    watch.alerts = Alerts.load(json.loads(json.dumps(watch.alerts.save())))
    watch.history = History(watch.history.limits)


@pytest.mark.parametrize("at", range(44))
def test_a_restart_neither_fires_again_nor_forgets_to_resolve(at: int) -> None:
    rows = [COOL, COOL, HOT, HOT, DARK, DARK, HOT, DARK, *[AFTER] * 36]
    watch, names = Watch(), []
    for number, row in enumerate(rows):
        if number == at:
            restart(watch)
            names += watch.names(DARK)  # the sentinel and the others have not spoken yet
        names += watch.names(row)
    wanted = ["+FrequencyDrop[host]", "+KnobDrift[cpufreq.governor]", "-KnobDrift[cpufreq.governor]"]
    # Deliveries that came while nobody looked cannot be told from old ones.
    seen = [] if at == 2 else ["+InterruptOnIsolatedCpu[irq42]", "-InterruptOnIsolatedCpu[irq42]"]
    wanted += ["-FrequencyDrop[host]", *seen]
    assert sorted(name for _, name in names) == sorted(wanted)


SUBJECTS = "cpu2 cpu3 core2 package0 package1 host irq42 irq.affinity[42] cpu/cpu3 net/eth0 application thermal_zone0"
VALUES = st.one_of(
    st.none(),
    st.integers(-5, 10),
    st.integers(1_000_000, 5_000_000),
    st.sampled_from([float("nan"), float("inf"), "drifted", "active", "offline", "", "online"]),
)
samples = st.builds(
    Sample,
    st.sampled_from(QUANTITIES),
    st.sampled_from(SUBJECTS.split()),
    VALUES,
    st.sampled_from(["limits", "clock", "drift"]),
    st.sampled_from(list(Freshness)),
    st.sampled_from(["", "why"]),
    st.sampled_from([frozenset(), ISOLATED, PACKAGE0, frozenset({2})]),
    st.sampled_from(
        [
            None,
            Objection("runs", of_text("stop it"), "active", "inactive"),
            governor(Outcome.DRIFTED).seen,
            governor(Outcome.WAIVED).seen,
        ]
    ),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.lists(samples, max_size=30), min_size=1, max_size=12))
def test_whatever_the_samples_are_edges_alternate_and_the_dark_changes_nothing(rows: list[list[Sample]]) -> None:
    watch = Watch(Limits(p99_9_ns=5, max_ns=5, isolated=ISOLATED))
    firing: set[str] = set()

    def see(row: list[Sample]) -> None:
        for _, _, alert in watch.see(row):
            assert (alert.status is AlertState.FIRING) == (alert.identity not in firing)
            firing.symmetric_difference_update({alert.identity})

    for row in rows:
        see(row)
    known = {identity for identity in firing if not identity.startswith(("SourceLost", "FrequencyUnknown"))}
    dark = [one._replace(freshness=Freshness.NO_DATA, value=None) for row in rows for one in row]
    for _ in range(40):
        see(dark)
    assert known <= firing
    assert {one for one in firing - known if not one.startswith(("SourceLost", "FrequencyUnknown"))} == set()


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.lists(samples, max_size=30), min_size=1, max_size=3))
def test_what_is_unknown_has_its_reason(rows: list[list[Sample]]) -> None:
    watch = Watch(Limits(p99_9_ns=5, max_ns=5, isolated=ISOLATED))
    for row in rows:
        watch.see(row)
        unknown = [one for one in judge(watch.history) if one.health is Health.UNKNOWN]
        assert [one for one in unknown if not one.summary or "the rule failed" in one.summary] == []


def test_the_newest_of_two_looks_is_judged() -> None:
    history = History()
    history.add(snapshot(0, COOL))
    history.add(snapshot(5, HOT))
    assert history.now.monotonic_s == 5
    assert [one.subject for one in judge(history) if one.health == "bad" and one.rule == "FrequencyDrop"] == ["host"]
