"""Laws of every experiment, a row each: void or a cell with all of its figures, counts that balance, warnings."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.experiments import contentions, feeds, hedges, wakes
from tests.experiments.feeds import GOOD, MS, message, pairs
from tests.experiments.hedges import OWN
from tests.experiments.wakes import CALM
from tests.schemas import fits
from tunectl.errors import TunectlError
from tunectl.experiments.contention_cells import explained_contention
from tunectl.experiments.feed_cells import explained_feed
from tunectl.experiments.hedge_cells import explained_hedge
from tunectl.experiments.wake_cells import explained_wake
from tunectl.probe.document import read_document
from tunectl.shapes import FEED_STAGES

Json = dict[str, Any]


class Sample(NamedTuple):
    """A good case of an experiment, and the whole document around such."""

    experiment: str
    explain: Callable[[Json], Json]
    case: Callable[..., Json]
    document: Callable[..., Json]
    threads: int

    def explained(self, *cases: Json, **of_run: Any) -> Json:
        """The result; both documents are as the schemas say."""
        raw = self.document(*cases, **of_run)
        fits(f"probe.{self.experiment}.raw", raw)
        made = self.explain(raw)
        fits(f"probe.{self.experiment}", made)
        return made

    def cell(self, *cases: Json, **of_run: Any) -> Json:
        """What became of the first."""
        made: Json = self.explained(*cases, **of_run)["cells"][0]
        return made


def requests(**changes: Any) -> Json:
    return hedges.case([3_000] * 1000, **changes)


def buffers(**changes: Any) -> Json:
    return contentions.case([400] * 1000, **changes)


SPINNER = Sample("wake", explained_wake, wakes.minimal, wakes.raw_document, 2)
SLEEPER = SPINNER._replace(case=wakes.block)
TIMER = SPINNER._replace(case=wakes.timer)
FEED = Sample("feed", explained_feed, feeds.case, feeds.raw_document, 2)
HEDGE = Sample("hedge", explained_hedge, requests, hedges.raw_document, 3)
SIMULATED = HEDGE._replace(document=hedges.simulated_document)
CONTENTION = Sample("contention", explained_contention, buffers, contentions.raw_document, 2)
ALL = (SPINNER, FEED, HEDGE, CONTENTION)
each = pytest.mark.parametrize("sample", ALL, ids=[sample.experiment for sample in ALL])


def figures(cell: Json) -> list[Any]:
    """Whatever could be read as a result."""
    kept = ("period_ns", "service_ns")
    found = [value for name, value in cell.items() if name.endswith("_ns") and name not in kept]
    found += [cell["histogram"], *(cell.get(name) for name in ("utilisation", "joint_ratio", "collapsed", "series"))]
    return [part for value in found for part in (value.values() if isinstance(value, dict) else [value])]


@each
def test_a_good_case_on_a_quiet_host_has_figures_and_no_warning(sample: Sample) -> None:
    made = sample.explained(sample.case())
    (cell,) = made["cells"]
    assert (made["warnings"], cell["warnings"], cell["reason"], cell["is_void"]) == ([], [], "", False)
    assert any(figures(cell))
    assert cell["cpus"] == [2, 3, 4][: sample.threads]


@each
def test_what_the_program_wrote_by_itself_is_read_too(sample: Sample, tmp_path: Path) -> None:
    raw = sample.document(sample.case())
    (tmp_path / "raw").write_text(json.dumps(raw))
    assert read_document(tmp_path / "raw").body == sample.explain(raw)
    (tmp_path / "raw").write_text(json.dumps(raw | {"schema": f"tunectl.probe.{sample.experiment}.raw/2"}))
    with pytest.raises(TunectlError, match="is of another version"):
        read_document(tmp_path / "raw")


@each
def test_another_document_and_one_of_another_form_are_refused(sample: Sample) -> None:
    for changes in ({"schema": "x"}, {"cpus": "x"}, {"duration_s": None}):
        with pytest.raises(TunectlError, match=rf"tunectl\.probe\.{sample.experiment}\.raw/1"):
            sample.explain(sample.document(sample.case(), **changes))


# ---- counts balance

STAGES = feeds.case()["stages"]


# A sample, what its good case has, and by field what would not balance.
UNEVEN: list[tuple[Sample, Json, dict[str, list[Any]]]] = [
    (SPINNER, {}, {"sent": [-1], "arrived": [99], "delay": [[5000]], "negative": [1]}),
    (FEED, {}, {
        "sent": [-1], "due": [1001], "arrived": [1001], "unsent_ticks": [[5, 1]], "batch_sizes": [[1, 999]],
        "total": [[10_000, 999], [-5, 1000], [10_000]],
        "stages": [{}, STAGES | {"read": [4_000, 3]}, STAGES | {"wire": []}],
        "profile": [[], [[10_000, 10_001, 1000, *[1] * 8]], [[10_000, 10_001, 1000]]],
        "series": [{"start": 0, "interval_ticks": 1, "intervals": [[9, 9, 9]]}],
        "negative": [{}], "stamped": [False], "waiting": ["sleeping"],
    }),
    (HEDGE, {"won": [9_000, 9_100], "hedged": 5}, {
        "offered": [1001], "wasted": [1], "lost": [1], "late": [[50, 99]], "hedged_after": [[5_000, 4]],
        "latency": [[3_000, 999], [3_000]],
        "won_latency": [[9_000, 1], [7_899, 1, 9_000, 1]],
        "service": [{"a": [3000, 997], "b": [3000, 2]}, {"a": [3000, 998]}],
        "shorter_of_pair": [[1, 1]], "below_floor": [1],
    }),
    (CONTENTION, {}, {
        "sent": [999], "taking": [[400, 999]], "handing": [[300]], "giving": [[200, 1001]], "whole": [[]],
        "ends": [[contentions.OWN]], "threads": [1],
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sample", "good", "changes"),
    [
        (sample, good, {field: value})
        for sample, good, fields in UNEVEN
        for field, values in fields.items()
        for value in values
    ],
)
def test_a_case_whose_counts_do_not_balance_is_refused(sample: Sample, good: Json, changes: Json) -> None:
    case = sample.case(**good)
    assert sample.explained(case)["cells"][0]["n"]
    with pytest.raises(TunectlError, match=rf"tunectl\.probe\.{sample.experiment}\.raw/1"):
        sample.explain(sample.document(case | changes))


@pytest.mark.parametrize(
    ("sample", "case", "missed"),
    [
        (SPINNER, wakes.minimal(arrived=90, delay=[5_000, 50, 6_000, 40]), 0),
        (FEED, feeds.lossy([message()] * 90, 10), 10),
        (FEED, feeds.unsent([message()] * 90, [9_000] * 10), 0),
        (HEDGE, hedges.case([3_000] * 90, shed=4, shed_at=1, unanswered=6), 10),
        (CONTENTION, contentions.case([400] * 90), 0),
    ],
)
def test_the_histogram_holds_what_came(sample: Sample, case: Json, missed: int, tmp_path: Path) -> None:
    made = sample.explained(case)
    (cell,) = made["cells"]
    assert sum(count for _, _, count in cell["histogram"]) == cell["n"] - missed
    (tmp_path / "a").write_text(json.dumps(made))
    assert read_document(tmp_path / "a").body == made
    cell["histogram"][0][2] += 1
    (tmp_path / "a").write_text(json.dumps(made))
    with pytest.raises(TunectlError, match=r"cells\[0\].histogram"):
        read_document(tmp_path / "a")


# ---- void instead of a wrong figure


def busy(**changes: Any) -> Json:
    return {"occupancy": CALM | changes}


def one_thread(which: int, **changes: Any) -> Json:
    return {"threads": [OWN | (changes if at == which else {}) for at in range(3)]}


@pytest.mark.parametrize(
    ("sample", "changes", "of_run", "is_void"),
    [
        *((sample, {"throttled_us": us}, {}, us != 0) for sample in (*ALL, SLEEPER) for us in (0, 1, None)),
        *((sample, {"receiver_ns": ms * MS}, {}, ms < 900) for sample in (SPINNER, FEED) for ms in (900, 899, 0)),
        *((HEDGE, one_thread(which, cpu_ns=900_000_000), {}, False) for which in range(3)),
        *((HEDGE, one_thread(which, cpu_ns=899_999_999), {}, True) for which in range(3)),
        *((CONTENTION, contentions.end(at, cpu_ns=900_000_000), {}, False) for at in range(2)),
        *((CONTENTION, contentions.end(at, cpu_ns=899_999_999), {}, True) for at in range(2)),
        *((CONTENTION, contentions.end(at, preemptions=n), {}, n > 10) for at in range(2) for n in (10, 11)),
        *((CONTENTION, contentions.end(at, cpu_ns=0) | {"hand_over": "futex"}, {}, at == 0) for at in range(2)),
        (CONTENTION, contentions.end(1, sleeps=1000), {}, False),
        # a spinner is not asked who else ran, and a sleeper not how busy it was
        (SPINNER, busy(cpu_ns=900 * MS, cpu_slices=900) | {"preemptions": 5}, {}, False),
        (SLEEPER, {"receiver_ns": 0}, {}, False),
        (SLEEPER, busy(cpu_ns=300 * MS, cpu_slices=200), {}, True),
        (SLEEPER, busy(cpu_ns=14 * MS, cpu_slices=110), {}, True),  # 11 ms of 1 s beside 1 ms of our own hundred runs
        (SLEEPER, busy(cpu_ns=12 * MS, cpu_slices=110), {}, False),
        (SLEEPER, busy(cpu_ns=300 * MS, cpu_slices=101), {}, False),  # one run: at most one message of a hundred
        (SLEEPER, busy(cpu_ns=20 * MS), {}, False),  # nobody else ran: what is more is interrupts in our own time
        (SLEEPER, busy(cpu_ns=2 * MS, cpu_slices=250), {}, True),  # 150 short runs, and messages under way for 100 us
        (SLEEPER, busy(cpu_ns=300 * MS, cpu_slices=None), {}, True),
        (SLEEPER, busy(cpu_ns=30 * MS, cpu_slices=None), {}, False),  # within the steps of the kernel's account
        (SLEEPER, busy(cpu_ns=902 * MS, cpu_slices=1000), {}, True),
        (SLEEPER, busy(cpu_ns=902 * MS, cpu_slices=1000), {"cpus": [3, 3]}, False),  # the sender's 900 ms
        (SLEEPER, busy(cpu_ns=990 * MS, cpu_slices=1000), {"cpus": [3, 3]}, True),  # and 88 of others
        (SLEEPER, {"occupancy": None}, {}, False),
        (SLEEPER, {"preemptions": 1}, {}, False),
        (SLEEPER, {"preemptions": 2}, {}, True),
        (SLEEPER, {"preemptions": 2}, {"cpus": [3, 3]}, False),  # there the sender does it
        (TIMER, {"preemptions": 2}, {"cpus": [3, 3]}, True),  # and of a timer nobody
        *((sample, {"unready": n}, {"dirty_kib": 64}, n > 1) for sample in (SPINNER, SLEEPER) for n in (0, 1, 2)),
        *((FEED, {"waiting": way, "involuntary_switches": 10}, {}, False) for way in ("poll", "busy-poll")),
        *((FEED, {"waiting": way, "involuntary_switches": 11}, {}, True) for way in ("poll", "busy-poll")),
        (FEED, {"waiting": "poll", "receiver_ns": 0}, {}, False),
        (FEED, {"involuntary_switches": 11}, {}, False),
        *((FEED, {"waiting": way, "sender_voluntary_switches": 1}, {}, True) for way in ("poll", "poll0")),
        *((FEED, {"waiting": way, "receiver_ticks": 0, "receiver_ns": 0}, {}, True) for way in ("poll", "poll0")),
        *((HEDGE, {"late": [late_ns, 1000]}, {}, late_ns > 300) for late_ns in (300, 301)),
        *((HEDGE, {"late": pairs([50] * (1000 - n) + [301] * n)}, {}, n > 10) for n in (10, 11)),
    ],
)
def test_a_case_is_void_or_has_figures(sample: Sample, changes: Json, of_run: Json, is_void: bool) -> None:
    cell = sample.cell(sample.case(**changes), **of_run)
    assert (cell["is_void"], bool(cell["reason"]), cell["n"] == 0, not any(figures(cell))) == (is_void,) * 4
    assert cell.get("sent", cell.get("offered"))  # what was counted stays


def test_a_simulation_is_never_void_and_has_neither_cpus_nor_warnings() -> None:
    asked: tuple[Json, ...] = ({}, {"throttled_us": 1}, {"late": [301, 1000]})
    for changes in asked:
        made = SIMULATED.explained(requests(**changes))
        (cell,) = made["cells"]
        assert (made["simulated"], made["warnings"], cell["cpus"], cell["n"]) == (True, [], [], 1000)


NOT_ONE: Json = {name: [] for name in ("delay", "after_send", "send_call", "late")} | {"sent": 0, "arrived": 0}


@pytest.mark.parametrize(
    ("sample", "case"),
    [
        (SPINNER, wakes.minimal(**NOT_ONE | {"reason": "there is no descriptor to poll"})),
        (SPINNER, wakes.minimal(**NOT_ONE | {"has_no_napi": True})),
        (SPINNER, wakes.minimal(**NOT_ONE | {"sent": 100, "failed": "sending", "errno": errno.EAGAIN})),
        (SPINNER, wakes.minimal(**NOT_ONE | {"sent": 100, "failed": "receiving", "errno": errno.EPIPE})),
        (SPINNER, wakes.minimal(**NOT_ONE | {"sent": 100})),
        (SPINNER, wakes.minimal(**NOT_ONE)),
        (FEED, feeds.unmeasured("the kernel refuses ktls")),
        (FEED, feeds.case([], failed="receiving", errno=errno.ECONNRESET)),
        (FEED, feeds.case([], close_code=1007)),
        (FEED, feeds.lossy([], 10)),
        (FEED, feeds.unsent([], [9_000] * 10)),
        (FEED, feeds.case([])),
        (HEDGE, hedges.unmeasured("interrupted before it was measured")),
        (HEDGE, hedges.case()),
        (CONTENTION, contentions.unmeasured("no CPU is left for more threads than two")),
        (CONTENTION, contentions.case()),
    ],
)
def test_a_case_in_which_nothing_came_says_why_and_has_no_figure(sample: Sample, case: Json) -> None:
    (cell,) = sample.explained(case)["cells"]
    assert (cell["n"], cell["is_void"], cell["warnings"], bool(cell["reason"])) == (0, False, [], True)
    assert not any(figures(cell))
    assert cell.get("receiver_cpu_percent") is None
    assert case.get("reason", "") in cell["reason"]


# ---- warnings


def drops(**counted: int) -> Json:
    return {"drops": {"socket": None, "softnet": None, "nic": None} | counted}


def stamps(**changes: Any) -> Json:
    return {"stamps": feeds.case()["stamps"] | changes}


def negative(count: int) -> Json:
    return {"negative": dict.fromkeys(FEED_STAGES, 0) | {"wire": count}}


@pytest.mark.parametrize(
    ("sample", "changes", "count"),
    [
        (SPINNER, {"sent": 98, "arrived": 98, "delay": [5000, 98]}, 1),
        (SPINNER, {"arrived": 97, "delay": [5000, 97]}, 1),
        (SPINNER, {"duplicates": 1}, 1),
        (SPINNER, {"reordered": 1}, 1),
        (SPINNER, {"negative": 2, "delay": [5000, 98]}, 1),
        (SPINNER, {"late": [1_000_000, 100]}, 0),
        (SPINNER, {"late": [1_000_001, 100]}, 1),
        (SPINNER, {"late": [100, 49, 1_100_000, 51]}, 1),
        (SPINNER, {"late": [100, 51, 1_100_000, 49]}, 0),
        (SPINNER, {"page_faults": 1, "preemptions": 1}, 2),
        (SPINNER, {"failed": "receiving", "errno": errno.EPIPE}, 1),
        (TIMER, {"late_expirations": 1}, 1),
        (FEED, {"failed": "receiving", "errno": errno.EPIPE}, 1),
        (FEED, {"close_code": 1002}, 1),
        *((FEED, drops(**{name: 1}), 1) for name in ("socket", "softnet", "nic")),
        (FEED, drops(), 0),
        (FEED, drops(socket=7) | {"transport": "udp", "format": "binary"}, 1),
        (FEED, {"doubled": 1}, 1),
        (FEED, {"doubled": 1000, "transport": "multicast-ab", "format": "binary"}, 0),  # sent twice on purpose
        (FEED, {"strangers": 1, "reordered": 1}, 2),
        (FEED, {"sender_involuntary_switches": 1, "involuntary_switches": 1}, 2),
        (FEED, {"minor_faults": 1, "major_faults": 2}, 1),
        (FEED, {"stamp_shared": 10}, 0),
        (FEED, {"stamp_shared": 11}, 1),
        (FEED, {"stamped": False, "stamp_shared": 999}, 1),
        (FEED, {"stamped": False} | stamps(kind="off", reason="ktls brings none"), 1),
        (FEED, {"stamped": False} | stamps(kind="off", asked="off"), 0),
        (FEED, {"stamped": False} | stamps(kind="hw"), 1),
        *((FEED, stamps(kind=kind, stepped=True), 1) for kind in ("sw", "hw")),
        (FEED, stamps(asked="hw", kind="hw", were_on=None), 0),
        (FEED, stamps(were_on=True), 1),
        (FEED, negative(1), 0),
        (FEED, negative(2), 1),
        (FEED, {"late": [100, 500, 1_100_000, 500]}, 0),
        (FEED, {"late": [100, 499, 1_100_000, 501]}, 1),
        (HEDGE, one_thread(0, preemptions=2), 1),
        (HEDGE, one_thread(1, page_faults=3), 1),
        (HEDGE, {"throttled": 7}, 1),
        (HEDGE, {"service": {"a": [3_300, 1000], "b": []}}, 0),
        (HEDGE, {"service": {"a": [3_301, 1000], "b": []}}, 1),
        (HEDGE, {"denied": 3, "shed_at": 4}, 1),
        (CONTENTION, contentions.end(0, preemptions=1), 1),
        (CONTENTION, contentions.end(1, sleeps=9, page_faults=9), 0),
        (HEDGE, {"hedged": 50, "budget": 0.05}, 0),
        (HEDGE, {"hedged": 45, "over_budget": 5, "budget": 0.05}, 0),  # a burst emptied the bucket for a while
        (HEDGE, {"hedged": 45, "over_budget": 5, "budget": 0.049}, 1),
    ],
)
def test_what_makes_a_case_mean_less_is_warned_of_once(sample: Sample, changes: Json, count: int) -> None:
    assert len(sample.cell(sample.case(**changes))["warnings"]) == count


FLAGS = "/proc/cpuinfo"
APART, ALIKE = ([1, 5], [-5, -1], [5, 5], [5, 4]), ([-5, 5], [0, 5], [-5, 0])  # the counters of two CPUs
REAL_TIME = {"/proc/sys/kernel/sched_rt_runtime_us": "950000\n", "/proc/sys/kernel/sched_rt_period_us": "1000000\n"}


def clock(**changes: Any) -> Json:
    return {"clock": {"source": "tsc", "hz": 1e9, "granule_ns": 1.0, "drift_ppm": 0.0} | changes}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_run", "counts"),
    [
        ({"interrupted": True}, (1, 1, 1, 1)),
        ({"facts": {"is_locked": False}}, (1, 1, 1, 1)),
        ({"facts": {"shares_main": True}}, (1, 1, 1, 1)),
        ({"host_files": {"/sys/hypervisor/type": "xen\n"}}, (1, 1, 1, 1)),
        ({"host_files": {FLAGS: "flags\t: tsc\n"}}, (1, 1, 1, 1)),
        ({"host_files": REAL_TIME, "fifo_priority": 1}, (1, 1, 1, 1)),
        ({"host_files": REAL_TIME}, (0, 0, 0, 0)),
        (clock(drift_ppm=-21.0), (1, 1, 1, 1)),
        (clock(drift_ppm=19.0), (0, 0, 0, 0)),
        ({"last": {"is_isolated": False}}, (1, 1, 1, 1)),
        ({"last": {"governor": "powersave"}}, (1, 1, 1, 1)),
        ({"last": {"core_cpus": "2-4"}}, (1, 2, 2, 1)),  # feed: and both spin; hedge: its servers, and with the client
        ({"last": {"core_cpus": "3-4,7"}}, (0, 0, 1, 0)),
    ],
)
def test_what_makes_a_run_mean_less_is_warned_of(of_run: Json, counts: tuple[int, int, int, int]) -> None:
    for sample, count in zip(ALL, counts, strict=True):
        cpus = [*[GOOD] * (sample.threads - 1), GOOD | of_run.get("last", {})]
        asked = {name: value for name, value in of_run.items() if name != "last"}
        facts = {"cpus": cpus} | of_run.get("facts", {})
        made = sample.explained(sample.case(), **asked | {"facts": facts})
        assert len(made["warnings"]) == count, (sample.experiment, made["warnings"])


@pytest.mark.parametrize(
    ("sample", "changes", "of_run", "count"),
    [
        *((sample, {}, {"cpus": [3, 3]}, 1) for sample in (SPINNER, FEED)),
        *((sample, {}, clock(offset_ticks=ends), 1) for sample in (SPINNER, FEED, CONTENTION) for ends in APART),
        *((sample, {}, clock(offset_ticks=ends), 0) for sample in (SPINNER, FEED) for ends in ALIKE),
        (SPINNER, {}, {"facts": {"cpus": [GOOD, GOOD | {"core_cpus": "2-3"}]}}, 1),
        (SPINNER, {"idle_ms": 0.0}, {"facts": {"cpus": [GOOD, GOOD | {"core_cpus": "2-3"}]}}, 2),  # both spin
        (FEED, {"waiting": "poll"}, {"facts": {"cpus": [GOOD, GOOD | {"core_cpus": "2-3"}]}}, 1),
        (SLEEPER, {"occupancy": None}, {}, 1),  # nobody knows who had its CPU
        (SPINNER, {"occupancy": None}, {}, 0),
        (SLEEPER, busy(cpu_slices=None), {}, 1),
        (SLEEPER, busy(cpu_slices=None, ticks=10_000 * MS), {}, 0),
    ],
)
def test_what_depends_on_how_two_threads_wait(sample: Sample, changes: Json, of_run: Json, count: int) -> None:
    assert len(sample.explained(sample.case(**changes), **of_run)["warnings"]) == count
