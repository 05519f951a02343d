"""Several runs kept together: all of them, or the whole ones so far."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.compare.runs import cpu_of, document
from tunectl.errors import TunectlError
from tunectl.host.ending import ENDING
from tunectl.host.run import reason_of, run
from tunectl.probe.runs import several
from tunectl.shapes import Jitter, JitterRuns, typed
from tunectl.work import Tell, Work

WHOLE = typed(document(cpu_of([(5, 500)], 1.0), seconds=1.0, interrupted=False), Jitter)
CUT = replace(WHOLE, interrupted=True)


def kept(count: int, *outcomes: Jitter | BaseException, pause_s: float = 0.0) -> tuple[JitterRuns, list[Work]]:
    """The document of these runs, and what was told meanwhile."""
    told: list[Work] = []
    coming: Iterator[Jitter | BaseException] = iter(outcomes)

    def measured(tell: Any) -> Jitter:
        tell(Work("measuring", 2.0))
        one = next(coming)
        if isinstance(one, BaseException):
            raise one
        return one

    return several(count, pause_s, 5.0, measured, told.append), told


def test_each_run_is_there() -> None:
    made, told = kept(3, WHOLE, WHOLE, WHOLE)
    assert made.runs == [WHOLE] * 3
    assert (made.schema, made.at, made.warnings) == ("tunectl.probe.jitter.runs/1", WHOLE.at, [])
    assert [work.now for work in told] == [f"run {number} of 3: measuring" for number in (1, 2, 3)]


def test_the_time_left_is_that_of_all_runs_and_of_the_pauses_between_them() -> None:
    _, told = kept(3, WHOLE, WHOLE, WHOLE, pause_s=0.25)
    assert told == [
        ("run 1 of 3: measuring", 2.0 + 2 * 5.25, ""),
        ("run 2 of 3: a pause before it", 2 * 5.25, ""),
        ("run 2 of 3: measuring", 2.0 + 5.25, ""),
        ("run 3 of 3: a pause before it", 5.25, ""),
        ("run 3 of 3: measuring", 2.0, ""),
    ]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (CUT, "interrupted"),
        (KeyboardInterrupt(), "interrupted"),
        (TunectlError("CPU 2 is taken"), "CPU 2 is taken"),
    ],
)
def test_what_ends_it_early_leaves_the_whole_runs(second: Jitter | BaseException, why: str) -> None:
    made, _ = kept(3, WHOLE, second)
    assert made.runs == [WHOLE]
    assert made.warnings == [f"only 1 of 3 runs: {why}"]


@pytest.fixture
def ending() -> Iterator[None]:
    """Signals are kept, as in the command."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    ENDING.keep()
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    ENDING.is_wanted = ENDING.is_urgent = False


def series(count: int, pause_s: float, *signals: int, tell: Tell = lambda _: None) -> JitterRuns:
    """A series whose first run, second run, ... is given so many signals while it is explained."""
    coming = iter(signals)

    def measured(_: Any) -> Jitter:
        for _ in range(next(coming)):
            signal.raise_signal(signal.SIGINT)
        return WHOLE

    return several(count, pause_s, 1.0, measured, tell)


@pytest.mark.usefixtures("ending")
@pytest.mark.parametrize(("signals", "whole"), [((1,), 1), ((0, 1), 2)])
def test_ctrl_c_while_a_run_is_explained_ends_it_after_that_run(signals: tuple[int, ...], whole: int) -> None:
    made = series(3, 0.0, *signals)
    assert (len(made.runs), made.warnings) == (whole, [f"only {whole} of 3 runs: interrupted"])


@pytest.mark.usefixtures("ending")
def test_ctrl_c_in_the_last_run_takes_nothing_away() -> None:
    made = series(2, 0.0, 0, 1)
    assert (len(made.runs), made.warnings) == (2, [])


@pytest.mark.usefixtures("ending")
def test_a_cut_run_that_was_the_only_one_is_not_counted() -> None:
    made = several(1, 0.0, 1.0, lambda _: CUT, lambda _: None)
    assert (len(made.runs), made.warnings) == (1, [])


@pytest.mark.usefixtures("ending")
def test_ctrl_c_ends_a_pause() -> None:
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    made = series(2, 600.0, 0, tell=lambda _: timer.start())  # that the pause begins is all that is told
    assert made.warnings == ["only 1 of 2 runs: interrupted"]
    timer.join()


@pytest.mark.usefixtures("ending")
def test_a_second_ctrl_c_ends_at_once_and_says_what_is_lost() -> None:
    with pytest.raises(TunectlError, match="interrupted again: the run at hand and 1 whole run are lost"):
        series(3, 0.0, 0, 2)


@pytest.mark.usefixtures("ending")
def test_ctrl_c_before_a_program_starts_starts_none() -> None:
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(["/bin/true"])


@pytest.mark.usefixtures("ending")
def test_ctrl_c_is_passed_on_to_the_program() -> None:
    done = run(["/bin/sh", "-c", "kill -INT $PPID; exec sleep 60"])
    assert (done.interrupted, reason_of(done.returncode, [])) == (True, "it was killed by SIGINT")


def test_the_first_run_counts_as_one_alone_does() -> None:
    assert kept(3, CUT)[0].runs == [CUT]
    with pytest.raises(TunectlError, match="CPU 2 is taken"):
        kept(3, TunectlError("CPU 2 is taken"))
