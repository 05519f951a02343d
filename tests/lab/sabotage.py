"""What a row of the sabotage matrix is. The rows themselves are in rows/*.toml, by what they break."""

from enum import Enum
from typing import NamedTuple

# What the profile asks of the boot loader: an entry that is not ours loses all of it. ARGUMENTS in a row.
ARGUMENTS = (
    "boot.isolcpus",
    "boot.nohz_full",
    "boot.rcu_nocbs",
    "boot.irqaffinity",
    "boot.skew_tick",
    "boot.nosoftlockup",
    "boot.tsc",
)


class Kind(Enum):
    """What is broken. Each kind has a row in a round that CI plays; a quick test keeps it so."""

    VALUE = "a value in /proc or /sys"
    INTERRUPT = "where interrupts go"
    CPU = "a CPU goes offline"
    CONFIG = "another program's configuration"
    SERVICE = "our own service"
    PROGRAM = "a program that tunes starts"
    THREAD = "a thread on an isolated CPU"
    BOOT_SOURCE = "what the boot menu is made from"
    BOOT_MENU = "the boot menu itself"
    BOOT_CHOICE = "which entry the boot loader takes"
    UNIT = "how systemd will run our service"
    WRITER = "something that writes our settings later"
    NOISE = "interrupts from one CPU to another"
    GROUP = "a control group's CPUs"
    RESIDUE = "a tracer that was left on"
    LOSS = "what the host had and has no more"
    MEMORY = "memory that may go to disk"


class Sabotage(NamedTuple):
    """One row of the matrix.

    `innocent` is the nearest harmless host: the same file with other content, the same program elsewhere. It is put in
    place first, and nothing may be reported; then `breaks` makes a sabotage of it.
    """

    kind: Kind
    name: str
    breaks: str  # a shell command in the guest
    finds: tuple[str, ...]  # the targets that must be reported as failing; none: this breaks nothing, and is no alarm
    command: str = "verify"  # what else is asked: check, or preflight with its duration
    follows: tuple[str, ...] = ()  # patterns of further targets that this breaks for as long as it lasts
    who: str = ""  # who does such a thing, and why
    innocent: str = ""  # a shell command in the guest
    says: tuple[str, ...] = ()  # words that the finding of each of its targets must hold: the cause
    decides: str = ""  # where the fix leaves a decision to the operator: what this one types then
    notes: tuple[str, ...] = ()  # words that a note of the document must hold, where nothing fails
    needs: str = ""  # a shell command in the guest that fails where this row cannot be played
    lacks: str = ""  # the reason, then
    prints: tuple[str, ...] = ()  # tasks that its fixes must hold, typed as they stand; … for a value

    def is_in(self, note: str) -> bool:
        """Does this note of a document say what it has to?"""
        return all(word in note for word in self.notes)


class Round(NamedTuple):
    """What happens together; or, with `alone`, one row after the other on one host, each mended before the next."""

    rows: tuple[Sabotage, ...]
    long: bool = False  # played in the long set only; CI plays the others, which have each kind of row and of fix
    reboots: bool = False  # all of it takes effect with the next boot
    after: str = ""  # the round whose mended host this one breaks next: its reboot shows that the mending lasts
    alone: bool = False
