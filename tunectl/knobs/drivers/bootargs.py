"""Kernel command line arguments, read at four points and written through the boot loader's own configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from tunectl.bootloader.cmdline import RULES, Arg, Rule, lookup, parse_cmdline, same_key
from tunectl.bootloader.families import AMBIGUOUS, FAMILIES, FILES, Loader, detect, upcoming_of
from tunectl.bootloader.family import BootPlan, Conflict, Family, Point, Upcoming
from tunectl.bootloader.housekeeping import WORDS, Machine, explain, shares_of, value_of, words_of
from tunectl.bootloader.oneshot import tried_line
from tunectl.bootloader.words import Desired, given
from tunectl.command import argv, as_data
from tunectl.cpulist import MAX_CPUS, CpuSet, Isolcpus, format_cpulist, named_cpus, parse_shown
from tunectl.errors import UsageError
from tunectl.fix import APPLY, NOTHING, Fix, in_turn, to_decide, to_type
from tunectl.host.cpusets import ISOLATED, NOHZ_FULL, read_cpu_list
from tunectl.host.identity import machine_of
from tunectl.host.interrupts import REALTIME, VERSION, threads_always
from tunectl.host.procs import parse_allowed, parse_stat
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.codecs import satisfies
from tunectl.knobs.drivers.kthreads import comms_of
from tunectl.knobs.row import Batch, Knob, Step, View, once
from tunectl.model import Match, Reading, State
from tunectl.wording import plural

_EVIDENCE = ("irq/", "rcuo")
_RCU_THREAD = re.compile(r"rcuo[a-z]?/([0-9]+)")
_THREADED = "PREEMPT_RT runs every interrupt in a thread, whatever its command line says; another kernel does not"
_KTHREADD = "proc/2"  # every other thread of the kernel starts on the CPUs that it may use
# arch/x86/kernel/tsc.c, drivers/cpufreq/intel_pstate.c, amd-pstate.c. Any other kernel leaves these words alone.
_OF_X86 = ("tsc", "intel_pstate", "amd_pstate")


class Next(NamedTuple):
    """The next boot's value of one argument."""

    value: Any  # None: the next boot will not have it
    known: bool
    problem: str = ""  # why it will not have it, or why that is not known
    errno: int | None = None  # of a file that could not be read
    later: bool = False  # the next boot will have it, the entries of later kernels will not
    where: str = ""  # the line that has not got it
    declared: str = ""  # where the line of the next boot stands, as far as that is known
    fix: Fix = NOTHING  # what makes it known


class BootFacts(NamedTuple):
    """What is known of one argument, except what was asked for, which is the setting."""

    next: Next
    booted: Any  # what this boot's line comes to; None: it did not have it
    accepted: bool  # does the kernel show what it must? True where it shows nothing
    by_effect: bool = False  # in force by what the kernel shows, whatever its line says
    made: str = ""  # how it came to that, where its own word does not say so
    kernel: str = ""  # what the kernel shows
    evidence: str = ""  # where it shows it, and what; "" where it does not
    likely: str = ""  # why a kernel does not accept it
    refusal: str = ""  # why tunectl does not write this host's boot configuration; "" where it does
    advice: str = ""  # what an operator does about that
    place: str = ""  # where the words belong that somebody else puts on the line
    obstacle: str = ""  # what stands in the way of writing it, and where; "" for nothing
    remedy: Fix = NOTHING  # what an operator does about the obstacle
    undone: str = ""  # the sysctl that undoes it in this boot, as /proc/sys shows it; "" where none does
    ends: Fix = NOTHING  # what ends that
    beside: str = ""  # what it switches off runs again, and on no isolated CPU: the list that says so
    always: str = ""  # why this kernel does it whatever its command line says; "" where it does not


class LeftOver(NamedTuple):
    """The facts of an argument that an earlier apply wrote, and that has to go."""

    why: str  # nobody wants it now, or this machine's kernel does not know it
    written: Any


class BootArg(NamedTuple):
    """One argument of the kernel command line."""

    key: str
    kernel: str = ""  # the attribute that shows what the kernel accepted, a CPU list
    rcu_threads: bool = False  # what it accepted shows as rcuo threads
    likely: str = ""
    config: str = ""  # the kernel's build option for it
    switch: str = ""  # the sysctl that is 0 with this argument, and switches on again what it switched off
    on_cpus: str = ""  # the list of the CPUs on which that runs then
    irq_threads: bool = False  # what it does shows as threads of interrupts, which PREEMPT_RT always has

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading; its value is what this boot had, its facts are the other points."""
        if want is None:
            yield self._left_over(knob, view, _ours(view), "the host file no longer does")
            return
        try:
            line = view.root.read_text("proc/cmdline")
        except OSError as error:
            reason = f"/proc/cmdline: {error.strerror}"
            yield Reading(knob.name, "", State.UNREADABLE, reason=reason, errno=error.errno)
            return
        if self.kernel and view.root.exists(ISOLATED) and not view.root.exists(self.kernel):
            reason = f"this kernel has no /{self.kernel}: it was built without {self.config}"
            yield Reading(knob.name, "", State.ABSENT, reason=reason)
            return
        if why := _unknown_here(view, self.key):
            ours = _ours(view)
            is_there = any(word.partition("=")[0] == self.key for word in ours)
            absent = Reading(knob.name, "", State.ABSENT, reason=why)
            yield self._left_over(knob, view, ours, why) if is_there else absent
            return
        boot, args = boot_of(view), parse_cmdline(line)
        try:
            kernel, accepted, evidence = self._accepted(view, want)
        except (OSError, UsageError) as error:
            number = error.errno if isinstance(error, OSError) else None
            yield Reading(knob.name, "", State.UNREADABLE, reason=f"/{self.kernel}: {error}", errno=number)
            return
        booted = self._value(knob, view, args, want)
        by_effect = accepted and self._by_effect(args, machine_for(view), booted, want, evidence)
        given_by_line = _gives(knob, booted, want)
        in_force = accepted and (by_effect or given_by_line)
        declared = boot.next.points[0].where if boot.next and boot.next.points else ""
        upcoming = self._next(knob, view, boot, want, args if in_force else ())._replace(declared=declared)
        obstacle, remedy = boot.obstacle(self.key, lost=bool(upcoming.where) and not upcoming.later)
        undone, ends, beside = self._undone(view) if booted else ("", NOTHING, "")
        facts = BootFacts(
            next=upcoming,
            booted=booted,
            by_effect=by_effect,
            made=self._made(view, args, booted, want) or (evidence if by_effect and not given_by_line else ""),
            kernel=kernel,
            accepted=accepted,
            evidence=evidence,
            likely=self.likely,
            refusal="" if boot.loader.supported else boot.loader.refusal,
            advice=boot.loader.advice,
            place=boot.loader.owner.advice if boot.loader.owner else "",
            obstacle=obstacle,
            remedy=remedy,
            undone=undone,
            ends=ends,
            beside=beside,
            always=_THREADED if self.irq_threads and threads_always(view.root) else "",
        )
        yield Reading(knob.name, "", State.READ, booted, facts=facts)

    def _left_over(self, knob: Knob, view: View, ours: Iterable[str], why: str) -> Reading:
        """To be taken out: the boot configuration has it among our words."""
        lines = (view.root.get_text("proc/cmdline"), " ".join(ours))
        booted, written = (self._value(knob, view, parse_cmdline(line), None) for line in lines)
        return Reading(knob.name, "", State.READ, booted, facts=LeftOver(why, written))

    def _by_effect(self, args: Sequence[Arg], machine: Machine, booted: Any, want: Any, evidence: str) -> bool:
        """Is it in force by what the kernel shows, although this boot's line, as we read it, does not say so?

        The flags of isolcpus= show nowhere. From 5.17 on each CPU has an rcuo thread where any callbacks are offloaded
        (kernel/rcu/tree_nocb.h, rcu_spawn_cpu_nocb_kthread()), so these prove something only where no word asks for
        them: then the kernel was built to offload all (CONFIG_RCU_NOCB_CPU_DEFAULT_ALL).
        """
        if not evidence or self.irq_threads:
            return False
        if isinstance(want, Isolcpus):
            return isinstance(booted, Isolcpus) and booted.flags >= want.flags
        asked = any(same_key(arg.key, "rcu_nocbs") for arg in args) or "nohz" in shares_of(args, machine)
        return not (self.rcu_threads and asked)

    def _made(self, view: View, args: Sequence[Arg], booted: Any, want: Any) -> str:
        """How the value came to be in force, where its own word does not say it; and what that does not do."""
        if self.key not in WORDS:
            return ""
        made, extra = explain(args, self.key, machine_for(view)), ""
        if self.key == "nohz_full" and made:
            extra = _not_kept_off(view, want)
        elif isinstance(booted, Isolcpus) and isinstance(want, Isolcpus) and booted.cpus > want.cpus:
            more = named_cpus(booted.cpus - want.cpus)
            extra = f"the scheduler puts nothing on {more} either, which the host file leaves to it"
        return "; ".join(filter(None, (made, extra)))

    def _next(self, knob: Knob, view: View, boot: Boot, want: Any, in_force: Sequence[Arg]) -> Next:
        """What the default entry has, or what the entries of later kernels will not have.

        `in_force`: the line with which it is in force now; the same words do the same at the next boot.
        """
        upcoming = boot.next
        if upcoming is None:
            problem = boot.loader.refusal if boot.loader.name == AMBIGUOUS else ""
            return Next(value=None, known=False, problem=problem, errno=boot.loader.errno)
        nothing = Point("", None, upcoming.problem, upcoming.errno, fix=upcoming.fix)
        value, unknown = None, None if upcoming.points else nothing
        for number, point in enumerate(upcoming.points):
            if point.line is None:
                unknown = unknown or point._replace(why=point.why or upcoming.problem or f"{point.where} is not known")
                continue
            args = parse_cmdline(point.line)
            found = self._value(knob, view, args, want)
            if self.key in WORDS and in_force and words_of(args) == words_of(in_force):
                found = want if not _gives(knob, found, want) else found
            if not _gives(knob, found, want) and number and point.added:
                unknown = unknown or point._replace(why=point.added)
            elif not _gives(knob, found, want) and number:
                lost = f"the next kernel's entry would not have it: it is not in {point.where}"
                return Next(value=value, known=True, problem=lost, later=True, where=point.where)
            elif not _gives(knob, found, want):
                return Next(value=found, known=True, problem=upcoming.problem, where=point.where)
            value = value if number else found
        if unknown:
            return Next(value=None, known=False, problem=unknown.why, errno=unknown.errno, fix=unknown.fix)
        return Next(value=value, known=True, problem=upcoming.problem or upcoming.note)

    def _value(self, knob: Knob, view: View, args: tuple[Arg, ...], want: Any) -> Any:
        """The value that is in force by the kernel's rule, typed; a text that it would refuse counts as none."""
        if self.key in WORDS:
            return value_of(args, self.key, machine_for(view), want)
        found = lookup(args, self.key, RULES[self.key])
        every = (found.arg, *found.others) if found and RULES[self.key] is Rule.EACH else (found.arg,) if found else ()
        values = []
        for arg in every:
            with suppress(ValueError, UsageError):
                values.append(knob.codec.decode(arg.value or ""))
        return want if want in values else values[0] if values else None

    def _accepted(self, view: View, want: Any) -> tuple[str, bool, str]:
        """(what the kernel shows, is that right, where and what). What the kernel does not show is taken as right."""
        wanted = want.cpus if isinstance(want, Isolcpus) else want
        if self.kernel and not (isinstance(want, Isolcpus) and "domain" not in want.flags):
            if not view.root.exists(self.kernel):
                return "", True, ""
            text = view.root.read_value(self.kernel)
            shown = parse_shown(text) & view.scope.present
            right = shown >= wanted if isinstance(want, Isolcpus) else shown == wanted
            return format_cpulist(shown), right, f"/{self.kernel} shows '{text.strip()}'"
        names = _threads(view) if self.rcu_threads or self.irq_threads else ()
        if not names:
            return "", True, ""
        if self.irq_threads:
            count = sum(name.startswith("irq/") for name in names)
            shows = f"{plural(count, 'thread')} of interrupts"
            return shows, bool(count), f"there are {shows} (irq/N-...)"
        offloaded = frozenset(int(match[1]) for name in names if (match := _RCU_THREAD.fullmatch(name)))
        threads = f"there are rcuo threads for CPUs {sorted(offloaded) or 'none'}"
        # A CPU that has not been online in this boot has no thread yet.
        return format_cpulist(offloaded), offloaded >= wanted & view.scope.online, threads

    def _undone(self, view: View) -> tuple[str, Fix, str]:
        """(the sysctl that undoes it, what ends that, why it undoes nothing on the isolated CPUs).

        Where the host file asks for the sysctl, its own row judges.
        """
        shown = view.root.get(self._switch, "0") if self.switch not in ("", *view.texts) else "0"
        if shown == "0":
            return "", NOTHING, ""
        cpus = read_cpu_list(view.root, self.on_cpus) if self.on_cpus else frozenset()
        if cpus and not cpus & view.scope.isolated:
            kept = f"/{self.on_cpus} keeps it to CPUs {format_cpulist(cpus)}"
            return "", NOTHING, f"/{self._switch} is {shown}, and {kept}"
        return f"/{self._switch} is {shown}", to_type(argv("sudo", "sysctl", f"{self.switch}=0")), ""

    @property
    def _switch(self) -> str:
        """The file of the sysctl."""
        return f"proc/sys/{self.switch.replace('.', '/')}" if self.switch else ""

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The boot configuration's files as a whole, for every boot argument that is desired."""
        boot = boot_of(view)
        changes = tuple(change for _, change in batch)
        check = partial(_read_back, view=view)
        if boot.family and boot.plan and not boot.plan.problem:
            for kind, path, content, pristine in boot.plan.writes:
                yield Step(
                    kind, path, content, changes, commands=boot.family.commands, read_back=check, pristine=pristine
                )

    def describe(self) -> tuple[str, ...]:
        """The argument, and where what the kernel made of it shows."""
        return (f"{self.key}=", *(("/" + self.kernel,) if self.kernel else ()))

    def reads(self) -> tuple[str, ...]:
        """What this boot had and what the kernel made of it, and every boot loader's configuration."""
        names = ("proc/[0-9]*/comm", "proc/[0-9]*/stat") if self.rcu_threads or self.irq_threads else ()
        always = (REALTIME, VERSION) if self.irq_threads else ()
        shown = filter(None, (self.kernel, self._switch, self.on_cpus))
        kthreadd = (f"{_KTHREADD}/comm", f"{_KTHREADD}/status") if self.key == "nohz_full" else ()
        return ("proc/cmdline", ISOLATED, NOHZ_FULL, *shown, *names, *always, *kthreadd, *FILES)


class Boot(NamedTuple):
    """What all boot arguments of one host share."""

    loader: Loader
    family: Family | None
    next: Upcoming | None
    plan: BootPlan | None
    settled: bool = False  # is everything as the plan would write it?

    def obstacle(self, key: str, *, lost: bool) -> tuple[str, Fix]:
        """(what keeps tunectl from configuring this argument, what an operator does about it).

        `lost`: the next entry itself has it not.
        """
        if self.plan is None or self.family is None:
            return "", NOTHING
        if self.plan.problem:
            return self.plan.problem, in_turn(to_decide(f"fix that ({self.plan.problem})"), APPLY)
        for conflict in self.plan.conflicts:
            if conflict.key == key:
                return conflict, self.plan.remedy or self._without(conflict)
        if lost and self.next and self.next.instead:  # nothing that is written reaches that entry
            return self.next.instead, self.next.fix if self.settled else in_turn(self.next.fix, APPLY)
        if not self.plan.writes and self.next and (problem := self.next.problem or self.next.unmade):
            return problem, self.next.fix or self.family.remedy or to_decide(f"fix that ({problem})")
        return "", NOTHING

    def _without(self, conflict: Conflict) -> Fix:
        """The setting that wins goes away, and then ours is written, or its menu made."""
        keeps = f": take {as_data(conflict.line)} out, or have it keep what was set before" if conflict.replaces else ""
        remove = f"remove that setting ({conflict.setting}){keeps}"
        if (self.plan and self.plan.writes) or not (self.family and self.family.remedy):
            return in_turn(to_decide(remove, line=conflict.line), APPLY)
        return to_decide(f"{remove}, then {self.family.remedy}", line=conflict.line)


class Loaded(NamedTuple):
    """What boots this host, and what the next boot will have."""

    loader: Loader
    family: Family | None
    next: Upcoming | None


@once
def loaded_by(view: View) -> Loaded:
    """The boot loader of this host and the next boot; worked out once."""
    loader = detect(view.root, view.bootloader)
    family = FAMILIES[loader.name] if loader.supported else None
    return Loaded(loader, family, upcoming_of(view.root, loader))


@once
def boot_of(view: View) -> Boot:
    """Besides loaded_by(), what there is to write; worked out once."""
    loader, family, upcoming = loaded_by(view)
    same = partial(_same, machine_for(view))
    plan = family.plan(view.root, _desired(view), same, view.journaled) if family else None
    settled = plan is not None and all(view.root.get_text(write.path) == write.content for write in plan.writes)
    return Boot(loader, family, upcoming, plan, settled)


def tried_by(view: View, line: str, trial_id: str) -> str:
    """The line of a boot that is tried: this one with every boot argument that is wanted."""
    return tried_line(view.root, line, _desired(view), partial(_same, machine_for(view)), trial_id)


def _desired(view: View) -> tuple[Desired, ...]:
    """Every boot argument that is wanted and that this machine's kernel knows, as (key, text, rule)."""
    wanted = {name.removeprefix("boot."): text for name, text in view.texts.items() if name.startswith("boot.")}
    return tuple((key, text or None, RULES[key]) for key, text in wanted.items() if not _unknown_here(view, key))


def _unknown_here(view: View, key: str) -> str:
    """Why this machine's kernel makes nothing of an argument; "" where it does, or where nobody can tell.

    By the machine's name and not by its CPUs' flags: some kernels interrupt CPUs for whoever reads /proc/cpuinfo.
    """
    machine = machine_of(view.root) if key in _OF_X86 else ""
    if not machine or re.fullmatch("x86_64|i[3-6]86", machine):
        return ""
    return f"x86 alone knows {key}=: the kernel of this machine ({machine}) makes nothing of it"


def _gives(knob: Knob, value: Any, want: Any) -> bool:
    return value is not None and satisfies(knob.match, value, want)


def managed_kept(view: View) -> CpuSet:
    """The CPUs that this boot's isolcpus=managed_irq keeps free, whatever is wanted of the next one."""
    share = shares_of(parse_cmdline(view.root.get_text("proc/cmdline")), machine_for(view)).get("managed_irq")
    return share.cpus if share else frozenset()


@once
def machine_for(view: View) -> Machine:
    """How this machine's kernel reads a list.

    Without CONFIG_CPUMASK_OFFSTACK a kernel before 6.3 takes every number below its NR_CPUS, and not only those of
    possible CPUs (include/linux/cpumask.h, nr_cpumask_bits): where this boot's masks come out so, it does.
    """
    scope, root = view.scope, view.root
    tickless = root.exists(NOHZ_FULL) or not root.exists(ISOLATED)
    strict = Machine(scope.present, scope.nr_cpus, tickless)
    args = parse_cmdline(root.get_text("proc/cmdline"))
    for machine in (strict, strict._replace(nr_cpus=MAX_CPUS)):
        domain = shares_of(args, machine).get("domain")
        if (domain.cpus & scope.present if domain else frozenset()) == read_cpu_list(root, ISOLATED) & scope.present:
            return machine
    return strict


def _same(machine: Machine, key: str, one: str, other: str) -> bool:
    """Does the text `one` of an argument come to what `other` asks for, on the CPUs that are present?

    A text that the kernel refuses comes to nothing, and is not even the same as itself.
    """
    if key not in WORDS:
        return one == other
    want = value_of([Arg(key, other)], key, machine, None)
    value = value_of([Arg(key, one)], key, machine, want)
    return value is not None and want is not None and satisfies(MATCHES.get(key, Match.EQUAL), value, want)


# How the rows of knobs/boot.py compare; those that are not here are equal.
MATCHES = {
    "isolcpus": Match.COVERS,
    "rcu_nocbs": Match.COVERS,
    "irqaffinity": Match.WITHIN,
}


def _not_kept_off(view: View, want: Any) -> str:
    """What isolcpus=nohz leaves on these CPUs and nohz_full= does not: before 6.14 it sets the tick's type alone."""
    if view.root.get(f"{_KTHREADD}/comm") == "kthreadd":
        with suppress(UsageError, OSError):
            if not parse_allowed(view.root.get_text(f"{_KTHREADD}/status")) & want:
                return ""
            return "threads of the kernel and unbound timers are not kept off these CPUs: nohz_full= does that, too"
    return "before 6.14 that does not keep threads of the kernel and unbound timers off, as nohz_full= does"


def _ours(view: View) -> Iterable[str]:
    """Our words in the boot configuration."""
    _, family, _ = loaded_by(view)
    return family.ours(view.root, view.journaled) if family else ()


@once
def _threads(view: View) -> tuple[str, ...]:
    """The names of all threads; none where the kernel's cannot be seen (a container, a recording).

    Anybody may give a process a name that counts as evidence: left out where it is not the kernel's. A recording may
    not hold what would tell.
    """
    names = []
    for pid, comm in comms_of(view):
        thread = parse_stat(view.root.get(f"proc/{pid}/stat"), pid) if comm.startswith(_EVIDENCE) else None
        if thread is None or thread.kernel:
            names.append(comm)
    return tuple(names)


def _read_back(root: Sysroot, view: View) -> str | None:
    """What is wrong with the written configuration: read again, and what the default entry now boots."""
    loader = detect(root, view.bootloader)
    if not loader.supported:  # its files could be read when they were written
        return loader.refusal
    family = FAMILIES[loader.name]
    same = partial(_same, machine_for(view))
    if family.confirm and (problem := family.confirm(root, _desired(view), same)):
        return problem
    upcoming = family.upcoming(root)
    lacking = [
        f"{point.where} does not give {want[0]}"
        for point in upcoming.points
        for want in _desired(view)
        if not given(parse_cmdline(point.line or ""), want, same)
    ]
    conflicts = family.plan(root, _desired(view), same, view.journaled).conflicts
    return upcoming.problem or "; ".join(conflicts or lacking) or None
