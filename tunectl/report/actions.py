"""What to do about findings: each thing once, in the order to do it. Pure; every page and document draws this one list.

A fix is a text for people. Where it begins with a program it can be typed as it stands, up to the words that explain
it. Anything else is for the operator to decide, or to do by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from tunectl.model import Finding, Outcome, cost, parse_target
from tunectl.report.findings import generalised, name_of
from tunectl.verdict import fails_gate

APPLY = "sudo tunectl apply"
REBOOT = "sudo reboot"
_PROGRAMS = frozenset(
    {"chrt", "echo", "kill", "rm", "rmdir", "sudo", "swapoff", "sysctl", "systemctl", "taskset", "tunectl"}
)
_OPEN = (Outcome.DRIFTED, Outcome.PENDING_REBOOT, Outcome.UNREADABLE)
_SHELL_WORD = r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+"
_NAMED = rf"(?: --\w+ {_SHELL_WORD})*"  # the options that name the host, before the command's name
_APPLY = re.compile(
    r"(?:(?P<head>.+?)(?: && |; |[,;:] then:? ))??"
    rf"(?:(?P<propose>sudo tunectl{_NAMED} propose --output {_SHELL_WORD}) && )?"
    rf"(?:sudo )?(?P<apply>tunectl{_NAMED} apply)(?! --)(?:[;,:(].*)?",
    re.DOTALL,
)
_REBOOT = re.compile(r"(?:(?P<head>.+?), (?:then|and) )?reboot(?P<how> .+)?", re.DOTALL)
_WORD = re.compile(r"add (.+) to the kernel command line yourself", re.DOTALL)
# Where a command ends and its explanation begins: at a mark that is followed by a word which is no program.
_EXPLAINED = re.compile(r"(?:; |: |, )(?!(?:" + "|".join(sorted(_PROGRAMS)) + r")\b)(?=[a-z`])")
_NEXT = re.compile(r"; (?=(?:" + "|".join(sorted(_PROGRAMS)) + r")\b)")
_BOOT_WITH = re.compile(r"boot with (?P<name>\w+)=(?P<flag>\w+)")
_PLAIN = re.compile(r"[\w@%+:,./-]+")  # a word that a shell takes as it stands
MAX_COMMANDS = 3  # more of them on a page are one loop
_QUOTED = re.compile(r"(?<!\w)'[^']*'|\"[^\"]*\"")  # an apostrophe within a word quotes nothing


_SEARCH = "sudo tunectl probe jitter --attribute: says what interrupts each CPU"


class Rank(IntEnum):
    """The order of doing: what is done later may need what was done before."""

    PROPOSE = 0  # the host file, which says what all the others are about
    FIRST = 1  # what decides the next boot, and what keeps apply from writing
    COMMAND = 2
    APPLY = 3
    WORDS = 4  # of a kernel command line that is not tunectl's to write
    REBOOT = 5
    DECISION = 6
    SEARCH = 7  # what only a measurement can tell


class Step(NamedTuple):
    """One thing that a fix asks for. `command` is typed as it stands; without one, `decide` says what to decide."""

    rank: Rank
    command: str = ""
    decide: str = ""
    note: str = ""  # what else the fix says


def steps_of(fix: str, *, first: bool = False) -> Iterator[Step]:
    """What a fix asks for, in its own order. `first`: it is about the next boot, or about the journal."""
    applied, booted = _APPLY.fullmatch(fix), _REBOOT.fullmatch(fix)
    head = (applied or booted or {"head": fix})["head"]
    if head and (words := _WORD.fullmatch(head)):
        yield Step(Rank.WORDS, decide=words[1])
    elif head:
        yield from _parts(head, Rank.FIRST if first or applied else None)
    if applied:
        if applied["propose"]:
            yield Step(Rank.PROPOSE, applied["propose"])
        yield Step(Rank.APPLY, f"sudo {applied['apply']}")
    if booted:
        yield Step(Rank.REBOOT, REBOOT, note=(booted["how"] or "").strip())


def _parts(text: str, rank: Rank | None) -> Iterator[Step]:
    """Several things to do, one after the other: each command is a step of its own."""
    begin = 0
    for end in [*(found.start() for found in _NEXT.finditer(_hidden(text))), len(text)]:
        yield _step(text[begin:end].removeprefix("; "), rank)
        begin = end


def _hidden(text: str) -> str:
    """The text without what stands in quotes, at the same places."""
    return _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text)


def _step(text: str, rank: Rank | None) -> Step:
    if text.split(" ", 1)[0] not in _PROGRAMS:
        return Step(Rank.DECISION if rank is None else rank, decide=text)
    end = _EXPLAINED.search(_hidden(text))
    command, note = (text[: end.start()], text[end.end() :]) if end else (text, "")
    if note.startswith("then ") and note.split(" ")[1] in _PROGRAMS:
        command, note = f"{command} && {note.removeprefix('then ')}", ""
    return Step(Rank.COMMAND if rank is None else rank, command, note=note)


def actions_of(
    findings: Iterable[Finding], *, over_budget: bool = False, unproved: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """[{command | decide, note, mends: [targets], reboot}], in the order to do them.

    `note` is there where the fix says more; `mends` has the worst target first; `reboot`: some of it holds only after
    a reboot. `over_budget`: the probe measured more than the budget allows, which a setting need not explain.
    `unproved`: what is to be done so that the probe can be judged.
    """
    gathered: dict[Step, dict[str, Finding]] = {}
    every = tuple(findings)
    booted = {one.knob: one for one in every if one.knob.startswith("boot.") and _waits(one)}
    for finding in every:
        for step in _covered(_steps(finding), booted):
            gathered.setdefault(step, {})[finding.target] = finding
    actions = [(step, _worst_first(mends.values())) for step, mends in _merged(gathered).items()]
    actions.sort(key=_place)
    made = [_body(step, mends) for step, mends in actions]
    made += map(_of_the_budget, unproved)
    if over_budget:
        made.append(_of_the_budget(_SEARCH))
    return made


def _of_the_budget(text: str) -> dict[str, Any]:
    step = _step(text, Rank.SEARCH)
    what = {"command": step.command} if step.command else {"decide": step.decide}
    return {**what, **({"note": step.note} if step.note else {}), "mends": ["probe.budget"], "reboot": False}


def _place(action: tuple[Step, Sequence[Finding]]) -> tuple[int, bool, int, int]:
    """What is known to be wrong comes before what could not be found out."""
    step, mends = action
    blind = all(finding.outcome is Outcome.UNREADABLE for finding in mends)
    return step.rank, blind, cost(mends[0].severity), -len(mends)


def _steps(finding: Finding) -> Iterator[Step]:
    if not (finding.outcome in _OPEN or fails_gate(finding)) or not finding.fix:
        return
    boots = finding.knob.startswith("boot.")
    for step in steps_of(finding.fix, first=boots or finding.knob == "journal"):
        alike = generalised(step.decide, finding.instance)
        yield step._replace(decide=alike) if step.rank is Rank.DECISION else step
    if _waits(finding):
        yield Step(Rank.REBOOT, REBOOT)


def _covered(steps: Iterable[Step], booted: Mapping[str, Finding]) -> Iterator[Step]:
    """A decision to boot with an argument that is on the list already is what its own finding asks for."""
    for step in steps:
        asked = _BOOT_WITH.match(step.decide)
        own = booted.get(f"boot.{asked['name']}") if asked else None
        says = own and asked and asked["flag"] in str(own.desired)
        yield from (_steps(own) if own and says else (step,))


def _waits(finding: Finding) -> bool:
    """Is it a boot argument that this boot has not?"""
    points = finding.points or {}
    return finding.knob.startswith("boot.") and (not points or points.get("this_boot") != points.get("asked"))


def _merged(gathered: Mapping[Step, Mapping[str, Finding]]) -> dict[Step, dict[str, Finding]]:
    """One reboot; and one step for all arguments that somebody has to write into a boot loader's file himself."""
    made: dict[Step, dict[str, Finding]] = {}
    how = "; ".join(step.note for step in gathered if step.rank is Rank.REBOOT and step.note)
    words = [step.decide for step in gathered if step.rank is Rank.WORDS]
    several = f"these {len(words)} words" if len(words) > 1 else "this word"
    one = {
        Rank.WORDS: Step(Rank.WORDS, decide=f"put {several} on the kernel command line yourself: {' '.join(words)}"),
        Rank.REBOOT: Step(Rank.REBOOT, REBOOT, note=how),
    }
    for step, mends in gathered.items():
        made.setdefault(one.get(step.rank, step), {}).update(mends)
    return made


def _worst_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: cost(finding.severity))


def _body(step: Step, mends: Sequence[Finding]) -> dict[str, Any]:
    what = {"command": step.command} if step.command else {"decide": _decide(step, mends)}
    waits = step.rank in (Rank.WORDS, Rank.REBOOT) or any(map(_waits, mends))
    return {
        **what,
        **({"note": step.note} if step.note else {}),
        "mends": [finding.target for finding in mends],
        "reboot": waits,
    }


def _decide(step: Step, mends: Sequence[Finding]) -> str:
    """What is to be decided; of one target in the fix's own words, of several with N for each."""
    if step.rank is not Rank.DECISION or len(mends) > 1:
        return step.decide
    said = [one.decide for one in steps_of(mends[0].fix)]
    return next(one for one in said if generalised(one, mends[0].instance) == step.decide)


class Todo(NamedTuple):
    """An action for people: commands that differ only in what they name are one."""

    commands: tuple[str, ...]  # empty where there is something to decide
    decide: str
    note: str
    mends: tuple[str, ...]
    reboot: bool

    @property
    def typed(self) -> tuple[str, ...]:
        """The same commands; many that differ in one word are one loop, which is whole on one line."""
        words = [command.split(" ") for command in self.commands]
        if len(words) <= MAX_COMMANDS or len({len(one) for one in words}) > 1:
            return self.commands
        differ = [place for place, column in enumerate(zip(*words, strict=True)) if len(set(column)) > 1]
        if len(differ) != 1 or not all(_PLAIN.fullmatch(one[differ[0]]) for one in words):
            return self.commands
        each = " ".join(dict.fromkeys(one[differ[0]] for one in words))
        body = " ".join("$each" if place == differ[0] else word for place, word in enumerate(words[0]))
        return (f"for each in {each}; do {body}; done",)

    @property
    def said(self) -> str:
        """`mends 14: mm.thp_enabled, irq.affinity[24,27-30], …`"""
        verb = "puts in force" if self.commands == (REBOOT,) else "mends" if self.mends != ("probe.budget",) else "for"
        return (
            f"{verb} {len(self.mends)}: {', '.join(self.names())}" if len(self.mends) > 1 else f"{verb} {self.mends[0]}"
        )

    def names(self, limit: int = 6) -> list[str]:
        """The targets knob by knob, as many as fit a line or two."""
        knobs: dict[str, list[str]] = {}
        for target in map(parse_target, self.mends):
            knobs.setdefault(target.knob, []).append(target.instance)
        named = [name_of(knob, instances, 4) for knob, instances in knobs.items()]
        more = len(named) - limit
        return [*named[:limit], f"and {more} more"] if more > 1 else named


def todo(actions: Iterable[Mapping[str, Any]]) -> list[Todo]:
    """A document's `actions`; neighbours with the same program and the same note become one."""
    made: list[Todo] = []
    for action in actions:
        command = str(action.get("command") or "")
        one = Todo(
            (command,) if command else (),
            str(action.get("decide") or ""),
            str(action.get("note") or ""),
            tuple(map(str, action.get("mends") or ())),
            bool(action.get("reboot")),
        )
        if made and command and _alike(made[-1], one):
            before = made.pop()
            mends = tuple(dict.fromkeys(before.mends + one.mends))
            one = one._replace(commands=before.commands + one.commands, mends=mends)
        made.append(one)
    return made


def _alike(before: Todo, one: Todo) -> bool:
    """The same program for other targets of the same knob, with the same explanation."""
    if not before.commands or (before.note, before.reboot) != (one.note, one.reboot):
        return False
    programs = {command.removeprefix("sudo ").split(" ", 1)[0] for command in (*before.commands, *one.commands)}
    return (
        len(programs) == 1
        and programs != {"tunectl"}
        and {parse_target(name).knob for name in before.mends + one.mends} == {parse_target(one.mends[0]).knob}
    )
