"""`feed`, market data from a socket to a book: what is asked for, which cases that is, and how each is measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as asked_otherwise
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

from msgspec.structs import replace

from tunectl.errors import TunectlError, UsageError
from tunectl.experiments import ends
from tunectl.experiments.capture import MOST_MESSAGES, Replay, read_capture
from tunectl.experiments.feed_cells import TWO_LINES, RawCase, RoundTrip, explained_feed
from tunectl.experiments.frame import Takes, check_duration, chosen, listed, within
from tunectl.experiments.link import SMALLEST, Asked, Link, linked, require_reach
from tunectl.host.counters import rises
from tunectl.host.nics import ALL, Stamping, read_nic_drops, read_softnet_drops, read_stamping
from tunectl.host.sysroot import Sysroot
from tunectl.probe.budget import LONGEST_S
from tunectl.work import Tell, Work

MOST_A_SECOND = 1_000_000
_DROPS_BITS = 64  # of a driver's counters: struct rtnl_link_stats64
RATE, DURATION_S = 10_000, 10.0  # where nothing else is asked for
TRANSPORTS = ("tcp", "udp", "multicast", "multicast-ab")
FORMATS = ("ws-json", "json", "binary")
WAITS = ("poll", "poll0", "busy-poll")
TLS = ("off", "ktls")
MOST_SYMBOLS, MOST_ALLOCATIONS = 64, 64
_STREAM = "tcp"
STAMPS = ("auto", "sw", "hw", "off")
OFF, _KERNEL = ("--stamps", "off"), ("--stamps", "sw")
_WITHOUT = "the kernel's: --stamps sw"
_CASE_S = 0.5  # beyond its schedule: the counter's rate


@dataclass(frozen=True)
class FeedRequest(ends.PairRequest):
    """The options of `tunectl probe feed`, lists as text."""

    options = ("duration_s", "rcvbuf", "fifo", "busy_poll_us", "intrude")
    transport: str = "tcp"
    format: str = "ws-json"
    symbols: str = "1"
    rate: int = RATE
    burst: int = 1
    waiting: str = "poll0"
    tls: str = "off"
    alloc: str = "0"
    stamps: str = "auto"
    rcvbuf: int | None = None
    duration_s: float = DURATION_S
    replay: Replay | None = None  # then rate and duration are the capture's

    def check(self) -> None:
        """UsageError where rate, burst and duration do not go together, or no card is there that could stamp."""
        if self.stamps == "hw" and not self.connect:
            raise UsageError("--stamps hw: only with --connect", "on one host no network card is on the way")
        check_duration(self.duration_s)
        messages = math.floor(self.rate * self.duration_s)
        what = f"--rate {self.rate} for --duration {self.duration_s:g}"
        if not self.replay and messages > MOST_MESSAGES:
            most = f"at most {MOST_MESSAGES:,}: fewer a second, or for a shorter time"
            raise UsageError(f"{what}: that is {messages:,} messages", most)
        if not self.replay and messages < max(self.burst, 1):
            fewest = f"--burst {self.burst} needs at least so many: more a second, or for a longer time"
            raise UsageError(f"{what}: that is {messages:,} messages", fewest)


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
    return asked_otherwise(request, rate=mean, duration_s=replay.seconds, replay=replay)


def plan(request: FeedRequest, placed: ends.Placed) -> list[RawCase]:
    """The cases of a request, in their order. UsageError where it names what there is not."""
    request.check()
    ends.require_two(request, placed)
    transports = chosen("--transport", request.transport, TRANSPORTS)
    require_reach("--transport", transports, request)
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
    cases = [RawCase.of(*values) for values in lists]
    return [replace(case, reason=_lack(case)) for case in cases]


def _numbers(option: str, text: str, least: int, most: int) -> list[int]:
    """The whole numbers of a list, each once, in their order."""

    def number(word: str) -> int:
        is_number = word.isascii() and word.isdigit() and len(word) < 9
        return int(within(int(word) if is_number else math.nan, least, most))

    return listed(option, text, number, f"whole numbers from {least} to {most}, like {least},4")


def _lack(case: RawCase) -> str:
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


class Chosen(NamedTuple):
    """The program's arguments, and what has to be said of the choice; "" where nothing."""

    words: tuple[str, ...]
    note: str = ""


def choose(asked: str, card: Stamping | None) -> Chosen:
    """Of STAMPS; `card` is the interface of a connection to another host. TunectlError where hw cannot be had."""
    if asked == "off":
        return Chosen(OFF)
    if asked == "sw" or card is None:
        return Chosen(_KERNEL)
    lack, way_out = _lack_of_card(card)
    if not lack:
        return Chosen((*_KERNEL, "--phc", card.clock))
    if asked == "hw":
        raise TunectlError(f"--stamps hw: {lack}", way_out)
    return Chosen(_KERNEL, f"the kernel's time stamps, and not the card's: {lack} ({way_out})" if card.clock else "")


def _lack_of_card(card: Stamping) -> tuple[str, str]:
    """Why the card's stamps cannot be had, and what would help; "" where they can."""
    nic = card.nic
    if not card.clock:
        return f"{nic} has no clock (PHC) that could stamp packets", _WITHOUT
    if card.filter_error:
        return f"which packets {nic} stamps cannot be read: {card.filter_error}", _WITHOUT
    if card.receive_filter != ALL:
        theirs = f"not beside chrony (there: hwtimestamp {nic} rxfilter all) or ptp4l (hwts_filter full)"
        way_out = f"`hwstamp_ctl -i {nic} -r 1` makes it stamp all, {theirs}"
        return f"{nic} stamps {card.receive_filter} of the packets that it receives, and all are needed", way_out
    if card.clock_error:
        clock = f"{card.clock}, the clock of {nic}, cannot be read: {card.clock_error}"
        return f"the card's stamps are not comparable: {clock}", "run it as root"
    return "", ""


def far_words(said: Sequence[str]) -> list[str]:
    """The arguments of the other host's program, made of the words that _measured() sends. ValueError for others."""
    transport, waiting, busy_poll_us = said
    # Bytes go back as they came: of the formats, this is the one that every transport takes.
    case = ["--transport", transport, "--format", "binary", "--waiting", waiting]
    return [*case, "--busy-poll-us", str(int(busy_poll_us))]


def _takes(request: FeedRequest, case: RawCase) -> Takes:
    return Takes(case.warm_up_s, _CASE_S + request.duration_s)


class _Messages(NamedTuple):
    """What is measured, and where: within this host, or over another and back."""

    run: ends.CaseRun[RawCase]
    request: FeedRequest
    link: Link | None
    trip: RoundTrip | None

    def measure(self) -> dict[str, Any]:
        """What was counted, as if one run of the program had counted it. TunectlError where nothing was."""
        stamps = choose(self.request.stamps, read_stamping(Sysroot(), self.trip.interface) if self.trip else None)
        self.run.notes += [stamps.note] * bool(stamps.note)
        # What the kernel decrypts has no receive stamps.
        again = [case for case in self.run.cases if not case.reason and case.tls == "off" and stamps.words != OFF]
        after_s = sum(self.run.takes(again[0])) if again else 0.0
        return self.run.measure(partial(self._measured, stamps.words), after_s)

    def without_stamps(self, raw: dict[str, Any]) -> dict[str, Any] | None:
        """The document of the first case that was stamped in `raw`, once more and without stamps.

        None where no case was, and where the run was interrupted; where it failed the notes have the reason.
        """
        run = self.run
        stamped = [case for case, cell in zip(run.cases, raw["cells"], strict=True) if cell.get("stamped")]
        if not stamped or raw["interrupted"]:
            return None
        run.tell(Work(f"{stamped[0].title}: once more without time stamps", sum(run.takes(stamped[0]))))
        try:
            document = self._measured(OFF, stamped[0])
        except (TunectlError, KeyboardInterrupt) as error:
            run.notes.append(f"what time stamps cost was not measured: {error or 'interrupted'}")
            return None
        if document["interrupted"]:
            run.notes.append("what time stamps cost was not measured: interrupted")
            return None
        return document

    def _measured(self, stamps: Sequence[str], case: RawCase) -> dict[str, Any]:
        if self.link is None or self.trip is None:
            return self._counted(case, stamps)
        words = (case.transport, case.waiting, str(self.request.busy_poll_us or ends.BUSY_POLL_US))
        with self.link.case(Asked(case.transport, SMALLEST, words)) as connection:
            fd = connection.fileno()
            return self._counted(case, [*stamps, "--socket", str(fd)], fd, self.trip.interface)

    def _counted(
        self, case: RawCase, words: Sequence[str], keep: int | None = None, nic: str | None = None
    ) -> dict[str, Any]:
        """With what the host dropped meanwhile."""
        before = _host_drops(nic)
        with NamedTemporaryFile("w", prefix="tunectl-", suffix=".plan") as file:
            replay = self.request.replay
            file.write(replay.lines if replay else "")
            file.flush()
            measured = self.run.counted(case, [*words, *(("--plan", file.name) if replay else ())], keep)
        grown = rises(before, _host_drops(nic), _DROPS_BITS)
        for cell in measured["cells"]:
            if "drops" in cell:
                cell["drops"] |= {"softnet": grown.get("softnet"), "nic": grown.get("nic")}
        return measured


def _host_drops(nic: str | None) -> dict[str, int]:
    """Of those who count them."""
    root = Sysroot()
    counts = {"softnet": read_softnet_drops(root), "nic": read_nic_drops(root, nic) if nic else None}
    return {name: count for name, count in counts.items() if count is not None}


def run_feed(request: FeedRequest, on_progress: Tell) -> dict[str, Any]:
    """The tunectl.probe.feed/1 document. UsageError for a wrong request; else as CaseRun.measure() and linked()."""
    placed = ends.place_request(ends.SENDER_AND_RECEIVER, request)
    cases, takes = plan(request, placed), partial(_takes, request)
    run = ends.CaseRun("feed", request, placed, cases, takes, on_progress)
    with linked("feed", request.connect) as link:
        trip = RoundTrip(link.peer, link.interface()) if link else None
        messages = _Messages(run, request, link, trip)
        raw = messages.measure()
        return run.noted(explained_feed(raw, messages.without_stamps(raw), request.replay, trip))
