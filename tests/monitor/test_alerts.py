"""Edges: never two firings without a resolve between; a restart changes nothing."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.conftest import examples
from tests.monitor.series import sample, snapshot
from tunectl.cpulist import parse_shown
from tunectl.fix import of_text
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.model import Alert, AlertState, Condition, Freshness, Health, Severity, Snapshot
from tunectl.monitor.moments import shown_by, timestamp, told
from tunectl.monitor.rules import FAILED, Rule, judge
from tunectl.monitor.rules.history import History

BAD, GOOD, BETWEEN, UNKNOWN = Health.BAD, Health.GOOD, Health.BETWEEN, Health.UNKNOWN


def rule(name: str = "Hot", **options: object) -> Rule:
    return Rule(name, Severity.WARNING, "why", "truth", lambda history: (), **options)  # type: ignore[arg-type]


def condition(
    health: Health, name: str = "Hot", subject: str = "cpu1", cpus: frozenset[int] = frozenset()
) -> Condition:
    return Condition(name, subject, health, 2, 1, "sensor", "it is hot", of_text("cool it"), cpus)


def transitions(alerts: Alerts, healths: Sequence[Health | None]) -> str:
    """One character a look: + fired, - resolved, . nothing. None: nobody mentions the subject."""
    told = ""
    for number, health in enumerate(healths):
        found = alerts.step(snapshot(number, ()), () if health is None else (condition(health),))
        told += {0: "."}.get(len(found)) or {"firing": "+", "resolved": "-"}[found[0].status]
        assert len(found) <= 1
    return told


@pytest.mark.parametrize(
    ("bad", "good", "healths", "told"),
    [
        ((1, 1), 1, "bbbgg", "+..-."),
        ((1, 1), 3, "bggbggg", "+.....-"),
        ((1, 1), 3, "bg" * 50 + "ggg", "+" + "." * 100 + "-."),  # flapping is one event
        ((3, 3), 3, "bg" * 50, "." * 100),  # or none
        ((2, 3), 1, "bggbgbg", ".....+-"),
        ((2, 3), 2, "bbggbb", ".+.-.+"),
        ((3, 3), 1, "bbgbbb", ".....+"),
        ((1, 1), 2, "bguuug", "+....-"),  # what is unknown breaks no row
        ((2, 3), 1, "buuub", "....+"),  # and is no look
        ((1, 1), 2, "bgmgg", "+...-"),  # inside the hysteresis is not good
        ((1, 1), 1, "uuuumm", "......"),
        ((1, 1), 3, "b   ", "+..-"),  # gone
        ((1, 1), 3, "b  b  ggg", "+.....-.."),  # nor mentioned any more is as good
        ((1, 1), 1, "gggg", "...."),
    ],
)
def test_n_of_m_and_hysteresis(bad: tuple[int, int], good: int, healths: str, told: str) -> None:
    letters = {"b": BAD, "g": GOOD, "m": BETWEEN, "u": UNKNOWN, " ": None}
    assert transitions(Alerts([rule(bad=bad, good=good)]), [letters[one] for one in healths]) == told


def test_an_alert_carries_the_evidence_of_its_first_bad_look() -> None:
    alerts = Alerts([rule(bad=(2, 3))])
    alerts.step(snapshot(5, ()), [condition(BAD)])
    (alert,) = alerts.step(snapshot(7, ()), [condition(BAD, cpus=frozenset({2, 3}))])
    assert alert.fields() == {
        "rule": "Hot",
        "subject": "cpu1",
        "status": AlertState.FIRING,
        "severity": Severity.WARNING,
        "since": "2026-11-21T10:00:05.000Z",
        "at": "2026-11-21T10:00:07.000Z",
        "observed": 2,
        "expected": 1,
        "source": "sensor",
        "summary": "it is hot",
        "fix": "cool it",
        "cpus": "2-3",
    }
    assert alerts.firing == (alert,)


_RIGHT = datetime(2026, 11, 21, 10, tzinfo=UTC)


def seen_at(up_s: float, ahead: timedelta = timedelta(), boot: str = "this") -> Snapshot:
    """A look by a wall clock that is so much ahead."""
    return Snapshot(up_s, timestamp(_RIGHT + timedelta(seconds=up_s) + ahead), (), boot)


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1), timedelta(days=400)])
def test_the_moments_of_an_alert_are_those_of_the_clock_as_it_is_set_now(ahead: timedelta) -> None:
    alerts = Alerts([rule(bad=(2, 2), good=1)])
    alerts.step(seen_at(5, ahead), [condition(BAD)])
    (fired,) = alerts.step(seen_at(7, ahead), [condition(BAD)])
    alerts = Alerts.load(json.loads(json.dumps(alerts.save())), [rule(bad=(2, 2), good=1)])  # the monitor began anew
    (over,) = alerts.step(seen_at(9), [condition(GOOD)])
    shown = [told(alert, seen_at(10).moment) for alert in (fired, over)]
    assert [(alert.since, alert.at) for alert in shown] == [
        (seen_at(5).at, seen_at(7).at),
        (seen_at(5).at, seen_at(9).at),
    ]
    assert {alert.event for alert in (fired, over, *shown)} == {fired.since}


@pytest.mark.parametrize(
    ("moment", "now", "shown"),
    [
        (seen_at(5), seen_at(9), seen_at(5).at),
        (seen_at(5), seen_at(9, timedelta(milliseconds=700)), seen_at(5).at),  # slewed: it stays as it was told
        (seen_at(5), seen_at(5.2, timedelta(milliseconds=-700)), seen_at(4.5).at),  # and is never still to come
        (seen_at(5, boot="last"), seen_at(9), seen_at(5).at),
        (seen_at(5, timedelta(hours=1), boot="last"), seen_at(9), seen_at(9).at),
        (seen_at(5, timedelta(hours=1), boot=""), seen_at(9), seen_at(5, timedelta(hours=1)).at),  # nothing is known
    ],
)
def test_a_moment_by_the_clock_as_it_is_set_now(moment: Snapshot, now: Snapshot, shown: str) -> None:
    assert shown_by(now.moment, moment.moment) == shown


def test_an_event_that_an_earlier_version_remembers_stays_the_same_one() -> None:
    fields = {**msgspec.to_builtins(fired_at_once()), "began": None, "came": None}
    row = {"rule": "Hot", "subject": "cpu1", "recent": "x", "good": 0, "since": fields["since"], "alert": fields}
    alerts = Alerts.load({"version": 1, "tracks": [row]}, [rule(good=1)])
    (over,) = alerts.step(seen_at(-60), [condition(GOOD)])  # by a clock that was set back meanwhile
    assert over.event == fields["since"]
    shown = told(over, seen_at(-50).moment)
    assert shown.since <= shown.at == seen_at(-60).at


def fired_at_once() -> Alert:
    (fired,) = Alerts([rule()]).step(seen_at(0), [condition(BAD)])
    return fired


def test_an_unplugged_subject_whose_source_is_silent_stays() -> None:
    alerts = Alerts([rule(good=2)])
    alerts.step(snapshot(0, ()), [condition(BAD)])
    silent = sample("anything", "host", None, "sensor", freshness=Freshness.NO_DATA)
    assert not any(alerts.step(snapshot(second, [silent]), ()) for second in range(1, 50))
    assert [len(alerts.step(snapshot(50 + second, ()), ())) for second in range(2)] == [0, 1]


def test_good_by_other_sources_is_not_known_while_the_one_that_fired_is_silent() -> None:
    alerts = Alerts([rule(good=1)])
    alerts.step(snapshot(0, ()), [condition(BAD)])
    silent = sample("anything", "host", None, "sensor", freshness=Freshness.STALE)
    assert alerts.step(snapshot(1, [silent]), [condition(GOOD)]) == ()
    assert len(alerts.step(snapshot(2, [silent._replace(freshness=Freshness.FRESH)]), [condition(GOOD)])) == 1


def test_a_rule_that_broke_resolves_nothing() -> None:
    alerts = Alerts([rule(good=1), rule("Other", good=1)])
    alerts.step(snapshot(0, ()), [condition(BAD), condition(BAD, "Other")])
    broken = condition(UNKNOWN, subject=FAILED)
    assert [alert.rule for alert in alerts.step(snapshot(1, ()), [broken])] == ["Other"]
    assert [alert.rule for alert in alerts.step(snapshot(2, ()), ())] == ["Hot"]


def test_the_other_rules_go_on_when_one_breaks() -> None:
    def breaks(history: History) -> tuple[Condition, ...]:
        raise ValueError("odd")

    history = History()
    history.add(snapshot(0, ()))
    rules = (rule()._replace(judge=breaks), rule("Other")._replace(judge=lambda history: [condition(BAD, "Other")]))
    first, second = judge(history, rules)
    assert (first.rule, first.subject, first.health) == ("Hot", FAILED, UNKNOWN)
    assert "ValueError: odd" in first.summary
    assert second.rule == "Other"


def test_what_another_alert_explains_waits_until_that_is_over() -> None:
    rules = [rule("Slow", good=1), rule("Hot", explained_by=("Slow",), good=1)]
    alerts = Alerts(rules)
    both = [condition(BAD, "Hot", cpus=frozenset({3})), condition(BAD, "Slow", "package0", frozenset({2, 3}))]
    assert [alert.rule for alert in alerts.step(snapshot(0, ()), both)] == ["Slow"]  # whatever the order
    other = condition(BAD, "Hot", "cpu9", frozenset({9}))
    assert [alert.subject for alert in alerts.step(snapshot(1, ()), [*both, other])] == ["cpu9"]
    told = alerts.step(snapshot(2, ()), [both[0], condition(GOOD, "Slow", "package0"), other])
    assert [(alert.rule, alert.status) for alert in told] == [("Slow", "resolved"), ("Hot", "firing")]


def test_a_rule_that_is_no_more_resolves_and_what_it_said_is_not_said_as_if_it_held() -> None:
    alerts = Alerts([rule()])
    (bad,) = alerts.step(snapshot(0, ()), [condition(BAD)])
    newer = Alerts.load(alerts.save(), [rule("Other")])
    (ended,) = newer.step(snapshot(1, ()), ())
    assert (ended.status, ended.summary) == ("resolved", f"over; it said: {bad.summary}")
    assert newer.step(snapshot(2, ()), [condition(BAD)]) == ()


@pytest.mark.parametrize(
    "saved",
    [None, 7, [], {}, {"version": 99, "tracks": []}, {"version": 1, "tracks": 3}, {"version": 1, "tracks": [3, {}]},
     {"version": 1, "tracks": [{"rule": "Hot", "subject": "x", "recent": "x", "good": 0, "since": "",
                                "alert": {"status": "odd"}}]}],
)  # fmt: skip
def test_a_state_of_another_shape_starts_anew(saved: object) -> None:
    assert Alerts.load(saved, [rule()]).firing == ()


def test_only_what_is_not_well_is_remembered() -> None:
    alerts = Alerts([rule(bad=(2, 3), good=1)])
    for second in range(1000):
        health = BAD if second % 7 == 0 else GOOD
        alerts.step(snapshot(second, ()), [condition(health, subject=f"cpu{second % 50}")])
    assert len(alerts.save()["tracks"]) < 50
    for second in range(1000, 1010):
        alerts.step(snapshot(second, ()), [condition(GOOD, subject=f"cpu{cpu}") for cpu in range(50)])
    assert alerts.save()["tracks"] == []


RULES = [
    rule("A", bad=(1, 1), good=1),
    rule("B", bad=(2, 3), good=2, explained_by=("A",)),
    rule("C", bad=(1, 1), good=3, lasts=True, explained_by=("B", "C")),
]
one_condition = st.builds(
    condition,
    st.sampled_from(list(Health)),
    st.sampled_from("ABC"),
    st.sampled_from(["cpu1", "package0"]),
    st.frozensets(st.integers(0, 3), max_size=3),
)
one_look = st.tuples(st.lists(one_condition, max_size=7), st.sampled_from([None, *Freshness]))


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(one_look, max_size=40), st.sets(st.integers(0, 39)))
def test_fire_and_resolve_alternate_and_a_restart_changes_nothing(
    series: list[tuple[list[Condition], Freshness | None]], restarts: set[int]
) -> None:
    steady, restarted = Alerts(RULES), Alerts(RULES)
    firing: dict[str, Alert] = {}
    for number, (conditions, freshness) in enumerate(series):
        seen = snapshot(number, [sample("anything", "host", 1, "sensor", freshness=freshness)] if freshness else ())
        told = steady.step(seen, conditions)
        if number in restarts:
            restarted = Alerts.load(json.loads(json.dumps(restarted.save())), RULES)
        assert restarted.step(seen, conditions) == told
        for alert in told:
            if alert.status is AlertState.FIRING:
                assert alert.identity not in firing
                assert any(one.health is BAD and f"{one.rule}[{one.subject}]" == alert.identity for one in conditions)
                firing[alert.identity] = alert
            else:
                assert firing.pop(alert.identity).since == alert.since
        assert {alert.identity for alert in steady.firing} == firing.keys()
        for alert in steady.firing:  # as it fired, but for the CPUs that it came to stand for, and what is said of them
            known = firing[alert.identity]
            as_fired = {name: getattr(known, name) for name in ("cpus", "observed", "summary", "fix")}
            assert alert == known or parse_shown(alert.cpus) > parse_shown(known.cpus)
            assert replace(alert, **as_fired) == known


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.sampled_from([GOOD, BETWEEN, UNKNOWN]), max_size=30), st.lists(st.just(UNKNOWN), max_size=30))
def test_without_bad_nothing_fires_and_unknown_resolves_nothing(calm: list[Health], dark: list[Health]) -> None:
    assert set(transitions(Alerts([rule()]), calm)) <= {"."}
    assert set(transitions(Alerts([rule()]), [BAD, *dark])) <= {"+", "."}


def test_an_alert_that_comes_to_concern_more_cpus_names_them_all_and_is_no_second_event() -> None:
    alerts = Alerts((rule(),))
    (fired,) = alerts.step(snapshot(0, ()), [condition(BAD, cpus=frozenset({2}))])
    more = condition(BAD, cpus=frozenset({2, 3}))._replace(summary="both are hot", observed=3)
    assert alerts.step(snapshot(1, ()), [more]) == ()
    (now,) = alerts.firing
    assert (now.cpus, now.summary, now.observed, now.since, now.at) == ("2-3", "both are hot", 3, fired.since, fired.at)
    assert alerts.step(snapshot(2, ()), [condition(BAD, cpus=frozenset({3}))]) == ()
    assert alerts.firing == (now,)  # it was of both
    *_, (over,) = [alerts.step(snapshot(3 + number, ()), [condition(GOOD)]) for number in range(rule().good)]
    assert (over.status, over.cpus) == (AlertState.RESOLVED, "2-3")
