"""Which lines of a drop-in leave a service of ours as it was written: a table of keys known to be harmless.

Lists of what it may do are judged in allowlists.py. Every other key counts as one that may keep the service from its
work: it needs root, all of /proc and /sys, its own environment, and to be neither refused, killed, undone nor kept
waiting.

Source: systemd.unit(5), systemd.service(5), systemd.exec(5), systemd.resource-control(5), systemd.kill(5).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tunectl.cpulist import parse_cpulist
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_in_force, unit_directories
from tunectl.host.systemdunit import MARKS, NO, NULL, YES, Said, in_force, words_of
from tunectl.knobs.drivers import allowlists
from tunectl.knobs.drivers.confined import STEERS


class Service(NamedTuple):
    """What a value is judged by: the host, the words of the service's own command, and variables that it never gets.

    `is_open`: no path is read-only for it, so that it needs no ReadWritePaths=.
    """

    root: Sysroot
    words: Sequence[str]
    unset: frozenset[str] = frozenset()
    is_open: bool = False


Test = Callable[[Service, str], bool]

# systemd gives every service without a limit of its own this long to start; `apply` needs a few seconds.
_ENOUGH_S = 90.0
# Many times of what `apply` uses.
_ENOUGH_BYTES, _ENOUGH_TASKS, _ENOUGH_FILES = 256 << 20, 512, 1024
_SECONDS = {
    "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hr": 3600.0, "hour": 3600.0,
    "hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0,
}  # fmt: skip
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_HOMES = ("/home/", "/root/", "/run/user/")
_TEMPORARY = ("/tmp/", "/var/tmp/")  # noqa: S108
_NOT_USED = ("/home/", "/root/", "/srv/", "/mnt/", "/media/")  # unless the service's own command names a file there
# What every boot has reached before a service of ours is started.
_REACHED = ("sysinit.target", "basic.target", "local-fs.target", "system.slice", "-.slice", "-.mount")
# Our unit comes before these, itself or through what else they wait for: to wait for one makes a cycle.
_LATER = (
    "irqbalance.service",
    "tunectl-apply.service",
    "multi-user.target",
    "graphical.target",
    "default.target",
    "shutdown.target",
)
# Our unit waits for these.
_EARLIER = (
    *_REACHED,
    *("sockets.target", "paths.target", "timers.target", "slices.target", "local-fs-pre.target", "swap.target"),
    *("systemd-modules-load.service", "systemd-sysctl.service", "systemd-udev-trigger.service", "tuned.service"),
    *("cpupower.service", "cpufrequtils.service", "loadcpufreq.service", "ksm.service", "sysfsutils.service"),
    *("systemd-journald.socket", "systemd-udevd.service", "systemd-remount-fs.service", "tunectl-apply.service"),
)


def _any(_: Service, value: str) -> bool:
    return True


def _one_of(*values: str) -> Test:
    return lambda _, value: value.lower() in values


def _all_of(*values: str) -> Test:
    return lambda _, value: bool(value) and set(value.split()) <= set(values)


def _none_of(*values: str) -> Test:
    return lambda _, value: not set(value.split()) & set(values)


def _hides(*places: str) -> Test:
    """Hides these places: no word of the command may lie below one."""
    return lambda service, value: value.lower() in NO or not any(word.startswith(places) for word in service.words)


def _is_long(_: Service, value: str) -> bool:
    if value in ("", "0", "infinity"):  # none of the three is a limit
        return True
    parts = re.findall(r"([0-9.]+)\s*([a-z]*)", value)
    if re.sub(r"[0-9.]+\s*[a-z]*|\s", "", value) or not all(unit in _SECONDS for _, unit in parts):
        return False
    try:
        return bool(parts) and sum(float(number) * _SECONDS[unit] for number, unit in parts) >= _ENOUGH_S
    except ValueError:
        return False


def _at_least(least: int) -> Test:
    def test(_: Service, value: str) -> bool:
        found = re.fullmatch(r"([0-9]+)([KMGT]?)", value.partition(":")[0])
        if re.fullmatch("[1-9][0-9]%|100%", value):  # of the host's own memory or tasks
            return True
        return value in ("", "infinity") or bool(found and int(found[1]) * _BYTES[found[2]] >= least)

    return test


def _are_there(service: Service, value: str) -> bool:
    return all(_is_there(service.root, word) for word in value.split())


def _are_there_and_some(service: Service, value: str) -> bool:
    """Empty, it takes back what our unit may write (knobs/drivers/confined.py)."""
    return _are_there(service, value) if value else service.is_open


def _are_not_used(service: Service, value: str) -> bool:
    """Places that the service may be kept out of: there, or with a `-`, and nothing of its own."""
    return _are_there(service, value) and not any(_uses(service, word.lstrip("+-")) for word in value.split())


def _uses(service: Service, path: str) -> bool:
    place = path.rstrip("/") + "/"
    return not place.startswith(_NOT_USED) or "/../" in place or any(word.startswith(place) for word in service.words)


def _is_there(root: Sysroot, path: str) -> bool:
    path = path.removeprefix("+")
    return path.startswith("-") or path in ("/", "~") or (path.startswith("/") and root.exists(path.strip("/")))


def _output(service: Service, value: str) -> bool:
    kind, _, path = value.partition(":")
    if kind in ("file", "append", "truncate"):
        return _is_there(service.root, path.rpartition("/")[0] or "/")
    return value in ("", "inherit", "null", "journal", "kmsg", "journal+console", "kmsg+console", "syslog")


def _environment(service: Service, value: str) -> bool:
    try:
        names = {word.partition("=")[0] for word in shlex.split(value)}
    except ValueError:
        return False
    return not any(STEERS.match(name) for name in names - service.unset)


def _cpus(service: Service, value: str) -> bool:
    """A list that has a CPU of this host: systemd starts nothing on none."""
    try:
        online = parse_cpulist(service.root.get("sys/devices/system/cpu/online"))
        return not value or bool(parse_cpulist(",".join(re.split(r"[\s,]+", value))) & online)
    except UsageError:
        return False


def _is_mild(_: Service, value: str) -> bool:
    """A command that ends at once, changes nothing, and never fails or may; or a short sleep."""
    words = words_of(value)
    directory, slash, program = (words or [""])[0].rpartition("/")
    if not words or (slash and directory not in ("/bin", "/usr/bin")):
        return not value
    if program == "sleep":
        return len(words) == 2 and bool(re.fullmatch("[0-9]{1,2}", words[1]))
    return program in ("true", "echo", "printf") or (program == "false" and _may_fail(value))


def _may_fail(value: str) -> bool:
    """A `-` among the marks before the program: its failure counts as success, also where it is not there."""
    return "-" in value[: len(value) - len(value.lstrip(MARKS))]


def _is_no_hurdle(service: Service, value: str) -> bool:
    """A command before ours: whatever it changes is written after it. It may neither stop ours nor wait for long."""
    program = (words_of(value) or [""])[0].rpartition("/")[2]
    return _is_mild(service, value) or (_may_fail(value) and program not in ("", "sleep"))


_OFF = _one_of(*NO)

# What a service may be given: it says who it is, how it is weighed, how it is killed or stopped, how it logs.
_FREE_SERVICE = (
    "Nice IOSchedulingClass IOSchedulingPriority CPUWeight StartupCPUWeight CPUShares StartupCPUShares CPUQuota"
    " CPUQuotaPeriodSec IOWeight StartupIOWeight IODeviceWeight BlockIOWeight StartupBlockIOWeight CPUAccounting"
    " IOAccounting BlockIOAccounting MemoryAccounting TasksAccounting IPAccounting MemoryMin MemoryLow MemorySwapMax"
    " MemoryZSwapMax MemoryPressureWatch MemoryPressureThresholdSec ManagedOOMSwap ManagedOOMMemoryPressure"
    " ManagedOOMMemoryPressureLimit ManagedOOMPreference OOMScoreAdjust OOMPolicy Slice Delegate"
    " IPAddressAllow IPAddressDeny TimerSlackNSec CoredumpFilter CoredumpReceive LimitCORE LimitMEMLOCK LimitNICE"
    " LimitRTPRIO LimitRSS LimitMSGQUEUE LimitSIGPENDING LimitLOCKS"
    " SyslogIdentifier SyslogFacility SyslogLevel SyslogLevelPrefix LogLevelMax LogExtraFields LogFilterPatterns"
    " LogRateLimitIntervalSec LogRateLimitBurst IgnoreSIGPIPE AmbientCapabilities NoNewPrivileges LockPersonality"
    " RestrictSUIDSGID ProtectHostname RemoveIPC PrivateIPC PrivateMounts KeyringMode SystemCallErrorNumber"
    " SystemCallLog KillMode KillSignal RestartKillSignal FinalKillSignal WatchdogSignal SendSIGKILL SendSIGHUP"
    " TimeoutStopSec TimeoutAbortSec TimeoutStopFailureMode TimeoutStartFailureMode RestartSec RestartSteps"
    " RestartMaxDelaySec RestartMode RestartPreventExitStatus RestartForceExitStatus ExecReload ExecReloadPost"
    # a oneshot service ends with its command
    " RuntimeMaxSec RuntimeRandomizedExtraSec GuessMainPID NotifyAccess FileDescriptorStoreMax NonBlocking"
    " StartLimitInterval StartLimitBurst"
)
_FREE_UNIT = (
    "Description Documentation SourcePath CollectMode AllowIsolate IgnoreOnIsolate StartLimitInterval"
    " StartLimitIntervalSec OnFailure OnFailureJobMode OnFailureIsolate JobTimeoutAction JobTimeoutRebootArgument"
    " FailureActionExitStatus SuccessActionExitStatus RebootArgument PropagatesReloadTo ReloadPropagatedFrom"
    # what is wanted may fail, and what is stopped along with ours had its settings written
    " Wants Upholds PartOf StopPropagatedFrom PropagatesStopTo WantsMountsFor"
)

_SERVICE: dict[str, Test] = (
    dict.fromkeys(_FREE_SERVICE.split(), _any)
    | dict.fromkeys(("ExecCondition", "ExecStartPre"), _is_no_hurdle)
    | dict.fromkeys(("ExecStartPost", "ExecStop", "ExecStopPost"), _is_mild)
    | dict.fromkeys(("StandardOutput", "StandardError"), _output)
    | dict.fromkeys(("Environment", "PassEnvironment"), _environment)
    | dict.fromkeys(("User", "Group"), _one_of("", "root", "0"))
    | dict.fromkeys(("ReadWritePaths", "ReadWriteDirectories"), _are_there_and_some)
    | dict.fromkeys(
        ("ReadOnlyPaths", "ReadOnlyDirectories", "InaccessiblePaths", "InaccessibleDirectories"), _are_not_used
    )
    | {"WorkingDirectory": _are_there}
    | dict.fromkeys(("MemoryMax", "MemoryHigh", "MemoryLimit", "LimitAS", "LimitDATA"), _at_least(_ENOUGH_BYTES))
    | dict.fromkeys(("TasksMax", "LimitNPROC"), _at_least(_ENOUGH_TASKS))
    | {
        "UnsetEnvironment": _none_of("PATH"),
        "LimitNOFILE": _at_least(_ENOUGH_FILES),
        "Type": _one_of("", "oneshot"),
        "RemainAfterExit": _one_of(*YES),
        "Restart": _one_of("", "no", "on-failure", "on-abnormal", "on-abort", "on-watchdog"),
        "SuccessExitStatus": _all_of("0", "4"),
        "TimeoutStartSec": _is_long,
        "RootDirectory": _one_of("", "/"),
        "UMask": _one_of("", "022", "0022"),
        "StandardInput": _one_of("", "null"),
        "CPUAffinity": _cpus,
        "CPUSchedulingPolicy": _one_of("", "other", "batch"),
        "DevicePolicy": _one_of("", "auto"),
        "ProcSubset": _one_of("", "all"),
        "ProtectProc": _one_of("", "default", "invisible"),  # root sees every process
        "ProtectSystem": _one_of(*NO, *YES, "full"),
        "ProtectHome": lambda service, value: value == "read-only" or _hides(*_HOMES)(service, value),
        "PrivateTmp": _hides(*_TEMPORARY),
    }
    | dict.fromkeys(
        (
            *("DynamicUser", "PrivateUsers", "PrivateDevices", "PrivateNetwork", "PrivatePIDs", "PrivateBPF"),
            *("ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectClock"),
            *("ProtectControlGroups", "MemoryDenyWriteExecute", "RestrictRealtime"),
            *("RootEphemeral", "RootDirectoryStartOnly", "PermissionsStartOnly", "MountAPIVFS", "WatchdogSec"),
        ),
        _OFF,
    )
)  # fmt: skip
_UNIT: dict[str, Test] = (
    dict.fromkeys(_FREE_UNIT.split(), _any)
    | dict.fromkeys(("Requires", "Requisite", "BindsTo"), _all_of(*_REACHED))
    | dict.fromkeys(("SuccessAction", "FailureAction", "StartLimitAction"), _one_of("", "none"))
    | dict.fromkeys(("JobTimeoutSec", "JobRunningTimeoutSec"), _is_long)
    | dict.fromkeys(("RefuseManualStart", "RefuseManualStop", "StopWhenUnneeded"), _OFF)
    | {
        "After": _none_of(*_LATER),
        "Before": _none_of(*_EARLIER),
        "Conflicts": _all_of("shutdown.target"),
        "RequiresMountsFor": _all_of("/", "/etc", "/usr", "/proc", "/sys"),
        "StartLimitBurst": _none_of("0"),
        "DefaultDependencies": _one_of("", *YES),
    }
)
# What the manager gives to every service.
_MANAGER: dict[str, Test] = {
    "DefaultEnvironment": _environment,
    "CapabilityBoundingSet": _one_of("~"),  # all of them; the services get no others
    **{f"Default{key}": test for key, test in _SERVICE.items() if key.startswith("Limit") or key == "TasksMax"},
}
MANAGERS_KEYS = frozenset(_MANAGER)
_HARMLESS = {"Service": _SERVICE, "Unit": _UNIT, "Manager": _MANAGER}
_ALIASES = {"TimeoutSec": "TimeoutStartSec", "ReadWriteDirectories": "ReadWritePaths"}
# Their assignments add up; of other keys of the table the last one counts.
_LISTS = (
    *("ExecCondition", "ExecStart", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost", "Environment"),
    *(
        "PassEnvironment",
        "UnsetEnvironment",
        "DefaultEnvironment",
        "SuccessExitStatus",
        "CPUAffinity",
    ),
    *("ReadWritePaths", "ReadWriteDirectories", "ReadOnlyPaths", "ReadOnlyDirectories"),
    *("InaccessiblePaths", "InaccessibleDirectories"),
    *("After", "Before", "Requires", "Requisite", "BindsTo", "Conflicts", "RequiresMountsFor"),
)
# Single values that an empty assignment takes back; of others systemd ignores an empty one.
_TAKEN_BACK = (
    *("User", "Group", "WorkingDirectory", "RootDirectory", "MemoryMax", "MemoryHigh", "TasksMax"),
    "CPUSchedulingPolicy",
)
# Empty, these take something from the service, and the word gives all of it back; systemd refuses a unit with the last.
_EMPTY_COUNTS = {"SuccessExitStatus": "4", "ReadWritePaths": "/", "DynamicUser": ""}
_START = ("Service", "ExecStart")


def not_harmless(root: Sysroot, said: Sequence[Said], unit: str, words: Sequence[str]) -> list[Said]:
    """The assignments in force that other files than `unit` make, and that may keep it from its work.

    `words` is the command that `unit` itself starts. Conditions and assertions are systemdunit.unmet()'s to judge.
    """
    own = {(one.section, one.key, one.value) for one in said if one.file == unit}
    unset = frozenset(name for one in in_force(said, "Service", "UnsetEnvironment") for name in one.value.split())
    counting = _counting(said, unit)
    service = Service(root, words, unset, _is_open(counting, words))
    others = [one for one in counting if one.file != unit and not _is_of_a_list(one)]
    guilty = [one for one in others if not _is_harmless(service, one, own)]
    return guilty + allowlists.taken_away(said, unit) + _of_start(service, said, unit)


def _is_open(counting: Sequence[Said], words: Sequence[str]) -> bool:
    """Does ProtectSystem= leave everything to be written, and ProtectHome= what the command names?"""
    values = {one.key: one.value.lower() for one in counting if one.section == "Service" and _is_single(one)}
    homes = any(word.startswith(_HOMES) for word in words)
    return values.get("ProtectSystem", "no") in NO and (not homes or values.get("ProtectHome", "no") in NO)


def _is_of_a_list(one: Said) -> bool:
    return one.section == "Service" and one.key in allowlists.KEYS


def requiring_links(root: Sysroot, name: str) -> list[str]:
    """The links beside a unit that have it start only where others do, which a boot may not reach."""
    links = files_in_force(root, unit_directories(f"{name}.requires"), "")
    required = (path for path in links if not root.readlink(path).endswith(NULL))
    return [path for path in required if path.rpartition("/")[2] not in _REACHED]


def _is_harmless(service: Service, one: Said, own: set[tuple[str, str, str]]) -> bool:
    table = _HARMLESS.get(one.section)
    if table is None or one.key.startswith(("X-", "Condition", "Assert")) or (one.section, one.key) == _START:
        return True
    if not one.value and _key(one) not in _EMPTY_COUNTS:
        return True
    test = table.get(_key(one))
    return (one.section, one.key, one.value) in own or (test is not None and test(service, one.value))


def _counting(said: Sequence[Said], unit: str) -> list[Said]:
    """What is in force: an empty assignment drops all before it but dependencies; of single values the last counts."""
    found: list[Said] = []
    own = [one for one in said if one.file == unit]
    for one in said:
        key, is_single = _key(one), _is_single(one)
        if not one.value and (
            one.section == "Unit" or (is_single and key not in _TAKEN_BACK and key not in _EMPTY_COUNTS)
        ):
            continue
        if is_single or not one.value:
            found = [old for old in found if (old.section, _key(old)) != (one.section, key)]
        found.append(one)
    return [one for one in found if one.value or not _is_given_back(one, found, _words_of_key(_key(one), own))]


def _is_given_back(empty: Said, found: Sequence[Said], needed: frozenset[str]) -> bool:
    """Do the assignments that count after an empty one give the service again what its own unit gave it?"""
    key = _key(empty)
    given = _words_of_key(key, found)
    return bool(given) and (_EMPTY_COUNTS.get(key) in given or (bool(needed) and needed <= given))


def _words_of_key(key: str, said: Sequence[Said]) -> frozenset[str]:
    """The words of a list; a path with its mark for one that may be missing is the path."""
    words = (word for one in said if _key(one) == key and one.section == "Service" for word in one.value.split())
    return frozenset(word.lstrip("-+") for word in words)


def _key(one: Said) -> str:
    return _ALIASES.get(one.key, one.key)


def _is_single(one: Said) -> bool:
    return _key(one) in _HARMLESS.get(one.section, {}) and _key(one) not in _LISTS


def _of_start(service: Service, said: Sequence[Said], unit: str) -> list[Said]:
    """Commands besides ours; where ours is started no more, every line that says so."""
    starts = in_force(said, *_START)
    others = [one for one in starts if _asked_for(words_of(one.value)) != _asked_for(service.words)]
    if others == starts:
        return [one for one in said if one.file != unit and (one.section, one.key) == _START]
    return [one for one in others if one.file != unit and not _is_mild(service, one.value)]


def _asked_for(words: Sequence[str]) -> tuple[str, frozenset[str], frozenset[str]]:
    """What a command of ours asks for: its program, its options before `apply` and after; their order is no matter."""
    start = list(words).index("apply") if "apply" in words else len(words)
    return words[0] if words else "", _options(words[1:start]), _options(words[start:])


def _options(words: Sequence[str]) -> frozenset[str]:
    found: list[str] = []
    for word in words:
        if word.startswith("-") or not found or "=" in found[-1]:
            found.append("--yes" if word == "-y" else word)
        else:
            found[-1] += f"={word}"
    return frozenset(found)
