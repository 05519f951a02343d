"""preflight's one verdict: the worst of what was gathered decides, and every reason for it is said."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.probe.samples import typed_result
from tunectl.fix import Fix
from tunectl.model import Finding, Match, Outcome, Severity, cost
from tunectl.preflight.gate import Parts, decide
from tunectl.shapes import Feed, Jitter, Load, typed

RANKS = ("go", "pending-reboot", "unknown", "no-go")  # the better ones first


class Given(NamedTuple):
    """One part's evidence, and the best verdict that it leaves possible."""

    name: str
    findings: tuple[Finding, ...]
    verdict: str
    strict: str  # the same with --strict
    said: str = ""  # a reason that must be given where the verdict is not go

    def best(self, is_strict: bool) -> str:
        return self.strict if is_strict else self.verdict


MEND = Fix("mend it")


def finding(knob: str, outcome: Outcome, **more: Any) -> Finding:
    return Finding(knob, "7", outcome, "seen", "wanted", f"{knob} is {outcome}", MEND, **more)


def outcomes(knob: str) -> tuple[Given, ...]:
    """What each outcome of a single finding amounts to."""
    go = (Outcome.COMPLIANT, Outcome.UNSUPPORTED, Outcome.WAIVED)
    well = finding(knob, Outcome.COMPLIANT)
    return (
        Given(f"{knob}: nothing", (), "go", "go"),
        *(Given(f"{knob}: {outcome}", (finding(knob, outcome),), "go", "go") for outcome in go),
        given(knob, "no-go", "no-go", finding(knob, Outcome.DRIFTED)),
        given(knob, "no-go", "no-go", finding(knob, Outcome.REFUSED)),
        given(knob, "go", "go", finding(knob, Outcome.REFUSED, harmful=False)),
        given(knob, "pending-reboot", "pending-reboot", finding(knob, Outcome.PENDING_REBOOT)),
        given(knob, "unknown", "unknown", finding(knob, Outcome.UNREADABLE), well),
    )


def given(knob: str, verdict: str, strict: str, *findings: Finding) -> Given:
    return Given(f"{knob}: {findings[0].outcome}", findings, verdict, strict, findings[0].reason)


VERIFY = (
    *outcomes("mm.ksm"),
    # What is left unread in order not to interrupt an isolated CPU is no part of the proof, ...
    given("cpu.spared", "go", "unknown", finding("cpu.spared", Outcome.UNREADABLE), finding("a.b", Outcome.COMPLIANT)),
    # ... but where no other knob could be read either, nothing was verified.
    Given("no knob", (finding("cpu.spared", Outcome.UNREADABLE),), "unknown", "unknown", ""),
)
CHECK = (
    *outcomes("check.tick"),
    Given("no check", (finding("check.tick", Outcome.UNREADABLE),), "unknown", "unknown", "check.tick is unreadable"),
    # The engine stands still while the probe measures: nobody can look at its threads then.
    given("check.trading_alone", "go", "unknown", finding("check.trading_alone", Outcome.UNREADABLE)),
)
HOT = finding("thermal.zone", Outcome.DRIFTED)
THERMAL = {
    "ok": Given("cool", (finding("thermal.zone", Outcome.COMPLIANT),), "go", "go"),
    "throttled": Given("hot", (HOT,), "no-go", "no-go", HOT.reason),
    "unknown": Given("no sensor", (finding("thermal.zone", Outcome.UNSUPPORTED),), "go", "unknown", "no sensor here"),
}
KEPT = typed_result(budget={"verdict": "within", "broken": []})
STARVED = typed_result(budget={"verdict": "not-judged", "broken": [], "reason": "a CPU was never measured"})
BROKEN = typed_result(budget={"verdict": "broken", "broken": ["max_ns of CPU 7"]})
PROBES: tuple[tuple[Jitter | None, str, Given], ...] = (
    (KEPT, "", Given("budget kept", (), "go", "go")),
    (BROKEN, "", Given("budget broken", (), "no-go", "no-go", "probe: max_ns of CPU 7")),
    (STARVED, "", Given("starved", (), "unknown", "unknown", "probe: not judged: a CPU was never measured")),
    (typed_result(), "", Given("no budget", (), "unknown", "unknown", "probe: not judged: it was held to no limit")),
    (None, "", Given("not probed", (), "unknown", "unknown", "probe: nothing was measured")),
    (None, "probe: no CPU", Given("no probe", (), "unknown", "unknown", "probe: no CPU")),
    (KEPT, "probe: not judged", Given("not judged", (), "unknown", "unknown", "probe: not judged")),
)


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
@pytest.mark.parametrize("verify", VERIFY, ids=lambda one: one.name)
def test_the_worst_part_decides_and_every_reason_is_said(verify: Given, strict: bool) -> None:
    for check, (thermal, heat), (probe, problem, judged) in product(CHECK, THERMAL.items(), PROBES):
        parts = Parts(verify.findings, check.findings, heat.findings, thermal, "no sensor here", probe, problem)
        parts = parts._replace(spared=frozenset({"cpu.spared"}))
        verdict, reasons = decide(parts, strict)
        every = (verify, check, heat, judged)
        case = [one.name for one in every]
        assert verdict == max((one.best(strict) for one in every), key=RANKS.index), case
        said = "\n".join(reasons)
        for one in every:
            assert one.best(strict) == "go" or one.said in said, (case, one.said)
        assert (verdict == "go") == (not reasons), (case, reasons)


def test_reasons_come_in_the_order_of_their_weight() -> None:
    findings = (
        finding("a.pending", Outcome.PENDING_REBOOT),
        finding("b.dark", Outcome.UNREADABLE),
        finding("c.drifted", Outcome.DRIFTED),
    )
    parts = Parts(findings, (), (), "unknown", "no sensor", BROKEN, "probe: not judged")
    _, reasons = decide(parts, strict=True)
    assert [reason.split(" ")[0] for reason in reasons] == [
        "c.drifted[7]",
        "probe:",
        "probe:",
        "b.dark[7]",
        "thermal",
        "a.pending[7]",
    ]
    assert reasons[1:3] == ["probe: max_ns of CPU 7", "probe: not judged"]


@pytest.mark.parametrize(
    ("quiet", "loaded", "problem", "verdict", "reason"),
    [
        (KEPT, KEPT, "", "go", ""),
        (KEPT, BROKEN, "", "no-go", "probe under load: max_ns of CPU 7"),
        (BROKEN, KEPT, "", "no-go", "probe: max_ns of CPU 7"),
        (KEPT, STARVED, "", "unknown", "probe under load: not judged: a CPU was never measured"),
        (KEPT, None, "load memory: refused: engine runs", "unknown", "load memory: refused: engine runs"),
    ],
)
def test_what_was_measured_beside_a_load_counts_as_the_quiet_run_does(
    quiet: Jitter, loaded: Jitter | None, problem: str, verdict: str, reason: str
) -> None:
    parts = Parts((finding("mm.ksm", Outcome.COMPLIANT),), (), (), "ok", "", quiet, "")
    found = decide(parts._replace(loaded=loaded, load_problem=problem), strict=False)
    assert found == (verdict, [reason] if reason else [])


def test_what_broke_beside_a_load_that_ended_broke() -> None:
    ended = msgspec.structs.replace(BROKEN, load=Load(names=["memory"], ran=False))
    parts = Parts((finding("mm.ksm", Outcome.COMPLIANT),), (), (), "ok", "", KEPT, "", loaded=ended)
    assert decide(parts, strict=False) == ("no-go", ["probe under load: max_ns of CPU 7"])


def fed(verdict: str, *broken: str, reason: str = "") -> Feed:
    return typed({"cells": [], "budget": {"verdict": verdict, "broken": broken, "reason": reason}}, Feed)


@pytest.mark.parametrize(
    ("feed", "problem", "verdict", "reasons"),
    [
        (fed("within"), "", "go", []),
        (fed("broken", "late"), "", "no-go", ["feed: late"]),
        (fed("not-judged", reason="no limit is set"), "", "unknown", ["feed: not judged: no limit is set"]),
        (fed("not-judged"), "", "unknown", ["feed: not judged: it was held to no limit"]),
        (None, "feed: not run: it needs two", "unknown", ["feed: not run: it needs two"]),
    ],
)
def test_feed_counts_where_it_was_asked_for(feed: Feed | None, problem: str, verdict: str, reasons: list[str]) -> None:
    parts = Parts((finding("mm.ksm", Outcome.COMPLIANT),), (), (), "ok", "", KEPT, "")
    assert decide(parts._replace(feed=feed, feed_problem=problem), strict=False) == (verdict, reasons)
    worse = decide(parts._replace(probe=BROKEN, feed=feed, feed_problem=problem), strict=False)
    assert worse == ("no-go", ["probe: max_ns of CPU 7", *reasons])


@pytest.mark.parametrize("strict", [False, True])
def test_without_a_limit_for_every_key_nothing_is_go(strict: bool) -> None:
    parts = Parts((finding("mm.ksm", Outcome.COMPLIANT),), (), (), "ok", "", KEPT, "")
    assert decide(parts, strict) == ("go", [])
    missing = ["probe: neither the profile nor the host file limits p99_9_ns"]
    assert decide(parts._replace(unlimited=("p99_9_ns",)), strict) == ("unknown", missing)


def only_verify(*findings: Finding) -> list[str]:
    return decide(Parts(findings, (), (), "ok", "", KEPT, ""), strict=False)[1]


def drifted(knob: str, instance: str, **more: Any) -> Finding:
    return Finding(knob, instance, Outcome.DRIFTED, **{"observed": "a", "desired": "b", "fix": MEND, **more})


def test_targets_that_show_the_same_are_one_line() -> None:
    same = [drifted("cpufreq.governor", str(cpu), reason=f"of CPU {cpu}") for cpu in (2, 3, 4, 9)]
    assert only_verify(*same) == [
        "cpufreq.governor[2-4,9] is a, should be b: of CPU 2 (the first of 4 such reasons); fix: mend it"
    ]
    named = [drifted("irq.affinity", name) for name in ("eth0", "eth1")]
    assert only_verify(*named) == ["irq.affinity[eth0,eth1] is a, should be b; fix: mend it"]


@pytest.mark.parametrize("field", ["observed", "desired", "fix"])
def test_targets_that_differ_are_lines_of_their_own(field: str) -> None:
    lines = only_verify(drifted("mm.ksm", "1"), drifted("mm.ksm", "2", **{field: Fix("other")}))
    assert len(lines) == 2


def test_a_checks_fixes_may_differ_in_one_line() -> None:
    one, other = drifted("check.tick", "1", fix=Fix("this")), drifted("check.tick", "2", fix=Fix("that"))
    assert only_verify(one, other) == ["check.tick[1-2] is a, should be b; fix: this"]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (drifted("cpuidle.max_latency_us", "", observed=9, desired=2, match=Match.AT_MOST),
         "is 9, should be at most 2"),
        (drifted("thermal.clock", "", observed=9, desired=12, match=Match.AT_LEAST), "is 9, should be at least 12"),
        (drifted("mm.ksm", "", observed="running", desired="stopped"), "is running, should be stopped"),
        (drifted("boot.tsc", "", observed="reliable", desired=None), "is reliable, should not be there"),
        (drifted("check.ipis", "", observed="many", desired=None), "is many"),
        (drifted("boot.tsc", "", observed=None, desired="reliable"), "is not set, should be reliable"),
        (Finding("thermal.clock", "", Outcome.UNREADABLE, 3594650, None, "no base", MEND), "is 3594650: no base"),
        (Finding("mm.ksm", "", Outcome.UNREADABLE, None, "stopped", "denied", MEND),
         "could not be read, should be stopped: denied"),
        (Finding("check.tick_off", "", Outcome.UNREADABLE, None, None, "idle", MEND), "could not be read: idle"),
    ],
)  # fmt: skip
def test_each_line_is_a_sentence(one: Finding, said: str) -> None:
    parts = Parts((one, finding("a.b", Outcome.COMPLIANT)), (), (), "ok", "", KEPT, "")
    assert decide(parts, strict=True)[1] == [f"{one.knob} {said}; fix: mend it"]


def test_what_is_not_there_and_what_is_empty_are_told_apart() -> None:
    assert only_verify(drifted("mm.ksm", "", observed=None, desired="")) == [
        "mm.ksm is not set, should be empty; fix: mend it"
    ]
    assert only_verify(drifted("mm.ksm", "", observed=None, desired=None, reason="It is so.")) == [
        "mm.ksm: It is so; fix: mend it"
    ]


WELL = Parts((finding("mm.ksm", Outcome.COMPLIANT),), (), (), "ok", "", KEPT, "")
PENDING = finding("a.pending", Outcome.PENDING_REBOOT)
PENDING_LINE = "a.pending[7] is seen, should be wanted: a.pending is pending-reboot; fix: mend it"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("changes", "verdict", "reasons"),
    [
        ({"beside": ("12 ticks on CPU 9",)}, "no-go", ["12 ticks on CPU 9"]),
        ({"not_measured": ("CPU 3 was left to feed",)}, "unknown", ["CPU 3 was left to feed"]),
        ({"not_measured": ("CPU 3 was left",), "probe": None}, "unknown", ["CPU 3 was left"]),
        ({"stopped": "Ctrl-C came"}, "unknown", ["Ctrl-C came"]),
        ({"stopped": "Ctrl-C came", "probe": BROKEN}, "no-go", ["probe: max_ns of CPU 7", "Ctrl-C came"]),
        ({"check": (PENDING,)}, "pending-reboot", [PENDING_LINE]),
        ({"check": (PENDING,), "unlimited": ("max_ns",)}, "unknown", None),
        ({"thermal": (finding("thermal.zone", Outcome.DRIFTED),), "unlimited": ("max_ns",)}, "no-go", None),
    ],
)  # fmt: skip
def test_what_else_decides(strict: bool, changes: dict[str, Any], verdict: str, reasons: list[str] | None) -> None:
    found = decide(WELL._replace(**changes), strict)
    assert found[0] == verdict
    assert reasons is None or found[1] == reasons


@pytest.mark.parametrize(
    ("knob", "lenient"),
    [("mm.ksm", "unknown"), ("check.tick", "unknown"), ("thermal.zone", "go"), ("cpu.spared", "go")],
)
@pytest.mark.parametrize("section", ["verify", "check", "thermal"])
def test_what_cannot_be_read_counts_by_what_it_is_and_not_by_where_it_stands(
    section: str, knob: str, lenient: str
) -> None:
    dark: Any = {section: (*getattr(WELL, section), finding(knob, Outcome.UNREADABLE))}
    parts = WELL._replace(**dark)._replace(spared=frozenset({"cpu.spared"}))
    assert [decide(parts, strict)[0] for strict in (False, True)] == [lenient, "unknown"]


def test_the_dearest_drift_is_said_first() -> None:
    found = [drifted(f"a.{one}", "", severity=one, fix="") for one in reversed(Severity)]
    lines = decide(WELL._replace(verify=tuple(found)), strict=False)[1]
    by_cost = sorted(Severity, key=cost)
    assert [line.split(" ")[0] for line in lines] == [f"a.{one}" for one in by_cost]


def test_everything_that_is_unknown_is_said_in_its_order() -> None:
    parts = Parts(
        verify=(finding("cpu.spared", Outcome.UNREADABLE),),
        check=(finding("check.tick", Outcome.UNREADABLE),),
        thermal=(),
        thermal_verdict="unknown",
        thermal_reason="no sensor",
        probe=None,
        probe_problem="probe: none",
        not_measured=("CPU 3",),
        stopped="Ctrl-C",
        load_problem="load: none",
        feed_problem="feed: none",
        unlimited=("max_ns", "stolen_ppm"),
        spared=frozenset({"cpu.spared"}),
    )
    said = [line.split(":")[0] for line in decide(parts, strict=True)[1]]
    first = ["Ctrl-C", "probe", "CPU 3", "load", "feed"]
    assert said == [*first, said[5], said[6], "probe", "probe", "thermal state"]
    assert [line.split("[")[0] for line in said[5:7]] == ["cpu.spared", "check.tick"]
    lenient = decide(parts._replace(check=()), strict=False)[1]
    assert lenient[5:] == [
        "no knob could be read",
        "probe: neither the profile nor the host file limits max_ns",
        "probe: neither the profile nor the host file limits stolen_ppm",
    ]


@pytest.mark.parametrize(
    ("instances", "name"),
    [
        (["10", "2", "3"], "[2-3,10]"),
        (["2", "eth0"], "[2,eth0]"),
        (["eth0", ""], "[eth0,]"),
        (["", ""], ""),
    ],
)
def test_how_targets_of_one_line_are_named(instances: list[str], name: str) -> None:
    assert only_verify(*(drifted("a.b", one, fix="") for one in instances)) == [f"a.b{name} is a, should be b"]


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["x", "x"], ": x"),
        (["x", "y"], ": x (the first of 2 such reasons)"),
        (["", "y"], ""),
        (["x.", "x."], ": x"),
    ],
)
def test_one_of_several_reasons_is_said(reasons: list[str], said: str) -> None:
    found = [drifted("a.b", str(place), reason=one, fix="") for place, one in enumerate(reasons)]
    assert only_verify(*found) == [f"a.b[0-1] is a, should be b{said}"]
