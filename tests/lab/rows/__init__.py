"""The rows of the sabotage matrix, by what they break: one file a kind of sabotage, as data.

    [round]               # what happens together; a round may have rows in several files
    each = { kind = … }   # what its rows in this file have in common
    rows = [{ kind = "UNIT", name = …, who = …, finds = […], says = […], plays = [innocent, breaks] }]

The keys are the fields of `Sabotage`, but `plays`: commands in the guest, the first of two makes the innocent host. A
command names others between « and » (`tests/lab/commands.py`), with ¦ between their words.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..commands import written
from ..sabotage import ARGUMENTS, Kind, Round, Sabotage

_FILES = ("settings", "nextboot", "keeping", "running", "losing", "journal", "detours", "starting", "topology")
# A shell command in the guest that fails where a row cannot be played, and the reason then.
_NEEDS = {
    "clock driver": ("test -d /sys/devices/system/cpu/cpu0/cpufreq", "no driver sets this machine's clocks"),
    "idle states": ("test -d /sys/devices/system/cpu/cpu0/cpuidle", "this machine has no idle states to choose from"),
    "GRUB": ("test -e /boot/grub/grub.cfg", "GRUB does not boot this host"),
    "huge pages": (
        "test -d /sys/kernel/mm/transparent_hugepage",
        "this kernel has no transparent huge pages (PREEMPT_RT)",
    ),
    "MSRs": ("modprobe -q msr", "this machine has no MSRs"),
    "interrupt threads": (
        "pgrep '^irq/'",
        "no interrupt has a thread here (they have with PREEMPT_RT, or threadirqs)",
    ),
    "function profiler": (
        "test -e /sys/kernel/tracing/function_profile_enabled",
        "this kernel was built without CONFIG_FUNCTION_PROFILER, as Debian's are",
    ),
    "fair server": (
        "test -d /sys/kernel/debug/sched/fair_server",
        "this kernel has no fair server (6.12 and later)",
    ),
    "two memory nodes": ("test -d /sys/devices/system/node/node1", "this machine has one memory node"),
    "two threads a core": (
        "grep -qx on /sys/devices/system/cpu/smt/control",
        "this machine has one thread a core",
    ),
}


def _sabotage(kind: str, finds: Sequence[str] = (), needs: str = "", **row: Any) -> Sabotage:
    *innocent, breaks = map(written, row.pop("plays"))
    command, reason = _NEEDS[needs] if needs else ("", "")
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Sabotage(
        Kind[kind],
        breaks=breaks,
        finds=tuple(target for name in finds for target in (ARGUMENTS if name == "ARGUMENTS" else (name,))),
        innocent="".join(innocent),
        decides=written(fields.pop("decides", "")),
        needs=command,
        lacks=reason,
        **fields,
    )


def _read(file: str) -> dict[str, Round]:
    document = tomllib.loads((Path(__file__).parent / f"{file}.toml").read_text())
    rounds = {}
    for name, table in document.items():
        shared = table.pop("each", {})
        rounds[name] = Round(tuple(_sabotage(**shared, **row) for row in table.pop("rows")), **table)
    return rounds


def _joined() -> dict[str, Round]:
    rounds: dict[str, Round] = {}
    for name, played in (item for file in _FILES for item in _read(file).items()):
        rounds[name] = rounds[name]._replace(rows=rounds[name].rows + played.rows) if name in rounds else played
    return rounds


ROUNDS = _joined()
FIRST = frozenset(row.name for played in _read("settings").values() for row in played.rows)
