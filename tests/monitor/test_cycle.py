"""One cycle: edges once, the board whole, the monitor's own cost."""

from __future__ import annotations

from tests.monitor.parts import HOUSEKEEPING, ISOLATED, Book, judge, look
from tunectl.monitor.cycle import RECENT, Cycle
from tunectl.monitor.model import Health, Look, Sample, Status


def cycle_of(*values: int) -> Cycle:
    looks = iter([look(value) for value in values])
    return Cycle(lambda: next(looks), judge, Book(), isolated=ISOLATED, housekeeping=HOUSEKEEPING)


def test_an_edge_is_told_once() -> None:
    cycle = cycle_of(0, 1, 1, 0)
    steps = [cycle.step() for _ in range(4)]
    assert [[alert.status for alert in edges] for _, edges in steps] == [[], [Status.FIRING], [], [Status.RESOLVED]]
    assert [len(board.firing) for board, _ in steps] == [0, 1, 1, 0]
    assert [alert.status for alert in steps[-1][0].recent] == [Status.RESOLVED, Status.FIRING]  # newest first


def test_the_board_says_who_is_isolated_and_what_the_cycle_cost() -> None:
    board, _ = cycle_of(0).step()
    assert (board.isolated, board.housekeeping) == (ISOLATED, HOUSEKEEPING)
    assert board.own["cycles_total"] == 1
    assert 0 < board.own["cycle_seconds"] < 1
    assert board.own["cpu_seconds_total"] > 0


def test_the_board_counts_samples_by_health() -> None:
    samples = tuple(Sample("frequency_khz", f"cpu{n}", 1, "frequency", health) for n, health in enumerate(Health))
    board, _ = Cycle(lambda: Look(0.0, "", (*samples, samples[0])), judge, Book()).step()
    assert (board.own["samples_fresh"], board.own["samples_no_data"], board.own["samples_absent"]) == (2, 1, 1)


def test_what_is_kept_is_bounded() -> None:
    cycle = cycle_of(*[0, 1] * RECENT)
    boards = [cycle.step()[0] for _ in range(2 * RECENT)]
    assert len(boards[-1].recent) == RECENT
