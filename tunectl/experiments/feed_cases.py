"""Which cases `feed` measures: every combination of the lists that it is given, and why some cannot be. Pure."""

from __future__ import annotations

from itertools import product
from math import ceil
from typing import Any, NamedTuple

from tunectl.errors import UsageError
from tunectl.experiments.case_by_case import chosen
from tunectl.experiments.feed_request import FeedRequest
from tunectl.experiments.pair_placement import Placed
from tunectl.shapes import FeedCase, typed

TRANSPORTS = ("tcp", "udp", "multicast", "multicast-ab")
BETWEEN_HOSTS = ("tcp", "udp")
FORMATS = ("ws-json", "json", "binary")
TWO_LINES = "multicast-ab"  # each message is sent twice on purpose
WAITS = ("poll", "poll0", "busy-poll")
SPINNING = "poll0"
TLS = ("off", "ktls")
MOST_SYMBOLS, MOST_ALLOCATIONS = 64, 64
_STREAM = "tcp"
_LONGEST_LIST = 16
_WARM_UPS_LEAST, _WARM_UPS_MOST = 100, 20_000  # of the native program (feed/plan.c)


class Planned(NamedTuple):
    """A case, and why it cannot be measured; "" where it can."""

    transport: str
    format: str
    symbols: int
    rate: int
    burst: int
    waiting: str
    tls: str
    alloc: int
    reason: str = ""

    @property
    def cell(self) -> dict[str, Any]:
        """As the cell of a raw document in which nothing was counted."""
        return self._asdict()

    @property
    def title(self) -> str:
        """As the progress and all pages have it."""
        return typed({**self.cell, "n": 0, "histogram": []}, FeedCase).name

    @property
    def warm_up_s(self) -> float:
        """A fifth of a second of messages, but neither too few nor too many; whole bursts, as the program has it."""
        fewest = min(max(self.rate // 5, _WARM_UPS_LEAST), _WARM_UPS_MOST)
        return ceil(fewest / self.burst) * self.burst / self.rate

    def words(self) -> list[str]:
        """The program's arguments that say which case it is."""
        asked = self._asdict()
        del asked["reason"]
        return [word for name, value in asked.items() for word in (f"--{name}", str(value))]


def plan(request: FeedRequest, placed: Placed) -> list[Planned]:
    """The cases of a request, in their order. UsageError where it names what there is not."""
    request.check()
    if placed.sender == placed.receiver:
        if request.cpus is None:
            said = f"the sender spins, so two CPUs are needed: only CPU {placed.sender} can be chosen here"
            raise UsageError(said, "name two with --cpus S,R")
        said = f"the sender spins, so the receiver needs another CPU than {placed.sender}"
        raise UsageError(f"--cpus {placed.text}: {said}", "name two, like 2,3")
    transports = chosen("--transport", request.transport, TRANSPORTS)
    if request.connect and not set(transports) <= set(BETWEEN_HOSTS):
        raise UsageError("--transport: only tcp and udp lead to the host of --connect")
    lists = product(
        transports,
        chosen("--message-format", request.format, FORMATS),
        _numbers("--symbols", request.symbols, 1, MOST_SYMBOLS),
        [request.rate],
        [request.burst],
        chosen("--waiting", request.waiting, WAITS),
        chosen("--tls", request.tls, TLS),
        _numbers("--alloc", request.alloc, 0, MOST_ALLOCATIONS),
    )
    cases = [Planned(*values) for values in lists]
    return [case._replace(reason=_lack(case)) for case in cases]


def _numbers(option: str, text: str, least: int, most: int) -> list[int]:
    """The whole numbers of a list, each once, in their order."""
    words = text.split(",")
    are_numbers = all(word.isascii() and word.isdigit() and len(word) < 9 for word in words)
    found = list(dict.fromkeys(int(word) for word in words)) if are_numbers else []
    if not found or not all(least <= number <= most for number in found):
        raise UsageError(f"{option} {text}: expected whole numbers from {least} to {most}, like {least},4")
    if len(found) > _LONGEST_LIST:
        raise UsageError(f"{option} {text}: at most {_LONGEST_LIST} of them")
    return found


def _lack(case: Planned) -> str:
    if case.waiting == "busy-poll" and case.transport == TWO_LINES:
        return "a receive that blocks, as busy-poll has it, cannot wait for two lines"
    if case.transport == _STREAM:
        return ""
    if case.format == "ws-json":
        other = f"{_STREAM}, and not over {case.transport}; say --message-format json or binary"
        return f"WebSocket frames are a stream of bytes: they go over {other}"
    if case.tls == "ktls":
        return f"the kernel encrypts a stream of bytes: ktls goes over {_STREAM}, and not over {case.transport}"
    return ""
