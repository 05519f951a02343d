"""The core's own clock, measured by the resident sentinel against the TSC; and the gaps in its spinning.

It is the one frequency that is true of a CPU without a tick: no file shows it. The sentinel (`tunectl-probe sentinel`)
is started only where [monitor.sentinel] names the CPU it may have. It is read without waiting, and started again when
it died.
`monitor --once --clock LIST` takes a single short sample of CPUs that somebody names.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tunectl.cpulist import CpuSet
from tunectl.errors import TunectlError
from tunectl.host.plausible import FREQUENCY, problem
from tunectl.host.run import Resident
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.sources.windows import Gaps, Windows, judge_gaps
from tunectl.monitor.watched_host import ALONE, Source, WatchedHost
from tunectl.shapes import Amount, Count

SCHEMA = "tunectl.probe.sentinel/1"
# Two lines and a snapshot a second later take less than two seconds: a drop must be known that soon.
PERIOD_S = 0.4
STALE_PERIODS = 3
_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 1.0, 60.0
_SAMPLE_LIMIT_S = 10.0


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `tunectl-probe sentinel`: one period."""

    schema: Literal["tunectl.probe.sentinel/1"]
    cpu: Count = 0
    period_s: Amount = 0.0
    core_khz: Annotated[float, Meta(gt=0, description="The clock the core ran at, at the period's end.")]
    counter_khz: Annotated[Amount, Meta(description="The TSC, or the architected counter.")] = 0.0
    threshold_ns: Annotated[Count, Meta(description="A shorter gap is not counted.")] = 0
    spun_ns: Annotated[Amount, Meta(description="How long it spun in this period, gaps included.")] = msgspec.field(
        name="spin_ns"
    )
    gaps: Count = 0
    max_ns: Annotated[Amount, Meta(description="The longest gap; 0 without one.")] = 0.0
    lines_lost: Annotated[Count, Meta(description="Lines so far that nobody was there to read.")] = 0
    gap_ns: Annotated[
        tuple[tuple[Amount, Count], ...],
        Meta(description="[length, count] ascending; beyond 96 lengths the shorter ones are one, at their mean."),
    ]


class Sentinel:
    """The program and what it said last. `look` is called once a snapshot, always from the same thread."""

    def __init__(self, cpu: int, start: Callable[[Sequence[str], CpuSet], Resident] | None = None) -> None:
        from tunectl.probe import runner  # a megabyte, and few hosts have a sentinel

        self._runner = runner
        self.cpu = cpu
        self.problem = "it has not spoken yet"  # why it says nothing
        self.spoke_at: float | None = None  # when its last line was read
        self.core_khz: float | None = None  # the faster of its last two lines: a disturbance can only slow it down
        self.starts = 0
        self._start = start or runner.stay
        self._program: Resident | None = None
        self._started_at = 0.0
        self._next_at = 0.0
        self._backoff_s = _FIRST_BACKOFF_S
        self._earlier_khz: float | None = None

    @property
    def pid(self) -> int | None:
        """The program's process id, while there is one."""
        return self._program.pid if self._program else None

    def look(self, now: float) -> list[Reading]:
        """The lines since the last snapshot. Starts the program where it does not run and its pause is over."""
        if self._program is None and now >= self._next_at:
            self._begin(now)
        if self._program is None:
            return []
        ended = self._program.ended()  # first: what it said before it died is still read
        readings = [reading for line in self._program.lines() if (reading := _reading(line))]
        for reading in readings:
            self.core_khz = max(reading.core_khz, self._earlier_khz or 0.0)
            self._earlier_khz = reading.core_khz
            self.spoke_at = now
        if ended is not None:
            self._bury(now, ended.removeprefix(f"{self._runner.PROGRAM}: "))
        return readings

    def _begin(self, now: float) -> None:
        try:
            words = ["sentinel", "--cpu", str(self.cpu), "--period", f"{PERIOD_S:g}"]
            self._program = self._start(words, frozenset({self.cpu}))
        except TunectlError as error:
            self._bury(now, error.message)
        else:
            self.starts += 1
            self._started_at = now

    def _bury(self, now: float, why: str) -> None:
        if self._program is not None:
            self._program.close()
            if now - self._started_at >= _LONGEST_BACKOFF_S:
                self._backoff_s = _FIRST_BACKOFF_S
        self._program = None
        fence = self._runner.fenced(Sysroot(), frozenset({self.cpu})) if self.spoke_at is None else ""
        self.problem = f"the sentinel on CPU {self.cpu} ended: {why}" + (f" ({fence})" if fence else "")
        self.spoke_at = self.core_khz = self._earlier_khz = None
        self._next_at = now + self._backoff_s
        self._backoff_s = min(self._backoff_s * 2, _LONGEST_BACKOFF_S)

    def close(self) -> None:
        """Ends the program."""
        if self._program is not None:
            self._program.close()
            self._program = None


def _reading(line: str | bytes) -> Reading | None:
    """None for a line that is not ours: it is ignored, and the last one becomes stale."""
    try:
        return msgspec.json.decode(line, type=Reading)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def sample_clock(cpu: int) -> float:
    """The clock of a CPU's core in kHz, from a run of an eighth of a second on that CPU. TunectlError where that fails.

    It takes the CPU from the thread that runs there for some 20 ms: on request only.
    """
    from tunectl.probe.runner import PROGRAM, document_of, start

    words = ["sentinel", "--cpu", str(cpu), "--period", "0.1", "--duty", "20", "--lines", "1"]
    document = document_of(start(words, frozenset({cpu}), timeout_s=_SAMPLE_LIMIT_S))
    reading = _reading(msgspec.json.encode(document))
    if reading is None:
        raise TunectlError(f"{PROGRAM}: expected a line of schema {SCHEMA}")
    return reading.core_khz


_NAME = "clock"
_SUBJECT = "sentinel"
# At the next snapshot the last line is as old as the time between two snapshots: that alone makes it not stale.
_SLACK_S = 1.0


class _Kept:
    def __init__(self, host: WatchedHost, cpu: int) -> None:
        self.sentinel = Sentinel(cpu)
        self.windows = Windows(host.config.monitor.sla.window_s, Gaps, judge_gaps, host.taken_at)
        self.stale_s = STALE_PERIODS * PERIOD_S + min(max(host.config.monitor.interval_s, _SLACK_S), 60.0)
        self.started_at = host.taken_at
        self.base: tuple[Sample, ...] | None = None

    def close(self) -> None:
        self.sentinel.close()


def read(host: WatchedHost) -> Iterator[Sample]:
    """core_khz of the sentinel's CPU, with its base frequency, and the latency windows of subject `sentinel`."""
    if host.clocks_asked and host.root.live:
        yield from host.keep(f"{_NAME}.asked", lambda: list(_asked(host)))
        return
    wanted = host.config.monitor.sentinel
    if wanted is None or not host.root.live:
        host.let_go(_NAME)
        why = "no CPU is given to it ([monitor.sentinel])" if wanted is None else "a recorded host has no clock"
        yield Sample("core_khz", "host", None, _NAME, Freshness.ABSENT, why)
        return
    if host.beside:
        cpus = frozenset({wanted.cpu})
        yield Sample("core_khz", f"cpu{wanted.cpu}", None, _NAME, Freshness.STALE, ALONE, cpus)
        return
    asked = (wanted.cpu, host.config.monitor.sla.window_s, host.config.monitor.interval_s, host.isolated)
    kept = host.keep_on(_NAME, asked, lambda _: _Kept(host, wanted.cpu))
    readings = kept.sentinel.look(host.taken_at)
    for after, reading in zip(range(len(readings) - 1, -1, -1), readings, strict=True):
        # It speaks once a period: of several lines the earlier ones waited here.
        kept.windows.at(host.taken_at - after * PERIOD_S).add(reading.gap_ns, reading.spun_ns)
    kept.windows.turn(host.taken_at)
    if kept.base is None:
        kept.base = _base(host, wanted.cpu)
    yield from kept.base
    freshness, why = _freshness(kept, host.taken_at)
    yield _sample(wanted.cpu, kept.sentinel.core_khz, freshness, why)
    for sample in kept.windows.samples(_SUBJECT, _NAME, frozenset({wanted.cpu})):
        is_told = freshness is Freshness.FRESH or sample.freshness is not Freshness.FRESH
        yield sample if is_told else sample._replace(freshness=freshness, reason=why)


def _freshness(kept: _Kept, now: float) -> tuple[Freshness, str]:
    sentinel = kept.sentinel
    if sentinel.spoke_at is None:
        is_new = sentinel.pid is not None and now - kept.started_at < kept.stale_s
        return (Freshness.STALE if is_new else Freshness.NO_DATA), sentinel.problem
    if now - sentinel.spoke_at > kept.stale_s:
        return Freshness.STALE, f"the sentinel's last line is {now - sentinel.spoke_at:.0f} s old"
    return Freshness.FRESH, ""


def _base(host: WatchedHost, cpu: int) -> tuple[Sample, ...]:
    """Of a housekeeping CPU, which the source `limits` leaves out. Read once: firmware may lower it later."""
    khz = host.cpus[cpu].base_khz if cpu in host.cpus and cpu not in host.judged else None
    if not khz:
        return ()
    reason = host.cpus[cpu].base_source
    return (Sample("base_khz", f"cpu{cpu}", khz, "limits", reason=reason, cpus=frozenset({cpu})),)


def _asked(host: WatchedHost) -> Iterator[Sample]:
    for cpu in sorted(host.clocks_asked):
        yield from _base(host, cpu)
        try:
            yield _sample(cpu, sample_clock(cpu), Freshness.FRESH)
        except TunectlError as error:
            yield _sample(cpu, None, Freshness.NO_DATA, error.message)


def _sample(cpu: int, khz: float | None, freshness: Freshness, why: str = "") -> Sample:
    subject, cpus, value = f"cpu{cpu}", frozenset({cpu}), round(khz) if khz else None
    if value is not None and (wrong := problem(value, FREQUENCY)):
        return Sample("core_khz", subject, None, _NAME, Freshness.NO_DATA, wrong, cpus)
    return Sample("core_khz", subject, value, _NAME, freshness, why, cpus)


SOURCE = Source(
    _NAME,
    ("tunectl-probe sentinel",),
    "the CPU that [monitor.sentinel] gives to it, for some 3 % of the time, and those of `--clock` for 20 ms; no other",
    f"while its last line is younger than {STALE_PERIODS} periods of {PERIOD_S:g} s",
    read,
)
