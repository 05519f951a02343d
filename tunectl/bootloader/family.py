"""What every boot loader's family gives: the next boot's line, the files to write for it, and the way back.

A family is a row of functions. Most are made (editor.files_family) from one look at the host: which files hold a
command line (the boot entries, and what the entries of new kernels are made from). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tunectl.bootloader.words import Desired, Same
from tunectl.fix import NOTHING, Fix
from tunectl.host.sysroot import Sysroot

# Path -> (what stood there before our first write, what we wrote last), from the journal; bytes as latin-1 text.
Journaled = Mapping[str, tuple[str | None, str]]


class Point(NamedTuple):
    """A command line that counts: where it stands, its text with variables expanded (None: not known, and `why`)."""

    where: str
    line: str | None
    why: str = ""
    errno: int | None = None  # of a file that could not be read
    added: str = ""  # why it may have more words than that; "" where it has not
    fix: Fix = NOTHING  # what makes a line known that is not


class Upcoming(NamedTuple):
    """The next boot: the default entry's line first, then what entries of kernels to come are made from.

    `problem` means that a line cannot be worked out, or that files and boot loader disagree; `note` needs no action.
    Without any point nothing is known of the next boot.
    """

    points: tuple[Point, ...]
    problem: str = ""
    note: str = ""
    fix: Fix = NOTHING  # what mends the problem, or has the right entry chosen; nothing for the family's `remedy`
    instead: str = ""  # the next entry is one that these files do not make: which, and who decided that
    again: Fix = NOTHING  # has the right entry chosen, where the next one is not to be edited: a recovery entry, say
    errno: int | None = None  # of a file that could not be read
    unmade: str = ""  # what boots next was not made again since its source changed; to write the source has it made


def cannot_read(error: OSError) -> Upcoming:
    """Nothing is known of the next boot, because a file cannot be read; the error names it."""
    return Upcoming((), f"cannot read {error.filename}: {error.strerror}", errno=error.errno)


class Write(NamedTuple):
    """One file to write: "file" is ours as a whole, "edit" the operator's with our words in it, "removal" goes away."""

    kind: str
    path: str
    content: str
    pristine: str | None = None  # an edit: the text without us


class Conflict(str):
    """What keeps one argument from the kernel's command line, in words."""

    key: str  # the argument's
    setting: str  # what of it is the same for every argument that it keeps off
    line: str  # where that stands, FILE:LINE with a leading slash; "" where no line is known
    replaces: bool  # it sets all of the arguments anew

    def __new__(cls, text: str, key: str, line: str = "", setting: str = "") -> Conflict:
        """`setting` only where it replaces what was set before, and `line` is known."""
        made = super().__new__(cls, text)
        made.key, made.line, made.setting, made.replaces = key, line, setting or text, bool(setting)
        return made


class BootPlan(NamedTuple):
    """What to write, which settings of others win over it, and why nothing can be planned (`problem`).

    `remedy` is what ends every conflict, where there is one thing that does.
    """

    writes: tuple[Write, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    problem: str = ""
    remedy: Fix = NOTHING


class Refusal(NamedTuple):
    """Why a line cannot be tried for one boot, in words. `attended`: somebody at the console can help it."""

    why: str
    attended: bool = False


class Default(NamedTuple):
    """What the default entry boots: its line without our words, and the files that it loads, as paths on the host."""

    line: str
    loads: tuple[str, ...]  # the kernel, then the initrds; of a unified image the image


class OnceEntry(NamedTuple):
    """An entry of ours that one boot takes. The names are those of tuning/commands.py."""

    writes: tuple[Write, ...]  # of the kinds "file" and "edit": journaled, so that they go when the trial ends
    arm: str  # has the next boot take the entry; to be run last
    disarm: str  # takes that back, where it is still ours; to be run before the entry goes


class Once(NamedTuple):
    """How a family boots an entry of ours for one boot. None of it writes; each may raise OSError."""

    refusals: Callable[[Sysroot], tuple[Refusal, ...]]  # none: it can
    default: Callable[[Sysroot, Journaled], Default | None]  # None where that is not known
    entry: Callable[[Sysroot, str, str], OnceEntry]  # (root, the trial's id, its whole line), where nothing refuses
    armed: Callable[[Sysroot], str]  # the entry that the next boot alone takes, by its name, whoever chose it; ""


class Family(NamedTuple):
    """One kind of boot configuration. `commands` are names in tuning/commands.py, run once the files stand."""

    upcoming: Callable[[Sysroot], Upcoming]
    plan: Callable[[Sysroot, Sequence[Desired], Same, Journaled], BootPlan]
    ours: Callable[[Sysroot, Journaled], tuple[str, ...]]  # our words, as they stand in the configuration
    stripped: Callable[[Sysroot, Journaled], tuple[Write, ...]]  # files that hold our words, without them
    files: tuple[str, ...] = ()  # shell patterns of what it reads, without unified images, which are megabytes
    commands: tuple[str, ...] = ()
    remedy: Fix = NOTHING  # what an operator runs when the files are right and the boot loader has not taken them
    confirm: Callable[[Sysroot, Sequence[Desired], Same], str | None] | None = None  # the files by their real reader
    once: Once | None = None  # None: it boots no entry for one boot alone
