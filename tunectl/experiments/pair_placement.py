"""Which CPUs a sender and a receiver, or a client and two servers, are pinned to. Pure."""

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
        sender, receiver = _named(cpus, facts.online, 2, "the sender's CPU and the receiver's, like 2,3")
        return Placed(sender, receiver)
    candidates, is_asked = _candidates(among, facts, allowed, 2)
    if not (online := candidates & facts.online):
        raise UsageError("none of the CPUs to choose from is online", "name two with --cpus S,R")
    sender, receiver = _last_two(online, facts)
    if is_asked:
        return Placed(sender, receiver)
    chosen = named_cpus({sender, receiver})
    were = "was" if sender == receiver else "were"
    taken = f"{chosen} {were} chosen among the allowed ones"
    note = f"no two CPUs are isolated on this host: {taken} (--cpus S,R names others)"
    return Placed(sender, receiver, note)


class PlacedServers(NamedTuple):
    """The CPUs of a client and its two servers, and what has to be said of the choice; "" where nothing."""

    client: int
    a: int
    b: int
    note: str = ""

    @property
    def text(self) -> str:
        """As the option --cpus has it."""
        return f"{self.client},{self.a},{self.b}"

    @property
    def cpus(self) -> CpuSet:
        """All three."""
        return frozenset({self.client, self.a, self.b})


def place_servers(cpus: str | None, among: str | None, facts: CpuFacts, allowed: CpuSet) -> PlacedServers:
    """Those that `cpus` names; else the last three, if possible on three cores, chosen as place() does.

    UsageError where there are no three.
    """
    if cpus is not None:
        expected = "the client's CPU and those of both servers, like 2,3,4"
        client, a, b = _named(cpus, facts.online, 3, expected)
        if len({client, a, b}) < 3:
            raise UsageError(f"--cpus {cpus}: all three threads spin, so each needs a CPU of its own")
        return PlacedServers(client, a, b)
    candidates, is_asked = _candidates(among, facts, allowed, 3)
    online = candidates & facts.online
    if len(online) < 3:
        said = f"a client and two servers spin, each on a CPU of its own: here {len(online)} can be chosen"
        raise UsageError(said, "name three with --cpus C,A,B, or say --simulate, which needs none")
    client, a, b = _last_three(online, facts)
    chosen = named_cpus({client, a, b})
    said = f"no three CPUs are isolated on this host: {chosen} were chosen among the allowed ones"
    return PlacedServers(client, a, b, "" if is_asked else f"{said} (--cpus C,A,B names others)")


def _candidates(among: str | None, facts: CpuFacts, allowed: CpuSet, fewest: int) -> tuple[CpuSet, bool]:
    """The CPUs to choose from, and whether somebody asked for these: by a list, or by isolating them."""
    if among is not None:
        return parse_cpulist(among), True
    isolated = facts.kernel_isolated | facts.partitioned
    return (isolated, True) if len(isolated & facts.online) >= fewest else (allowed, False)


def _named(text: str, online: CpuSet, count: int, expected: str) -> list[int]:
    if not re.fullmatch(r"\d{1,5}" + r",\d{1,5}" * (count - 1), text, re.ASCII):
        raise UsageError(f"--cpus {text}: expected {expected}")
    named = [*map(int, text.split(","))]
    for cpu in named:
        if cpu not in online:
            raise UsageError(f"CPU {cpu} is not online on this host")
    return named


def _last_three(online: CpuSet, facts: CpuFacts) -> tuple[int, int, int]:
    """Server B on the very last; A and the client each on the nearest below, if possible on a core of their own."""
    left, chosen = sorted(online), list[int]()
    while len(chosen) < 3:
        near = frozenset[int]().union(*(facts.siblings.get(cpu, frozenset()) for cpu in chosen))
        chosen.append(([cpu for cpu in left if cpu not in near] or left)[-1])
        left.remove(chosen[-1])
    b, a, client = chosen
    return client, a, b


def _last_two(online: CpuSet, facts: CpuFacts) -> tuple[int, int]:
    """The receiver on the very last; the sender on the nearest below, if possible on another core, or there too."""
    *others, receiver = sorted(online)
    elsewhere = [cpu for cpu in others if cpu not in facts.siblings.get(receiver, frozenset())]
    return (elsewhere or others or [receiver])[-1], receiver
