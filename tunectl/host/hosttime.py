"""Who steers this host's clock, by what, and how far off it may be: the owners' words beside the kernel's, judged.

An owner's estimate counts with its bound: the clock is right where the bound is within the limit, wrong where the
estimate alone is beyond it, and otherwise not known. A kernel that calls itself synchronised proves nothing: it repeats
what it was told. Source: chronyc(1), tracking; adjtimex(2); docs/clock.md.
"""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tunectl.fix import Fix, in_turn, to_decide
from tunectl.host.adjtimex import KernelClock, read_kernel_clock
from tunectl.host.chrony import read_tracking
from tunectl.host.procs import hidden_threads
from tunectl.host.sysroot import Sysroot
from tunectl.host.timekeepers import Timekeeper, read_timekeepers
from tunectl.model import Outcome
from tunectl.wording import few, nanoseconds, seconds_of

_MISSED, _LEAST_S = (
    8,
    4.0,
)  # a source that left eight questions unanswered is unreachable (RFC 5905, the reach register)
_HOUR_S = 3600.0
_START = to_decide("have one program steer the clock: chronyd, or ptp4l with phc2sys")
_SOURCES = to_decide("see which of its sources answer: chronyc -n sources")
_AS_ROOT = to_decide("ask again as root, on the host itself")


class Word(NamedTuple):
    """What one owner says. Its offset is an estimate: `bound_ns` is the most that the clock can be off."""

    keeper: str
    steers: bool  # does it set the system's clock?
    source: str = ""
    offset_ns: float | None = None
    bound_ns: float | None = None
    trouble: str = ""  # why it does not follow anything
    lack: str = ""  # why it does not say, or why nobody knows the bound
    fix: Fix = _AS_ROOT
    tai_s: int | None = None  # TAI - UTC, as its source has it
    moved_ns: float = 0.0  # what it found at its last update, and then corrected
    moved_ago_s: float = 0.0


class HostTime(NamedTuple):
    """All that was said. `problem`: why nobody was asked, or why not all who steer the clock can be seen."""

    kernel: KernelClock | None = None
    keepers: tuple[Timekeeper, ...] = ()
    words: tuple[Word, ...] = ()
    problem: str = ""


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
        return HostTime(problem="a recorded host: nobody can be asked how far off its clock was")
    try:
        kernel = read_kernel_clock()
    except OSError:
        kernel = None
    keepers = tuple(read_timekeepers(root))
    return HostTime(kernel, keepers, tuple(_words(root, keepers)), hidden_threads(root))


def _words(root: Sysroot, keepers: Sequence[Timekeeper]) -> Iterator[Word]:
    by_name: dict[str, list[Timekeeper]] = {}
    for keeper in keepers:
        by_name.setdefault(keeper.name, []).append(keeper)
    if word := _of_chrony(root, by_name.pop("chronyd", [])):
        yield word
    for name, others in by_name.items():
        yield Word(str(others[0]), others[0].sets_system_clock, lack=f"nobody can ask {name} how far off it finds it")


def _of_chrony(root: Sysroot, keepers: Sequence[Timekeeper]) -> Word | None:
    name = few(keepers) or "chronyd, whose process is not seen here,"
    steers = not keepers or any(keeper.sets_system_clock for keeper in keepers)
    try:
        said = read_tracking(root)
    except OSError as error:  # where no process is seen, and none answers, there is none
        return Word(name, steers, lack=f"chronyd does not say: {error.strerror or error}") if keepers else None
    ago = max(time.time() - said.updated_s, 0.0)
    trouble = ""
    if said.is_own_clock:
        trouble = "it follows its own clock (`local`), and no source"
    elif not said.follows:
        trouble = "it follows no source"
    elif ago > _MISSED * max(said.interval_s, _LEAST_S):
        trouble = f"its source {said.source} has not answered for {seconds_of(ago)}"
    offset, bound, moved = (value * 1e9 for value in (said.offset_s, said.bound_s, said.last_offset_s))
    word = Word(name, steers, said.source, trouble=trouble, fix=_SOURCES, moved_ns=abs(moved), moved_ago_s=ago)
    return word._replace(offset_ns=abs(offset), bound_ns=bound) if said.follows else word


def judge(seen: HostTime, limit_ns: float) -> Judged:
    """The clock against the limit: wrong, right or unknown, with every reason. Pure."""
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
    return Judged(Outcome.COMPLIANT, "; ".join([steered, *remarks]), in_turn(), *said)


def _best(words: Sequence[Word]) -> Word | None:
    """Whose estimate counts: one who steers before one who watches, one with a bound before one without."""
    return min(words, key=lambda word: (not word.steers, word.bound_ns is None), default=None)


def _off(word: Word) -> str:
    return f"off by {nanoseconds(word.offset_ns)}, and by {nanoseconds(word.bound_ns)} at most"


def _faults(seen: HostTime, limit_ns: float) -> Iterator[tuple[str, Fix]]:
    """What is wrong for certain."""
    steering = [word.keeper for word in seen.words if word.steers]
    steering += [str(keeper) for keeper in seen.keepers if keeper.name == "chronyd" and keeper.sets_system_clock][1:]
    if len(steering) > 1:
        yield f"{few(steering, between=' and ')} steer one clock", to_decide("stop all but one of them")
    for word in seen.words:
        if word.trouble:
            yield f"{word.keeper}: {word.trouble}", word.fix
        if word.offset_ns is not None and word.offset_ns > limit_ns:
            source = f" against {word.source}" if word.source else ""
            yield f"{word.keeper} finds the clock {_off(word)}{source}", word.fix
        elif word.moved_ns > limit_ns and word.moved_ago_s < _HOUR_S:
            ago = f"{seconds_of(word.moved_ago_s)} ago"
            yield f"{word.keeper} found the clock off by {nanoseconds(word.moved_ns)} {ago}, and moved it", word.fix


def _remarks(seen: HostTime) -> Iterator[str]:
    """What is worth knowing beside, and no fault by itself."""
    if seen.kernel is None:
        yield "the kernel's own view is not shown here"
        return
    if not seen.kernel.synchronised:
        yield "the kernel calls it unsynchronised"


def _lack(seen: HostTime, word: Word | None, limit_ns: float) -> tuple[str, Fix]:
    """Why nobody can say that the clock is right, and what would; "" where somebody can."""
    if seen.problem and (word is None or word.lack):
        return seen.problem, _AS_ROOT
    if word is None:
        return "no program that is known here steers the clock", _START
    if word.lack:
        return word.lack, word.fix
    if not word.steers:
        return f"{word.keeper} only watches the clock, which is {_off(word)}: nobody steers it", _START
    if word.bound_ns is None or word.bound_ns > limit_ns:
        better = to_decide("have it follow a nearer or better source, or set [clock] in the host file")
        return f"{word.keeper} finds the clock {_off(word)}: not proved to be within {nanoseconds(limit_ns)}", better
    return "", in_turn()
