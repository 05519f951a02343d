"""What the owners of this host's configuration answer when they are asked, instead of a guess at what they would do.

A question writes nothing: each is a row of QUESTIONS, with the source that says so. It goes through host/run to a
program of root's by its absolute path, without a shell, in the C locale, for a limited time, and on the CPUs that this
process keeps to (cli/command.stay_off()). Each is asked once for each Sysroot. A recorded host answers with what
`tunectl snapshot` wrote down in the directory ANSWERS of the archive. The answer is None where nobody is there to ask
(a container, an older recording), and where the program failed; then what is declared in files decides alone.
"""

import shlex
from collections.abc import Mapping
from typing import NamedTuple

from tunectl.errors import TunectlError
from tunectl.host.sysroot import Sysroot

ANSWERS = "tunectl-answers"  # in a recording; no host has such a directory
SYSTEMD = "run/systemd/system"  # sd_booted(3): only systemd makes it, and only as the first process
_TIMEOUT_S = 5.0
_LARGEST = 1 << 20  # characters of an answer that is read


class Question(NamedTuple):
    """What is asked: the name of its answer in a recording, the command, and the file that says it can be asked."""

    name: str
    argv: tuple[str, ...]
    needs: str = ""


# Every unit that somebody asks for, in one batch: systemctl loads what is not loaded yet, and forgets it again.
UNITS = (
    *("tunectl-apply.service", "tunectl-latency.service", "tunectl-monitor.service"),
    *("tunectl-repair.service", "tunectl-repair.path"),
    # what ours waits for, and when a boot has settled
    *("local-fs.target", "systemd-modules-load.service", "systemd-sysctl.service", "systemd-udev-trigger.service"),
    *("tuned.service", "cpupower.service", "cpufrequtils.service", "loadcpufreq.service", "ksm.service"),
    *("sysfsutils.service", "multi-user.target"),
    *("irqbalance.service", "default.target"),
)
_PROPERTIES = (
    *("Names", "LoadState", "UnitFileState", "ActiveState", "Result", "ExecMainStatus", "Job", "NeedDaemonReload"),
    *("ConditionResult", "ConditionTimestampMonotonic", "AssertResult"),
    *("InactiveExitTimestampMonotonic", "ActiveEnterTimestampMonotonic"),
    *("EnvironmentFiles", "Environment"),
)
# systemctl(1), show: org.freedesktop.DBus.Properties.GetAll of each unit, which changes none, and a property that is
# asked for by name is printed even if it is empty (src/systemctl/systemctl-show.c). No known unit is "not-found".
SHOW = Question(
    "systemctl-show", ("/usr/bin/systemctl", "show", f"--property={','.join(_PROPERTIES)}", "--", *UNITS), SYSTEMD
)
# systemctl(1), --version: "systemd 255 (255.4-1)", and a line of what it was built with. It asks nobody.
VERSION = Question("systemctl-version", ("/usr/bin/systemctl", "--version"))
# rpm-ostree(1), kargs: without an option it prints the line of the deployment that boots next
# (src/app/rpmostree-builtin-kargs.cxx), for which the daemon's GetDeploymentBootConfig reads, and begins no transaction
# (src/daemon/rpmostreed-os.cxx). Asked where one is staged: before the shutdown no entry has its line.
KARGS = Question("rpm-ostree-kargs", ("/usr/bin/rpm-ostree", "kargs"), "run/ostree/staged-deployment")
# systemd-system.conf(5), RuntimeWatchdogSec=; org.freedesktop.systemd1(5), RuntimeWatchdogUSec: "30s", or "0" for none.
WATCHDOG = Question("systemctl-watchdog", ("/usr/bin/systemctl", "show", "--property=RuntimeWatchdogUSec"), SYSTEMD)
QUESTIONS = (SHOW, VERSION, KARGS, WATCHDOG)  # what a snapshot writes down the answers to

# Variables of units that a recording may hold; any other may be a secret.
_HARMLESS_VARIABLES = ("IRQBALANCE_",)


class UnitState(NamedTuple):
    """What systemd says of a unit: properties of org.freedesktop.systemd1, by their D-Bus documentation."""

    load: str  # LoadState: "loaded", "not-found", "masked", "bad-setting", "error"
    file_state: str  # UnitFileState: "enabled", "disabled", "static", ...; "" where it has no file
    active: str  # ActiveState: "active", "inactive", "failed", "activating", "deactivating", "reloading"
    result: str  # Result: "success", "exit-code", ...
    status: int | None  # ExecMainStatus: the exit status of its last main process; 0 also where there was none
    has_job: bool  # Job: systemd is about to start or stop it
    needs_reload: bool  # NeedDaemonReload: its files are newer than what systemd has read
    condition: bool | None  # ConditionResult of the last start; None where none was tried in this boot
    asserted: bool | None  # AssertResult, the same way
    began_us: int  # InactiveExitTimestampMonotonic: when it last began to start, on the clock of this boot; 0: never
    entered_us: int  # ActiveEnterTimestampMonotonic: when it was last active; 0: never in this boot
    environment_files: tuple[str, ...]  # EnvironmentFiles, each once, as systemd has read it
    # Environment: NAME=value, without EnvironmentFiles; of a recording only irqbalance's own
    environment: tuple[str, ...]


def ask(root: Sysroot, question: Question) -> str | None:
    """What the owner answers, its standard output; None where there is no answer. Asked once in a look."""
    return root.once(f"answer of {question.name}", lambda: _ask(root, question))


def read_unit_state(root: Sysroot, unit: str) -> UnitState | None:
    """What systemd says of one of UNITS; None where it does not say."""
    return root.once("states of units", lambda: parse_states(ask(root, SHOW) or "")).get(unit)


def _ask(root: Sysroot, question: Question) -> str | None:
    if not root.live:
        return root.get_text(f"{ANSWERS}/{question.name}") or None
    if not all(root.exists(path.lstrip("/")) for path in (question.needs, question.argv[0]) if path):
        return None
    from tunectl.host.run import run  # subprocess is not cheap to import, and a container asks nobody

    try:
        done = run(question.argv, timeout_s=_TIMEOUT_S)
    except TunectlError:
        return None
    return done.stdout if done.returncode == 0 and len(done.stdout) <= _LARGEST else None


def answer_to_record(root: Sysroot, question: Question) -> str | None:
    """The answer as a recording may hold it: without the variables of services, which may be secret."""
    answer = ask(root, question)
    if answer is None or question is not SHOW:
        return answer
    kept = []
    for line in answer.splitlines():
        key, _, value = line.partition("=")
        if line and key not in _PROPERTIES:  # a variable may hold line ends: its later lines begin with no property
            continue
        harmless = (word for word in _words(value) if word.startswith(_HARMLESS_VARIABLES))
        kept.append(f"{key}={' '.join(map(shlex.quote, harmless))}" if key == "Environment" else line)
    return "\n".join(kept) + "\n"


def parse_states(text: str) -> dict[str, UnitState]:
    """The units of a `systemctl show`, by each of their names. Pure.

    One property a line, and an empty line between two units.
    """
    found: dict[str, UnitState] = {}
    for block in text.split("\n\n"):
        properties: dict[str, list[str]] = {}
        for line in block.splitlines():
            key, _, value = line.partition("=")
            properties.setdefault(key, []).append(value)  # each file of EnvironmentFiles has a line of its own
        for name in _words(" ".join(properties.get("Names", ()))):
            found[name] = _state_of(properties)
    return found


def _words(value: str) -> tuple[str, ...]:
    """The members of a list, quoted for a shell (systemd's src/shared/bus-print-properties.c); none where it is cut."""
    try:
        return tuple(shlex.split(value))
    except ValueError:
        return ()


def _state_of(properties: Mapping[str, list[str]]) -> UnitState:
    def text(key: str) -> str:
        return properties.get(key, [""])[0]

    def number(key: str) -> int:
        return int(text(key)) if text(key).isdecimal() else 0

    def verdict(key: str) -> bool | None:
        return text(key) == "yes" if number("ConditionTimestampMonotonic") else None

    files = (line.rpartition(" (ignore_errors=")[0] for line in properties.get("EnvironmentFiles", ()))
    return UnitState(
        load=text("LoadState"),
        file_state=text("UnitFileState"),
        active=text("ActiveState"),
        result=text("Result"),
        status=number("ExecMainStatus") if text("ExecMainStatus") else None,
        has_job=text("Job") not in ("", "0"),
        needs_reload=text("NeedDaemonReload") == "yes",
        condition=verdict("ConditionResult"),
        asserted=verdict("AssertResult"),
        began_us=number("InactiveExitTimestampMonotonic"),
        entered_us=number("ActiveEnterTimestampMonotonic"),
        environment_files=tuple(filter(None, files)),
        environment=_words(text("Environment")),
    )
