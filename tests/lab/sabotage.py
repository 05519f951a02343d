"""What a row of the sabotage matrix is. The rows themselves are in rows/, by what they break."""

from __future__ import annotations

import shlex
from enum import Enum
from typing import NamedTuple

CPU = "/sys/devices/system/cpu"
THP = "/sys/kernel/mm/transparent_hugepage"
ALL, ISOLATED = (0, 1, 2, 3), (2, 3)  # the lab's CPUs
# What the profile asks of the boot loader: an entry that is not ours loses all of it.
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


def value(name: str, path: str, text: str, target: str, kind: Kind = Kind.VALUE) -> Sabotage:
    """One attribute of the kernel gets another value."""
    return Sabotage(kind, name, f"echo {text} > {path}", (target,))


def with_frequencies(row: Sabotage) -> Sabotage:
    """Only where the kernel has a driver for the CPUs' clocks."""
    return row._replace(needs=f"test -d {CPU}/cpu0/cpufreq", lacks="no driver sets this machine's clocks")


def with_idle_states(row: Sabotage) -> Sabotage:
    """Only where the kernel can choose among idle states."""
    return row._replace(needs=f"test -d {CPU}/cpu0/cpuidle", lacks="this machine has no idle states to choose from")


def with_grub(row: Sabotage) -> Sabotage:
    """Only where GRUB boots the host."""
    return row._replace(needs="test -e /boot/grub/grub.cfg", lacks="GRUB does not boot this host")


def governor(cpu: int, name: str) -> Sabotage:
    """The governor of one CPU."""
    path = f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"
    return with_frequencies(value(f"governor of CPU {cpu}: {name}", path, name, f"cpufreq.governor[{cpu}]"))


def each(knob: str, cpus: tuple[int, ...]) -> tuple[str, ...]:
    """The knob's target of each CPU."""
    return tuple(f"{knob}[{cpu}]" for cpu in cpus)


def put(path: str, *lines: str) -> str:
    """A shell command that makes a file of these lines, and its folder."""
    words = " ".join(map(shlex.quote, lines))
    return f"mkdir -p $(dirname {path}); printf '%s\\n' {words} > {path}"


_GRUB = "/etc/default/grub"


def word(text: str) -> str:
    """A shell command that adds a word to the operator's own GRUB_CMDLINE_LINUX, as the last one, and update-grub.

    Of several words with one key the kernel goes by the last.
    """
    return f'sed -i \'s|^\\(GRUB_CMDLINE_LINUX="[^"]*\\)"|\\1 {text}"|\' {_GRUB} && update-grub 2>/dev/null'


def no_word(text: str) -> str:
    """A shell command that takes that word out again."""
    return f"sed -i 's| *{text}||' {_GRUB} && update-grub 2>/dev/null"


def declare(table: str, *lines: str) -> str:
    """A shell command that adds a table to the host file."""
    words = " ".join(map(shlex.quote, ("", f"[[{table}]]", *lines)))
    return f"printf '%s\\n' {words} >> /etc/tunectl/host.toml"


# What irqbalance-ui says to the daemon; prints what that answers.
_ASK = (
    "import os, socket, struct, sys",
    "pid = int(os.popen('pgrep -xo irqbalance').read())",
    "rows = [row.split()[-1] for row in open('/proc/net/unix')]",
    "name = next(row for row in rows if row.endswith(f'irqbalance{pid}.sock'))",
    "line = socket.socket(socket.AF_UNIX)",
    "line.connect(name.replace('@', chr(0)))",
    "own = struct.pack('3i', os.getpid(), 0, 0)",
    "line.sendmsg([sys.argv[1].encode()], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, own)])",
    "print(line.recv(65536).decode())",
)


def ask_irqbalance(words: str) -> str:
    """A shell command that says something to the running irqbalance; `setup` is answered with what it bans."""
    program = "/usr/local/bin/irqbalance-ask"
    return f"{put(program, *_ASK)}; python3 {program} {shlex.quote(words)}"


def agent(name: str, *lines: str, options: str = "") -> str:
    """A shell command that starts a Python program as a service of that name, as a package would."""
    program = f"/usr/local/bin/{name}"
    started = f"systemctl -q stop {name} 2>/dev/null; systemd-run -q --collect --unit={name} {options} {program}"
    return f"{put(program, '#!/usr/bin/python3', *lines)}; chmod +x {program}; {started}; sleep 2"
