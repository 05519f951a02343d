"""Where the probe proves nothing, the list of what to do says how it would."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.probe.samples import result
from tunectl import kinds
from tunectl.command import Command
from tunectl.fix import Fix, Kind, to_type
from tunectl.hostfile.budget import KEYS
from tunectl.preflight.beside import Beside
from tunectl.preflight.gate import NO_PROBLEM, Problem
from tunectl.preflight.unproved import to_feed, to_load, to_prove
from tunectl.probe.budget import suggested_s
from tunectl.report.actions import actions_of
from tunectl.shapes import Feed, Jitter, typed

ENGINE = Beside(3, ("engine (pid 7)",), 5.0, True, 0, 0, 0.0, 0.0)
LIMITS = {"max_ns": 20_000, "interruptions_per_s": 2.5, "stolen_ppm": 50}


def judged(verdict: str = "within", **more: Any) -> dict[str, Any]:
    budget = {"limits": LIMITS, "verdict": verdict, "broken": [], "not_judged": [], "reason": "", **more}
    return result(budget=budget, not_measured=[])


TAKEN = Problem("probe", "not run", is_taken=True)
INSTALL = kinds.install_load()


def done(fixes: Iterable[Fix]) -> list[Any]:
    """What is to be done: the kind and the arguments of a command, or that there is something to decide."""
    every = tuple(fixes)
    actions = actions_of([], unproved=every)
    assert all(one["mends"] == ["probe.budget"] and not one["reboot"] for one in actions)
    tasks = [task for fix in every for task in fix.tasks]
    return [(one.text.kind, one.text.arguments) if isinstance(one.text, Command) else one.kind for one in tasks]


def to_do(probe: dict[str, Any] | None = None, *, live: bool = True, problem: Problem = NO_PROBLEM, **more: Any) -> Any:
    found = typed(probe, Jitter) if probe else None
    return done(to_prove(live, problem, found, more.get("beside", ()), more.get("loads", ())))


SHORT = ["stolen_ppm: measured for 0.2 s, and this limit needs 4 s (--duration 4)"]
LEFT = {"not_measured": [{"cpu": 2, "reason": "feed (pid 9) runs there"}]}
UNTRUSTED = judged("not-judged", reason="the run was interrupted, so rare interruptions had less chance to show")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"probe": judged()}, []),
        ({"probe": judged("broken")}, []),
        # A run that was too short is typed again with the time that all limits need.
        ({"probe": judged("not-judged", not_judged=SHORT)}, [("preflight", {"loads": [], "seconds": 4})]),
        ({"probe": judged("broken", not_judged=SHORT)}, [("preflight", {"loads": [], "seconds": 4})]),
        ({"probe": judged("broken", not_judged=SHORT), "loads": ("memory",)},
         [("preflight", {"loads": ["memory"], "seconds": 4})]),
        ({"probe": UNTRUSTED}, [("preflight", {"loads": []})]),
        # Limits that no run can show are for the host file.
        *(({"probe": judged("not-judged", limits=limits, not_judged=[*limits])}, [Kind.DECIDE])
          for limits in ({}, dict.fromkeys(KEYS, 1e-9), {"stolen_ppm": 50})),
        # A CPU that somebody has is to be freed, or measured beside him.
        ({"probe": {**judged("not-judged", reason="CPU 2 was not measured"), **LEFT}, "beside": (ENGINE,)},
         [Kind.DECIDE]),
        ({"problem": TAKEN}, [Kind.DECIDE]),
        ({"problem": Problem("probe", "none of the isolated CPUs is online")}, [Kind.DECIDE]),
        ({"problem": Problem("probe", "a recorded host cannot be measured"), "live": False}, [Kind.DECIDE]),
    ],
)  # fmt: skip
def test_what_would_have_the_probe_prove_something(given: dict[str, Any], wanted: list[Any]) -> None:
    assert to_do(**given) == wanted
    assert suggested_s(LIMITS) >= 4


@pytest.mark.parametrize(("is_guest", "key", "wanted"), [
    (True, "stolen_ppm", [Kind.DECIDE]), (False, "stolen_ppm", []), (True, "max_ns", []),
])  # fmt: skip
def test_time_that_a_guest_lacks_is_asked_of_the_host_below(is_guest: bool, key: str, wanted: list[Any]) -> None:
    probe = typed(judged("broken", broken=["too much"], broken_limits=[key]), Jitter)
    assert done(to_prove(True, NO_PROBLEM, probe, (), is_guest=is_guest)) == wanted


def test_who_has_a_cpu_is_named_and_what_measures_beside_him() -> None:
    probe = {**judged("not-judged", reason="CPU 2 was not measured"), **LEFT}
    (fix,) = to_prove(True, NO_PROBLEM, typed(probe, Jitter), (ENGINE,))
    assert "CPU 3: engine (pid 7); CPU 2: feed (pid 9) runs there" in str(fix)
    (alone,) = to_prove(True, TAKEN, None, ())
    assert [str(one).endswith(kinds.preflight(intrude=True)) for one in (fix, alone)] == [True, True]


@pytest.mark.parametrize(
    ("problem", "load", "verdict", "wanted"),
    [
        (NO_PROBLEM, True, "within", []),
        (NO_PROBLEM, True, "broken", [("probe-jitter", {"loads": ["memory", "timers"]})]),
        (NO_PROBLEM, False, "not-judged", [("preflight", {"loads": ["memory", "timers"]})]),
        (Problem("load memory", "not run", mending=to_type(INSTALL)), None, "", [("install-load", {})]),
        (Problem("load memory", "refused: engine runs"), None, "", [Kind.DECIDE]),
    ],
)
def test_a_load_that_did_not_run_and_what_broke_beside_one(
    problem: Problem, load: bool | None, verdict: str, wanted: list[Any]
) -> None:
    beside = {"names": ["memory", "timers"], "ran": load, "reason": "it ended"}
    loaded = None if load is None else typed({**judged(verdict), "load": beside}, Jitter)
    assert done(to_load(("memory", "timers"), problem, loaded)) == wanted


@pytest.mark.parametrize(
    ("problem", "budget", "wanted"),
    [
        ("", {"limits": {"due_to_book_p99_9_ns": 5}, "verdict": "within"}, []),
        ("", {"limits": {"due_to_book_p99_9_ns": 5}, "verdict": "broken"}, [("probe-feed", {})]),
        ("", {"limits": {"due_to_book_p99_9_ns": 5}, "reason": "void"}, [("preflight", {"feed": True})]),
        ("", {}, [Kind.DECIDE]),
        ("feed: not run: it needs two isolated CPUs", None, [Kind.DECIDE]),
    ],
)
def test_what_would_have_feed_judged(problem: str, budget: dict[str, Any] | None, wanted: list[Any]) -> None:
    feed = None if budget is None else typed({"cells": [], "budget": budget}, Feed)
    assert done(to_feed(problem, feed)) == wanted
