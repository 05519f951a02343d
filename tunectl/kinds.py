"""Kinds of commands: those of which another host's document says no more than the kind and what it is about. Pure.

Text of another host is never an instruction. A document names the kind of an action and its arguments, and whoever
reads it makes the command here, from arguments that are of their type. What a kind does is fixed here: none takes a
path, a program or a value that somebody else made up. What has no kind, or other arguments, is that host's own words.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec

from tunectl.command import Command, argv, as_data, quoted, write
from tunectl.cpulist import MAX_CPUS, format_cpulist, format_cpumask, parse_cpulist
from tunectl.errors import UsageError
from tunectl.installed import HOST_FILE

_P = ParamSpec("_P")
KINDS: dict[str, Callable[..., Command]] = {}
BOOT_WORDS = "boot-words"  # of an action that is no command: words for the kernel's command line
# What stands before `=` in a word that this tunectl asks for; bootloader/cmdline.py has the kernel's rule for each.
BOOT_ARGUMENTS = (
    *("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "skew_tick", "nosoftlockup", "tsc", "mitigations"),
    *("intel_pstate", "amd_pstate", "pcie_aspm", "threadirqs"),
)
LOAD_PROGRAM = "stress-ng"
_BOOT_WORD = re.compile(r"([a-z_]+)(?:=[\w,:.-]+)?", re.ASCII)
_OF_A_BOOT = ("move-thread", "move-interrupt", "move-workqueues", "calm-thread")
_UNIT = re.compile(r"[A-Za-z0-9][\w:.@\\-]*\.(?:service|scope|slice|mount|socket|swap)", re.ASCII)
_OURS = re.compile(r"tunectl-[a-z]+(?:@[\w.-]+)?\.(?:service|path)", re.ASCII)
_HOST_FILE = re.compile(r"/etc/tunectl/\w[\w.-]*\.toml", re.ASCII)  # where root alone may write
_LOAD = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)
_LONGEST_S = 86400
_MOST = 1 << 22  # pids, and numbers of interrupts: PID_MAX_LIMIT


def _kind(make: Callable[_P, Command]) -> Callable[_P, Command]:
    """The same, and what it makes says its kind and arguments."""
    name, signature = make.__name__.replace("_", "-"), inspect.signature(make)

    @functools.wraps(make)
    def made(*args: _P.args, **kwargs: _P.kwargs) -> Command:
        given = signature.bind(*args, **kwargs).arguments
        arguments = {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}
        return Command(make(*args, **kwargs).steps, name, arguments)

    KINDS[name] = made
    return made


def _fixed(name: str, command: Command) -> Callable[[], Command]:
    """A kind that is about nothing: its command is always the same."""
    made = Command(command.steps, name)

    def make() -> Command:
        return made

    KINDS[name] = make
    return make


apply = _fixed("apply", argv("sudo", "tunectl", "apply"))  # writes what the host file asks for
reboot = _fixed("reboot", argv("sudo", "reboot"))
probe_feed = _fixed("probe-feed", argv("sudo", "tunectl", "probe", "feed"))  # says which stage of a feed takes the time
install_load = _fixed("install-load", argv("sudo", "apt", "install", LOAD_PROGRAM))  # the program that makes the loads
# It then has the list of its configuration.
restart_irqbalance = _fixed("restart-irqbalance", argv("sudo", "systemctl", "restart", "irqbalance"))
# The target that the next boot goes to.
boot_to_multi_user = _fixed("boot-to-multi-user", argv("sudo", "systemctl", "set-default", "multi-user.target"))
update_grub = _fixed("update-grub", argv("sudo", "update-grub"))
# Of its own accord it only prints what it would write.
make_grub2_menu = _fixed("make-grub2-menu", argv("sudo", "grub2-mkconfig", "-o", "/boot/grub2/grub.cfg"))
swap_off = _fixed("swap-off", argv("sudo", "swapoff", "-a"))
smt_on = _fixed("smt-on", write("on", "/sys/devices/system/cpu/smt/control"))  # the second threads of all cores
mount_tracefs = _fixed("mount-tracefs", argv("sudo", "mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"))
mount_debugfs = _fixed("mount-debugfs", argv("sudo", "mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"))
# The kernel moves no pages between nodes.
stop_numa_balancing = _fixed("stop-numa-balancing", write("0", "/proc/sys/kernel/numa_balancing"))
stop_merging_pages = _fixed("stop-merging-pages", write("0", "/sys/kernel/mm/ksm/run"))  # of the same content
# The kernel measures no stacks.
stop_stack_tracer = _fixed("stop-stack-tracer", argv("sudo", "sysctl", "kernel.stack_tracer_enabled=0"))


@_kind
def propose(output: str) -> Command:
    """Writes a host file where there is none."""
    return argv("sudo", "tunectl", "propose", "--output", output)


@_kind
def preflight(loads: Sequence[str] = (), feed: bool = False, seconds: int = 0, intrude: bool = False) -> Command:
    """The question whether the host is ready, once more."""
    words = [*(["--load", ",".join(loads)] if loads else []), *(["--feed"] if feed else [])]
    words += ["--duration", str(seconds)] if seconds else []
    return argv("sudo", "tunectl", "preflight", *words, *(["--intrude"] if intrude else []))


@_kind
def probe_jitter(loads: Sequence[str] = ()) -> Command:
    """Says what interrupts each CPU."""
    return argv("sudo", "tunectl", "probe", "jitter", "--attribute", *(["--load", ",".join(loads)] if loads else []))


@_kind
def move_thread(tid: int, cpus: str) -> Command:
    """A thread to these CPUs, and no other."""
    return argv("sudo", "taskset", "-cp", cpus, str(tid))


@_kind
def move_interrupt(irq: int, cpus: str) -> Command:
    """An interrupt; the kernel has its thread, where it has one, follow."""
    return write(cpus, f"/proc/irq/{irq}/smp_affinity_list")


@_kind
def move_workqueues(cpus: str) -> Command:
    """The kernel's unbound work to these CPUs."""
    return write(format_cpumask(parse_cpulist(cpus)), "/sys/devices/virtual/workqueue/cpumask")


@_kind
def calm_thread(tid: int) -> Command:
    """A thread's real-time priority taken away."""
    return argv("sudo", "chrt", "-o", "-p", "0", str(tid))


@_kind
def confine_unit(unit: str, cpus: str, lasting: bool = False) -> Command:
    """A unit and all its threads to these CPUs."""
    words = ["set-property", *([] if lasting else ["--runtime"])]
    return argv("sudo", "systemctl", *words, of=(unit, f"AllowedCPUs={cpus}"))


@_kind
def restart_ours(service: str) -> Command:
    """A service of tunectl's own, started again."""
    return argv("sudo", "systemctl", "restart", of=[service])


@_kind
def confirm(change: str) -> Command:
    """A change that would go back stays; of a boot that is tried, every boot is like it from then on."""
    return argv("sudo", "tunectl", "confirm", change)


def boot_words(words: Sequence[str]) -> str:
    """What to do with words for a command line that tunectl does not write."""
    return f"put on the kernel command line: {' '.join(words)}"


def started(command: Command, invocation: Sequence[str]) -> Command:
    """The same command, where `tunectl` is started by these words: its program, and the options that name the host."""
    steps = []
    for step in command.steps:
        at = step.place
        ours = step.words[at] == "tunectl" and not "".join(step.words[at + 1 : at + 2]).startswith("--")  # once
        steps.append(step._replace(words=(*step.words[:at], *invocation, *step.words[at + 1 :])) if ours else step)
    options = {"options": list(invocation[1:])} if invocation[1:] and steps != list(command.steps) else {}
    return Command(steps, command.kind, {**command.arguments, **options})


def made_of(kind: object, arguments: object) -> Command | None:
    """The command of this kind; None where it is none of ours, or an argument is not of its type."""
    make = KINDS.get(kind) if isinstance(kind, str) else None
    if make is None or not isinstance(arguments, Mapping):
        return None
    given = dict(arguments)
    try:
        options = _options(given.pop("options", []))
        command = make(**{key: _ARGUMENTS[key](value) for key, value in given.items()})
    except (KeyError, TypeError, ValueError, UsageError):
        return None
    return started(command, ("tunectl", *options)) if options else command


def made_of_words(arguments: object) -> str:
    """What to do with another host's words for its command line; "" where one is not of ours."""
    words = arguments.get("words") if isinstance(arguments, Mapping) else None
    if not isinstance(words, list) or not words:
        return ""
    matches = [_BOOT_WORD.fullmatch(word) if isinstance(word, str) else None for word in words]
    known = all(match and match[1] in BOOT_ARGUMENTS for match in matches)
    return boot_words(words) if known else ""


def ends_with_the_boot(command: object) -> bool:
    """Is it about processes or masks, of which a reboot leaves none as it is?"""
    if not isinstance(command, Command):
        return False
    return command.kind in _OF_A_BOOT or (command.kind == "confine-unit" and not command.arguments.get("lasting"))


def is_ours(action: Mapping[str, Any]) -> bool:
    """Does an action ask for nothing but `apply` and what is around it: a host file, words for the boot, a reboot?"""
    return action.get("kind") in ("apply", "propose", "reboot", BOOT_WORDS)


def read(actions: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The `actions` of a document that somebody else may have written, with commands of our own making.

    Each has `command`, `decide` or, where this table makes nothing of it, `own_words`: what the host says.
    """
    for action in actions:
        rest = {"mends": list(map(as_data, action.get("mends") or ())), "reboot": bool(action.get("reboot"))}
        said = [str(action.get(key) or "") for key in ("command", "decide", "note")]
        kind, arguments = action.get("kind"), action.get("arguments", {})
        if command := made_of(kind, arguments):
            note = {"note": f"the host says: {quoted(said[2])}"} if said[2] else {}
            yield {"command": command, "kind": kind, **note, **rest}
        elif sentence := made_of_words(arguments) if kind == BOOT_WORDS else "":
            yield {"decide": sentence, "kind": kind, **rest}
        else:
            yield {"own_words": "; ".join(filter(None, said)), **rest}


def is_unit(name: str) -> bool:
    """May a unit of systemd have this name? A control group may have any."""
    return bool(_UNIT.fullmatch(name) or name == "-.slice")


def _number(most: int, value: object) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(value)
    return value


def _bool(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError(value)
    return value


def _cpus(value: object) -> str:
    if not isinstance(value, str) or not (cpus := parse_cpulist(value)) or max(cpus) >= MAX_CPUS:
        raise ValueError(value)
    return format_cpulist(cpus)


def _loads(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(value)
    return tuple(_matching(_LOAD, one) for one in value)


def _options(value: object) -> list[str]:
    """The host file that a command goes by, which is the host's own in any case, and nothing else."""
    if value == []:
        return []
    if not isinstance(value, list) or len(value) != 2 or value[0] != "--host":
        raise ValueError(value)
    return ["--host", _matching(_HOST_FILE, value[1])]


def _matching(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(value)
    return value


_ARGUMENTS: Mapping[str, Callable[[object], Any]] = {
    "tid": functools.partial(_number, _MOST),
    "irq": functools.partial(_number, _MOST),
    "cpus": _cpus,
    "unit": functools.partial(_matching, _UNIT),
    "service": functools.partial(_matching, _OURS),
    "loads": _loads,
    "feed": _bool,
    "lasting": _bool,
    "intrude": _bool,
    "seconds": functools.partial(_number, _LONGEST_S),
    "change": functools.partial(_matching, re.compile("[0-9a-f]{8}")),
    "output": functools.partial(_matching, re.compile(re.escape(HOST_FILE))),
}
