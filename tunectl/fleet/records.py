"""What a session holds: who was asked, what became of each, and what is kept of a host's document. Pure.

The document itself may hold every gap of every CPU. Of 200 hosts that is more than a controller should keep.
"""

import zlib
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta

from tunectl.fleet.causes import Cause, Told, told_by
from tunectl.fleet.todo import Doing, doings
from tunectl.probe.doubt import doubt_of_go
from tunectl.shapes import Amount, CameBack, Count, Firmware, Hardware, Host, Jitter, Maybe, Preflight, Waits


class Measure(NamedTuple):
    """A figure of which more is worse.

    Values below `floor` are all equally good, and a value within a factor of `ratio` of the median is usual, however
    alike the others are: nobody would notice the difference.
    """

    name: str
    floor: float
    ratio: float


# The measures of the budget, and the cost of a turn of the loop: a CPU that runs slowly shows there first.
# Floors: 100 ns is one memory access; what is rarer than once a second, or than a millionth of the time, is chance.
MEASURES = (
    Measure("max_ns", 100.0, 1.5),
    Measure("p99_9_ns", 100.0, 1.5),
    Measure("interruptions_per_s", 1.0, 1.5),
    Measure("stolen_ppm", 1.0, 1.5),
    Measure("smis_per_s", 0.01, 1.5),  # firmware that a BIOS setting apart asks for
    Measure("loop_ns", 0.1, 1.1),  # this shows the CPU's clock: a tenth is one or two turbo steps
)


MeasureName = Annotated[str, Meta(extra_json_schema={"enum": [measure.name for measure in MEASURES]})]


Shared = dict[Any, Any]  # what hosts have in common, each once


class Measured(msgspec.Struct, frozen=True):
    """Each figure of the worst isolated CPU."""

    duration_s: Amount
    threshold_ns: Amount
    cpus: Count
    budget: Annotated[str, Meta(description="within, broken or not-judged")]
    max_ns: Annotated[Amount | None, Meta(description="The longest interruption.")]
    p99_9_ns: Annotated[Amount | None, Meta(description="The wait that 99.9 % of arrivals do not exceed.")]
    interruptions_per_s: Amount | None
    stolen_ppm: Amount | None
    loop_ns: Annotated[Amount | None, Meta(description="An undisturbed turn of the probe's loop.")]
    smis_per_s: Annotated[Amount | None, Meta(description="SMIs of the host; null where nobody counts."), Maybe] = None


class Packed(NamedTuple):
    """The causes of one host: of ten thousand hosts their sentences would be half of all that is kept."""

    causes: tuple[tuple[Cause, int], ...] = ()  # with the number of targets
    texts: bytes = b""

    def each(self) -> Iterator[Told]:
        """As they were."""
        texts = msgspec.msgpack.decode(zlib.decompress(self.texts), type=list[str]) if self.causes else []
        yield from (Told(cause, targets, text) for (cause, targets), text in zip(self.causes, texts, strict=True))


def packed(told: Sequence[Told]) -> Packed:
    """The same in a tenth of the memory."""
    texts = zlib.compress(msgspec.msgpack.encode([one.text for one in told]), 1) if told else b""
    return Packed(tuple((one.cause, one.targets) for one in told), texts)


class Summary(NamedTuple):
    """One host's document. `figures` is None where its probe did not run."""

    verdict: str
    reasons: tuple[str, ...] = ()  # the first of them
    more_reasons: int = 0  # than these
    at: str = ""
    host: Host = Host()
    tunectl_version: str = ""
    hardware: Hardware | None = None
    isolated: str = ""
    clock: str = ""
    figures: Measured | None = None
    headline: str = ""  # the verdict in words, with the terms on which it was reached
    looser: tuple[str, ...] = ()  # keys of [budget] that permit more than the profile does
    waivers: int = 0  # that stand
    told: Packed = Packed()  # why it is not GO, by its findings
    todo: tuple[Doing, ...] = ()
    unexplained: tuple[str, ...] = ()  # those of `reasons` that no finding and no limit explains
    doubt: str = ""  # why its GO cannot be repeated
    unconfirmed: Waits = UNSET
    returned: CameBack = UNSET
    firmware: Firmware = Firmware()


def summary_of(
    document: Preflight, most: int | None = None, apart: tuple[Any, tuple[str, ...]] | None = None
) -> Summary:
    """The summary that is kept of a document: at `most` so many reasons.

    `apart` is what told_by() says, where the causes are kept in another place.
    """
    probe = document.probe
    told, unexplained = apart or told_by(document)
    reasons = document.reasons[:most]
    return Summary(
        verdict=document.verdict,
        reasons=tuple(reasons),
        more_reasons=len(document.reasons) - len(reasons),
        at=document.at,
        host=document.host,
        tunectl_version=document.tunectl_version,
        hardware=document.hardware,
        isolated=document.cpu_sets.isolated,
        clock=probe.clock.source if probe else "",
        figures=_figures(probe) if probe else None,
        headline=document.headline,
        looser=tuple(looser.key for looser in document.looser),
        waivers=document.waivers.standing,
        told=Packed() if apart else packed(told),
        todo=doings(document.actions),
        unexplained=unexplained,
        doubt=doubt_of_go(document),
        unconfirmed=document.verify.unconfirmed if document.verify else UNSET,
        returned=document.verify.returned if document.verify else UNSET,
        firmware=document.firmware,
    )


def kept_once(summary: Summary, shared: Shared) -> Summary:
    """The same summary, of which what `shared` has already is kept but once."""
    once = shared.setdefault
    causes = summary.told.causes
    if causes not in shared:
        causes = tuple((once(cause, cause), targets) for cause, targets in causes)
    whole = Summary._make(once(value, value) if type(value) in _KEPT_ONCE else value for value in summary)
    return whole._replace(
        reasons=tuple(once(reason, reason) for reason in summary.reasons),
        told=summary.told._replace(causes=once(causes, causes)),
        todo=tuple(once(one, one) for one in summary.todo),
    )


_KEPT_ONCE = (str, Hardware, Firmware)


def _figures(probe: Jitter) -> Measured:
    worst = {measure.name: probe.worst(measure.name) for measure in MEASURES}
    return Measured(probe.duration_s, float(probe.threshold_ns), len(probe.cpus), probe.budget.verdict, **worst)


VERDICTS = ("no-go", "unknown", "pending-reboot", "go")  # the worst first


class Answer(StrEnum):
    """The answer of one host."""

    DOCUMENT = "document"  # a preflight document
    UNREACHABLE = "unreachable"  # no connection to it
    FAILED = "failed"  # reached, but the preflight itself failed
    SILENT = "silent"  # no document, and no note that says why
    UNUSABLE = "unusable"  # something that is not a complete preflight document


class Absent(NamedTuple):
    """Why there is no document of a host, as the caller noted it."""

    kind: Answer  # UNREACHABLE or FAILED
    reason: str
    at: str = ""


class Asked(NamedTuple):
    """One host of a session: `document` if there is one, otherwise `problem` says why not."""

    name: str
    answer: Answer
    document: Summary | None = None
    problem: str = ""
    file: str = ""  # of the document, relative to the session; "" without one
    expected: bool = True  # the session's list has it


class Session(NamedTuple):
    """One round of asking. `at` is when it began: UTC, RFC 3339; "" if that is not known."""

    name: str
    directory: str
    at: str = ""
    selection: str = ""  # which part of the inventory, in the caller's words
    hosts: tuple[str, ...] = ()
    racks: tuple[tuple[str, str], ...] = ()  # (host, rack), where the inventory says one
