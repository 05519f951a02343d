"""A switch of the kernel command line that is on unless somebody turned it off: it is judged, and never written.

Source: Documentation/admin-guide/kernel-parameters.txt; lib/kstrtox.c, kstrtobool().
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tunectl.bootloader.cmdline import Arg, kernel_args, parse_cmdline
from tunectl.fix import NOTHING, REBOOT, Fix
from tunectl.knobs.drivers.bootline import boot_lines, place_of, removal_fix
from tunectl.knobs.row import Batch, Facts, Judgement, Knob, Step, View
from tunectl.model import Outcome, Reading, State

_ON = re.compile(r"[yYtT1]|[oO][nN]")
_OFF = re.compile(r"[nNfF0]|[oO][fF]")


class SwitchFacts(NamedTuple):
    """The next boot, None where it is not known; and where the word stands that turns the switch off."""

    next: bool | None
    word: str
    place: str  # FILE:LINE with a leading slash, "" where no line is known
    fix: Fix  # takes the word out


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
        lines = boot_lines(view)
        after, later = (None, "") if lines.next is None else self.is_on(lines.next)
        now, word = self.is_on(parse_cmdline(line))
        word = later if after is False else word
        place = place_of(view, word) if word else ""
        fix = removal_fix(view, word, reboot=not now) if word else NOTHING
        yield Reading(knob.name, "", State.READ, now, facts=SwitchFacts(after, word, place, fix))

    def is_on(self, line: Sequence[Arg]) -> tuple[bool, str]:
        """(is it on, the word that says otherwise): the last word that the kernel understands counts."""
        state, word = True, ""
        for arg in kernel_args(line):
            if arg.key == self.key and arg.value and (_ON.match(arg.value) or _OFF.match(arg.value)):
                state = bool(_ON.match(arg.value))
                word = "" if state else f"{arg.key}={arg.value}"
        return state, word

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
    found = reading.of_facts(SwitchFacts)
    if not desired or (reading.value and found.next is not False):
        return Judgement(Outcome.COMPLIANT, knob.codec.show(reading.value), knob.codec.show(desired))
    shown = knob.codec.show(reading.value), knob.codec.show(desired)
    if not reading.value and found.next:
        reason = f"this boot had {found.word}, and the next will not"
        return Judgement(Outcome.PENDING_REBOOT, *shown, reason, REBOOT, changeable=False)
    when = "in force now, but the next boot will have" if reading.value else "this boot had"
    reason = f"{when} {found.word}{f' ({found.place})' if found.place else ''}: {knob.why}"
    return Judgement(
        Outcome.DRIFTED,
        *shown,
        reason,
        found.fix,
        changeable=False,
    )
