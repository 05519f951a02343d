"""What the kernel makes of the words of its command line that share its CPUs out. Pure.

A word is one thing and its effect another: one word can put in force what another is named after, a list that names a
CPU beyond the last one is dropped, widened or cut, and `N` and `all` mean the *possible* CPUs, of which a guest often
has more than are there. So a value here is what the line comes to on the CPUs that are present.

Source: kernel/sched/isolation.c, housekeeping_setup() (a type that is set already must be given the same CPUs again, or
the whole word is refused; one present CPU is kept), housekeeping_isolcpus_setup(); kernel/time/tick-sched.c,
tick_nohz_init() (the boot CPU keeps the time); kernel/rcu/tree_nocb.h, rcu_nocb_setup() ("bad CPU range, all CPUs
set"), rcu_init_nohz() (the CPUs without a tick are offloaded, too); kernel/irq/irqdesc.c, irq_affinity_setup();
lib/bitmap-str.c, bitmap_parselist() (it sets one region after the other until one is wrong).
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tunectl.bootloader.cmdline import Arg, kernel_args, same_key
from tunectl.cpulist import CpuSet, Isolcpus, parse_cpulist, parse_isolcpus, parse_up_to_a_fault
from tunectl.errors import UsageError

WORDS = ("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity")
Value = Isolcpus | CpuSet
_BOOT_CPU = frozenset({0})
_NOHZ = "nohz"  # the flag of isolcpus= for the tick; nohz_full= sets the same type


class Machine(NamedTuple):
    """What decides how a kernel reads a list."""

    present: CpuSet
    nr_cpus: int  # one more than the last CPU that a list may name
    tickless: bool = True  # built with CONFIG_NO_HZ_FULL: without it isolcpus=nohz and nohz_full= are refused


def words_of(args: Iterable[Arg]) -> tuple[Arg, ...]:
    """Those of the kernel's own arguments that share its CPUs out, in their order."""
    return tuple(arg for arg in kernel_args(args) if any(same_key(arg.key, key) for key in WORDS))


class Share(NamedTuple):
    """The CPUs that a line keeps one kind of work off, and the word that did it."""

    cpus: CpuSet
    word: Arg


def value_of(args: Iterable[Arg], key: str, machine: Machine, want: Value | None) -> Value | None:
    """What one of WORDS comes to with this line, on the CPUs that are present; None where it comes to nothing.

    `want` decides which flags of isolcpus= are looked at: each flag has CPUs of its own. The boot CPU keeps its tick,
    unless it is among the wanted ones: then that is for the kernel to show.
    """
    mine = kernel_args(args)
    shares = shares_of(mine, machine)
    if key == "isolcpus":
        return _isolcpus(shares, machine, want.flags if isinstance(want, Isolcpus) else frozenset())
    if key == "irqaffinity":
        return _irqaffinity(mine, machine)
    ticks = _BOOT_CPU if want is None or isinstance(want, Isolcpus) else _BOOT_CPU - want
    tickless = shares[_NOHZ].cpus - ticks if _NOHZ in shares else None
    if key == "rcu_nocbs":
        offloaded = _offloaded(mine, machine)
        sets = [cpus for cpus in (tickless, offloaded) if cpus is not None]
        return frozenset[int]().union(*sets) & machine.present if sets else None
    return None if tickless is None else tickless & machine.present


def shares_of(args: Iterable[Arg], machine: Machine) -> dict[str, Share]:
    """By flag of isolcpus=, what each is given. A word that contradicts an earlier one is refused as a whole."""
    shares: dict[str, Share] = {}
    for arg in kernel_args(args):
        flags, cpus = _asked(arg, machine)
        if not any(shares[flag].cpus != cpus for flag in flags & shares.keys()):
            shares = {flag: Share(cpus, arg) for flag in flags} | shares
    return shares


def explain(args: Iterable[Arg], key: str, machine: Machine) -> str:
    """How a line comes to a value that its own word does not say; "" where it says it."""
    mine = kernel_args(args)
    tick = shares_of(mine, machine).get(_NOHZ)
    word = _last(mine, key)
    if key in ("nohz_full", "rcu_nocbs") and tick and not same_key(tick.word.key, key) and not word:
        return f"{tick.word} does it"
    if not word or not _refused(word, machine):
        return ""
    made = {"rcu_nocbs": "offloads all CPUs", "irqaffinity": "keeps what stands before the fault"}
    return f"{word} is no list of this machine's CPUs or has an unknown flag: the kernel {made.get(key, 'ignores it')}"


def _asked(arg: Arg, machine: Machine) -> tuple[frozenset[str], CpuSet]:
    """(the flags that one word sets, its CPUs); no flag where the kernel passes over it."""
    flags, cpus = frozenset[str](), frozenset[int]()
    with suppress(UsageError):
        if arg.value is not None and same_key(arg.key, "isolcpus"):
            flags, cpus, _ = parse_isolcpus(arg.value, nr_cpus=machine.nr_cpus)
        elif arg.value is not None and same_key(arg.key, "nohz_full"):
            flags, cpus = frozenset({_NOHZ}), parse_cpulist(arg.value, nr_cpus=machine.nr_cpus)
    if _NOHZ in flags and not machine.tickless:
        return frozenset(), frozenset()
    return flags, cpus if machine.present - cpus else cpus - _BOOT_CPU


def _isolcpus(shares: dict[str, Share], machine: Machine, wanted: frozenset[str]) -> Isolcpus | None:
    """The flags that are in force, and the CPUs that all the wanted ones have."""
    by_isolcpus = {flag: share for flag, share in shares.items() if same_key(share.word.key, "isolcpus")}
    if not by_isolcpus:
        return None
    looked_at = wanted & by_isolcpus.keys() or {"domain"} & by_isolcpus.keys() or by_isolcpus.keys()
    cpus = frozenset.intersection(*(by_isolcpus[flag].cpus for flag in looked_at))
    flags = frozenset(flag for flag, share in by_isolcpus.items() if share.cpus >= cpus)
    return Isolcpus(flags, cpus & machine.present)


def _offloaded(args: Sequence[Arg], machine: Machine) -> CpuSet | None:
    """By rcu_nocbs= alone: the last one counts, and a list that is wrong means all CPUs."""
    word = _last(args, "rcu_nocbs")
    if word is None:
        return None
    return machine.present if _refused(word, machine) else parse_cpulist(word.value or "", nr_cpus=machine.nr_cpus)


def _irqaffinity(args: Sequence[Arg], machine: Machine) -> CpuSet | None:
    """The last one counts, up to what is wrong with it; the boot CPU is added, and matters where it is the only one."""
    word = _last(args, "irqaffinity")
    if word is None:
        return None
    return parse_up_to_a_fault(word.value or "", nr_cpus=machine.nr_cpus) & machine.present or _BOOT_CPU


def _last(args: Sequence[Arg], key: str) -> Arg | None:
    return next((arg for arg in reversed(args) if same_key(arg.key, key) and arg.value is not None), None)


def _refused(arg: Arg, machine: Machine) -> bool:
    parse = parse_isolcpus if same_key(arg.key, "isolcpus") else parse_cpulist
    try:
        parse(arg.value or "", nr_cpus=machine.nr_cpus)
    except UsageError:
        return True
    return False
