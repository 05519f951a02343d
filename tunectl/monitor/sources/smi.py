"""System management interrupts: MSR_SMI_COUNT of a housekeeping CPU. /dev/cpu/N/msr

An SMI stops every CPU until all have left it, so the count of one tells of all (Intel SDM volume 4, MSR 34H).
"""

from collections.abc import Iterator

from tunectl.host.counters import INTERRUPTS
from tunectl.host.hardware import MOST_SMIS_PER_S, count_smis, never_smis
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.sources.rising import Rising
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME, _QUANTITY, _SUBJECT = "smi", "smis", "host"
_EVERY_S = 10.0


class _Kept:
    """What was counted, and what there was to say of it."""

    def __init__(self, host: WatchedHost) -> None:
        self.never = never_smis(host.root)
        if not host.root.live and not host.root.exists("dev/cpu"):
            self.never = self.never or "a recording has no MSRs"
        self.rising = Rising(INTERRUPTS)  # 32 bits, too
        self.cpu = self.count = -1  # who said what at the last look, and when that was
        self.at = self.next_at = 0.0
        self.sample = Sample(_QUANTITY, _SUBJECT, None, _NAME, Freshness.ABSENT, self.never)

    def look(self, host: WatchedHost) -> None:
        """Counts again. Where it cannot be counted nobody knows, which is no good news."""
        now, spared = host.taken_at, host.online - host.quiet
        self.next_at = now + _EVERY_S
        smis = count_smis(host.root, spared)
        if smis.count is None:
            lost = Freshness.STALE if self.count < 0 else Freshness.NO_DATA  # SourceLost tells of what was there before
            self.sample = Sample(_QUANTITY, _SUBJECT, None, _NAME, lost, smis.reason)
            return
        if min(spared) != self.cpu or smis.count - self.count > (now - self.at) * MOST_SMIS_PER_S:
            self.rising.add(now, {})  # the count of another CPU, or one that no host can have come to, is no rise
        self.cpu, self.count, self.at = min(spared), smis.count, now
        self.rising.add(now, {"": smis.count})
        self.sample = self.rising.sample(now, _QUANTITY, _SUBJECT, _NAME)


def read(host: WatchedHost) -> Iterator[Sample]:
    """smis of the host: how many came in the last ten minutes."""
    kept = host.keep(_NAME, lambda: _Kept(host))
    if not kept.never and (host.taken_at >= kept.next_at or host.is_once or not host.root.live):
        kept.look(host)
    yield kept.sample


SOURCE = Source(
    _NAME,
    ("/dev/cpu/N/msr",),
    "a housekeeping CPU, once in ten seconds: never an isolated one, whose count would be the same",
    "within ten seconds; Intel's CPUs on bare metal, with the module msr and a service that may read it",
    read,
)
