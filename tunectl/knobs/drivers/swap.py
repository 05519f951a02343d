"""Swap as a switch that an operator turns: memory that is swapped out now has to fit again, which we cannot promise."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tunectl import kinds
from tunectl.command import all_of, as_data
from tunectl.fix import to_type
from tunectl.host.swap import SWAPS, Starter, read_starters, read_swaps
from tunectl.knobs.row import Batch, Facts, Judgement, Knob, Step, View, if_readable, missing, with_unseen
from tunectl.model import Outcome, Reading, State

OFF, ON, NEXT = "off", "on", "off until the next boot"


class SwapFacts(NamedTuple):
    """What is swapped to, what has it done at each boot, and what of that could not be read."""

    swaps: tuple[str, ...]
    starters: tuple[Starter, ...]
    denied: str


class Swap(NamedTuple):
    """The list of what is swapped to. Nothing is written."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading."""
        if gone := missing(knob.name, view, SWAPS):
            yield gone
            return
        try:
            swaps = read_swaps(view.root)
        except OSError as error:
            yield Reading(knob.name, "", State.UNREADABLE, reason=f"/{SWAPS}: {error.strerror}", errno=error.errno)
            return
        with view.root.noting() as denied:
            starters = read_starters(view.root)
        value = ON if swaps else NEXT if starters else OFF
        reading = Reading(knob.name, "", State.READ, value, facts=SwapFacts(tuple(swaps), tuple(starters), str(denied)))
        yield if_readable(reading, denied) if value == OFF else reading

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """None: swapping off may take minutes, and more memory than there is."""
        yield from ()

    def describe(self) -> tuple[str, ...]:
        """The kernel's list."""
        return (f"/{SWAPS}",)

    def reads(self) -> tuple[str, ...]:
        """The kernel's list. fstab may hold passwords of network shares, and is in no recording."""
        return (SWAPS,)


def judge_swap(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """Off now, and at the next boot."""
    found = reading.of_facts(SwapFacts)
    if reading.value == desired or desired != OFF:
        return Judgement(Outcome.COMPLIANT, reading.value, desired)
    reasons, commands = [], [command for starter in found.starters for command in starter.ends.commands]
    if found.swaps:
        swaps = ", ".join(map(as_data, found.swaps))
        reasons.append(f"pages may be swapped out to {swaps}, and to touch one again takes milliseconds")
        commands.append(kinds.swap_off())
    if found.starters:
        reasons.append(f"{', '.join(map(as_data, found.starters))} starts swapping at each boot")
    reason = with_unseen("; ".join(reasons), found.denied)
    return Judgement(Outcome.DRIFTED, reading.value, desired, reason, to_type(all_of(commands)), changeable=False)
