"""What to do about findings: each thing once, in the order to do it. Pure; every page and document draws this one list.

A fix says which of its tasks are typed as they stand. Anything else is for the operator to decide, or to do by hand.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from tunectl import kinds
from tunectl.command import Command, Step, quoted
from tunectl.fix import REBOOT, Fix, Kind, Task
from tunectl.model import Finding, Outcome, Severity, cost, parse_target
from tunectl.report.findings import generalised, name_of
from tunectl.verdict import fails_gate
from tunectl.wording import plural

_BY_ITSELF = (Kind.TYPE, Kind.DECIDE)  # not one task of many findings
_OPEN = (Outcome.DRIFTED, Outcome.PENDING_REBOOT, Outcome.UNREADABLE)
_PLAIN = re.compile(r"(?!-[neE]+$)[\w@%+:,./-]+", re.ASCII)  # a word that a shell takes as it stands
_EACH = "each_of_them"  # stands for `$each`, which nothing may quote
MAX_NAMES = 2  # of knobs that an action mends; of more it is said how many, and what they cost
MAX_COMMANDS = 3  # more of them on a page are one loop
_SEARCH = kinds.probe_jitter(), "says what interrupts each CPU"
_LOOK = kinds.preflight(), "what ran before the reboot is gone"
_PROBE = "probe.budget"  # what an action is for that no finding asks for


class Item(NamedTuple):
    """A task; `first` is what decides the next boot, and what keeps apply from writing."""

    task: Task
    first: bool = False


def actions_of(
    findings: Iterable[Finding],
    *,
    over_budget: bool = False,
    unproved: Iterable[Fix] = (),
    start: Sequence[str] = ("tunectl",),
) -> list[dict[str, Any]]:
    """[{command | decide, kind, arguments, note, mends: [targets], reboot}], in the order to do them.

    `kind` and `arguments` are there where another host's reader makes the same of them (tunectl/kinds.py), `note`
    where the fix says more; `mends` has the worst target first; `reboot`: some of it holds only after
    a reboot. `over_budget`: the probe measured more than the budget allows, which a setting need not explain.
    `unproved`: what is to be done so that the probe can be judged. `start`: the words that start tunectl, of what no
    finding asks for.
    """
    gathered: dict[Item, dict[str, Finding]] = {}
    every = tuple(findings)
    booted = {finding.knob: finding for finding in every if finding.knob.startswith("boot.") and _waits(finding)}
    for finding in every:
        for item in _items(finding, booted):
            gathered.setdefault(item, {})[finding.target] = finding
    merged = _merged(gathered)
    boots_anew = any(item.task.kind is Kind.REBOOT for item in merged)
    ended = {item: mends for item, mends in merged.items() if boots_anew and kinds.ends_with_the_boot(item.task.text)}
    actions = [
        (item, sorted(mends.values(), key=lambda one: cost(one.severity)))
        for item, mends in merged.items()
        if item not in ended
    ]
    actions.sort(key=_place)
    made = _once([_action(item.task, mends) for item, mends in actions])
    again = list(dict.fromkeys(finding.target for mends in ended.values() for finding in mends.values()))
    searches = [task for fix in unproved for task in fix.tasks]
    if boots_anew and (again or over_budget) and all(task.kind is Kind.DECIDE for task in searches):
        made.append(_document(_typed(start, *_LOOK), [*again, *([_PROBE] if over_budget else [])]))
    elif over_budget and not boots_anew:
        searches.append(_typed(start, *_SEARCH))
    return made + [_document(task, [_PROBE]) for task in searches]


def _typed(start: Sequence[str], command: Command, note: str) -> Task:
    return Task(Kind.TYPE, kinds.started(command, start), note)


def _place(action: tuple[Item, Sequence[Finding]]) -> tuple[bool, int, bool, int, int]:
    """By the order of the kinds; what is known to be wrong comes before what could not be found out."""
    item, mends = action
    kind = item.task.kind
    blind = all(finding.outcome is Outcome.UNREADABLE for finding in mends)
    return kind is not Kind.PROPOSE, 0 if item.first else kind, blind, cost(mends[0].severity), -len(mends)


def _items(finding: Finding, booted: Mapping[str, Finding]) -> Iterator[Item]:
    """What a finding's fix asks for; what is decided by an argument that is on the list already, that asks for."""
    if not (finding.outcome in _OPEN or fails_gate(finding)) or not finding.fix:
        return
    boots = finding.knob.startswith("boot.")
    first = boots or finding.knob == "journal" or any(task.kind is Kind.APPLY for task in finding.fix.tasks)
    for task in finding.fix.tasks:
        knob, flag = task.settled_by
        own = booted.get(knob)
        if own and flag in str(own.desired):
            yield from _items(own, {})
        elif (first and task.kind in _BY_ITSELF) or task.before_boot:
            yield Item(task, True)
        else:
            yield Item(_general(task, finding.instance))
    if _waits(finding):
        yield Item(REBOOT.tasks[0])


def _general(task: Task, instance: str) -> Task:
    """The task as it is for each target of a knob."""
    if task.kind is Kind.DECIDE:
        return task._replace(text=generalised(task.said, instance), note="")
    return task._replace(note="") if task.note and task.kind is Kind.APPLY else task


def _waits(finding: Finding) -> bool:
    """Is it a boot argument that this boot has not?"""
    points = finding.points or {}
    return finding.knob.startswith("boot.") and (not points or points.get("this_boot") != points.get("asked"))


def _merged(gathered: Mapping[Item, Mapping[str, Finding]]) -> dict[Item, dict[str, Finding]]:
    """One reboot; and one task for all arguments that somebody has to write into a boot loader's file himself."""
    made: dict[Item, dict[str, Finding]] = {}
    how = "; ".join(item.task.note for item in gathered if item.task.kind is Kind.REBOOT and item.task.note)
    words = [item.task for item in gathered if item.task.kind is Kind.WORDS]
    place = next((task.note for task in words if task.note), "")  # one host has one owner of its line
    one = {
        Kind.WORDS: Item(Task(Kind.WORDS, " ".join(task.text for task in words), place)),
        Kind.REBOOT: Item(REBOOT.tasks[0]._replace(note=how)),
    }
    lines: dict[str, list[Item]] = {}  # by the line of a file all that is to be decided about it
    for item in gathered:
        lines.setdefault(item.task.line, []).append(item)
    for item, mends in gathered.items():
        same = lines[item.task.line]
        whole = one.get(item.task.kind, item)
        if item.task.line and len(same) > 1:  # several findings say something of it
            text = "; ".join(dict.fromkeys(each.task.said for each in same))
            whole = Item(same[0].task._replace(text=text, note=""), any(each.first for each in same))
        made.setdefault(whole, {}).update(mends)
    return made


def _once(actions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same actions; those that read the same are one, at the place of the first of them."""
    made: dict[tuple[str, ...], dict[str, Any]] = {}
    for action in actions:
        same = made.setdefault(tuple(str(action.get(key, "")) for key in ("command", "decide", "note")), action)
        same["mends"] = list(dict.fromkeys([*same["mends"], *action["mends"]]))
        same["reboot"] = same["reboot"] or action["reboot"]
    return list(made.values())


def _action(task: Task, mends: Sequence[Finding]) -> dict[str, Any]:
    if task.kind is Kind.DECIDE and len(mends) == 1:  # in the fix's own words, and not with N for the target
        task = next((one for one in mends[0].fix.tasks if _general(one, mends[0].instance) == task), task)
    waits = task.kind in (Kind.WORDS, Kind.REBOOT) or any(map(_waits, mends))
    return _document(task, [finding.target for finding in mends], waits)


def _document(task: Task, mends: list[str], waits: bool = False) -> dict[str, Any]:
    rest = {"mends": [] if task.kind is Kind.PROPOSE else mends, "reboot": waits}
    if task.kind is Kind.DECIDE:
        return {"decide": task.said, **rest}
    if task.kind is Kind.WORDS:
        words = task.text.split(" ")
        place = f" ({task.note})" if task.note else ""
        known = {"kind": kinds.BOOT_WORDS, "arguments": {"words": words}}
        return {"decide": kinds.boot_words(words) + place, **known, **rest}
    if isinstance(task.text, Command) and task.text.kind:
        given = {"arguments": dict(task.text.arguments)} if task.text.arguments else {}
        rest = {"kind": task.text.kind, **given, **({"note": task.note} if task.note else {}), **rest}
    elif task.note:
        rest = {"note": task.note, **rest}
    return {"command": task.text, **rest}


def mended_by_apply(actions: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The targets for which `actions` ask for nothing but `apply`, words for the boot loader and a reboot."""
    alone: dict[str, bool] = {}
    for action in actions:
        for name in map(str, action.get("mends") or ()):
            alone[name] = kinds.is_ours(action) and alone.get(name, True)
    return frozenset(name for name, ours in alone.items() if ours)


class Todo(NamedTuple):
    """An action for people: commands that differ only in what they name are one."""

    commands: tuple[Command, ...]  # empty where there is something to decide
    decide: str
    note: str
    mends: tuple[str, ...]
    reboot: bool
    looks: bool = False  # it mends nothing, and says whether the rest did
    own_words: str = ""  # what another host asks for, of which this tunectl makes nothing

    @property
    def typed(self) -> tuple[str, ...]:
        """The same commands; many that differ in one word are one loop, which is whole on one line."""
        shapes = {tuple((len(step.words), step.fed is None) for step in command.steps) for command in self.commands}
        if len(self.commands) <= MAX_COMMANDS or len(shapes) > 1:
            return self.commands
        words = [
            [word for step in command.steps for word in (step.fed or "", *step.words)] for command in self.commands
        ]
        differ = [place for place, column in enumerate(zip(*words, strict=True)) if len(set(column)) > 1]
        if len(differ) != 1 or not all(_PLAIN.fullmatch(word[differ[0]]) for word in words):
            return self.commands
        each = " ".join(dict.fromkeys(word[differ[0]] for word in words))
        return (f"for each in {each}; do {_with_each(self.commands[0], differ[0])}; done",)

    @property
    def by_hand(self) -> str:
        """What is no command: something to decide, or words that are not ours and are not to look like ours."""
        own = "in the host's own words, not tunectl's; read before you type"
        return f"{own}: {self.own_words}" if self.own_words else f"by hand: {self.decide}" if self.decide else ""

    @property
    def boots(self) -> bool:
        """Is it the reboot?"""
        return self.commands == REBOOT.commands

    @property
    def is_search(self) -> bool:
        """Is it for a limit that was broken, of which no finding says why?"""
        return self.mends == (_PROBE,)

    @property
    def said(self) -> str:
        """What it mends, in words."""
        return self.weighed({})

    def weighed(self, severities: Mapping[str, Severity | None]) -> str:
        """`mends 43: 7 stall, 36 interrupt`, where it is known what its targets cost."""
        if not self.mends:
            return "so that there is something to apply"
        if self.is_search:
            return "for the limits of the probe"
        knobs: dict[str, list[str]] = {}
        for target in map(parse_target, self.mends):
            knobs.setdefault(target.knob, []).append(target.instance)
        settings = [knob for knob in knobs if not knob.startswith("check.")]
        if self.boots and settings:
            return f"puts {plural(len(settings), 'setting')} in force"
        verb = "looks again at" if self.looks else "mends"
        if len(knobs) <= MAX_NAMES:
            return f"{verb} {' and '.join(name_of(knob, instances, 4) for knob, instances in knobs.items())}"
        costs = Counter(severity for target in self.mends if (severity := severities.get(target)))
        parts = [f"{costs[severity]:,} {severity.value}" for severity in sorted(costs, key=cost)]
        return f"{verb} {len(self.mends):,}: {', '.join(parts)}" if parts else f"{verb} {len(self.mends):,} findings"


def _with_each(command: Command, place: int) -> str:
    """The command with `$each` in the place of one of its words, of which each step has first what it reads."""
    steps = []
    for step in command.steps:
        words = [step.fed or "", *step.words]
        if 0 <= place < len(words):
            words[place] = _EACH
        place -= len(words)
        steps.append(Step(tuple(words[1:]), None if step.fed is None else words[0]))
    return Command(steps).replace(_EACH, "$each")


def todo(actions: Iterable[Mapping[str, Any]]) -> list[Todo]:
    """What to do, of `actions_of` or of another's document as `kinds.read` gives it; neighbours that do the same to
    other targets become one.

    Only what this tunectl made is a command here: any other text is somebody's words.
    """
    made: list[Todo] = []
    for shared, group in groupby(map(_todo_of, actions), _shared):
        alike = list(group)
        if shared:
            commands = tuple(command for each in alike for command in each.commands)
            mends = tuple(dict.fromkeys(target for each in alike for target in each.mends))
            alike = [alike[0]._replace(commands=commands, mends=mends)]
        made += alike
    return made


def _todo_of(action: Mapping[str, Any]) -> Todo:
    command = action.get("command")
    own = str(action.get("own_words") or ("" if isinstance(command, Command) else command) or "")
    return Todo(
        (command,) if isinstance(command, Command) else (),
        str(action.get("decide") or ""),
        str(action.get("note") or ""),
        tuple(map(str, action.get("mends") or ())),
        bool(action.get("reboot")),
        action.get("kind") == "preflight",
        quoted(own) if own else "",
    )


def _shared(action: Todo) -> tuple[object, ...]:
    """What it has in common with neighbours that do the same to other targets of its knob; () where it stays apart."""
    program = action.commands[0].steps[0].program if action.commands else "tunectl"
    knobs = {parse_target(name).knob for name in action.mends}
    return (program, action.note, action.reboot, *knobs) if program != "tunectl" and len(knobs) == 1 else ()
