"""preflight's one verdict: the worst of what was gathered decides, and every reason for it is given, in order."""

from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.probe.samples import typed_result
from tunectl.fix import of_text
from tunectl.model import Finding, Outcome, Severity, cost
from tunectl.preflight.gate import Parts, Problem, decide
from tunectl.shapes import Feed, Jitter, Load, Smis, typed

RANKS = ("go", "pending-reboot", "unknown", "no-go")  # the better ones first
MEND = of_text("mend it")


class Given(NamedTuple):
    """One part's evidence, the best verdict that it leaves possible, lenient and strict, and what a reason is about."""

    name: str
    findings: tuple[Finding, ...] = ()
    verdict: str = "go"
    strict: str = "go"
    about: str | None = None  # None: it gives no reason; "": one that is no finding's and no limit's

    def best(self, is_strict: bool) -> str:
        return self.strict if is_strict else self.verdict


def finding(knob: str, outcome: Outcome, instance: str = "7", **more: Any) -> Finding:
    return Finding(knob, instance, outcome, "seen", "wanted", **{"reason": f"it is {outcome}", "fix": MEND, **more})


def given(knob: str, verdict: str, strict: str, *findings: Finding) -> Given:
    return Given(f"{knob}: {findings[0].outcome}", findings, verdict, strict, knob)


def outcomes(knob: str) -> tuple[Given, ...]:
    """What each outcome of a single finding amounts to."""
    go = (Outcome.COMPLIANT, Outcome.UNSUPPORTED, Outcome.WAIVED)
    return (
        Given(f"{knob}: nothing"),
        *(Given(f"{knob}: {outcome}", (finding(knob, outcome),)) for outcome in go),
        given(knob, "no-go", "no-go", finding(knob, Outcome.DRIFTED)),
        given(knob, "no-go", "no-go", finding(knob, Outcome.REFUSED)),
        given(knob, "go", "go", finding(knob, Outcome.REFUSED, harmful=False)),
        given(knob, "pending-reboot", "pending-reboot", finding(knob, Outcome.PENDING_REBOOT)),
        given(knob, "unknown", "unknown", finding(knob, Outcome.UNREADABLE), finding(knob, Outcome.COMPLIANT)),
    )


VERIFY = (
    *outcomes("mm.ksm"),
    # What is left unread in order not to interrupt an isolated CPU is no part of the proof, ...
    given("cpu.spared", "go", "unknown", finding("cpu.spared", Outcome.UNREADABLE), finding("a.b", Outcome.COMPLIANT)),
    # ... but where no other knob could be read either, nothing was verified.
    Given("no knob", (finding("cpu.spared", Outcome.UNREADABLE),), "unknown", "unknown"),
)
CHECK = (
    *outcomes("check.tick"),
    given("check.tick", "unknown", "unknown", finding("check.tick", Outcome.UNREADABLE)),
    # The engine stands still while the probe measures: nobody can look at its threads then.
    given("check.trading_alone", "go", "unknown", finding("check.trading_alone", Outcome.UNREADABLE)),
)
THERMAL = {
    "ok": Given("cool", (finding("thermal.zone", Outcome.COMPLIANT),)),
    "throttled": given("thermal.zone", "no-go", "no-go", finding("thermal.zone", Outcome.DRIFTED)),
    "unknown": Given("no sensor", (finding("thermal.zone", Outcome.UNSUPPORTED),), "go", "unknown", ""),
}
KEPT = typed_result(budget={"verdict": "within", "broken": []})
STARVED = typed_result(budget={"verdict": "not-judged", "broken": [], "reason": "a CPU was never measured"})
BROKEN = typed_result(budget={"verdict": "broken", "broken": ["CPU 7 is late"], "broken_limits": ["max_ns"]})
ENDED = msgspec.structs.replace(BROKEN, load=Load(names=["memory"], ran=False))
NONE, UNJUDGED = Problem("probe", "no CPU"), Problem("probe", "not judged", is_taken=True)
PROBES: tuple[tuple[Jitter | None, Problem, Given], ...] = (
    (KEPT, Problem(), Given("budget kept")),
    (BROKEN, Problem(), Given("budget broken", (), "no-go", "no-go", "probe")),
    (STARVED, Problem(), Given("starved", (), "unknown", "unknown", "")),
    (typed_result(), Problem(), Given("no budget", (), "unknown", "unknown", "")),
    (None, Problem(), Given("not probed", (), "unknown", "unknown", "")),
    (None, NONE, Given("no probe", (), "unknown", "unknown", "")),
    (KEPT, UNJUDGED, Given("not judged", (), "unknown", "unknown", "")),
)
WELL = Parts(verify=(finding("mm.ksm", Outcome.COMPLIANT),), thermal_verdict="ok", probe=KEPT)
SPARED = frozenset({"cpu.spared"})
PENDING, HOT = finding("a.pending", Outcome.PENDING_REBOOT), finding("thermal.zone", Outcome.DRIFTED)


def judged(strict: bool = False, **changes: Any) -> tuple[str, list[str]]:
    """The verdict of a host that is well but for these parts, and what each reason is about."""
    verdict, reasons = decide(replace(WELL, **changes), strict)
    return verdict, [one.about for one in reasons]


def texts(*findings: Finding) -> list[str]:
    return [one.text for one in decide(replace(WELL, verify=findings), strict=False)[1]]


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
@pytest.mark.parametrize("verify", VERIFY, ids=lambda one: one.name)
def test_the_worst_part_decides_and_every_reason_is_given(verify: Given, strict: bool) -> None:
    for check, (thermal, heat), (probe, problem, measured) in product(CHECK, THERMAL.items(), PROBES):
        every = (verify, check, heat, measured)
        parts = {"verify": verify.findings, "check": check.findings, "thermal": heat.findings, "spared": SPARED}
        verdict, about = judged(strict, **parts, thermal_verdict=thermal, probe=probe, probe_problem=problem)
        case = [one.name for one in every]
        assert verdict == max((one.best(strict) for one in every), key=RANKS.index), case
        wanted = {one.about for one in every if one.best(strict) != "go" and one.about is not None}
        assert wanted <= set(about), case
        assert (verdict == "go") == (not about), case


STILL = typed_result(budget={"verdict": "within", "broken": []}, simultaneous_stops={"count": 0})
TOLD = typed_result(budget={"verdict": "broken", "broken": ["SMIs come at 1/s"], "broken_limits": ["smis_per_s"]})


@pytest.mark.parametrize(
    ("smis", "limit", "probe", "verdicts"),
    [
        (Smis(0, seconds=30), 0, KEPT, ("go", "go")),
        (Smis(1, seconds=30), 0, KEPT, ("no-go", "no-go")),
        (Smis(30, seconds=30), 1, KEPT, ("go", "go")),
        (Smis(31, seconds=30), 1, KEPT, ("no-go", "no-go")),
        (Smis(31, seconds=30), None, KEPT, ("go", "go")),
        (Smis(31, seconds=30), 1, TOLD, ("no-go", "no-go")),
        # What nobody can tell counts with --strict, unless the probe would have seen all CPUs stop.
        (Smis(None, "no counter"), 0, KEPT, ("go", "unknown")),
        (Smis(None, "no counter"), 0, STILL, ("go", "go")),
        (Smis(None, "no counter"), None, KEPT, ("go", "go")),
    ],
)
def test_smis_beyond_their_limit_are_no_go(
    smis: Smis, limit: float | None, probe: Jitter, verdicts: tuple[str, str]
) -> None:
    """Whenever they came, and each reason once."""
    for strict, verdict in zip((False, True), verdicts, strict=True):
        found, about = judged(strict, smis=smis, smi_limit=limit, probe=probe)
        assert (found, len(about)) == (verdict, verdict != "go")


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("changes", "verdict", "about"),
    [
        ({"beside": ("12 ticks on CPU 9",)}, "no-go", [""]),
        ({"not_measured": ("CPU 3 was left to feed",)}, "unknown", [""]),
        ({"not_measured": ("CPU 3 was left",), "probe": None}, "unknown", [""]),
        ({"stopped": "Ctrl-C came"}, "unknown", [""]),
        ({"stopped": "Ctrl-C came", "probe": BROKEN}, "no-go", ["probe", ""]),
        ({"check": (PENDING,)}, "pending-reboot", ["a.pending"]),
        ({"check": (PENDING,), "unlimited": ("max_ns",)}, "unknown", ["", "a.pending"]),
        ({"thermal": (HOT,), "unlimited": ("max_ns",)}, "no-go", ["thermal.zone", ""]),
        ({}, "go", []),
        # Beside a load, the probe counts as the quiet run does; what broke before the load ended broke.
        ({"loaded": KEPT}, "go", []),
        ({"loaded": BROKEN}, "no-go", ["probe under load"]),
        ({"probe": BROKEN, "loaded": KEPT}, "no-go", ["probe"]),
        ({"loaded": STARVED}, "unknown", [""]),
        ({"load_problem": Problem("load memory", "refused: engine runs")}, "unknown", [""]),
        ({"loaded": ENDED}, "no-go", ["probe under load"]),
    ],
)  # fmt: skip
def test_what_else_decides(strict: bool, changes: dict[str, Any], verdict: str, about: list[str]) -> None:
    assert judged(strict, **changes) == (verdict, about)


def fed(verdict: str, *broken: str) -> Feed:
    return typed({"cells": [], "budget": {"verdict": verdict, "broken": broken}}, Feed)


@pytest.mark.parametrize(
    ("changes", "verdict", "about"),
    [
        ({"feed": fed("within")}, "go", []),
        ({"feed": fed("broken", "late")}, "no-go", ["feed"]),
        ({"feed": fed("not-judged")}, "unknown", [""]),
        ({"feed_problem": "feed: not run: it needs two"}, "unknown", [""]),
    ],
)
def test_feed_counts_where_it_was_asked_for(changes: dict[str, Any], verdict: str, about: list[str]) -> None:
    assert judged(**changes) == (verdict, about)
    assert judged(**changes, probe=BROKEN) == ("no-go", ["probe", *about])


@pytest.mark.parametrize(
    ("knob", "lenient"),
    [("mm.ksm", "unknown"), ("check.tick", "unknown"), ("thermal.zone", "go"), ("cpu.spared", "go")],
)
@pytest.mark.parametrize("section", ["verify", "check", "thermal"])
def test_what_cannot_be_read_counts_by_what_it_is_and_not_by_where_it_stands(
    section: str, knob: str, lenient: str
) -> None:
    dark = {section: (*getattr(WELL, section), finding(knob, Outcome.UNREADABLE)), "spared": SPARED}
    assert [judged(strict, **dark)[0] for strict in (False, True)] == [lenient, "unknown"]


def test_reasons_come_in_the_order_of_their_weight() -> None:
    drifts = [finding(f"a.{one}", Outcome.DRIFTED, severity=one) for one in reversed(Severity)]
    dark = finding("b.dark", Outcome.UNREADABLE)
    verify = (PENDING, dark, *drifts)
    _, about = judged(True, verify=verify, thermal_verdict="unknown", probe=BROKEN, probe_problem=NONE)
    assert about == [*(f"a.{one}" for one in sorted(Severity, key=cost)), "probe", "", "b.dark", "", "a.pending"]


def test_everything_that_is_unknown_is_said_in_its_order() -> None:
    parts = Parts(
        verify=(finding("cpu.spared", Outcome.UNREADABLE),),
        check=(finding("check.tick", Outcome.UNREADABLE),),
        thermal_verdict="unknown",
        thermal_reason="no sensor",
        probe_problem=NONE,
        not_measured=("CPU 3",),
        stopped="Ctrl-C",
        load_problem=Problem("load", "none"),
        feed_problem="feed: none",
        unlimited=("max_ns", "stolen_ppm"),
        spared=SPARED,
    )
    reasons = decide(parts, strict=True)[1]
    assert [one.about for one in reasons] == [*[""] * 5, "cpu.spared", "check.tick", *[""] * 3]
    assert [one.text for one in reasons[:5]] == ["Ctrl-C", str(NONE), "CPU 3", "load: none", "feed: none"]
    assert len(decide(replace(parts, check=()), strict=False)[1]) == 8  # that no knob could be read is one of them


@pytest.mark.parametrize(
    ("members", "lines"),
    [
        ([{"instance": "2"}, {"instance": "10"}, {"instance": "3"}], ["a.b[2-3,10]"]),
        ([{"instance": "2"}, {"instance": "eth0"}, {"instance": ""}], ["a.b[2,eth0,]"]),
        ([{"instance": ""}, {"instance": ""}], ["a.b"]),
        ([{"reason": "x"}, {"reason": "y"}], ["a.b[7]"]),
        *(([{}, {field: of_text("other")}], ["a.b[7]"] * 2) for field in ("observed", "desired", "fix")),
        # The fixes of a check's targets may differ in one line.
        ([{"knob": "check.b"}, {"knob": "check.b", "fix": of_text("other")}], ["check.b[7]"]),
    ],
)
def test_targets_that_show_the_same_are_one_line(members: list[dict[str, Any]], lines: list[str]) -> None:
    base = finding("a.b", Outcome.DRIFTED)
    assert [one.split(" ")[0] for one in texts(*(base._replace(**more) for more in members))] == lines


@pytest.mark.parametrize(
    ("reasons", "says"),
    [(["x", "x"], "x"), (["x", "y"], "x (the first of 2 such reasons)"), (["x.", "x."], "x")],
)
def test_one_of_several_reasons_is_said(reasons: list[str], says: str) -> None:
    found = [finding("a.b", Outcome.DRIFTED, str(n), reason=one) for n, one in enumerate(reasons)]
    assert texts(*found) == [f"a.b[0-1] is seen, should be wanted: {says}; fix: mend it"]
