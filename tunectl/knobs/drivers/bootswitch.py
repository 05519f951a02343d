"""A switch of the kernel command line that is on unless somebody turned it off: it is judged, and never written.

Source: Documentation/admin-guide/kernel-parameters.txt; lib/kstrtox.c, kstrtobool().
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tunectl.bootloader.cmdline import kernel_args, parse_cmdline
from tunectl.bootloader.grubsettings import configured
from tunectl.knobs.drivers.bootargs import boot_of
from tunectl.knobs.row import Batch, Facts, Judgement, Knob, Step, View
from tunectl.model import Outcome, Reading, State

_ON = re.compile(r"[yYtT1]|[oO][nN]")
_OFF = re.compile(r"[nNfF0]|[oO][fF]")


class SwitchFacts(NamedTuple):
    """The next boot, None where it is not known; and where the word stands that turns the switch off."""

    next: bool | None
    word: str
    place: str  # FILE:LINE with a leading slash, "" where no line is known


class BootSwitch(NamedTuple):
    """One switch, by its key."""

    key: str

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading: what this boot has."""
        try:
            line = view.root.read_text("proc/cmdline")
        except OSError as error:
            yield Reading(knob.name, "", State.UNREADABLE, reason=f"/proc/cmdline: {error.strerror}", errno=error.errno)
            return
        upcoming = boot_of(view).next
        point = upcoming.points[0] if upcoming and upcoming.points else None
        after = None if point is None or point.line is None else self._is_on(point.line)[0]
        now, word = self._is_on(line)
        if after is False and point and point.line:
            word = self._is_on(point.line)[1]
        place = self._place(view, word) if word else ""
        yield Reading(knob.name, "", State.READ, now, facts=SwitchFacts(after, word, place))

    def _is_on(self, line: str) -> tuple[bool, str]:
        """(is it on, the word that says otherwise): the last word that the kernel understands counts."""
        state, word = True, ""
        for arg in kernel_args(parse_cmdline(line)):
            if arg.key == self.key and arg.value and (_ON.match(arg.value) or _OFF.match(arg.value)):
                state = bool(_ON.match(arg.value))
                word = "" if state else f"{arg.key}={arg.value}"
        return state, word

    def _place(self, view: View, word: str) -> str:
        if not view.root.exists("etc/default/grub"):
            return ""
        placed = configured(view.root).placed
        return next((where for arg, where in placed if f"{arg.key}={arg.value}" == word and where.startswith("/")), "")

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """None: the word is the operator's own."""
        yield from ()

    def describe(self) -> tuple[str, ...]:
        """The command line."""
        return ("/proc/cmdline",)

    def reads(self) -> tuple[str, ...]:
        """What this boot had; the boot loader's files are those of the boot arguments."""
        return ("proc/cmdline",)


def judge_switch(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """On in this boot, and in the next as far as that is known."""
    found: SwitchFacts = reading.facts
    if not desired or (reading.value and found.next is not False):
        return Judgement(Outcome.COMPLIANT, knob.codec.show(reading.value), knob.codec.show(desired))
    shown = knob.codec.show(reading.value), knob.codec.show(desired)
    if not reading.value and found.next:
        reason = f"this boot had {found.word}, and the next will not"
        return Judgement(Outcome.PENDING_REBOOT, *shown, reason, "reboot", changeable=False)
    when = "in force now, but the next boot will have" if reading.value else "this boot had"
    reason = f"{when} {found.word}{f' ({found.place})' if found.place else ''}: {knob.why}"
    return Judgement(Outcome.DRIFTED, *shown, reason, _fix(found, reading.value), changeable=False)


def _fix(found: SwitchFacts, now: bool) -> str:
    file = found.place.rpartition(":")[0]
    end = "" if now else ", then reboot"
    if file and re.fullmatch(r"[\w=]+", found.word) and re.fullmatch(r"[\w./-]+", file):
        return f"sudo sed -i 's/ *{found.word}//' {file} && sudo update-grub{end}"
    return f"take {found.word} out of the kernel command line, where your boot loader has it{end}"
