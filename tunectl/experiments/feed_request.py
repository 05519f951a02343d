"""What `feed` is asked for, and the words of the native program's command line that are the same for each case."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tunectl.errors import UsageError
from tunectl.experiments.capture import Capture, read_capture
from tunectl.experiments.pair_request import PairRequest

LONGEST_S = 86_400
MOST_A_SECOND = 1_000_000
RATE, DURATION_S = 10_000, 10.0  # where nothing else is asked for
MOST_MESSAGES = 4_000_000  # of a case: the program keeps what it found of each of them


@dataclass(frozen=True)
class Replay:
    """A capture whose times are divided by `speed`."""

    file: str
    capture: Capture
    speed: float

    @property
    def seconds(self) -> float:
        """From the first message to the last, as they are sent."""
        return self.capture.seconds / self.speed

    @property
    def lines(self) -> str:
        """As the native program takes them (--plan)."""
        return self.capture.lines(1 / self.speed)

    def said(self, grown: int) -> dict[str, Any]:
        """As the document has it; `grown`: messages that were shorter in the capture than any of ours is."""
        counts = {"messages": len(self.capture.messages), "others": self.capture.others, "grown": grown}
        changed = {"shortened": self.capture.shortened, "backwards": self.capture.backwards}
        return {"file": self.file, "speed": self.speed, **counts, **changed}


@dataclass(frozen=True)
class FeedRequest(PairRequest):
    """The options of `tunectl probe feed`, lists as text."""

    transport: str = "tcp"
    format: str = "ws-json"
    symbols: str = "1"
    rate: int = RATE
    burst: int = 1
    waiting: str = "poll0"
    tls: str = "off"
    alloc: str = "0"
    stamps: str = "auto"
    duration_s: float = DURATION_S
    replay: Replay | None = None  # then rate and duration are the capture's

    def check(self) -> None:
        """UsageError where rate, burst and duration do not go together, or no card is there that could stamp."""
        if self.stamps == "hw" and not self.connect:
            raise UsageError("--stamps hw: only with --connect", "on one host no network card is on the way")
        if not 0 < self.duration_s <= LONGEST_S:  # nan is in no range
            raise UsageError(f"--duration {self.duration_s:g}: seconds, above 0 and at most a day")
        messages = math.floor(self.rate * self.duration_s)
        what = f"--rate {self.rate} for --duration {self.duration_s:g}"
        if not self.replay and messages > MOST_MESSAGES:
            most = f"at most {MOST_MESSAGES:,}: fewer a second, or for a shorter time"
            raise UsageError(f"{what}: that is {messages:,} messages", most)
        if not self.replay and messages < max(self.burst, 1):
            fewest = f"--burst {self.burst} needs at least so many: more a second, or for a longer time"
            raise UsageError(f"{what}: that is {messages:,} messages", fewest)

    def words(self) -> Iterator[str]:
        """The program's arguments that are the same for each case."""
        yield from ("--duration", f"{self.duration_s:.6f}")
        yield from self.pair_words()


def replayed(request: FeedRequest, file: str, speed: float | None, rate: int | None) -> FeedRequest:
    """The request with a capture's times: at `speed`, or so that the mean rate is `rate`.

    UsageError where the file is no capture of UDP.
    """
    capture = read_capture(Path(file))
    if len(capture.messages) < 2 or not capture.seconds:
        raise UsageError(f"{file}: holds {len(capture.messages)} datagrams at one time", "give it a capture of a while")
    own_rate = (len(capture.messages) - 1) / capture.seconds
    factor = speed or (rate / own_rate if rate else 1.0)
    mean = round(own_rate * factor)
    if not 1 <= mean <= MOST_A_SECOND:
        what = f"{file} at speed {factor:.6g} has {own_rate * factor:,.6g} messages a second"
        raise UsageError(what, f"--speed, or --rate: between 1 and {MOST_A_SECOND:,} a second")
    replay = Replay(file, capture, factor)
    if replay.seconds > LONGEST_S:
        raise UsageError(
            f"{file} at speed {factor:.6g} takes {replay.seconds:,.0f} s: at most a day", "a higher --speed"
        )
    return replace(request, rate=mean, duration_s=replay.seconds, replay=replay)
