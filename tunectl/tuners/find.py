"""Which tuners are on this host, and what each writes.

Evidence, none of it a command: a unit's control group and processes (it runs now), the links that start it at boot
(enabled), its unit file (installed), the lines of files that tune by themselves. A process counts that is in the unit,
or root's own: nobody else's can write what a tuner writes, whatever its name is.
"""

from collections.abc import Collection, Iterator

from tunectl.host.irqbalance import read_configured_ban, read_running_ban
from tunectl.host.procs import is_daemon, read_comms
from tunectl.host.refusals import AS_ROOT
from tunectl.host.sysctld import Setting
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import groups_of, starting_links, unit_directories
from tunectl.host.systemdunit import mask_of
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.irqaffinity import QueueIrqs
from tunectl.knobs.drivers.nicfile import NicFile
from tunectl.tuners.conflicts import FoundTuner, key_of, said_of
from tunectl.tuners.table import FILES, PROGRAMS, Tuner

_BY_COMM = {tuner.process_name: tuner for tuner in PROGRAMS}


def read_tuners(root: Sysroot, cards: Collection[str] | None = None) -> list[FoundTuner]:
    """The programs found on this host with what each writes, then the files that tune by themselves. Never raises.

    `cards`: those whose settings are asked for; what is for another card is left out.
    """
    return [*read_programs(root), *_read_files(root, cards)]


def read_programs(root: Sysroot) -> list[FoundTuner]:
    """Of read_tuners, those that are programs: they start and stop while the host runs. Never raises."""
    processes: dict[str, list[int]] = {}
    for pid, comm in read_comms(root):
        if tuner := tuner_of(root, pid, comm):
            processes.setdefault(tuner.name, []).append(pid)
    wanted: dict[str, str] = {}  # {unit: the link that starts it at boot}
    for _, link in starting_links(root):
        wanted.setdefault(link.rpartition("/")[2], link)
    return [found for tuner in PROGRAMS if (found := _find(root, tuner, processes.get(tuner.name, []), wanted))]


def tuner_of(root: Sysroot, pid: int, comm: str) -> Tuner | None:
    """The tuner that a process of this name is; None where it only has the name of one."""
    tuner = _BY_COMM.get(comm)
    return tuner if tuner and is_daemon(root, pid, tuner.units) else None


def _find(root: Sysroot, tuner: Tuner, pids: list[int], wanted: dict[str, str]) -> FoundTuner | None:
    groups = {unit: groups_of(root, unit) for unit in tuner.units}
    running = [*(path for paths in groups.values() for path in paths), *(f"proc/{pid}/comm" for pid in pids)]
    units = [unit for unit in tuner.units if not mask_of(root, unit)]
    enabled = [wanted[unit] for unit in units if unit in wanted]
    installed = [path for unit in units for path in unit_directories(unit) if root.exists(path)]
    if not (running or enabled or installed):
        return None
    with root.noting() as denied:
        settings = tuner.settings(root) if tuner.settings else None
    if denied and settings is None:  # it writes what its files say, and those are not known
        settings = ()
    found = FoundTuner(
        tuner.name,
        active=bool(running),
        enabled=bool(enabled),
        installed=bool(installed or running),
        overwrites=tuner.overwrites if settings is None else _written(settings),
        evidence=tuple("/" + path for path in [*running, *enabled, *installed]),
        settings=settings or (),
        when=tuner.when,
        answer=tuner.answer,
        once=tuner.once,
        units=tuple(unit for unit in tuner.units if groups[unit] or (unit in units and unit in wanted)),
        unread=str(denied),
        unread_fix=denied.fix,
    )
    if tuner.name == "irqbalance":
        return _with_bans(root, found, pids)
    if tuner.name == "tuned":
        profile = " ".join(root.get("etc/tuned/active_profile").split())
        return found._replace(profile=profile, detail=f"profile {profile}" if profile else "no profile chosen")
    return found


def _with_bans(root: Sysroot, found: FoundTuner, pids: list[int]) -> FoundTuner:
    configured = read_configured_ban(root)
    running = tuple(ban for pid in pids if (ban := read_running_ban(root, pid)))
    counting = running or (configured,)
    detail = "; ".join(ban.describe() for ban in counting)
    if any(ban.cpus != configured.cpus for ban in running):
        detail += f"; configured, after a restart: {configured.describe()}"
    unread = "; ".join(f"{ban.source}: {ban.unread}" if ban.source else ban.unread for ban in counting if ban.unread)
    fix = configured.ends or AS_ROOT
    return found._replace(ban=configured, running_bans=running, detail=detail, unread=unread, unread_fix=fix)


def _read_files(root: Sysroot, cards: Collection[str] | None) -> Iterator[FoundTuner]:
    for files in FILES:
        if files.only_cards and cards is not None and not cards:  # what may not be read there is no matter, either
            continue
        with root.noting() as denied:
            settings = tuple(kept for setting in files.settings(root) for kept in _of_cards(root, setting, cards))
        if not (settings or denied):
            continue
        lines = [
            said_of(setting.place, "names" if setting.named else files.does, key_of(setting), setting.value)
            for setting in settings
            if setting.wins
        ]
        lines += [f"not known: {denied}"] if denied else []
        yield FoundTuner(
            files.name,
            active=True,
            enabled=True,
            installed=True,
            overwrites=_written(settings),
            evidence=tuple(dict.fromkeys(setting.path for setting in settings)),
            detail="; ".join(dict.fromkeys(lines)),  # one place of a program may stand for several settings
            settings=settings,
            when=files.when,
            answer=files.answer,
            does=files.does,
            program=False,
            unread=str(denied),
            unread_fix=denied.fix,
        )


def _of_cards(root: Sysroot, setting: Setting, cards: Collection[str] | None) -> Iterator[Setting]:
    """The setting, unless it is another card's; named only where its name may be an alternative one of a card."""
    name = setting.instance
    is_of_cards = isinstance(KNOBS[setting.knob].driver, NicFile | QueueIrqs)
    is_alternative = any(name.startswith(card) for card in cards or ()) and not root.exists(f"sys/class/net/{name}")
    if cards is None or not is_of_cards or name in cards or (cards and not name):
        yield setting
    elif is_alternative:  # enp5s0np0
        yield setting._replace(named=True)


def _written(settings: tuple[Setting, ...]) -> tuple[str, ...]:
    return tuple(sorted({setting.knob for setting in settings if setting.wins}))
