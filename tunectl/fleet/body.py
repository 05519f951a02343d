"""A session as a document, tunectl.fleet/1, and one host over the sessions, tunectl.fleet.history/1. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from tunectl.command import argv, as_data, quoted
from tunectl.fleet.causes import Cause, Told, by_text, rank
from tunectl.fleet.judge import Judged, by_machine, counts, fleet_verdict, judge, oldest
from tunectl.fleet.peers import FEWEST, SCORE, GroupRow, OddRow, groups_of
from tunectl.fleet.records import VERDICTS, Answer, Asked, Measured, Session, Summary
from tunectl.fleet.todo import Doing, DoRow, todo_rows
from tunectl.model import Severity
from tunectl.shapes import CameBack, Count, Hardware, Host, Maybe, Waits, fields_of, one_of
from tunectl.wording import awaits, by_chance, few, limit_name

Verdict = Annotated[str, Meta(extra_json_schema={"enum": [*VERDICTS]})]


class Round(msgspec.Struct, frozen=True):
    """Which round of asking."""

    name: str
    directory: str
    at: Annotated[str, Meta(description="When it began: UTC, RFC 3339; empty where nobody wrote that down.")]
    selection: Annotated[str, Meta(description="Which part of the inventory, in the words of who asked.")]


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A host; what comes from its document is null without one."""

    name: Annotated[str, Meta(description="As the inventory calls it.")]
    verdict: Verdict
    answer: Answer
    headline: Annotated[str, Meta(description="Of its document: the verdict in words, with its terms."), Maybe] = ""
    reasons: Annotated[list[str], Meta(description="Why the verdict is not GO; of a fleet the first of each host.")]
    more_reasons: Annotated[Count, Meta(description="So many more are in its own document."), Maybe] = 0
    expected: Annotated[bool, Meta(description="Is the host on the session's list of who was asked?")]
    file: Annotated[str | None, Meta(description="The host's own document.")]
    at: str | None = None
    host: Host | None = None
    tunectl_version: str | None = None
    isolated: Annotated[str | None, Meta(description="A cpulist.")] = None
    measured: Annotated[Measured | None, Meta(description="Null where the probe did not run.")] = None
    unconfirmed: Waits = UNSET
    returned: CameBack = UNSET


class FleetHost(HostRow, frozen=True, kw_only=True):
    """A host of a session."""

    group: Annotated[Count | None, Meta(description="Its place in `groups`.")]
    rack: Annotated[str, Meta(description="As the inventory says it."), Maybe] = ""


class _OfRound(HostRow, frozen=True):
    session: Round


class PastHost(_OfRound, frozen=True, kw_only=True):
    """What became of a host in a session."""

    hardware: Hardware | None
    own_words: Annotated[
        Count, Meta(description="So many of `reasons`, at their end, are the host's words and not tunectl's."), Maybe
    ] = 0
    changed: Annotated[list[str], Meta(description="What is not as it was the time before.")]


class Example(msgspec.Struct, frozen=True):
    """One host's sentence."""

    host: str
    text: str


class CauseRow(msgspec.Struct, frozen=True, kw_only=True):
    """Why hosts of one verdict are not GO."""

    verdict: Annotated[Verdict, Meta(description="Of these hosts.")]
    knob: Annotated[
        str,
        Meta(description="The knob or check; probe: a limit of the budget; empty for a reason that is known as text."),
    ]
    instances: Annotated[
        str, Meta(description="Its kind: N for a number, ethN for an interface; empty for the host's only one.")
    ]
    outcome: Annotated[str, Meta(description="Of the findings; broken for a limit; empty for a text.")]
    severity: Annotated[
        str,
        Meta(description="Of the findings; empty without one.", extra_json_schema={"enum": [*Severity, ""]}),
    ]
    cause: Annotated[
        str,
        Meta(
            description="What the findings say besides: a word observed, where a boot argument fails, the fix; the "
            "limit's key; or the text without its numbers."
        ),
    ]
    own_words: Annotated[bool, Meta(description="Is it the hosts' own text, and not tunectl's?"), Maybe] = False
    hosts: Annotated[list[str], Meta(min_length=1)]
    targets: Annotated[int, Meta(ge=1, description="On all of these hosts.")]
    texts: Annotated[int, Meta(ge=1, description="How many different sentences the hosts have for it.")]
    example: Example


class OutlierRule(msgspec.Struct, frozen=True):
    """What is called an outlier."""

    score: Annotated[float, Meta(description=f"Beyond it is an outlier. Of a normal distribution, {by_chance(SCORE)}.")]
    fewest: Annotated[Count, Meta(description="Hosts that must have measured before one is called an outlier.")]


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl fleet report` says of many hosts."""

    verdict: Annotated[
        Verdict, Meta(description="no-go if any host is; else unknown if any is; else pending-reboot if any is.")
    ]
    session: Round
    counts: Annotated[
        dict[str, Count],
        Meta(description="Of hosts in all and by verdict.", extra_json_schema={"required": ["hosts", *VERDICTS]}),
    ]
    hosts: Annotated[list[FleetHost], Meta(description="Every host of the session, the worst verdict first.")]
    actions: Annotated[
        list[Annotated[DoRow, one_of("command", "alike", "decide", "own_words")]],
        Meta(description="In the order of doing: for the hosts that are not GO, and for changes that wait."),
        Maybe,
    ] = []
    causes: Annotated[
        list[CauseRow], Meta(description="Each cause once for each verdict, the most urgent first."), Maybe
    ] = []
    groups: Annotated[list[GroupRow], Meta(description="The largest first.")]
    outliers: Annotated[list[OddRow], Meta(description="The oddest first.")]
    outlier_rule: OutlierRule
    warnings: Annotated[list[str], Meta(description="What weakens the whole report.")]


class History(msgspec.Struct, frozen=True):
    """What `tunectl fleet history HOST` says: one host over the sessions."""

    name: Annotated[str, Meta(description="As the inventory calls it.")]
    sessions: Annotated[list[PastHost], Meta(description="The oldest first.")]
    compare: Annotated[
        list[str | None],
        Meta(description="The last two documents with a measurement, for `tunectl compare`; empty with fewer."),
    ]


class Common(msgspec.Struct):
    """What hosts have in common, while it is gathered; of a sentence only whether it is another."""

    example: Example
    hosts: list[str] = []
    targets: int = 0
    texts: int = 0
    seen: set[int] = set()


ByCause = dict[tuple[str, Cause], Common]  # by verdict and cause


def fleet_body(
    session: Session,
    asked: Iterable[Asked],
    now: str,
    apart: Callable[[Sequence[tuple[str, str]]], ByCause] = lambda _: {},
    peers: str = "hardware",
) -> dict[str, Any]:
    """The fields of tunectl.fleet/1: every host, the worst first, and how each compares with its peers.

    `now`: UTC, RFC 3339. `apart` says of these hosts and verdicts the causes that their documents do not have by them.
    `peers` (of peers.PEERS) are compared with each other.
    """
    judged = judge(session, asked, now)
    groups, odd = groups_of({one.name: one.asked.document for one in judged if one.asked.document}, peers)
    racks = dict(session.racks)
    place = {host: number for number, group in enumerate(groups) for host in group.hosts}
    fleet = Fleet(
        verdict=fleet_verdict(judged),
        session=round_of(session),
        counts={"hosts": len(judged), **counts(judged)},
        hosts=[FleetHost(**_host(one), group=place.get(one.name), rack=racks.get(one.name, "")) for one in judged],
        actions=todo_rows((name, (*_of_trial(document), *document.todo)) for name, document in of_now(judged)),
        causes=_causes(judged, apart([(one.name, one.verdict) for one in judged if _counts(one)])),
        groups=groups,
        outliers=odd,
        outlier_rule=OutlierRule(SCORE, FEWEST),
        warnings=list(_warnings(session, judged, now)),
    )
    body: dict[str, Any] = fields_of(fleet)
    return body


def _causes(judged: Iterable[Judged], found: ByCause) -> list[CauseRow]:
    """Why hosts are not GO, each cause once for each verdict: the worst verdict and the most urgent cause first."""
    for one in judged:
        for told in _told(one):
            of = found.setdefault((one.verdict, told.cause), Common(Example(one.name, told.text)))
            of.hosts.append(one.name)
            of.targets += told.targets
            of.texts += (text := hash(told.text)) not in of.seen
            of.seen.add(text)
    rows = []
    ordered = sorted(found.items(), key=lambda one: (VERDICTS.index(one[0][0]), *rank(one[0][1]), -len(one[1].hosts)))
    for (verdict, cause), of in ordered:
        fields = cause._asdict()
        row = CauseRow(
            verdict=verdict,
            cause=fields.pop("data"),
            **fields,
            hosts=list(dict.fromkeys(of.hosts)),
            targets=of.targets,
            texts=of.texts,
            example=of.example,
        )
        rows.append(row)
    return rows


def _told(one: Judged) -> Iterator[Told]:
    """Its causes: those of its document's findings, where its document's reasons count, and every other reason."""
    document = one.asked.document
    own = frozenset(document.reasons) if document else frozenset()
    if document and _counts(one):
        yield from document.told.each()
        yield from by_text(document.unexplained, own_words=True)
    yield from by_text(reason for reason in one.reasons if reason not in own)


def _of_trial(document: Summary) -> Iterator[Doing]:
    """What a change asks for that waits, or came back: before anything is applied, for `apply` refuses meanwhile."""
    if document.unconfirmed:
        keeps = argv("sudo", "tunectl", "confirm", *(["ID"] if document.unconfirmed.kind == "boot" else []))
        yield Doing(0, "", f"confirm the change that waits (`{keeps}`), or have it taken back", "", 1, False)
    if document.returned:
        again = "mend what took the change back and apply it again, or take it out of the host file"
        yield Doing(0, "", again, "", 1, False)


def _counts(one: Judged) -> bool:
    """Is it judged by what its document says? An old one says nothing of now."""
    document = one.asked.document
    return document is not None and bool(set(document.reasons) & set(one.reasons))


def of_now(judged: Iterable[Judged]) -> Iterator[tuple[str, Summary]]:
    """The hosts of which it is known how they stand now, with what they said."""
    for one in judged:
        if one.asked.document and (one.verdict == "go" or _counts(one)):
            yield one.name, one.asked.document


def round_of(session: Session) -> Round:
    """The session in a document."""
    return Round(session.name, session.directory, session.at, session.selection)


def _host(one: Judged) -> dict[str, Any]:
    """The fields of a HostRow."""
    document = one.asked.document
    row = {
        "name": one.name,
        "verdict": one.verdict,
        "answer": one.asked.answer,
        "headline": document.headline if document else "",
        "reasons": list(one.reasons),
        "expected": one.asked.expected,
        "file": one.asked.file or None,
    }
    if document:
        names = ("at", "host", "tunectl_version", "isolated", "unconfirmed", "returned")
        row |= {
            "measured": document.figures,
            "more_reasons": document.more_reasons if _counts(one) else 0,
            **{name: getattr(document, name) for name in names},
        }
    return row


def _warnings(session: Session, judged: Sequence[Judged], now: str) -> Iterator[str]:
    """What makes the whole report less certain."""
    if not judged:
        yield "no host was asked, so nothing is known"
    unlisted = [one.name for one in judged if not one.asked.expected]
    if not session.hosts:
        if judged:
            yield "no list says who was asked: a host that left no document is missing here"
    elif unlisted:
        yield f"left a document, and was not asked: {', '.join(unlisted)}"
    named = [(one.name, one.asked.document) for one in judged if one.asked.document]
    if since := oldest(session.at, [(name, document.at) for name, document in named], now):
        yield since
    yield from _of_one_machine(named)
    current = list(of_now(judged))
    standing = {
        "judged by looser limits than their profile has": [
            (name, ", ".join(limit_name(as_data(key)) for key in document.looser))
            for name, document in named
            if document.looser
        ],
        "waivers stand": [(name, str(document.waivers)) for name, document in named if document.waivers],
        "a change that nobody has confirmed stands": [
            (name, awaits(as_data(change.back_at), change.overdue, change.tried))
            for name, document in current
            if (change := document.unconfirmed)
        ],
        "tried, and returned": [
            (name, quoted(document.returned.why)) for name, document in current if document.returned
        ],
    }
    yield from (f"{what}: {_by_terms(hosts)}" for what, hosts in standing.items() if hosts)
    versions = Counter(document.tunectl_version for _, document in named)
    if len(versions) > 1:
        each = ", ".join(f"{as_data(version, '?')} ({n})" for version, n in sorted(versions.items()))
        yield f"several versions of tunectl: {each}"


def _of_one_machine(named: Iterable[tuple[str, Summary]]) -> Iterator[str]:
    """Of each boot that left several documents, their names: also of those that are NO-GO by themselves."""
    each = by_machine(named).values()
    yield from (f"{len(names):,} documents of one machine: {few(names, 10)}" for names in each if names[1:])


def _by_terms(hosts: Iterable[tuple[str, str]]) -> str:
    """`4 each on 15 hosts (tx-01, tx-02, tx-03 and 12 more), 2 on tx-47`: hosts on the same terms together."""
    found: dict[str, list[str]] = {}
    for name, terms in hosts:
        found.setdefault(terms, []).append(name)
    return ", ".join(
        f"{terms} on {names[0]}" if len(names) == 1 else f"{terms} each on {len(names):,} hosts ({few(names)})"
        for terms, names in found.items()
    )


def history_body(name: str, rounds: Iterable[tuple[Session, Asked]], now: str) -> dict[str, Any]:
    """What became of one host, the oldest session first; `changed` says what is not as it was the time before."""
    rows: list[PastHost] = []
    before: Judged | None = None
    for session, asked in rounds:
        (judged,) = judge(session, [asked], now)
        document = asked.document
        own = frozenset(document.reasons) if document else frozenset()
        row = PastHost(
            round_of(session),
            **_host(judged),
            hardware=document.hardware if document else None,
            own_words=sum(reason in own for reason in judged.reasons),
            changed=list(changed(before, judged)),
        )
        rows.append(row)
        before = judged if document else before  # a host without a document keeps the one before for comparison
    files: list[str | None] = [row.file for row in rows if row.measured and row.file]
    body: dict[str, Any] = fields_of(History(name, rows, files[-2:] if len(files) > 1 else []))
    return body


def changed(before: Judged | None, now: Judged) -> Iterator[str]:
    """What is not as it was the time before; nothing without two documents."""
    old, new = before.asked.document if before else None, now.asked.document
    if old is None or new is None:
        return
    if old.hardware != new.hardware:
        yield "hardware"
    pairs: Sequence[tuple[str, str, str]] = (
        ("machine's name", old.host.hostname, new.host.hostname),
        ("kernel", old.host.kernel, new.host.kernel),
        ("tunectl", old.tunectl_version, new.tunectl_version),
        ("isolated CPUs", old.isolated, new.isolated),
    )
    for what, was, is_now in pairs:
        if was != is_now:
            yield f"{what}: {as_data(was, '?')} before, {as_data(is_now, '?')} now"
    if old.host.boot_id != new.host.boot_id:
        yield "rebooted"
