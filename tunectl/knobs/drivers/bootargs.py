"""Kernel command line arguments, read at four points and written through the boot loader's own configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from tunectl.bootloader.cmdline import Arg, Rule, lookup, parse_cmdline
from tunectl.bootloader.detect import Loader, detect
from tunectl.bootloader.dropin import DropinPlan, plan_dropin
from tunectl.bootloader.grub import DROPIN
from tunectl.bootloader.nextboot import NextBoot, confirm, next_boot
from tunectl.cpulist import CpuSet, Isolcpus, parse_shown
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Reading, State

_RCU_THREAD = re.compile(r"rcuo[ps]?[a-z]?/(\d+)")


class BootFacts(NamedTuple):
    """One argument at its four points; the fifth, what was asked, is the setting."""

    next: Any  # None: the next boot will not have it
    next_known: bool
    next_problem: str
    booted: Any  # None: this boot did not have it
    kernel: Any  # what the kernel shows
    kernel_known: bool  # does the kernel show it at all?
    kernel_wants: Any  # what it must show
    evidence: str  # where it shows it, and what
    likely: str  # why a kernel does not accept it
    refusal: str  # why tunectl cannot write this host's boot configuration; "" where it can
    conflict: str  # another setting of the same argument that wins over ours, and where it is


@dataclass(frozen=True)
class BootArg:
    """One argument of the kernel command line."""

    key: str
    first_wins: bool = False  # the kernel keeps the first occurrence and refuses a later one that differs
    kernel: str = ""  # the attribute that shows what the kernel accepted, a CPU list
    rcu_threads: bool = False  # what it accepted shows as rcuo threads
    implied_by: str = ""  # another argument that does the same
    likely: str = ""

    @property
    def rule(self) -> Rule:
        """Which of several occurrences the kernel heeds."""
        return Rule.FIRST if self.first_wins else Rule.LAST

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading; its value is what this boot had, its facts are the other points."""
        try:
            line = view.root.read_text("proc/cmdline")
        except OSError as error:
            yield Reading(knob.name, "", State.UNREADABLE, reason=f"/proc/cmdline: {error.strerror}")
            return
        booted = self._value(knob, view, parse_cmdline(line))
        boot = _boot(view)
        upcoming = None if boot.next.line is None else self._value(knob, view, parse_cmdline(boot.next.line))
        kernel, known, evidence = self._accepted(view)
        wants = want.cpus if isinstance(want, Isolcpus) else want
        if known and isinstance(want, Isolcpus) and "domain" not in want.flags:
            known = False  # /sys/devices/system/cpu/isolated shows domain isolation only
        facts = BootFacts(
            upcoming,
            boot.next.line is not None,
            boot.next.problem or "",
            booted,
            kernel,
            known,
            kernel if self.rcu_threads and known and kernel >= wants else wants,
            evidence,
            self.likely,
            "" if boot.loader.supported else boot.loader.refusal,
            boot.conflicts.get(self.key, ""),
        )
        yield Reading(knob.name, "", State.READ, booted, facts=facts)

    def _value(self, knob: Knob, view: View, args: tuple[Arg, ...]) -> Any:
        """The value the kernel heeds, typed; a list it would refuse counts as none."""
        for key in filter(None, (self.key, self.implied_by)):
            found = lookup(args, key, self.rule)
            if found is None:
                continue
            try:
                text = found.value or ""
                return knob.codec.want(text, view.scope) if key != "nosoftlockup" and text else knob.codec.decode(text)
            except (ValueError, UsageError):
                continue
        return None

    def _accepted(self, view: View) -> tuple[CpuSet, bool, str]:
        """(CPUs, does the kernel show them, where and what)."""
        if self.kernel:
            try:
                text = view.root.read_value(self.kernel)
            except OSError:
                return frozenset(), False, ""
            return parse_shown(text), True, f"/{self.kernel} shows '{text.strip()}'"
        if self.rcu_threads:
            cpus = _rcu_offloaded(view)
            return cpus or frozenset(), cpus is not None, f"rcuo threads exist for CPUs {sorted(cpus or ())}"
        return frozenset(), False, ""

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The drop-in as a whole, for every boot argument that is desired."""
        plan = _boot(view).plan
        changes = tuple(change for _, change in batch)
        if plan is not None and plan.content is not None:
            check = partial(_read_back, knobs=tuple(knob for knob, _ in batch), view=view)
            yield Step("file", DROPIN, plan.content, changes, commands=("update-grub",), read_back=check)

    def describe(self) -> tuple[str, ...]:
        """The argument, and where what the kernel made of it shows."""
        return (f"{self.key}=", *(("/" + self.kernel,) if self.kernel else ()))


@dataclass(frozen=True)
class _Boot:
    """What all boot arguments of one host share."""

    loader: Loader
    next: NextBoot
    plan: DropinPlan | None
    conflicts: dict[str, str] = field(default_factory=dict)
