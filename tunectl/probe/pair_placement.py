"""Which CPUs a sender and a receiver are pinned to. Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

from tunectl.cpulist import CpuSet, named_cpus, parse_cpulist
from tunectl.errors import UsageError
from tunectl.host.cpusets import CpuFacts


class Placed(NamedTuple):
    """The two CPUs, and what has to be said of the choice; "" where nothing."""

    sender: int
    receiver: int
    note: str = ""

    @property
    def text(self) -> str:
        """As the option --cpus has it."""
        return f"{self.sender},{self.receiver}"

    @property
    def cpus(self) -> CpuSet:
        """Both, or the one that they share."""
        return frozenset({self.sender, self.receiver})


def asked_cpus(cpus: str | None, among: str | None) -> CpuSet:
    """The CPUs that place() may choose, as far as they are named. A list that is none is refused there."""
    with suppress(UsageError):
        return parse_cpulist(cpus or among or "")
    return frozenset()


def place(cpus: str | None, among: str | None, facts: CpuFacts, allowed: CpuSet) -> Placed:
    """Those that `cpus` names; else the last two, on different cores, of `among`, of the isolated CPUs, of `allowed`.

    UsageError where none can be taken.
    """
    if cpus is not None:
        return _named(cpus, facts.online)
    isolated = facts.kernel_isolated | facts.partitioned
    if among is not None:
        candidates = parse_cpulist(among)
    else:
        candidates = isolated if len(isolated & facts.online) > 1 else allowed
    if not (online := candidates & facts.online):
        raise UsageError("none of the CPUs to choose from is online", "name two with --cpus S,R")
    sender, receiver = _last_two(online, facts)
    if among is not None or candidates is isolated:
        return Placed(sender, receiver)
    chosen = named_cpus({sender, receiver})
    were = "was" if sender == receiver else "were"
    taken = f"{chosen} {were} chosen among the allowed ones"
    note = f"no two CPUs are isolated on this host: {taken} (--cpus S,R names others)"
    return Placed(sender, receiver, note)


def _named(text: str, online: CpuSet) -> Placed:
    if not re.fullmatch(r"\d{1,5},\d{1,5}", text, re.ASCII):
        raise UsageError(f"--cpus {text}: expected the sender's CPU and the receiver's, like 2,3")
    sender, receiver = map(int, text.split(","))
    for cpu in (sender, receiver):
        if cpu not in online:
            raise UsageError(f"CPU {cpu} is not online on this host")
    return Placed(sender, receiver)


def _last_two(online: CpuSet, facts: CpuFacts) -> tuple[int, int]:
    """The receiver on the very last; the sender on the nearest below, if possible on another core, or there too."""
    *others, receiver = sorted(online)
    elsewhere = [cpu for cpu in others if cpu not in facts.siblings.get(receiver, frozenset())]
    return (elsewhere or others or [receiver])[-1], receiver
