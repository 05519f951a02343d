"""One command's view of one host: what is wanted, what the host shows, and the plan that follows."""

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple, TypeGuard

from msgspec import UNSET, UnsetType

from tunectl import kinds
from tunectl.bootloader.cmdline import kernel_args, parse_cmdline
from tunectl.bootloader.families import FAMILIES, detect
from tunectl.bootloader.oneshot import tried_next
from tunectl.command import as_data
from tunectl.cpulist import format_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.fix import to_decide
from tunectl.host.cpusets import CpuFacts, read_cpu_list, read_scope_facts
from tunectl.host.guest import read_guest
from tunectl.host.hardware import hypervisor_of
from tunectl.host.identity import read_identity
from tunectl.host.modprobe import read_barred
from tunectl.host.refusals import AS_ROOT, CHOOSES, Doubt, callers, mending
from tunectl.host.sysroot import Sysroot, is_missing
from tunectl.hostfile.config import HostConfig, resolve
from tunectl.hostfile.monitor import sla_notes
from tunectl.hostfile.profile import NO_TEXTS, Texts
from tunectl.hostfile.shape import HostFile
from tunectl.hostfile.toml import read_toml
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.bootargs import managed_kept
from tunectl.knobs.drivers.bootline import next_words
from tunectl.knobs.row import JOURNAL_GONE, JOURNAL_HIDDEN, JOURNAL_IN_PART, Driver, Facts, Lasting, View
from tunectl.model import Finding, HostId, Outcome, Plan, Reading, Setting, Severity, State, Target
from tunectl.shapes import Returned, Unconfirmed
from tunectl.tuning.evidence import missing, own_words
from tunectl.tuning.journal import Journal, is_first, peek
from tunectl.tuning.plan import diff
from tunectl.tuning.proved import mark_proved, mark_tried
from tunectl.tuning.trial import Trial, read_trial, returned_of, waiting


def observe(view: View, settings: Iterable[Setting]) -> list[Reading]:
    """Every target of every desired setting, as the host shows it now: all that the pure plan knows of the host."""
    readings: list[Reading] = []
    for setting in settings:
        knob = KNOBS[setting.knob]
        readings.extend(knob.driver.observe(knob, view, setting.value))
    return readings


Observe = Callable[[View, Sequence[Setting]], list[Reading]]
JOURNAL = "journal"  # what a finding about the journal itself is named
ADOPT = "sudo tunectl apply --adopt"
_NOTED = "what was in force and what the kernel refused"
_REFUSALS = (errno.EIO, errno.EPERM)


class Inspection(NamedTuple):
    """A host and what is wanted of it."""

    root: Sysroot
    identity: HostId
    config: HostConfig
    journal: Journal
    invocation: tuple[str, ...]
    today: str  # ISO date
    noted: tuple[str, ...] = ()  # what is to be known of where the config comes from
    settling: bool = False  # the first apply of a boot: nothing runs on the isolated CPUs that it could disturb

    def view(self) -> View:
        """A fresh look: nothing read earlier is remembered."""
        texts = {setting.knob: KNOBS[setting.knob].codec.encode(setting.value) for setting in self.config.settings}
        # A change of cpu.online or smt.control is itself a reason to look again at which CPUs are on.
        shown = read_cpu_list(self.root, "sys/devices/system/cpu/online")
        scope = self.config.scope._replace(online=shown & self.config.scope.present or self.config.scope.online)
        return View(
            self.root,
            scope,
            texts,
            self.invocation,
            self.config.interfaces,
            bootloader=self.config.bootloader,
            journaled=self.journal.edits(),
            settling=self.settling,
        )

    def doubts(self) -> list[Doubt]:
        """Who else than root and the caller may write the host file or a profile of the site; never of a recording."""
        found: list[Doubt] = []
        for file in self.config.files if self.root.live else ():
            with suppress(OSError):  # it was read a moment ago, and may be gone
                found += self.root.doubts(file, callers())
        return list(dict.fromkeys(found))

    def unconfirmed(self) -> Unconfirmed | UnsetType:
        """The change that is taken back unless it is confirmed; UNSET where none waits, or that is not known."""
        return waiting(self.journal.directory, self.root, self.identity.boot_id).change

    def returned(self) -> Returned | UnsetType:
        """The change that came back by itself and that the host file has; UNSET for none, or where it is not known."""
        with suppress(TunectlError):
            return returned_of(self.journal.directory, self.root, self.config, self.journal.path) or UNSET
        return UNSET

    def notes(self) -> list[str]:
        """What concerns the whole host: the boot loader, a journal that was cut off, interfaces that are not there."""
        notes = list(filter(None, [waiting(self.journal.directory, self.root, self.identity.boot_id).said]))
        if back := self.returned():
            notes.append(f"the change {back.id} came back by itself at {back.at}: {back.why}")
        notes += [*self.noted, *(f"{doubt}: {CHOOSES}; {mending([doubt])}" for doubt in self.doubts())]
        loader = detect(self.root, self.config.bootloader)
        if not loader.supported and self._wants_boot_arguments():
            notes.append(f"boot arguments are not tunectl's to write here: {loader.refusal}")
        elif loader.supported and self._wants_boot_arguments():
            family = FAMILIES[loader.name]
            notes += filter(None, [family.upcoming(self.root).note, tried_next(self.root, family)])
        if self.journal.torn and not self.journal.damaged:
            notes.append(f"{self.journal.path}: its last line is cut off or unreadable")
        if 0 in self.config.scope.isolated:
            notes.append("CPU 0 boots the host: the kernel takes it out of nohz_full and keeps interrupts on it")
        notes += sla_notes(self.config.monitor, self.config.origin)
        for name in self.config.interfaces:
            if not self.root.exists(f"sys/class/net/{name}"):
                notes.append(f"{self.config.origin}: network.interfaces: this host has no {name}")
        for name, cards in self.config.below.items():
            if cards != (name,):
                named = ", ".join(map(as_data, cards))
                notes.append(f"{self.config.origin}: network.interfaces: {name} stands on {named}: they are judged")
        return notes

    def tuner_notes(self) -> list[str]:
        """Who else writes what is asked for here, and what `apply` does about each; for plan and apply."""
        from tunectl.tuners.conflicts import notes_of  # fourteen modules of other people's grammars: verify reads none
        from tunectl.tuners.find import read_tuners

        found = read_tuners(self.root, self.config.interfaces)
        return notes_of(found, {setting.knob: setting.value for setting in self.config.settings})

    def choices(self) -> list[str]:
        """What was chosen by evidence, and the evidence: the boot loader, where boot arguments are wanted."""
        loader = detect(self.root, self.config.bootloader)
        if not loader.supported or not self._wants_boot_arguments():
            return []
        return [f"boot loader: {loader.name}, by {', '.join(loader.evidence)}"]

    def _wants_boot_arguments(self) -> bool:
        return any(setting.knob.startswith("boot.") for setting in self.config.settings)

    def assess(self, settings: tuple[Setting, ...] | None = None, observe: Observe = observe) -> Plan:
        """Observe, and diff against what is wanted (or a part of it)."""
        with self.root.one_look():
            return self._assess(settings, observe)

    def _assess(self, settings: tuple[Setting, ...] | None, observe: Observe) -> Plan:
        chosen = (*self.config.settings, *self.leftovers()) if settings is None else settings
        view = self.view()
        readings = observe(view, chosen)
        trouble = self.journal_trouble()
        facts = self._facts(readings, trouble)._replace(managed_kept=managed_kept(view))
        if any(KNOBS[setting.knob].absence.by_words for setting in chosen):
            facts = facts._replace(next_words=next_words(view), modules=facts.modules or self._modules())
        plan = diff(chosen, readings, facts, self.config.waivers, self.today)
        trial = self._last_trial()
        findings = mark_proved(mark_tried(plan.findings, view, trial), trial, self.identity.boot_id)
        return plan._replace(findings=(trouble, *findings) if trouble else findings)

    def _last_trial(self) -> Trial | None:
        """What became of the last change that had to be confirmed; None also where that is not known."""
        with suppress(TunectlError):
            return read_trial(self.journal.directory, self.root)
        return None

    def _modules(self) -> frozenset[str]:
        """Those in this kernel; empty where that is not known."""
        return frozenset(self.root.listdir("sys/module")) if self.root.live else frozenset()

    def journal_trouble(self) -> Finding | None:
        """The first finding of all where the journal is not there as a whole, or not for this user to read."""
        path = self.journal.path
        if self.journal.unreadable:
            reason = f"cannot read {path}: {os.strerror(errno.EACCES)}: {_NOTED} is not known"
            return Finding(JOURNAL, "", Outcome.UNREADABLE, None, "there", reason, AS_ROOT, severity=Severity.HYGIENE)
        if self.journal.damaged:
            reason = f"{self.journal.damage}: what stood there is not known, and apply writes nothing"
            fix = to_decide(f"put {path} back from a backup; or decide to do without them: sudo tunectl restore")
            return Finding(JOURNAL, "", Outcome.DRIFTED, "damaged", "there", reason, fix, severity=Severity.HYGIENE)
        return self.journal_gone()

    def journal_gone(self) -> Finding | None:
        """The finding where apply ran here and its journal is gone, or an older one: much else is not known then."""
        lacks = missing(self.root, self.journal, self.config.bootloader)
        if lacks is None:
            return None
        path = self.journal.path
        reason = f"{lacks.reason}: what stood there before tunectl, {_NOTED} is not known any more"
        back = f"put {path} back from a backup, or give the --state that the earlier apply had"
        fix = to_decide(f"{back}; or decide that `restore` shall know nothing older: {ADOPT}")
        return Finding(JOURNAL, "", Outcome.DRIFTED, lacks.observed, "there", reason, fix, severity=Severity.HYGIENE)

    def leftovers(self) -> tuple[Setting, ...]:
        """What an earlier host file asked for and this one does not: boot arguments, control groups, units."""
        wanted = {setting.knob for setting in self.config.settings}
        names = dict.fromkeys(f"boot.{arg.partition('=')[0]}" for arg in self.own_words())
        lasting = [(name, knob.driver) for name, knob in KNOBS.items() if _is_lasting(knob.driver)]
        names.update((name, None) for name, driver in lasting if name not in wanted and driver.stands(self.root))
        reason = "an earlier host file asked for it, this one does not"
        return tuple(Setting(name, None, reason) for name in names if name in KNOBS and name not in wanted)

    def own_words(self) -> tuple[str, ...]:
        """Our boot arguments, as they stand in the configuration and the journal knows them."""
        return own_words(self.root, self.journal.edits(), self.config.bootloader)

    def _unknown(self, trouble: Finding | None) -> str:
        """Why what apply noted is not known, as Facts.journal has it."""
        if self.journal.unreadable:
            return JOURNAL_HIDDEN
        return (JOURNAL_GONE if self.journal.is_new else JOURNAL_IN_PART) if trouble else ""

    def _facts(self, readings: list[Reading], trouble: Finding | None) -> Facts:
        """What the journal knows of this boot, and the counts of the interrupts that could not be moved."""
        boot_id = self.identity.boot_id
        refused: set[Target] = set()
        moved: set[Target] = set()
        configured_in = ""
        for entry in self.journal.entries.values():
            if entry.errno in _REFUSALS and entry.boot_id == boot_id:
                refused.update(entry.targets)
            elif entry.errno is None and entry.boot_id == boot_id:
                moved.update(entry.targets)
            if (
                entry.errno is None
                and entry.persistent
                and any(target.knob.startswith("boot.") for target in entry.targets)
            ):
                configured_in = entry.boot_id
        held = self.journal.in_force()
        unknown = self._unknown(trouble)
        lost = (held or unknown) and any(reading.state in (State.ABSENT, State.MOOT) for reading in readings)
        numbers = {instance for knob, instance in refused if knob in ("irq.affinity", "net.queue_irqs")}
        numbers |= {
            reading.instance
            for reading in readings
            if reading.facts is not None and getattr(reading.facts, "settable", None) is False
        }
        counts = _isolated_counts(self.root, self.config, numbers) if numbers else {}
        with self.root.noting() as denied:
            barred = read_barred(self.root) if lost else ()
        return Facts(
            boot_id,
            self.root.live,
            frozenset(refused),
            configured_in,
            counts,
            moved=frozenset(moved),
            applied=self.journal.unreadable or not is_first(self.journal, boot_id),
            held=held,
            arguments=kernel_args(parse_cmdline(self.root.get_text("proc/cmdline"))) if lost else (),
            modules=self._modules() if lost else frozenset(),
            kernel=self.identity.kernel,
            barred=barred,
            unseen=str(denied),
            journal=unknown,
            not_owned=self._not_owned(readings),
        )

    def _not_owned(self, readings: Iterable[Reading]) -> Mapping[str, str]:
        """By facility why this guest cannot have what it lacks; empty on bare metal, and where nothing is absent."""
        if all(reading.state is not State.ABSENT for reading in readings):
            return {}
        guest = read_guest(self.root, hypervisor_of(self.root, self.root.get_text("proc/cpuinfo")))
        return guest.reasons if guest else {}


def _isolated_counts(root: Sysroot, config: HostConfig, numbers: set[str]) -> dict[str, int | None]:
    """How often each interrupt was delivered to the isolated CPUs since boot; None where that cannot be read."""
    found: dict[str, int | None] = {}
    for number in numbers:
        # One column for each possible CPU; /proc/interrupts has the same, of all interrupts, in megabytes.
        columns = root.get(f"sys/kernel/irq/{number}/per_cpu_count").split(",")
        if len(columns) == config.scope.nr_cpus and all(column.isdecimal() for column in columns):
            found[number] = sum(int(columns[cpu]) for cpu in config.scope.isolated)
    missing = numbers - found.keys()
    if not missing:
        return found
    from tunectl.host.interrupts import parse_interrupts  # only for a kernel without per_cpu_count

    try:
        text = root.read_text("proc/interrupts") if root.exists("proc/interrupts") else ""
    except OSError:
        return found | dict.fromkeys(missing)
    table = parse_interrupts(text, rows=missing, cpus=config.scope.isolated)
    return found | {number: sum(row.counts) for number, row in table.rows.items()}


def _is_lasting(driver: Driver) -> TypeGuard[Lasting]:
    return _lasts(type(driver))


@cache
def _lasts(kind: type[Driver]) -> bool:
    """Asking a protocol whether it fits is slow, and every look at a host asks for every row."""
    return issubclass(kind, Lasting)


def read_config(host_path: str, facts: CpuFacts, root: Sysroot | None = None) -> HostConfig:
    """The host file, checked against this host. UsageError, with the way to get one, where there is none."""
    try:
        os.stat(host_path)
    except FileNotFoundError:
        raise UsageError(f"there is no host file {host_path}", f"`{kinds.propose(host_path)}` writes one") from None
    except OSError as error:
        raise UsageError(f"cannot read {host_path}: {error.strerror}") from error
    config = resolve(read_toml(host_path, HostFile), facts, host_path, root)
    return config._replace(files=(host_path, *config.files))


def proposed_config(root: Sysroot, facts: CpuFacts) -> tuple[HostConfig | None, list[str]]:
    """What tunectl itself would ask of this host, and what it says of that; None where no CPU can be isolated."""
    from tunectl.host.topology import read_topology  # only without a host file
    from tunectl.tuning.propose import propose

    quiet = facts.quiet
    proposal = propose(read_topology(root, quiet=quiet))
    if proposal.refusal:
        return None, [proposal.refusal]
    isolated = format_cpulist(proposal.isolated)
    hostfile = HostFile(profile="low-latency", isolated=isolated)
    return resolve(hostfile, facts, "tunectl's own proposal"), [
        f"no host file: judged against tunectl's own proposal, isolated = {isolated}, profile low-latency"
    ]


def config_or_proposal(
    root: Sysroot, host_path: str, facts: CpuFacts, *, required: bool
) -> tuple[HostConfig | None, list[str]]:
    """The host file; or, where there is none and none is `required`, tunectl's own proposal, and what it says of it."""
    if required or not is_missing(host_path):
        return read_config(host_path, facts, root), []
    return proposed_config(root, facts)


def judged_by(root: Sysroot, host_path: str, facts: CpuFacts, *, required: bool) -> tuple[HostConfig, list[str]]:
    """The same where nothing can be judged without. TunectlError where there is neither."""
    config, notes = config_or_proposal(root, host_path, facts, required=required)
    if config is None:
        raise TunectlError(f"there is no host file {host_path}, and none can be proposed: {notes[0]}")
    return config, notes


def open_inspection(
    root: Sysroot,
    host_path: str,
    state: str,
    invocation: tuple[str, ...],
    today: str,
    *,
    candidate: str | None = None,
    texts: Texts = NO_TEXTS,
    required: bool = True,
) -> Inspection:
    """Reads host file, topology and journal. UsageError for a host file that is missing or does not fit.

    With a `candidate`, that file is read as if it lay at `host_path`: what would be, before it is put there. With
    `texts`, the host file and its profiles are these, as an earlier apply read them. Unless one is `required`, a host
    without any is held against tunectl's own proposal, and a note says so.
    """
    facts, notes = read_scope_facts(root), list[str]()
    if texts:
        config = resolve(read_toml(host_path, HostFile, texts[host_path]), facts, host_path, root, texts)
        config = config._replace(files=(host_path, *config.files))
    elif candidate:
        config = resolve(read_toml(candidate, HostFile), facts, host_path, root)
    else:
        config, notes = judged_by(root, host_path, facts, required=required)
    return Inspection(root, read_identity(root), config, peek(state), invocation, today, noted=tuple(notes))
