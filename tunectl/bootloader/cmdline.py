"""The kernel's own reading of its command line: arguments, quotes, and which of several occurrences is in force. Pure.

Source: lib/cmdline.c (next_arg), kernel/params.c (parse_args), kernel/sched/isolation.c, kernel/rcu/tree_nocb.h,
kernel/irq/irqdesc.c, arch/x86/kernel/tsc.c, arch/x86/include/asm/setup.h (COMMAND_LINE_SIZE).

Words of the kernel's command line that leave a machine with fewer CPUs. Pure.

Source: Documentation/admin-guide/kernel-parameters.txt (maxcpus, nosmp, nosmt, nolapic, possible_cpus); kernel/smp.c;
kernel/cpu.c, smt_cmdline_disable(); lib/cmdline.c, get_option(); arch/x86/kernel/apic/apic.c, generic_processor_info()
(disable_cpu_apicid, which a later kernel does not know any more).

Words of the kernel's command line with which the TSC is not the clock. Pure.

Source: arch/x86/kernel/tsc.c, notsc_setup(), tsc_setup(); kernel/time/clocksource.c, boot_override_clocksource().
"""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from tunectl.cpulist import CpuSet

COMMAND_LINE_SIZE = 2048  # bytes, with the NUL that ends the line; x86 and arm64
MAX_LENGTH = COMMAND_LINE_SIZE - 1
_SPACE = " \t\n\v\f\r"


class Arg(NamedTuple):
    """One argument as the kernel splits it; `value` is None where there is no `=`."""

    key: str
    value: str | None = None

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"


_END = Arg("--")  # of the kernel's own arguments


class Rule(Enum):
    """Which of several occurrences of an argument the kernel goes by."""

    FIRST = "the kernel takes the first"
    LAST = "the kernel takes the last"
    EACH = "each one counts"


# isolcpus= and nohz_full=: housekeeping_setup() refuses a second, different mask of a type already set.
# rcu_nocbs=, irqaffinity= and skew_tick= are parsed again at each occurrence; every tsc= word sets a switch of its own.
RULES = {
    "isolcpus": Rule.FIRST,
    "nohz_full": Rule.FIRST,
    "rcu_nocbs": Rule.LAST,
    "irqaffinity": Rule.LAST,
    "skew_tick": Rule.LAST,
    "nosoftlockup": Rule.LAST,
    "tsc": Rule.EACH,
    "mitigations": Rule.LAST,
    "intel_pstate": Rule.EACH,
    "amd_pstate": Rule.LAST,
    "pcie_aspm": Rule.LAST,
    "threadirqs": Rule.LAST,
}


class Found(NamedTuple):
    """The occurrence of an argument that is in force, and the others in the order they stand."""

    arg: Arg
    others: tuple[Arg, ...] = ()

    @property
    def value(self) -> str | None:
        """The value in force; None where the argument stands without one."""
        return self.arg.value


@lru_cache(maxsize=64)  # every argument that is judged asks for the same few lines
def parse_cmdline(text: str) -> tuple[Arg, ...]:
    """The arguments of a command line; `root="a b"` and `"root=a b"` are both root with the value `a b`.

    An argument `--` is in the result as such: what follows it is for init, and lookup() stops there.
    """
    args: list[Arg] = []
    at = 0
    while True:
        while at < len(text) and text[at] in _SPACE:
            at += 1
        if at == len(text):
            return tuple(args)
        end, quoted = at, False
        while end < len(text) and (quoted or text[end] not in _SPACE):
            quoted ^= text[end] == '"'
            end += 1
        args.append(_arg(text[at:end]))
        at = end


def _arg(raw: str) -> Arg:
    whole = raw.startswith('"')
    bare = raw[1:] if whole else raw
    # A "=" in the first place is part of the key.
    equals = bare.find("=", 1)
    if equals < 0:
        return Arg(bare[:-1] if whole and bare.endswith('"') else bare)
    key, value = bare[:equals], bare[equals + 1 :]
    inner = value.startswith('"')
    if inner:
        value = value[1:]
    if (inner or whole) and value.endswith('"'):
        value = value[:-1]
    return Arg(key, value)


def same_key(one: str, other: str) -> bool:
    """Is it the same parameter? Dashes and underscores are equal in names (kernel/params.c, parameq)."""
    return one.replace("-", "_") == other.replace("-", "_")


def kernel_args(args: Iterable[Arg]) -> tuple[Arg, ...]:
    """The arguments that are the kernel's: those before a `--`, which ends parse_args()."""
    return tuple(takewhile(lambda arg: arg != _END, args))


def lookup(args: Sequence[Arg], key: str, rule: Rule, same: Callable[[str, str], bool] = operator.eq) -> Found | None:
    """Which occurrence of `key` is in force by the kernel's rule, and which others there are; None for none.

    `same` compares two values (CPU lists without flags for isolcpus=); one that is not the same as itself the kernel
    refuses, and takes the next. Of Rule.EACH the last is named, since every one is in force.
    """
    every = [arg for arg in kernel_args(args) if same_key(arg.key, key)]
    # The bare form (`rcu_nocbs`) never takes a list back that another occurrence gives.
    valued = [n for n, arg in enumerate(every) if arg.value is not None]
    if rule is Rule.FIRST:
        # Their handlers are registered with the "=": the bare form is unknown.
        at = next((n for n in valued if same(_compared(every[n]), _compared(every[n]))), None)
    else:
        at = (valued or list(range(len(every))))[-1] if every else None
    if at is None:
        return None
    chosen = every[at]
    others = tuple(arg for n, arg in enumerate(every) if n != at)
    if key == "isolcpus":
        chosen = _with_added_flags(chosen, [arg.value or "" for arg in others], same)
    return Found(chosen, others)


def _compared(arg: Arg) -> str:
    """The part of a value that is compared."""
    return split_isolcpus(arg.value or "")[1] if same_key(arg.key, "isolcpus") else arg.value or ""


def split_isolcpus(value: str) -> tuple[tuple[str, ...], str]:
    """The flags in front of an isolcpus= list, and the list, as they are written."""
    words = value.split(",")
    count = next((n for n, word in enumerate(words) if not re.match(r"[A-Za-z]", word)), len(words))
    return tuple(words[:count]), ",".join(words[count:])


def _with_added_flags(first: Arg, later: Iterable[str], same: Callable[[str, str], bool]) -> Arg:
    """A later isolcpus= with the same list is accepted, and adds its flags (housekeeping_setup)."""
    flags, cpus = split_isolcpus(first.value or "")
    added: list[str] = []
    for value in later:
        more, theirs = split_isolcpus(value)
        if same(cpus, theirs):
            added += more or ("domain",)
    new = [flag for flag in dict.fromkeys(added) if flag not in (flags or ("domain",))]
    return Arg(first.key, ",".join([*(flags or ("domain",)), *new, cpus])) if new else first


def length_problem(final_line: str) -> str | None:
    """Why a whole line, BOOT_IMAGE= and root= included, does not fit; None where it does."""
    length = len(final_line.encode("utf-8", "surrogateescape"))
    if length <= MAX_LENGTH:
        return None
    return f"the boot line would be {length} bytes long: the kernel keeps {MAX_LENGTH} and drops the rest unseen"


_NUMBER = re.compile(r"0[xX](?P<hex>[0-9a-fA-F]+)|0(?P<octal>[0-7]*)|(?P<decimal>[1-9][0-9]*)")
_ONE_CPU = ("nosmp", "nolapic", "disableapic")
_POSSIBLE = ("nr_cpus", "possible_cpus")  # each one that is lower than what stood before it counts


def taken_cpus(args: Iterable[Arg], cpus: CpuSet, secondary: CpuSet, of_apic: Mapping[int, int]) -> dict[Arg, CpuSet]:
    """By word, those of `cpus` that a boot with this command line starts without; `secondary`: not the first of a core.

    maxcpus= leaves them off until somebody switches them on, nosmt until the next boot; with the others there are none.
    `of_apic`: the CPU of each APIC ID, where the kernel knows disable_cpu_apicid=. Those behind that CPU move up, so
    that the last number is gone, too.
    """
    found: dict[Arg, CpuSet] = {}
    limit: Arg | None = None
    for arg in kernel_args(args):
        number = _number(arg.value or "")
        if any(same_key(arg.key, key) for key in _ONE_CPU):
            found[arg] = _from(cpus, 1)
        elif any(same_key(arg.key, key) for key in _POSSIBLE) and number:
            found[arg] = _from(cpus, number)
        elif same_key(arg.key, "maxcpus") and number is not None:  # the last one counts, and 0 is nosmp
            limit = arg
        elif same_key(arg.key, "nosmt"):
            found[arg] = cpus & secondary
        elif same_key(arg.key, "disable_cpu_apicid") and number is not None:  # the last one counts, and never CPU 0
            found = {one: lost for one, lost in found.items() if not same_key(one.key, arg.key)}
            found[arg] = cpus & {of_apic[number], max(cpus)} if of_apic.get(number) else frozenset()
    if limit:
        found[limit] = _from(cpus, max(_number(limit.value or "") or 0, 1))
    return {arg: lost for arg, lost in found.items() if lost}


def _number(value: str) -> int | None:
    """The number that a value begins with, as the kernel reads it: 0x for sixteen, 0 for eight; None for none."""
    match = _NUMBER.match(value)
    if not match:
        return None
    if match["decimal"]:
        return int(match["decimal"])
    return int(match["hex"], 16) if match["hex"] else int(match["octal"] or "0", 8)


def _from(cpus: CpuSet, first: int) -> CpuSet:
    return frozenset(cpu for cpu in cpus if cpu >= first)


def taking_tsc(args: Iterable[Arg], others: Collection[str]) -> frozenset[Arg]:
    """The words with which the kernel gives the TSC up, or takes another clock first; `others`: those of this machine.

    Of several clocksource= the last one counts, and a clock that is not there leaves the choice to the kernel.
    """
    mine = kernel_args(args)
    given_up = {arg for arg in mine if arg.key == "notsc" or arg == Arg("tsc", "unstable")}
    chosen = [arg for arg in mine if arg.key == "clocksource"][-1:]
    return frozenset(given_up | {arg for arg in chosen if arg.value in others})
