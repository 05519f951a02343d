"""Where the probe proves nothing, the list of what to do says how it would."""

from __future__ import annotations

from typing import Any

import pytest

from tests.probe.samples import result
from tunectl.preflight.beside import Beside
from tunectl.preflight.unproved import STOP, to_feed, to_load, to_prove
from tunectl.probe.budget import KEYS, suggested_s
from tunectl.report.actions import actions_of
from tunectl.shapes import Feed, Jitter, typed

ENGINE = Beside(3, ("engine (pid 7)",), 5.0, True, 0, 0, 0.0, 0.0)
LIMITS = {"max_ns": 20_000, "interruptions_per_s": 2.5, "stolen_ppm": 50}


def judged(verdict: str = "within", **more: Any) -> dict[str, Any]:
    budget = {"limits": LIMITS, "verdict": verdict, "broken": [], "not_judged": [], "reason": "", **more}
    return result(budget=budget, not_measured=[])


def words(*, live: bool = True, problem: str = "", probe: dict[str, Any] | None = None, **more: Any) -> list[str]:
    found = typed(probe, Jitter) if probe else None
    made = actions_of([], unproved=to_prove(live, problem, found, more.get("beside", ())))
    assert all(one["mends"] == ["probe.budget"] and not one["reboot"] for one in made)
    return [one.get("command") or one["decide"] for one in made]


@pytest.mark.parametrize("verdict", ["within", "broken"])
def test_a_probe_that_was_judged_leaves_nothing_to_do(verdict: str) -> None:
    assert words(probe=judged(verdict)) == []


@pytest.mark.parametrize(
    ("problem", "load", "verdict", "said"),
    [
        ("", True, "within", []),
        ("", True, "broken", ["sudo tunectl probe jitter --attribute --load memory,timers"]),
        ("", False, "not-judged", ["sudo tunectl preflight --load memory,timers"]),
        ("load memory: not run: stress-ng is not installed (sudo apt install stress-ng)", None, "",
         ["sudo apt install stress-ng"]),
        ("load memory: refused: engine runs", None, "",
         ["see to it that the load can run, or leave it out (sudo tunectl preflight --load none): "
          "load memory: refused: engine runs"]),
    ],
)  # fmt: skip
def test_a_load_that_did_not_run_and_what_broke_beside_one(
    problem: str, load: bool | None, verdict: str, said: list[str]
) -> None:
    beside = {"names": ["memory", "timers"], "ran": load, "reason": "it ended"}
    loaded = None if load is None else typed({**judged(verdict), "load": beside}, Jitter)
    made = actions_of([], unproved=to_load(("memory", "timers"), problem, loaded))
    assert [one.get("command") or one["decide"] for one in made] == said


@pytest.mark.parametrize(
    ("problem", "budget", "said"),
    [
        ("", {"limits": {"due_to_book_p99_9_ns": 5}, "verdict": "within"}, []),
        ("", {"limits": {"due_to_book_p99_9_ns": 5}, "verdict": "broken"}, ["sudo tunectl probe feed"]),
        ("", {"limits": {"due_to_book_p99_9_ns": 5}, "reason": "void"}, ["sudo tunectl preflight --feed"]),
        ("", {}, ["set [budget.feed] due_to_book_p99_9_ns in the host file: feed was held to no limit"]),
        ("feed: not run: it needs two isolated CPUs", None,
         ["see to it that feed can be measured, or leave it out (sudo tunectl preflight --no-feed): "
          "feed: not run: it needs two isolated CPUs"]),
    ],
)  # fmt: skip
def test_what_would_have_feed_judged(problem: str, budget: dict[str, Any] | None, said: list[str]) -> None:
    feed = None if budget is None else typed({"cells": [], "budget": budget}, Feed)
    made = actions_of([], unproved=to_feed(problem, feed))
    assert [one.get("command") or one["decide"] for one in made] == said


@pytest.mark.parametrize("verdict", ["not-judged", "broken"])
def test_a_run_that_was_too_short_is_typed_again_with_the_time_that_all_limits_need(verdict: str) -> None:
    short = judged(verdict, not_judged=["stolen_ppm: measured for 0.2 s, and this limit needs 4 s (--duration 4)"])
    assert words(probe=short) == ["sudo tunectl preflight --duration 4"]
    found = to_prove(True, "", typed(short, Jitter), (), ("memory", "timers"))
    assert [one.text for fix in found for one in fix.tasks] == [
        "sudo tunectl preflight --load memory,timers --duration 4"
    ]
    assert suggested_s(LIMITS) >= 4


@pytest.mark.parametrize("limits", [{}, dict.fromkeys(KEYS, 1e-9), {"stolen_ppm": 50}])
def test_limits_that_no_run_can_show_are_for_the_host_file(limits: dict[str, float]) -> None:
    (one,) = words(probe=judged("not-judged", limits=limits, not_judged=[*limits], reason="no limit is set"))
    assert one.startswith("set limits under [budget] in the host file")


def test_a_cpu_that_somebody_has_is_to_be_freed_or_measured_beside_him() -> None:
    left = {"cpu": 2, "reason": "feed (pid 9) runs there"}
    probe = {**judged("not-judged", reason="CPU 2 was not measured: feed (pid 9) runs there"), "not_measured": [left]}
    (one,) = words(probe=probe, beside=(ENGINE,))
    assert "CPU 3: engine (pid 7); CPU 2: feed (pid 9) runs there" in one
    assert one.endswith("sudo tunectl preflight --intrude")
    (none,) = words(problem=f"probe: not run: somebody else's threads run on every isolated CPU; {STOP}")
    assert none.endswith("sudo tunectl preflight --intrude")


def test_what_could_not_be_measured_at_all_says_why() -> None:
    assert words(live=False, problem="probe: a recorded host cannot be measured") == [
        "run it on the live host: a recorded host cannot be measured"
    ]
    (one,) = words(problem="probe: none of the isolated CPUs is online")
    assert one.endswith(": none of the isolated CPUs is online")


def test_a_run_that_is_not_to_be_trusted_is_run_again() -> None:
    why = "the run was interrupted, so rare interruptions had less chance to show"
    (one,) = actions_of([], unproved=to_prove(True, "", typed(judged("not-judged", reason=why), Jitter), ()))
    assert (one["command"], one["note"]) == ("sudo tunectl preflight", why)
