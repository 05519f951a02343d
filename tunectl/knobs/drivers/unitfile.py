"""The systemd service that applies the host file at every boot: a unit file, and the link that enables it.

Source: systemd.unit(5), systemd.service(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import patterns_of
from tunectl.host.systemdunit import (
    RELOAD,
    Said,
    in_force,
    is_wanted,
    mask_of,
    read_state,
    read_unit,
    taking_out,
    unmet,
    words_of,
)
from tunectl.knobs.drivers.dropins import not_harmless
from tunectl.knobs.row import Batch, Facts, Judgement, Knob, Step, View, if_readable
from tunectl.model import Outcome, Reading, State

_SYSTEM = "etc/systemd/system"
UNIT = f"{_SYSTEM}/tunectl-apply.service"
WRITTEN_BY_APPLY = "# Written by `tunectl apply`"  # how each file begins that is ours as a whole
LINK = f"{_SYSTEM}/multi-user.target.wants/tunectl-apply.service"
NOT_RUN, UNKNOWN = "not run", "unknown"


def render(invocation: tuple[str, ...]) -> str:
    """The unit. It runs after what sets sysctls, and before irqbalance may move an interrupt."""
    command = " ".join(quoted(word) for word in invocation)
    return f"""\
# Written by `tunectl apply`; `tunectl restore` removes it.
[Unit]
Description=Put the runtime settings of tunectl's host file in force
After=local-fs.target systemd-modules-load.service systemd-sysctl.service systemd-udev-trigger.service tuned.service
After=cpupower.service cpufrequtils.service loadcpufreq.service ksm.service sysfsutils.service
Before=irqbalance.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={command} apply --yes --runtime
# 4: everything is in force but what waits for the next boot
SuccessExitStatus=4

[Install]
WantedBy=multi-user.target
"""


def quoted(word: str) -> str:
    """One word of ExecStart= as systemd reads it back (systemd.service(5), "Command lines")."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if re.search(r"[\s'\"\\;]", word) else escaped


def _but_command(text: str) -> list[str]:
    return [line for line in text.split("\n") if not line.startswith("ExecStart=")]


def host_file_of(words: Sequence[str]) -> str:
    """The host file a command line names; "" for the default."""
    return next((after for word, after in pairwise(words) if word == "--host"), "")


def service_files(unit: str, companion: str) -> tuple[str, ...]:
    """Every file that says whether a service of ours runs, as shell patterns."""
    name = unit.rpartition("/")[2]
    return (unit, companion, *patterns_of(name), f"run/systemd/units/invocation:{name}")


class ServiceFacts(NamedTuple):
    """What ends a drift of a service of ours; "" where `apply` does. `apply` mends it only where it writes the file."""

    fix: str


def judge_service(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """Enabled, and nothing keeps it from running; where the journal knows of no apply in this boot, it did run."""
    value, fix = reading.value, reading.facts.fix
    if value == NOT_RUN and (facts.applied or facts.journal):  # the first apply of this boot was by hand
        value = desired
    if value == desired:
        return Judgement(Outcome.COMPLIANT, value, desired)
    return Judgement(Outcome.DRIFTED, value, desired, reading.reason or knob.why, fix, changeable=not fix)


class _Found(NamedTuple):
    """A state, why it is one, and what ends it where `apply` does not."""

    value: str
    reason: str = ""
    fix: str = ""


def read_service(knob: Knob, view: View, unit: str, companion: str, ours: str) -> Reading:
    """The state of a service of ours, as systemd will run it. `companion` is the file that has it started.

    `enabled`: both files are there, for this host file, and the program too. Otherwise `disabled`, `outdated` (it
    applies another host file, or is not `ours`, this version's unit, but for the command it starts), `broken`
    (its program is gone), `masked`, `overridden` (by a drop-in), `conditional` (a condition keeps it from starting),
    `failed` or `not run` in this boot. Unreadable where this user may not read or list one of its files.
    """
    with view.root.noting() as denied:
        found = _read_service(knob, view, unit, companion, ours)
    return if_readable(found, denied)


def _read_service(knob: Knob, view: View, unit: str, companion: str, ours: str) -> Reading:
    root, name = view.root, unit.rpartition("/")[2]
    try:
        text = root.read_text(unit) if root.exists(unit) else ""
    except OSError as error:
        if not mask_of(root, name):
            return Reading(knob.name, "", State.UNREADABLE, "", f"/{unit}: {error.strerror}", error.errno)
        text = ""
    found = _of_files(view, unit, companion, text, ours) or _of_this_boot(root, name) or _Found("enabled")
    if found.value == UNKNOWN:
        return Reading(knob.name, "", State.UNREADABLE, "", found.reason)
    return Reading(knob.name, "", State.READ, found.value, found.reason, facts=ServiceFacts(found.fix))


def _of_files(view: View, unit: str, companion: str, text: str, ours: str) -> _Found | None:
    """What its files say; None where they will have it run as we wrote it."""
    root, name = view.root, unit.rpartition("/")[2]
    if mask := mask_of(root, name):
        return _Found("masked", f"/{mask} masks it: it is never started", f"sudo rm /{mask} && sudo tunectl apply")
    is_started = is_wanted(root, name) if companion == LINK else root.exists(companion)
    if not text or not is_started:
        return _Found("disabled")
    said = read_unit(root, name)
    if said and (other := said[0].file) != unit:
        return _Found("overridden", f"systemd reads /{other} instead of /{unit}", f"sudo rm /{other} && {RELOAD}")
    return _of_command(view, said, unit, text, ours) or _of_conditions(root, said, unit)


def _of_command(view: View, said: list[Said], unit: str, text: str, ours: str) -> _Found | None:
    root = view.root
    own = [words_of(one.value) for one in in_force([one for one in said if one.file == unit], "Service", "ExecStart")]
    words = next(iter(own), [])
    if not words or "apply" not in words or (root.live and not root.exists(words[0].lstrip("/"))):
        return _Found("broken")
    if _but_command(text) != _but_command(ours) or host_file_of(words) != host_file_of(view.invocation):
        return _Found("outdated")
    guilty = not_harmless(root, said, unit, words)
    if guilty:
        what = ", ".join(f"{one} says {one.key}={one.value}" for one in guilty)
        return _Found(
            "overridden", f"it would not run as it was written: {what}", taking_out(guilty, unit.rpartition("/")[2])
        )
    return None


def _of_conditions(root: Sysroot, said: list[Said], unit: str) -> _Found | None:
    if all(one.file == unit for one in said if one.key.startswith(("Condition", "Assert"))):
        return None
    one, is_sure = unmet(root, said)
    if one is None or one.file == unit:
        return None
    where = f"{one} says {one.key}={one.value}"
    if not is_sure:
        return _Found(UNKNOWN, f"{where}: whether that holds cannot be judged here")
    return _Found("conditional", f"it is not started, because {where}", taking_out([one], unit.rpartition("/")[2]))


def _of_this_boot(root: Sysroot, name: str) -> _Found | None:
    """What became of it in this boot; None where it ran and ended well, or nobody can say."""
    if "@" in name or not root.exists("run/systemd/units"):
        return None
    again = f"sudo systemctl restart {name}"
    state = read_state(root, name)
    if state.get("ActiveState") == "failed":
        why = f"it failed in this boot (result {state.get('Result', '')}): `journalctl -b -u {name}` says why"
        return _Found("failed", why, again)
    # systemd makes this link when it starts a unit.
    if root.exists(f"run/systemd/units/invocation:{name}") or (root.live and state.get("Job", "?") != ""):
        return None
    return _Found(NOT_RUN, "it did not run in this boot, although its files have it started", again)


class ApplyService:
    """The service that multi-user.target starts."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading."""
        if not view.root.exists(_SYSTEM):
            yield Reading(knob.name, "", State.ABSENT, reason="this host has no /etc/systemd/system")
            return
        yield read_service(knob, view, UNIT, LINK, render(()))

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The unit, then the link, then systemd is told."""
        for _, change in batch:
            yield Step("file", UNIT, render(view.invocation or ("/usr/bin/tunectl",)), (change,))
            yield Step("link", LINK, "/" + UNIT, (change,), commands=("reload-systemd",))

    def describe(self) -> tuple[str, ...]:
        """The unit and the link."""
        return ("/" + UNIT, "/" + LINK)

    def reads(self) -> tuple[str, ...]:
        """Both, whatever else configures the unit, and that it was started in this boot."""
        return service_files(UNIT, LINK)
