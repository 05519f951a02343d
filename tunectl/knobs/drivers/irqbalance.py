"""irqbalance's ban list, in the file its service takes its environment from.

Source: irqbalance(1); cputree.c. Unset, it bans the isolated and nohz_full CPUs by itself; set, even
to nothing, it bans exactly what is listed. IRQBALANCE_BANNED_CPUS (a mask) is the older spelling.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.fix import Fix
from tunectl.host.environmentfiles import parse_environment_file
from tunectl.host.irqbalance import LIST, PATTERNS, is_meant_as_ban, read_configured_ban
from tunectl.knobs.codecs import satisfies
from tunectl.knobs.drivers.pseudofile import KERNEL_ISOLATED, kernel_isolated
from tunectl.knobs.row import Batch, Facts, Judgement, Knob, Step, View, if_readable
from tunectl.model import Outcome, Reading, State

FILES = ("etc/default/irqbalance", "etc/sysconfig/irqbalance")  # Debian, Red Hat


def with_ban(text: str, cpus: CpuSet) -> str:
    """The configuration with exactly this ban list: the last line that sets one is replaced, or one is added."""
    lines = text.removesuffix("\n").split("\n") if text else []
    old = [assignment for assignment in parse_environment_file(text) if is_meant_as_ban(assignment.name)]
    doomed = {number - 1 for assignment in old for number in range(assignment.line, assignment.last + 1)}
    place = old[-1].line - 1 if old and not old[-1].is_doubtful else len(lines)
    above = [line for at, line in enumerate(lines) if at < place and at not in doomed]
    below = [line for at, line in enumerate(lines) if at > place and at not in doomed]
    if not below and above and above[-1].endswith("\\"):
        above.append("")  # ours would be a part of that line
    return "\n".join([*above, f"{LIST}={format_cpulist(cpus)}", *below]) + "\n"


class BanFacts(NamedTuple):
    """The line of its unit that keeps the list from the daemon, and what ends that: apply writes only the list."""

    dropped: str
    ends: Fix


def judge_ban(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """The list that the daemon will be started with."""
    shown = knob.codec.show(reading.value), knob.codec.show(desired)
    if satisfies(knob.match, reading.value, desired):
        return Judgement(Outcome.COMPLIANT, *shown)
    if reading.facts is None:
        return Judgement(Outcome.DRIFTED, *shown, reading.reason or knob.why)
    found = reading.of_facts(BanFacts)
    reason = f"{found.dropped}: what the configuration bans does not reach the daemon"
    return Judgement(Outcome.DRIFTED, *shown, reason, found.ends, changeable=False)


class BanList:
    """The ban list as a CPU set; what is written is its union with what was banned before."""

    def _file(self, view: View) -> str | None:
        """The file that exists; where only the program is installed, the file that its distribution would use.

        OSError where that cannot be known: it must not pass for a host without irqbalance.
        """
        for path in FILES:
            if view.root.stands(path):
                return path
        if view.root.stands("usr/sbin/irqbalance"):
            return next((path for path in FILES if view.root.stands(path.rpartition("/")[0])), None)
        return None

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading; `write` is the union."""
        path = ""
        try:
            path = self._file(view) or ""
            if not path:
                yield Reading(knob.name, "", State.ABSENT, reason="irqbalance is not installed")
                return
            with view.root.noting() as denied:
                if view.root.exists(path):
                    view.root.read_text(path)
                reading = self._reading(knob, view, want)
        except OSError as error:
            what = f"/{path}" if path else "cannot tell whether irqbalance is installed"
            reason = f"{what}: {error.strerror}"
            yield Reading(knob.name, "", State.UNREADABLE, reason=reason, errno=error.errno)
            return
        yield if_readable(reading, denied)

    def _reading(self, knob: Knob, view: View, want: Any) -> Reading:
        ban = read_configured_ban(view.root)
        if ban.unread and ban.ends:  # what was denied, the caller knows
            return Reading(knob.name, "", State.UNREADABLE, reason=ban.unread, fix=ban.ends)
        if ban.problem:
            # irqbalance ignores what it cannot read: nothing is banned, and we may replace the line.
            return Reading(knob.name, "", State.READ, frozenset(), f"{ban.source}: {ban.problem}", write=want)
        automatic = kernel_isolated(view)
        value = automatic if ban.cpus is None else ban.cpus
        facts = BanFacts(ban.dropped, ban.ends) if ban.dropped else None
        return Reading(knob.name, "", State.READ, value, ban.ignored, write=want | automatic | value, facts=facts)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The file as a whole, then a restart of irqbalance if it runs."""
        for _, change in batch:
            path = self._file(view)
            assert path is not None
            content = with_ban(view.root.get_text(path), change.value)
            yield Step("file", path, content, (change,), commands=("restart-irqbalance",))

    def describe(self) -> tuple[str, ...]:
        """Either of the two files."""
        return tuple("/" + path for path in FILES)

    def reads(self) -> tuple[str, ...]:
        """Wherever a ban may be configured, and the CPUs that irqbalance bans by itself."""
        return (*PATTERNS, *KERNEL_ISOLATED)
