"""Commands that this host runs by itself: cron's, rc.local's, and those of services and timers that a boot starts.

What another user than root has it run can write nothing of ours, and is left out.
Source: crontab(5), cron(8) and run-parts(8) of Debian and cronie; systemd-rc-local-generator(8); systemd.timer(5);
systemd.exec(5), User=, DynamicUser=, AmbientCapabilities=; systemd.service(5), "Command lines".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import starting_links, unit_directories
from tunectl.host.systemdunit import MARKS, YES, Said, in_force, mask_of, read_unit, words_of

_DAEMONS = ("cron.service", "crond.service", "cronie.service", "systemd-cron.target")
_PROGRAMS = ("usr/sbin/cron", "usr/sbin/crond")
_PARTS = ("etc/cron.hourly", "etc/cron.daily", "etc/cron.weekly", "etc/cron.monthly", "etc/cron.yearly")
_SPOOLS = ("var/spool/cron/crontabs", "var/spool/cron")  # Debian; Red Hat and SUSE
_ENVIRONMENT = re.compile(r"^\s*[A-Za-z_]\w*\s*=")
_RC_LOCAL = ("etc/rc.local", "etc/rc.d/rc.local")
_EXECS = ("ExecStartPre", "ExecStart", "ExecStartPost", "ExecReload", "ExecStopPost")
_SILENT_EXECS = ("ExecCondition", "ExecStop")  # they are no writers at boot, and yet the unit does them
_EARLY = ("sysinit.target.", "basic.target.", "initrd", "local-fs", "sockets.target.")  # reached before ours starts
_VARIABLE = re.compile(r"\$\$|\$\{(\w+)\}|\$(\w+)")
_BEFORE_US = ("tunectl-apply.service", "basic.target", "sysinit.target")


class Job(NamedTuple):
    """A command line, or a whole script (then `command` is ""): its file and line, and what a unit would miss."""

    file: str  # without a leading slash
    line: int
    command: str
    unit: str = ""  # the service whose line it is; "" for cron and rc.local
    alone: str = ""  # the unit to disable (the service, its timer): the service has no other command than this one
    needed: bool = False  # without this line the service has nothing to start


def read_cron_jobs(root: Sysroot) -> Iterator[Job]:
    """Of crontabs and the cron directories; none where no cron is installed. Never raises."""
    there = [unit for unit in _DAEMONS if any(root.exists(place) for place in unit_directories(unit))]
    runs = any(not mask_of(root, unit) for unit in there) or (not there and any(map(root.exists, _PROGRAMS)))
    if not runs:
        return
    yield from _crontab(root, "etc/crontab")
    dots = not root.exists("etc/debian_version")  # Debian's cron skips names with a dot, cronie does not
    for name in sorted(root.listdir("etc/cron.d")):
        if re.fullmatch(r"[\w-]+" if not dots else r"[^.#].*(?<!~)(?<!\.rpmsave)(?<!\.rpmorig)(?<!\.rpmnew)", name):
            yield from _crontab(root, f"etc/cron.d/{name}")
    for spool in _SPOOLS:
        for name in (name for name in sorted(root.listdir(spool)) if _is_root(root, name)):
            yield from _crontab(root, f"{spool}/{name}", name)
    for directory in _PARTS:
        for name in sorted(root.listdir(directory)):
            if is_program(root, f"{directory}/{name}") and (dots or "." not in name):
                yield Job(f"{directory}/{name}", 0, "")


def _is_root(root: Sysroot, user: str) -> bool:
    """Is it a name of user 0?"""
    users = (line.split(":") for line in root.get_text("etc/passwd").split("\n"))
    return user in ("root", "0") or any(fields[:1] == [user] and fields[2:3] == ["0"] for fields in users)


def _crontab(root: Sysroot, path: str, owner: str = "") -> Iterator[Job]:
    """Root's jobs of his own crontab; without `owner`, of one whose lines name their users."""
    # cron, too, takes none that others may write
    for number, line in enumerate(root.get_named(path).split("\n"), 1):
        bare = line.strip()
        if not bare or bare.startswith("#") or _ENVIRONMENT.match(bare):
            continue
        count = (1 if bare.startswith("@") else 5) + (not owner)
        fields = bare.split(None, count)
        if len(fields) > count and (owner or _is_root(root, fields[-2])):
            command = re.split(r"(?<!\\)%", fields[-1])[0]  # what follows is the command's input
            yield Job(path, number, command.replace("\\%", "%"))


def read_rc_local(root: Sysroot) -> Iterator[Job]:
    """rc.local, where it may be executed and so is run at the end of the boot. Never raises."""
    path = next((path for path in _RC_LOCAL if root.exists(path)), "")
    if path and is_program(root, path):
        yield Job(path, 0, "")


# Directories whose programs are run as a card goes up or the host resumes. ifupdown(8)'s interfaces(5),
# NetworkManager-dispatcher(8), networkd-dispatcher(8), run-parts(8), ifcfg of SUSE, systemd-suspend.service(8).
_OF_CARDS = (
    *(f"etc/network/{name}.d" for name in ("if-pre-up", "if-up")),
    *(
        f"{place}/NetworkManager/dispatcher.d{more}"
        for place in ("etc", "usr/lib")
        for more in ("", "/pre-up.d", "/no-wait.d")
    ),
    *(
        f"{place}/networkd-dispatcher/{state}.d"
        for place in ("etc", "usr/lib")
        for state in ("carrier", "configured", "configuring", "degraded", "routable")
    ),
    "etc/sysconfig/network/if-up.d",
)
_LOCAL_HOOKS = ("sbin/ifup-local", "sbin/ifup-pre-local")  # of Red Hat's network-scripts
_OF_SLEEP = ("etc/systemd/system-sleep", "usr/lib/systemd/system-sleep", "lib/systemd/system-sleep")
# They do what options of interfaces(5) say, and read_ifupdown() has those.
_OWNERS = frozenset({"etc/network/if-pre-up.d/ethtool", "etc/network/if-up.d/ethtool"})


def read_card_hooks(root: Sysroot) -> Iterator[Job]:
    """The programs that the network's owners run as a card goes up. Never raises."""
    yield from _programs_in(root, _OF_CARDS)
    yield from (Job(path, 0, "") for path in _LOCAL_HOOKS if is_program(root, path))


def read_sleep_hooks(root: Sysroot) -> Iterator[Job]:
    """The programs that are run when the host resumes. Never raises."""
    yield from _programs_in(root, _OF_SLEEP)


def _programs_in(root: Sysroot, directories: Sequence[str]) -> Iterator[Job]:
    """The programs of directories; ifupdown's are run by run-parts, which leaves out a name with a dot."""
    for path in (f"{directory}/{name}" for directory in directories for name in sorted(root.listdir(directory))):
        is_skipped = path in _OWNERS or (path.startswith("etc/network/") and "." in path.rpartition("/")[2])
        if not is_skipped and is_program(root, path):
            yield Job(path, 0, "")


def is_program(root: Sysroot, path: str) -> bool:
    """May it be executed?"""
    return bool((root.mode(path) or 0) & 0o111)


def read_service_jobs(root: Sysroot, besides: frozenset[str]) -> Iterator[Job]:
    """The commands of services that a boot or a timer starts and nothing orders before ours. Never raises.

    `besides`: units that are left out.
    """
    ours = {name for line in read_unit(root, _BEFORE_US[0]) if line.key == "After" for name in line.value.split()}
    for unit, starter in _started(root).items():
        if unit in besides or unit in ours:
            continue
        unit_lines = read_unit(root, unit.replace(unit[unit.find("@") : unit.rfind(".")], "@") if "@" in unit else unit)
        before = {name for line in unit_lines if line.key == "Before" for name in line.value.split()}
        if starter == unit and before & set(_BEFORE_US):
            continue
        commands = in_force(unit_lines, "Service", *_EXECS, *_SILENT_EXECS)
        starts = [command for command in commands if command.key == "ExecStart"]
        given = (word for line in in_force(unit_lines, "Service", "Environment") for word in words_of(line.value))
        environment = dict(word.partition("=")[::2] for word in given)
        for line in commands:
            own = unit.startswith("tunectl-") and "tunectl" in line.value  # ours: verify, apply, monitor
            if own or line.key in _SILENT_EXECS or "/rc.local" in line.value:  # read_rc_local() has what that runs
                continue
            alone = starter if commands == [line] and f".d/{line.file.rpartition('/')[2]}" not in line.file else ""
            command = _filled_in(_specified(line.value.lstrip(MARKS), unit), environment)
            if _may_write(root, unit, unit_lines, line.value):
                yield Job(line.file, line.line, command, unit, alone, needed=starts == [line])


def _may_write(root: Sysroot, unit: str, unit_lines: Sequence[Said], command: str) -> bool:
    """May a command of a service do what root may, by its user, capabilities, or a mark?"""
    values = {line.key: line.value for line in unit_lines if line.section == "Service"}
    is_set = {key for key in ("DynamicUser", "PermissionsStartOnly") if values.get(key, "").lower() in YES}
    marks = command[: len(command) - len(command.lstrip(MARKS))]
    if values.get("AmbientCapabilities") or "PermissionsStartOnly" in is_set or "+" in marks or "!" in marks:
        return True
    return _is_root(root, _specified(values.get("User") or ("" if is_set else "root"), unit))


def _specified(command: str, unit: str) -> str:
    """The command with the unit's name in place of %i, %I, %j, %n, %N, %p (systemd.unit(5), "Specifiers")."""
    stem = unit.rpartition(".")[0]
    prefix, _, instance = stem.partition("@")
    plain = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), instance.replace("-", "/"))
    values = {"i": instance, "I": plain, "j": prefix.rpartition("-")[2], "n": unit, "N": stem, "p": prefix, "%": "%"}
    return re.sub(r"%(.)", lambda found: values.get(found[1], found[0]), command)


def _filled_in(command: str, environment: Mapping[str, str]) -> str:
    """The command with what its unit says of variables: systemd replaces them, or hands them on to a shell.

    `$$` is a dollar (systemd.service(5), "Command lines"). A variable that the unit does not name stays.
    """

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else environment.get(match[1] or match[2], match[0])

    return _VARIABLE.sub(value, _VARIABLE.sub(value, command))  # $$NAME is left to the shell, which has it, too


def _started(root: Sysroot) -> dict[str, str]:
    """{service: the unit to disable, itself or its timer}, of what is enabled and not masked."""
    found: dict[str, str] = {}
    for _, link in starting_links(root, _EARLY):
        unit = link.rpartition("/")[2]
        if unit.endswith(".service"):
            found.setdefault(unit, unit)
        elif unit.endswith(".timer") and not mask_of(root, unit):
            service = next((line.value for line in read_unit(root, unit) if line.key == "Unit"), "")
            found.setdefault(service or unit.removesuffix(".timer") + ".service", unit)
    return {unit: starter for unit, starter in found.items() if "/" not in unit and not mask_of(root, unit)}
