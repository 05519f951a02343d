"""One cycle: transitions once, the whole status, the monitor's own cost."""

import time

from tests.monitor.parts import HOUSEKEEPING, ISOLATED, RULES, judge, snapshot
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.model import AlertState, Freshness, Sample, Snapshot
from tunectl.monitor.watcher import RECENT, Cycle


def cycle_of(*values: int) -> Cycle:
    snapshots = iter([snapshot(value) for value in values])
    return Cycle(lambda: next(snapshots), judge, Alerts(RULES), isolated=ISOLATED, housekeeping=HOUSEKEEPING)


def test_an_edge_is_told_once() -> None:
    cycle = cycle_of(0, 1, 1, 0)
    steps = [cycle.step() for _ in range(4)]
    assert [[alert.status for alert in transitions] for _, transitions in steps] == [
        [],
        [AlertState.FIRING],
        [],
        [AlertState.RESOLVED],
    ]
    assert [len(status.firing) for status, _ in steps] == [0, 1, 1, 0]
    assert [alert.status for alert in steps[-1][0].recent] == [AlertState.RESOLVED, AlertState.FIRING]  # newest first


def test_the_board_says_who_is_isolated_and_what_the_cycle_cost() -> None:
    began = time.perf_counter()
    status, _ = cycle_of(0).step()
    assert (status.isolated, status.housekeeping) == (ISOLATED, HOUSEKEEPING)
    assert status.own["cycles_total"] == 1
    assert 0 < status.own["cycle_seconds"] < time.perf_counter() - began
    assert status.own["cpu_seconds_total"] > 0


def test_the_board_counts_samples_by_health() -> None:
    samples = tuple(
        Sample("frequency_khz", f"cpu{n}", 1, "frequency", freshness) for n, freshness in enumerate(Freshness)
    )
    status, _ = Cycle(lambda: Snapshot(0.0, "", (*samples, samples[0])), judge, Alerts(RULES)).step()
    assert (status.own["samples_fresh"], status.own["samples_no_data"], status.own["samples_absent"]) == (2, 1, 1)


def test_what_is_kept_is_bounded() -> None:
    cycle = cycle_of(*[0, 1] * RECENT)
    boards = [cycle.step()[0] for _ in range(2 * RECENT)]
    assert len(boards[-1].recent) == RECENT
