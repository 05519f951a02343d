"""The core's own clock, measured by the resident sentinel against the TSC; and the gaps in its spinning.

It is the one frequency that is true of a CPU without a tick. The sentinel is started only where [monitor.sentinel]
names the CPU it may have; `monitor --once --clock LIST` takes a single short sample of CPUs that somebody names.
"""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.errors import TunectlError
from tunectl.monitor.eyes import Eyes
from tunectl.monitor.model import Health, Sample
from tunectl.monitor.sentinel import PERIOD_S, STALE_PERIODS, Sentinel, sample_clock
from tunectl.monitor.sources.source import Source
from tunectl.monitor.windows import Gaps, Windows

_NAME = "clock"
_SUBJECT = "sentinel"
# A look after the last line is as old as the looks are apart; the lines themselves must not be.
_SLACK_S = 1.0


class _Kept:
    def __init__(self, eyes: Eyes, cpu: int) -> None:
        self.sentinel = Sentinel(cpu)
        self.windows = Windows(eyes.wishes.monitor.sla.window_s, Gaps, eyes.look_at)
        self.stale_s = STALE_PERIODS * PERIOD_S + min(max(eyes.wishes.monitor.interval_s, _SLACK_S), 60.0)
        self.started_at = eyes.look_at
        self.base: tuple[Sample, ...] | None = None

    def close(self) -> None:
        self.sentinel.close()


def read(eyes: Eyes) -> Iterator[Sample]:
    """core_khz of the sentinel's CPU, with its base frequency, and the latency windows of subject `sentinel`."""
    if eyes.clocks_asked and eyes.root.live:
        yield from eyes.keep(f"{_NAME}.asked", lambda: list(_asked(eyes)))
        return
    wanted = eyes.wishes.monitor.sentinel
    if wanted is None or not eyes.root.live:
        why = "no CPU is given to it ([monitor.sentinel])" if wanted is None else "a recorded host has no clock"
        yield Sample("core_khz", "host", None, _NAME, Health.ABSENT, why)
        return
    kept = eyes.keep(_NAME, lambda: _Kept(eyes, wanted.cpu))
    for reading in kept.sentinel.look(eyes.look_at):
        kept.windows.open.add(reading.gap_ns, reading.spun_ns)
    kept.windows.turn(eyes.look_at)
    if kept.base is None:
        kept.base = _base(eyes, wanted.cpu)
    yield from kept.base
    health, why = _health(kept, eyes.look_at)
    cpus = frozenset({wanted.cpu})
    value = kept.sentinel.core_khz
    yield Sample("core_khz", f"cpu{wanted.cpu}", round(value) if value else None, _NAME, health, why, cpus)
    for sample in kept.windows.samples(_SUBJECT, _NAME, cpus):
        is_told = health is Health.FRESH or sample.health is not Health.FRESH
        yield sample if is_told else sample._replace(health=health, reason=why)


def _health(kept: _Kept, now: float) -> tuple[Health, str]:
    sentinel = kept.sentinel
    if sentinel.spoke_at is None:
        is_new = sentinel.pid is not None and now - kept.started_at < kept.stale_s
        return (Health.STALE if is_new else Health.NO_DATA), sentinel.problem
    if now - sentinel.spoke_at > kept.stale_s:
        return Health.STALE, f"the sentinel's last line is {now - sentinel.spoke_at:.0f} s old"
    return Health.FRESH, ""


def _base(eyes: Eyes, cpu: int) -> tuple[Sample, ...]:
    """Of a housekeeping CPU, which the source `limits` leaves out. Kept: firmware may lower it later."""
    khz = eyes.cpus[cpu].base_khz if cpu in eyes.cpus and cpu not in eyes.judged else None
    if not khz:
        return ()
    reason = eyes.cpus[cpu].base_source
    return (Sample("base_khz", f"cpu{cpu}", khz, "limits", reason=reason, cpus=frozenset({cpu})),)


def _asked(eyes: Eyes) -> Iterator[Sample]:
    for cpu in sorted(eyes.clocks_asked):
        yield from _base(eyes, cpu)
        subject, cpus = f"cpu{cpu}", frozenset({cpu})
        try:
            khz = round(sample_clock(cpu))
        except TunectlError as error:
            yield Sample("core_khz", subject, None, _NAME, Health.NO_DATA, error.message, cpus)
        else:
            yield Sample("core_khz", subject, khz, _NAME, cpus=cpus)


SOURCE = Source(
    _NAME,
    ("tunectl-probe sentinel",),
    "the CPU that [monitor.sentinel] gives to it, for some 3 % of the time, and those of `--clock` for 20 ms; no other",
    f"while its last line is younger than {STALE_PERIODS} periods of {PERIOD_S:g} s",
    read,
)
