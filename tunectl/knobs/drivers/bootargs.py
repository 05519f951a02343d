"""Kernel command line arguments, read at four points and written through the boot loader's own configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from tunectl.bootloader.cmdline import RULES, Arg, Rule, lookup, parse_cmdline
from tunectl.bootloader.detect import Loader, detect
from tunectl.bootloader.dropin import Desired, DropinPlan, confirm, plan_dropin
from tunectl.bootloader.grub import DROPIN
from tunectl.bootloader.mkconfig import configured
from tunectl.bootloader.nextboot import NextBoot, next_boot
from tunectl.bootloader.sourcing import source_live
from tunectl.cpulist import CpuSet, Isolcpus, parse_cpulist, parse_isolcpus, parse_shown
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Reading, State

_RCU_THREAD = re.compile(r"rcuo[a-z]?/([0-9]+)")
_ISOLATED = "sys/devices/system/cpu/isolated"  # every kernel since 4.0 has it
_LISTS = ("nohz_full", "rcu_nocbs", "irqaffinity")


class BootFacts(NamedTuple):
    """One argument at its points; what was asked is the setting."""

    next: Any  # None: the next boot will not have it
    next_known: bool
    next_problem: str
    booted: Any  # None: this boot did not have it
    kernel: CpuSet  # what the kernel shows
    accepted: bool  # is that what it must show? True where it shows nothing
    evidence: str  # where it shows it, and what; "" where it does not
    likely: str  # why a kernel does not accept it
    refusal: str  # why tunectl does not write this host's boot configuration; "" where it does
    obstacle: str  # what stands in the way of writing it, and where; "" for nothing
    remedy: str  # what an operator can do about the obstacle


class BootArg(NamedTuple):
    """One argument of the kernel command line."""

    key: str
    kernel: str = ""  # the attribute that shows what the kernel accepted, a CPU list
    rcu_threads: bool = False  # what it accepted shows as rcuo threads
    implied_by: str = ""  # another argument that does the same
    likely: str = ""
    config: str = ""  # the kernel's build option for it

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading; its value is what this boot had, its facts are the other points."""
        if want is None:
            booted = self._value(knob, view, parse_cmdline(view.root.get_text("proc/cmdline")), None)
            yield Reading(knob.name, "", State.READ, booted)
            return
        try:
            line = view.root.read_text("proc/cmdline")
        except OSError as error:
            yield Reading(knob.name, "", State.UNREADABLE, reason=f"/proc/cmdline: {error.strerror}")
            return
        if self.kernel and view.root.exists(_ISOLATED) and not view.root.exists(self.kernel):
            reason = f"this kernel has no /{self.kernel}: it was built without {self.config}"
            yield Reading(knob.name, "", State.ABSENT, reason=reason)
            return
        boot = _boot(view)
        known = boot.next is not None and boot.next.line is not None
        upcoming = self._value(knob, view, parse_cmdline(boot.next.line or ""), want) if boot.next else None
        try:
            kernel, accepted, evidence = self._accepted(view, want)
        except (OSError, UsageError) as error:
            yield Reading(knob.name, "", State.UNREADABLE, reason=f"/{self.kernel}: {error}")
            return
        obstacle, remedy = boot.obstacle(self.key)
        booted = self._value(knob, view, parse_cmdline(line), want)
        facts = BootFacts(
            upcoming,
            known,
            (boot.next.problem or boot.next.note) if boot.next else "",
            booted,
            kernel,
            accepted,
            evidence,
            self.likely,
            "" if boot.loader.supported else boot.loader.refusal,
            obstacle,
            remedy,
        )
        yield Reading(knob.name, "", State.READ, booted, facts=facts)

    def _value(self, knob: Knob, view: View, args: tuple[Arg, ...], want: Any) -> Any:
        """The value the kernel heeds, typed; a text it would refuse counts as none."""
        nr_cpus = view.scope.nr_cpus
        values = []
        for key in filter(None, (self.key, self.implied_by)):
            found = lookup(args, key, RULES[key], partial(_same, nr_cpus, key))
            every = (found.arg, *found.others) if found and RULES[key] is Rule.EACH else (found.arg,) if found else ()
            for arg in every:
                with suppress(ValueError, UsageError):
                    values.append(_typed(key, arg.value or "", nr_cpus, knob))
        if self.implied_by and values:  # the kernel offloads both
            return frozenset[int]().union(*values)
        return want if want in values else values[0] if values else None

    def _accepted(self, view: View, want: Any) -> tuple[CpuSet, bool, str]:
        """(CPUs the kernel shows, are they right, where and what). What the kernel does not show is taken as right."""
        wanted = want.cpus if isinstance(want, Isolcpus) else want
        if self.kernel and not (isinstance(want, Isolcpus) and "domain" not in want.flags):
            if not view.root.exists(self.kernel):
                return frozenset(), True, ""
            text = view.root.read_value(self.kernel)
            shown = parse_shown(text)
            return shown, shown == wanted, f"/{self.kernel} shows '{text.strip()}'"
        offloaded = _rcu_offloaded(view) if self.rcu_threads else None
        if offloaded is None:
            return frozenset(), True, ""
        return offloaded, offloaded >= wanted, f"there are rcuo threads for CPUs {sorted(offloaded) or 'none'}"

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The drop-in as a whole, for every boot argument that is desired."""
        plan = _boot(view).plan
        changes = tuple(change for _, change in batch)
        check = partial(_read_back, view=view)
        if plan is not None and plan.content is None and all(change.value is None for change in changes):
            yield Step("removal", DROPIN, "", changes, commands=("update-grub",), read_back=check)
        elif plan is not None and plan.content is not None:
            yield Step("file", DROPIN, plan.content, changes, commands=("update-grub",), read_back=check)

    def describe(self) -> tuple[str, ...]:
        """The argument, and where what the kernel made of it shows."""
        return (f"{self.key}=", *(("/" + self.kernel,) if self.kernel else ()))


class _Boot(NamedTuple):
    """What all boot arguments of one host share."""

    loader: Loader
    next: NextBoot | None
    plan: DropinPlan | None

    def obstacle(self, key: str) -> tuple[str, str]:
        """(what keeps tunectl from configuring this argument, what to do about it)."""
        if self.plan is None:
            return "", ""
        if self.plan.problem:
            return self.plan.problem, "mend that"
        for text in self.plan.conflicts:
            if re.search(rf"\b{re.escape(key)}\b", text):
                return text, "remove that setting"
        if self.plan.content is None and self.next and self.next.problem:
            return self.next.problem, "sudo update-grub"
        return "", ""


def _boot(view: View) -> _Boot:
    if "boot" not in view.memo:
        loader = detect(view.root)
        same = partial(_same, view.scope.nr_cpus)
        upcoming = next_boot(view.root) if loader.supported else None
        plan = plan_dropin(view.root, _desired(view), same) if loader.supported else None
        view.memo["boot"] = _Boot(loader, upcoming, plan)
    boot: _Boot = view.memo["boot"]
    return boot


def _desired(view: View) -> tuple[Desired, ...]:
    """Every boot argument that is wanted, as (key, text, rule)."""
    wanted = {name.removeprefix("boot."): text for name, text in view.texts.items() if name.startswith("boot.")}
    return tuple((key, text or None, RULES[key]) for key, text in wanted.items())


def _typed(key: str, text: str, nr_cpus: int, knob: Knob) -> Any:
    if key == "isolcpus":
        return parse_isolcpus(text, nr_cpus=nr_cpus)
    if key in _LISTS:
        return parse_cpulist(text, nr_cpus=nr_cpus)
    return knob.codec.decode(text)


def _same(nr_cpus: int, key: str, one: str, other: str) -> bool:
    """Do two texts of an argument mean the same CPUs (isolcpus: and does `one` have at least the flags of `other`)?"""
    try:
        if key == "isolcpus":
            left, right = parse_isolcpus(one, nr_cpus=nr_cpus), parse_isolcpus(other, nr_cpus=nr_cpus)
            return left.flags >= right.flags and left.cpus == right.cpus
        if key in _LISTS:
            return parse_cpulist(one, nr_cpus=nr_cpus) == parse_cpulist(other, nr_cpus=nr_cpus)
    except UsageError:
        return False
    return one == other


def _rcu_offloaded(view: View) -> CpuSet | None:
    """The CPUs that have an rcuo thread; None where kernel threads cannot be seen (a container, a recording)."""
    if "rcu" not in view.memo:
        pids = [name for name in view.root.listdir("proc") if name.isdecimal()]
        comms = [view.root.get(f"proc/{pid}/comm") for pid in pids]
        seen = (_RCU_THREAD.fullmatch(comm) for comm in comms)
        visible = "kthreadd" in comms
        view.memo["rcu"] = frozenset(int(one[1]) for one in seen if one) if visible else None
    offloaded: CpuSet | None = view.memo["rcu"]
    return offloaded


def _read_back(root: Sysroot, view: View) -> str | None:
    """What is wrong with the written configuration: sourced again, and what the default entry now boots."""
    settings = source_live(root) if root.live else configured(root)
    return confirm(settings, _desired(view), partial(_same, view.scope.nr_cpus)) or next_boot(root).problem
