"""Who steers this host's clock, by what, and how far off it may be: the owners' words beside the kernel's, judged.

An owner's estimate counts with its bound: the clock is right where the bound is within the limit, wrong where the
estimate alone is beyond it, and otherwise not known. A kernel that calls itself synchronised proves nothing: it repeats
what it was told. Source: chronyc(1), tracking; adjtimex(2); docs/clock.md.
"""

import errno
import os
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tunectl.fix import NOTHING, Fix, in_turn, to_decide
from tunectl.host.adjtimex import read_kernel_clock
from tunectl.host.chrony import read_tracking
from tunectl.host.leaptable import expired_leap_table
from tunectl.host.linuxptp import PtpClock, may_steer, read_ptp_clock
from tunectl.host.procs import hidden_threads
from tunectl.host.ptpclock import CardClock, read_card_clock, read_card_time_ns
from tunectl.host.refusals import ON_HOST
from tunectl.host.sysroot import Sysroot
from tunectl.host.timekeepers import Timekeeper, read_timekeepers
from tunectl.host.timesyncd import read_synced
from tunectl.model import Finding, Match, Outcome, Severity
from tunectl.shapes import KernelClock
from tunectl.verdict import CLOCK
from tunectl.wording import few, kernels_own, nanoseconds, seconds_of

# A source that left eight questions unanswered is unreachable (RFC 5905, the reach register).
_MISSED, _LEAST_S = 8, 4.0
_LEAST_SYNC_S = 2.0  # IEEE 1588's default profile sends Sync as seldom as that
_AHEAD_S = 1.0  # more than an answer is ahead of the clock that it came by, unless that was set
_HOUR_S = 3600.0
_MIXED_NS = 0.5e9
_ASKED = ("chronyd", "ptp4l", "phc2sys", "systemd-timesyncd")
_START = to_decide("have one program steer the clock: install chrony, or set up ptp4l with phc2sys")
_SOURCES = to_decide("see which of its sources answer: chronyc -n sources")
_MASTER = to_decide("see whom ptp4l follows, and what vouches for that: pmc -u -b 0, GET PARENT_DATA_SET")
_RESTART, _RESTART_PTP, _RESTART_TIMESYNCD = (
    to_decide(f"see in its log why {name} gives no answer (journalctl -t {name}), and start it again")
    for name in ("chronyd", "ptp4l", "systemd-timesyncd")
)
_SERVER = to_decide("see which server answers: timedatectl timesync-status")


class Word(NamedTuple):
    """What one owner says. Its offset is an estimate: `bound_ns` is the most that the clock can be off."""

    keeper: str
    steers: bool  # does it set the system's clock?
    source: str = ""
    offset_ns: float | None = None
    bound_ns: float | None = None
    trouble: str = ""  # why it does not follow anything
    lack: str = ""  # why it does not say, or why nobody knows the bound
    fix: Fix = ON_HOST
    is_of_card: bool = False  # it speaks of a card's clock, and not of the system's
    tai_s: int | None = None  # TAI - UTC, as its source has it
    moved_ns: float = 0.0  # what it found at its last update, and then corrected
    moved_ago_s: float = 0.0


class HostTime(NamedTuple):
    """All that was said. `hidden`: why not all who steer the clock may be seen."""

    kernel: KernelClock | None = None
    keepers: tuple[Timekeeper, ...] = ()
    words: tuple[Word, ...] = ()
    hidden: str = ""
    is_recorded: bool = False
    expired: str = ""  # the table of leap seconds that chronyd uses, and that says nothing about today


class Judged(NamedTuple):
    """The clock against a limit."""

    outcome: Outcome
    reason: str
    fix: Fix
    offset_ns: float | None = None
    bound_ns: float | None = None


def read_host_time(root: Sysroot) -> HostTime:
    """Asks everybody who can be asked; it may take some seconds. Never raises."""
    if not root.live:
        return HostTime(is_recorded=True)
    kernel = read_kernel_clock()
    keepers = tuple(read_timekeepers(root))
    expired = expired_leap_table(root, keepers, time.time())
    return HostTime(kernel, keepers, tuple(_words(root, keepers)), hidden_threads(root), expired=expired)


def _words(root: Sysroot, keepers: Sequence[Timekeeper]) -> Iterator[Word]:
    of = {name: [keeper for keeper in keepers if keeper.name == name] for name in _ASKED}
    ptp = [(keeper, _ptp_clock(root, keeper)) for keeper in of["ptp4l"]]
    cards = [_of_ptp(root, keeper, clock) for keeper, clock in ptp]
    if word := _of_chrony(root, of["chronyd"]):
        yield behind(word, cards) if word.source.startswith("PHC") else word
    yield from cards
    yield from (_of_phc2sys(root, keeper, ptp) for keeper in of["phc2sys"])
    yield from (_of_timesyncd(root, keeper) for keeper in of["systemd-timesyncd"])
    for keeper in keepers:
        if keeper.name not in _ASKED:
            yield Word(str(keeper), True, lack=f"nobody can ask {keeper} how far off it finds the clock", fix=_START)


def _of_chrony(root: Sysroot, keepers: Sequence[Timekeeper]) -> Word | None:
    name = few(keepers) or "chronyd"
    steers = any(keeper.sets_system_clock for keeper in keepers)
    try:
        said = read_tracking(root)
    except OSError as error:  # where no process is seen, and none answers, there is none
        # Root asked at both of its sockets: somebody listens, and hangs, or says what nobody understands.
        fix = _RESTART if not os.geteuid() and error.errno in (errno.ETIMEDOUT, errno.EPROTO) else ON_HOST
        lack = f"chronyd does not say: {error.strerror or error}"
        return Word(name, steers, lack=lack, fix=fix) if keepers else None
    ago = time.time() + said.offset_s - said.updated_s  # it counts by the time that it takes for the right one
    trouble = ""
    if said.is_own_clock:
        trouble = "it follows its own clock (`local`), and no source"
    elif not said.follows:
        trouble = "it follows no source"
    else:
        trouble = _old(f"its source {said.source} has not answered", ago, max(said.interval_s, _LEAST_S))
    offset, bound, moved = (value * 1e9 for value in (said.offset_s, said.bound_s, said.last_offset_s))
    word = Word(name, steers, said.source, trouble=trouble, fix=_SOURCES)
    runs_s = max((keeper.since_s for keeper in keepers), default=ago)  # a loser of its source forgets when that was
    word = word._replace(moved_ns=abs(moved), moved_ago_s=min(max(ago, 0.0), runs_s))
    if keepers and not steers and trouble:  # it sets nothing, and what it finds comes from nobody
        return word._replace(trouble="", lack=f"{name} only watches the clock (-x): {trouble}", moved_ns=0.0)
    if not keepers:
        word = word._replace(lack="chronyd answers, and its process is not seen here: does it steer the clock?")
    return word._replace(offset_ns=abs(offset), bound_ns=bound) if said.follows else word


def _of_timesyncd(root: Sysroot, keeper: Timekeeper) -> Word:
    word = Word(str(keeper), True, fix=_SERVER)
    try:
        said, now = read_synced(root), time.time()
    except OSError as error:
        lack = f"systemd-timesyncd does not say how far off it finds the clock: {error.strerror or error}"
        return word._replace(lack=lack, fix=ON_HOST if error.errno == errno.ENOENT else _RESTART_TIMESYNCD)
    if not said.packets:
        return word._replace(trouble="no server has answered it")
    if not said.is_synced:
        return word._replace(trouble=f"its server {said.server} says that it is not synchronised itself")
    silence = f"{said.server} has not answered"
    word = word._replace(trouble=_old(silence, now - said.at_s, max(said.interval_s, _LEAST_S)))
    return word._replace(source=said.server, offset_ns=abs(said.offset_s) * 1e9, bound_ns=said.bound_s(now) * 1e9)


def _old(silence: str, ago_s: float, interval_s: float) -> str:
    """What is wrong with an answer of that age, where one comes in each interval; "" where nothing is."""
    if ago_s < -_AHEAD_S:
        return "the clock was set back since its last update"
    return f"{silence} for {seconds_of(ago_s)}" if ago_s > _MISSED * interval_s else ""


def _ptp_clock(root: Sysroot, keeper: Timekeeper) -> PtpClock | OSError:
    try:
        return read_ptp_clock(root, keeper)
    except OSError as error:
        return error


def _of_ptp(root: Sysroot, keeper: Timekeeper, clock: PtpClock | OSError) -> Word:
    """With time stamps of software it steers the system's clock; else a card's, which is worth as much to the system
    as phc2sys or chronyd makes of it."""
    if isinstance(clock, OSError):
        lack = f"{keeper} does not say how far off it finds its clock: {clock.strerror or clock}"
        # Its socket took the question, or is one that nobody reads from any more.
        fix = _RESTART_PTP if clock.errno in (errno.ETIMEDOUT, errno.ECONNREFUSED) else ON_HOST
        return Word(str(keeper), False, lack=lack, fix=fix, is_of_card=not may_steer(root, keeper))
    steers = clock.is_software and not clock.runs_free and not clock.leads
    is_of_card = not clock.is_software or clock.leads
    word = Word(str(keeper), steers, f"grandmaster {clock.grandmaster}", fix=_MASTER, is_of_card=is_of_card)
    if clock.leads and not clock.has_reference:
        return word._replace(lack=f"{keeper} follows nobody: it leads by its own crystal (class {clock.clock_class})")
    if clock.state == "uncalibrated" and not clock.runs_free:
        return word._replace(lack=f"{keeper} has only begun to follow: its port is uncalibrated")
    if not clock.leads and clock.state not in ("slave", "uncalibrated"):
        return word._replace(trouble=f"it follows nobody: its port {clock.interface} is {clock.state}")
    if not clock.leads:
        word = _heard(root, word, clock)
        if word.trouble or word.lack:
            return word
    word = word._replace(tai_s=clock.utc_offset_s, offset_ns=abs(clock.offset_ns))
    if clock.exact_ns is None or not clock.is_traceable or (clock.is_ptp_time and clock.utc_offset_s is None):
        vouch = "its grandmaster does not vouch for its time (clockAccuracy, timeTraceable, currentUtcOffsetValid)"
        return word._replace(lack=f"{keeper} finds its clock off by {nanoseconds(word.offset_ns)}, and {vouch}")
    return word._replace(bound_ns=abs(clock.offset_ns) + abs(clock.path_delay_ns) / 2 + clock.exact_ns)


def _heard(root: Sysroot, word: Word, clock: PtpClock) -> Word:
    """Of one that follows: has it heard of its grandmaster lately, by the clock that stamps what it hears?"""
    if not clock.heard_ns:
        return word._replace(lack=f"{word.keeper} has heard no Sync since it chose its grandmaster")
    device = _device(root, clock.interface)
    try:
        now_ns = time.time_ns() if clock.is_software else read_card_time_ns(root, device.lstrip("/"))
    except OSError as error:
        why = f"the clock of {device} is not read: {error.strerror or error}"
        return word._replace(lack=f"when {word.keeper} last heard a Sync is not known: {why}", fix=ON_HOST)
    interval_s = max(clock.sync_interval_s, _LEAST_SYNC_S)
    return word._replace(trouble=_old("it has heard no Sync", (now_ns - clock.heard_ns) / 1e9, interval_s))


def _of_phc2sys(root: Sysroot, keeper: Timekeeper, ptp: Sequence[tuple[Timekeeper, PtpClock | OSError]]) -> Word:
    """The card's clock, as ptp4l has it, and the way from there to the system's, which is measured here."""
    word = Word(str(keeper), keeper.sets_system_clock, is_of_card=not keeper.sets_system_clock)
    known = {_device(root, clock.interface): (one, clock) for one, clock in ptp if isinstance(clock, PtpClock)}
    wanted = keeper.options().get("-s", [""])[-1]
    device = (wanted if wanted.startswith("/dev/") else _device(root, wanted)) if wanted else next(iter(known), "")
    if device not in known or (len(known) > 1 and not wanted):
        lack = f"{word.keeper}: which clock it copies, and how right that is, is not known"
        silent = [_of_ptp(root, each, clock) for each, clock in ptp if isinstance(clock, OSError)]
        return word._replace(lack="; ".join([lack, *(one.lack for one in silent)]), fix=(*silent, word)[0].fix)
    card, clock = _of_ptp(root, *known[device]), known[device][1]
    if clock.is_software:  # there is no card: it copies the system's clock onto itself
        return word._replace(steers=False, is_of_card=True)
    word = word._replace(source=f"{device} ({card.source})", lack=card.lack, tai_s=card.tai_s, fix=card.fix)
    if card.offset_ns is None:
        return word
    try:
        found = read_card_clock(root, device.lstrip("/"))
    except OSError as error:
        return word._replace(lack=f"{device} cannot be compared with the system's clock: {error.strerror or error}")
    return across(word, card, clock, found, device)


def across(word: Word, card: Word, clock: PtpClock, found: CardClock, device: str) -> Word:
    """What is said of a card's clock, and the way from there to the system's, which counts in UTC. Pure."""
    ahead_s = (clock.utc_offset_s or 0) if clock.is_ptp_time else 0
    apart = abs(found.ahead_ns - ahead_s * 1e9)
    if ahead_s and abs(apart - ahead_s * 1e9) < _MIXED_NS:
        mixed = f"{device} and the system's clock are {ahead_s} s wrong to each other: one takes TAI for UTC"
        word = word._replace(trouble=mixed)
    bound = None if card.bound_ns is None else card.bound_ns + apart + found.window_ns / 2
    return word._replace(offset_ns=apart + (card.offset_ns or 0.0), bound_ns=bound, fix=_MASTER)


def _device(root: Sysroot, interface: str) -> str:
    """/dev/ptp0, of the card behind an interface; the name itself where it has none."""
    index = root.get(f"ethtool/{interface}/tsinfo/phc-index")
    return f"/dev/ptp{index}" if index.isdecimal() else interface


def behind(word: Word, cards: Sequence[Word]) -> Word:
    """chronyd's word where it copies a card's clock: what ptp4l says of that card comes to it. Pure."""
    told = [card for card in cards if card.is_of_card and (card.offset_ns is not None or card.lack)]
    if not told or word.offset_ns is None or word.bound_ns is None:
        return word
    offset = word.offset_ns + max(card.offset_ns or 0.0 for card in told)
    for card in told:
        if card.bound_ns is None:
            return word._replace(offset_ns=offset, bound_ns=None, lack=card.lack, fix=card.fix)
    return word._replace(offset_ns=offset, bound_ns=word.bound_ns + max(card.bound_ns or 0.0 for card in told))


def judge(seen: HostTime, limit_ns: float) -> Judged:
    """The clock against the limit: wrong, right or unknown, with every reason. Pure."""
    if seen.is_recorded:
        return Judged(Outcome.UNREADABLE, "a recorded host: nobody can be asked how far off its clock was", NOTHING)
    seen = seen._replace(words=tuple(map(_sound, seen.words)))
    word = _best(seen.words)
    said = (word.offset_ns, word.bound_ns) if word else (None, None)
    faults = list(_faults(seen, limit_ns))
    remarks = list(_remarks(seen))
    if faults:
        reason = "; ".join([*(what for what, _ in faults), *remarks])
        return Judged(Outcome.DRIFTED, reason, in_turn(*(fix for _, fix in faults)), *said)
    lack, fix = _lack(seen, word, limit_ns)
    if lack or word is None:
        return Judged(Outcome.UNREADABLE, "; ".join([lack, *remarks]), fix, *said)
    steered = f"{word.keeper} steers the clock by {word.source}: it is {_off(word)}"
    return Judged(Outcome.COMPLIANT, "; ".join([steered, *remarks]), NOTHING, *said)


def _sound(word: Word) -> Word:
    """A bound below the offset is none."""
    if word.bound_ns is None or word.bound_ns >= (word.offset_ns or 0.0):
        return word
    lack = f"{word.keeper} finds the clock {_off(word)}, and that cannot be true"
    return word._replace(bound_ns=None, lack=word.lack or lack)


def finding_of(found: Judged, limit_ns: float) -> Finding:
    """The same as a check has it, and the monitor."""
    most, allowed = (None, None) if found.bound_ns is None else (nanoseconds(found.bound_ns), nanoseconds(limit_ns))
    values = (most, allowed, found.reason, found.fix)
    return Finding(
        CLOCK, "", found.outcome, *values, severity=Severity.HYGIENE, match=Match.AT_MOST if most else Match.EQUAL
    )


def _best(words: Sequence[Word]) -> Word | None:
    """Whose estimate counts: one who steers before one who watches, one with a bound before one without."""
    told = [word for word in words if not word.is_of_card]
    return min(told, key=lambda word: (not word.steers, word.bound_ns is None), default=None)


def _off(word: Word) -> str:
    most = "" if word.bound_ns is None else f", and by {nanoseconds(word.bound_ns)} at most"
    return f"off by {nanoseconds(word.offset_ns)}{most}"


def _faults(seen: HostTime, limit_ns: float) -> Iterator[tuple[str, Fix]]:
    """What is wrong for certain."""
    chronyds = [keeper for keeper in seen.keepers if keeper.name == "chronyd"]  # for all of them one has answered
    steering = [str(keeper) for keeper in chronyds if keeper.sets_system_clock]
    steering += [word.keeper for word in seen.words if word.steers and word.keeper != few(chronyds)]
    if len(steering) > 1:
        yield f"{few(steering, between=' and ')} steer one clock", to_decide("stop all but one of them")
    for word in seen.words:
        if word.trouble:
            yield f"{word.keeper}: {word.trouble}", word.fix
        if word.offset_ns is not None and word.offset_ns > limit_ns:
            source = f"against {word.source}, " if word.source else ""
            yield f"{source}{word.keeper} finds the clock {_off(word)}", word.fix
        elif word.moved_ns > limit_ns and word.moved_ago_s < _HOUR_S:
            ago = f"{seconds_of(word.moved_ago_s)} ago"
            yield f"{word.keeper} found the clock off by {nanoseconds(word.moved_ns)} {ago}, and moved it", word.fix
        if seen.kernel and word.tai_s is not None and seen.kernel.tai_s not in (0, word.tai_s):
            what = f"the kernel's TAI offset is {seen.kernel.tai_s} s, {word.keeper} says {word.tai_s} s"
            yield what, to_decide("see who sets the kernel's TAI offset: phc2sys, or chronyd with leapsectz")


def _remarks(seen: HostTime) -> Iterator[str]:
    """What is worth knowing beside, and no fault by itself."""
    if seen.expired:
        yield f"{seen.expired}, which chronyd takes leap seconds from, has expired: it does not know of the next one"
    if seen.kernel is None:
        yield "the kernel's own view is not shown here"
        return
    yield f"the kernel calls it {kernels_own(seen.kernel)}"
    said = next((word for word in seen.words if word.tai_s), None)
    if said and not seen.kernel.tai_s:
        yield f"the kernel's TAI offset is 0 s, {said.keeper} says {said.tai_s} s: CLOCK_TAI shows UTC"


def _lack(seen: HostTime, word: Word | None, limit_ns: float) -> tuple[str, Fix]:
    """Why nobody can say that the clock is right, and what would; "" where somebody can."""
    if word is None:
        cards = [(each.lack, each.fix) for each in seen.words if each.lack]
        hidden = [(seen.hidden, ON_HOST)] if seen.hidden else []
        return next(iter([*cards, *hidden]), ("no program that is known here steers the clock", _START))
    silent = [each for each in seen.words if each.lack and each.offset_ns is None and not each.is_of_card]
    for each in (word, *silent):
        if each.lack:
            return each.lack, each.fix
    if not word.steers:
        return f"{word.keeper} only watches the clock, which is {_off(word)}: nobody steers it", _START
    if word.bound_ns is None or word.bound_ns > limit_ns:
        better = to_decide("have it follow a nearer or better source, or set [clock] in the host file")
        return f"{word.keeper} finds the clock {_off(word)}: not proved to be within {nanoseconds(limit_ns)}", better
    return "", NOTHING
