"""A host file made concrete: host file + profile + topology -> what is wanted of this host, and its own threads."""

import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tunectl.bootloader.families import FAMILIES
from tunectl.cpulist import format_cpulist, parse_cpulist, parse_on_present
from tunectl.errors import UsageError
from tunectl.host.cpusets import CpuFacts
from tunectl.host.nics import cards_below
from tunectl.host.scheduling import BY_PRIORITY
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.budget import check_limit, looser, merged, of_feed
from tunectl.hostfile.monitor import check_monitor
from tunectl.hostfile.profile import NO_TEXTS, Profile, Texts, load_profile
from tunectl.hostfile.report import check_report
from tunectl.hostfile.shape import Clock, HostFile, Monitor, Report, Thermal, ThreadRow, WaiverRow
from tunectl.knobs import KNOBS
from tunectl.model import NEXT_BOOT, Scope, Setting, Trading, Waiver, parse_target
from tunectl.probe.loads import chosen
from tunectl.shapes import Looser

UNMANAGED = "unmanaged"  # a knob the profile sets and this site leaves alone


class HostConfig(NamedTuple):
    """A host file made concrete on one machine."""

    scope: Scope
    settings: tuple[Setting, ...]
    waivers: tuple[Waiver, ...]
    budget: dict[str, float]
    thermal: Thermal
    interfaces: tuple[str, ...]  # cards: those below, where the host file names a bond, a VLAN or the like
    monitor: Monitor
    origin: str  # the file, or what stands for it where there is none
    bootloader: str = ""
    threads: tuple[Trading, ...] = ()
    load: tuple[str, ...] = ()  # beside which preflight measures once more
    looser: tuple[Looser, ...] = ()  # limits of the budget that permit more than the profile's
    feed: bool = False  # whether preflight runs `probe feed`, too
    feed_limits: Mapping[str, float] = MappingProxyType({})  # key of [budget.feed] to limit
    clock: Clock = Clock()
    files: tuple[str, ...] = ()  # of the site, that all this was read from
    report: Report = Report()
    below: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # the cards of each name in [network]


def resolve(
    hostfile: HostFile, facts: CpuFacts, origin: str, root: Sysroot | None = None, texts: Texts = NO_TEXTS
) -> HostConfig:
    """Host file + profile + topology -> desired. UsageError names the file and the key of what cannot be.

    `root` is the host's, where `origin` is a file that may lie in a recorded one; profiles among `texts` are not read.
    """
    scope = _scope(hostfile, facts, origin)
    profile = load_profile(hostfile.profile, os.path.dirname(origin) or ".", f"{origin}: profile", root, texts)
    shipped = {key: limit.value for key, limit in profile.budget.items()}
    limits = merged(hostfile.budget, shipped, origin)
    if not 0 < hostfile.thermal.min_ratio <= 1:
        raise UsageError(f"{origin}: thermal.min_ratio: must lie above 0 and be at most 1")
    if hostfile.thermal.base_frequency_khz is not None and hostfile.thermal.base_frequency_khz <= 0:
        raise UsageError(f"{origin}: thermal.base_frequency_khz: must lie above 0")
    check_limit("max_error_ns", hostfile.clock.limit_ns, f"{origin}: clock.max_error_ns")
    check_monitor(hostfile.monitor, scope, origin)
    check_report(hostfile.report, f"{origin}: report")
    if hostfile.bootloader not in ("", *FAMILIES):
        raise UsageError(f"{origin}: bootloader: there is no '{hostfile.bootloader}'", f"one of {', '.join(FAMILIES)}")
    below = {name: cards_below(root, name) if root else (name,) for name in hostfile.network.interfaces}
    return HostConfig(
        scope,
        _settings(hostfile, profile, scope, origin),
        tuple(_waiver(row, number, origin, facts.nr_cpus) for number, row in enumerate(hostfile.waivers)),
        limits,
        hostfile.thermal,
        _cards(below, below),
        hostfile.monitor,
        origin,
        hostfile.bootloader,
        trading_threads(hostfile.threads, scope, below, origin),
        chosen(hostfile.preflight.load, f"{origin}: preflight.load") if hostfile.preflight.load else (),
        looser(limits, profile.measures),
        hostfile.preflight.feed,
        of_feed(hostfile.budget.feed, origin),
        hostfile.clock,
        profile.files,
        hostfile.report,
        below,
    )


def kernel_config(facts: CpuFacts) -> HostConfig:
    """Without a host file: the CPUs that this boot isolates, and no value for any knob."""
    isolated = facts.quiet & facts.present
    scope = Scope(facts.present, facts.online, isolated, facts.nr_cpus)
    return HostConfig(scope, (), (), {}, Thermal(), (), Monitor(), "no host file")


def _scope(hostfile: HostFile, facts: CpuFacts, origin: str) -> Scope:
    where = f'{origin}: isolated = "{hostfile.isolated}"'
    try:
        isolated = parse_on_present(hostfile.isolated, facts.present, nr_cpus=facts.nr_cpus)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", error.hint) from error
    present = format_cpulist(facts.present)
    if not isolated:
        raise UsageError(f"{where}: no CPU is named", f"this host has CPUs {present}")
    if missing := isolated - facts.present:
        raise UsageError(f"{where}: this host has no CPU {format_cpulist(missing)}", f"it has {present}")
    if not facts.online - isolated:
        online = format_cpulist(facts.online)
        raise UsageError(f"{where}: no housekeeping CPU is left", f"leave at least one of {online}")
    for cpu in sorted(isolated):
        outside = facts.siblings.get(cpu, frozenset()) - isolated
        if outside and not hostfile.allow_split_siblings:
            raise UsageError(
                f"{where}: CPU {cpu} shares its core with CPU {format_cpulist(outside)}, which is not isolated",
                "isolate whole cores, or say allow_split_siblings = true",
            )
    return Scope(facts.present, facts.online, isolated, facts.nr_cpus)


def _settings(hostfile: HostFile, profile: Profile, scope: Scope, origin: str) -> tuple[Setting, ...]:
    wanted: dict[str, tuple[Any, str, str]] = {
        name: (line.value, line.reason, f"profile {hostfile.profile}: knobs.{name}")
        for name, line in profile.knobs.items()
        if line.isolation == "always" or hostfile.isolation in (line.isolation, "both")
    }
    if hostfile.isolation != "boot" and "cpuset.isolated" not in {*wanted, *hostfile.knobs}:
        raise UsageError(
            f'{origin}: isolation = "{hostfile.isolation}": profile {hostfile.profile} does not say how',
            "let it inherit balanced-latency, or set cpuset.isolated under [knobs]",
        )
    for name, value in hostfile.knobs.items():
        wanted[name] = (value, f"the site's own value, in {origin}", f"{origin}: knobs.{name}")
    settings = []
    for name, (value, reason, where) in wanted.items():
        _known(name, where)
        if value == UNMANAGED:
            continue
        codec = KNOBS[name].codec
        try:
            settings.append(Setting(name, codec.want(value, scope), reason))
        except ValueError as error:
            shown = str(value).lower() if isinstance(value, bool) else repr(value)  # as TOML has it
            raise UsageError(f"{where}: {shown}: {error}", f"{codec.expects}, or {UNMANAGED}") from error
    order = list(KNOBS)
    return tuple(sorted(settings, key=lambda setting: order.index(setting.knob)))


def _known(name: str, where: str) -> None:
    if name in KNOBS:
        return
    import difflib  # only for the message: it is slow to import

    close = difflib.get_close_matches(name, KNOBS, n=1)
    raise UsageError(f"{where}: unknown knob '{name}'", f"did you mean {close[0]}?" if close else "see `tunectl knobs`")


# Facilities whose targets have numbers that are no CPUs: there is no last one, and nothing that all of them are.
NUMBERED = {"irq": "interrupts", "net": "interrupts and interfaces", "kthread": "threads", "mm": "memory nodes"}
_LIST = re.compile(r"[0-9N,:/\s-]+|[aA][lL][lL](:.*)?")  # is meant as a list of numbers, well written or not


def _waiver(row: WaiverRow, number: int, origin: str, nr_cpus: int) -> Waiver:
    where = f"{origin}: waivers[{number}]"
    if row.knob != NEXT_BOOT and not row.knob.startswith(("check.", "thermal.")):
        _known(row.knob, f"{where}.knob")
    if not row.reason.strip():
        raise UsageError(f"{where}.reason: is empty", "say why the host may differ")
    instance = None if row.target is None else parse_target(str(row.target), row.knob).instance
    if instance and _LIST.fullmatch(instance) and not instance.isdecimal():
        instance = _numbers(instance, row.knob, f"{where}.target", nr_cpus)
    return Waiver(row.knob, instance, row.reason, row.until.isoformat(), where)


def _numbers(text: str, knob: str, where: str, nr_cpus: int) -> str:
    """A list of targets, with what `N` and `all` are on this host."""
    of_cpus = "N" in text or text[:1] in "aA"
    if of_cpus and (others := NUMBERED.get(knob.partition(".")[0])):
        why = f"{where}: '{text}': the targets of {knob} are {others}, which have no last one"
        raise UsageError(why, "name their numbers, such as 33,40-43; without a target it covers all")
    try:
        cpus = parse_cpulist(text, nr_cpus=nr_cpus if of_cpus else None)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", "a list of numbers looks like 2-5,8 or 2-14:1/2") from error
    return format_cpulist(cpus) if of_cpus else text


# unit_name_is_valid() of systemd, src/basic/unit-name.c: these characters. A name that begins with a dash is an option.
_UNIT = re.compile(r"[A-Za-z0-9:_.\\][A-Za-z0-9:_.\\-]*(@[A-Za-z0-9:_.\\@-]*)?\.(service|scope|slice)")
_LONGEST = 255  # characters of a unit's name
_COMM = 15  # characters the kernel keeps of a thread's name (TASK_COMM_LEN, less the NUL)


def trading_threads(
    rows: Sequence[ThreadRow], scope: Scope, below: Mapping[str, tuple[str, ...]], origin: str
) -> tuple[Trading, ...]:
    """The declarations, each possible by itself and together. UsageError names the row and the key otherwise."""
    threads: list[Trading] = []
    for number, row in enumerate(rows):
        where = f"{origin}: threads[{number}]"
        thread = _declared(row, scope, where)
        for other in threads:
            if other.name == thread.name:
                raise UsageError(
                    f"{where}: there is a thread named '{thread.name}' already", "give it a name of its own"
                )
            if other.cpu == thread.cpu:
                raise UsageError(f"{where}.cpu: CPU {thread.cpu} is {other.name}'s", "give each trading thread its own")
        threads.append(thread)
    known = {*below, *_cards(below, below), *(trading.name for trading in threads)}
    for number, thread in enumerate(threads):
        for feeder in thread.fed_by:
            if feeder not in known or feeder == thread.name:
                others = sorted(known - {thread.name})
                hint = f"one of {', '.join(others)}" if others else "see [network]"
                raise UsageError(f"{origin}: threads[{number}].fed_by: nothing else here is named '{feeder}'", hint)
    # Who says nothing of his feeders is fed by the market-data interfaces.
    return tuple(trading._replace(fed_by=_cards(trading.fed_by or below, below)) for trading in threads)


def _cards(names: Iterable[str], below: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Each card below these names once; what is no interface of [network] stays."""
    return tuple(dict.fromkeys(itertools.chain.from_iterable(below.get(name, (name,)) for name in names)))


def _declared(row: ThreadRow, scope: Scope, where: str) -> Trading:
    if bool(row.unit) == bool(row.command):
        raise UsageError(
            f"{where}: which process is it?", "unit = (a systemd unit) or command = (its name), one of them"
        )
    if row.unit and row.user:
        raise UsageError(f"{where}.user: a unit says itself whose its process is", "leave it out")
    if row.cpu not in scope.isolated:
        isolated = format_cpulist(scope.isolated)
        raise UsageError(f"{where}.cpu: CPU {row.cpu} is not isolated", f"one of {isolated}")
    if row.policy in BY_PRIORITY and not 1 <= row.priority <= 99:
        raise UsageError(f"{where}.priority: {row.priority}: SCHED_{row.policy.upper()} has 1 to 99")
    if row.policy not in BY_PRIORITY and row.priority:
        raise UsageError(
            f"{where}.priority: {row.policy} has no real-time priority", 'policy = "fifo" or "rr", or none'
        )
    for key, value in (("thread", row.thread), ("command", row.command)):
        if len(value.encode()) > _COMM:
            raise UsageError(f"{where}.{key}: '{value}': the kernel keeps {_COMM} characters", value[:_COMM])
    if "/" in row.command:
        name = row.command.rpartition("/")[2] or "its name as `ps -o comm` shows it"
        raise UsageError(f"{where}.command: '{row.command}': a program's name, without its folder", name)
    unit = _unit_of(row)
    if unit:
        _check_unit(unit, f"{where}.unit")
    return Trading(
        name_of(row),
        unit,
        row.command,
        row.thread,
        row.cpu,
        row.policy,
        row.priority,
        row.locked_memory,
        tuple(row.fed_by),
        row.spins,
        row.user,
    )


def name_of(row: ThreadRow) -> str:
    """What findings call a declared thread."""
    return row.name or row.thread or row.command or _unit_of(row)


def _unit_of(row: ThreadRow) -> str:
    return row.unit if not row.unit or "." in row.unit else f"{row.unit}.service"


def _check_unit(unit: str, where: str) -> None:
    if not _UNIT.fullmatch(unit) or len(unit) > _LONGEST:
        raise UsageError(
            f'{where}: "{unit}": systemd runs no program of that name',
            "a service, such as feed.service or feed@1.service",
        )
    if "@." in unit:
        raise UsageError(f'{where}: "{unit}" is a template, of which only instances run', unit.replace("@.", "@NAME."))
