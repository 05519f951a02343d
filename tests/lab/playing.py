"""How rows of the sabotage matrix are played, and what came of them: recall 100 %, false alarms 0."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from tunectl.model import NEXT_BOOT

from .evidence import reaches_isolated, read_wide_masks
from .follow import REBOOT, in_order, kinds, steps
from .lab import Lab
from .product import back_to_tuned, tunectl
from .sabotage import Round, Sabotage
from .shell import EmulatorError, LabError


class Found(NamedTuple):
    """What a look at the host found."""

    failing: dict[str, Any]  # target -> finding, of those that fail a gate
    notes: tuple[str, ...]  # what is said besides: notes, and findings that fail nothing


def listed(document: Any) -> Any:
    """The findings of a document.

    Of preflight's those on heat, for `verify` and `check` are looked at themselves; without the clock that its probe
    measured, because emulation proves no times (docs/lab.md).
    """
    if "findings" in document:
        return document["findings"]
    return [one for one in document["thermal"]["findings"] if not one["target"].startswith("thermal.clock")]


def failing(document: Any) -> dict[str, Any]:
    """target -> finding, of those that fail a gate; and that the next boot is not known, which fails with --strict."""
    return {
        one["target"]: one
        for one in listed(document)
        if one["outcome"] == "drifted" or (one["outcome"] == "refused" and one["harmful"]) or one["target"] == NEXT_BOOT
    }


def look(lab: Lab, commands: set[str]) -> Found:
    """What `verify` and `check` find failing now."""
    found = Found({}, ())
    for command in sorted(commands):
        document = tunectl(lab, f"{command} --format json").json
        other = [one["reason"] for one in listed(document) if one["outcome"] in ("unsupported", "unreadable")]
        said = (*document.get("notes", ()), document.get("headline", ""), *other)
        found = Found(found.failing | failing(document), (*found.notes, *said))
    return found


# Targets that not every machine has -> a shell command in the guest that fails where they are not.
_WHERE = {"boot.tsc": "grep -qw tsc /proc/cpuinfo"}


def wanted(lab: Lab, row: Sabotage) -> set[str]:
    """The targets that have to be reported here."""
    there = (one for one in row.finds if one not in _WHERE or lab.run(_WHERE[one], check=False).code == 0)
    return {named(lab, target) for target in there}


def named(lab: Lab, target: str) -> str:
    """The number of the NIC's interrupt in place of NIC."""
    if "[NIC]" not in target:
        return target
    row = next(line for line in lab.read("/proc/interrupts").splitlines() if "virtio0-input" in line)
    return target.replace("NIC", row.split(":")[0].strip())


@dataclass
class Outcome:
    """What came of rows that happened together."""

    wanted: dict[str, set[str]] = field(default_factory=dict)  # by the row's name
    found: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    true: set[str] = field(default_factory=set)  # found, not named by a row, and the kernel's own files agree
    followed: set[str] = field(default_factory=set)  # kinds of fixes
    left: dict[str, Any] = field(default_factory=dict)
    innocent: dict[str, Any] = field(default_factory=dict)  # found before anything was broken
    said_before: tuple[str, ...] = ()  # the notes, then
    failed: str = ""  # the guest could not do what a row says
    lacks: str = ""  # why this guest cannot be sabotaged so

    def stray(self) -> set[str]:
        """Found, and nobody broke it."""
        return self.found.keys() - self.true - set().union(*self.wanted.values())

    def alarms(self) -> dict[str, Any]:
        """All that was found and should not be."""
        return {target: self.found[target] for target in self.stray()} | self.left | self.innocent

    def met(self, row: Sabotage) -> bool:
        """Was this row found, and its cause named?"""
        return not self.failed and self.wanted[row.name] <= self.found.keys() and not self.unsaid(row)

    def unsaid(self, row: Sabotage) -> list[str]:
        """The words that a finding of this row's targets, or a note, should have said and did not."""
        findings = [self.found[target] for target in self.wanted[row.name] & self.found.keys()]
        texts = [" ".join(map(str, (one["reason"], one["fix"], one["observed"]))) for one in findings]
        unsaid = [f"{word!r} in {text!r}" for text in texts for word in row.says if word not in text]
        if not row.notes:
            return unsaid
        noted, before = (any(map(row.is_in, notes)) for notes in (self.notes, self.said_before))
        too_early = [f"a note of the innocent host has {row.notes}"] if before else []
        return [*unsaid, *too_early, *([] if noted else [f"no note has {row.notes}"])]

    def silent(self, row: Sabotage) -> bool:
        """Is this row no longer found, its fix followed?"""
        return not self.wanted[row.name] & self.left.keys()


def play(lab: Lab, rows: tuple[Sabotage, ...], played: Round) -> Outcome:
    """Put the innocent hosts in place and look; break everything, look, follow the fixes, look again."""
    outcome = Outcome({row.name: wanted(lab, row) for row in rows})
    commands = {"verify"} | {row.command for row in rows}
    for innocent in filter(None, (row.innocent for row in rows)):
        lab.run(innocent)
    if any(row.innocent for row in rows):
        reboot(lab, played.reboots)
        outcome.innocent, outcome.said_before = look(lab, commands)
    for row in rows:
        lab.run(row.breaks)
    reboot(lab, played.reboots)
    wide = read_wide_masks(lab)
    outcome.found, outcome.notes = look(lab, commands)
    follows = [pattern for row in rows for pattern in row.follows]
    for target in outcome.stray():
        if any(fnmatchcase(target, pattern.replace("[", "[[]")) for pattern in follows):
            outcome.true |= {target} if target in wide or reaches_isolated(lab, target) else set()
    fixes = [one["fix"] for one in outcome.found.values()]
    outcome.followed = set().union(*map(kinds, fixes))
    decided = [row.decides for row in rows if row.decides]
    done = {step for command in decided for step in steps(command)}
    todo = [*decided, *in_order([fix for fix in fixes if not done.issuperset(steps(fix))])]
    for step in todo:
        lab.reboot() if step == REBOOT else lab.run(step, check=False, timeout=300)
    reboot(lab, (bool(played.after) or played.reboots) and REBOOT not in todo)
    outcome.left = look(lab, commands).failing
    return outcome


def reboot(lab: Lab, wanted: bool) -> None:
    """A reboot, where one is wanted."""
    if wanted:
        lab.reboot()


def play_round(lab: Lab, one: Round) -> list[Outcome]:
    """A round, on a host that is as the round wants it, without the rows that this host cannot play."""
    able = tuple(row for row in one.rows if not row.needs or lab.run(row.needs, check=False).code == 0)
    lacking = [Outcome({row.name: set()}, lacks=row.lacks) for row in one.rows if row not in able]
    if one.alone:
        return [*lacking, *play_alone(lab, able, one)]
    return [*lacking, attempt(lab, able, one)]


def attempt(lab: Lab, rows: tuple[Sabotage, ...], played: Round) -> Outcome:
    """play(); a guest that could not do what a row says is asked once, and not again by each test of the round."""
    try:
        return play(lab, rows, played)
    except EmulatorError:
        raise
    except (AssertionError, LabError) as error:
        return Outcome({row.name: set(row.finds) for row in rows}, failed=str(error))


def play_alone(lab: Lab, rows: tuple[Sabotage, ...], played: Round) -> list[Outcome]:
    """One row after the other, on the host that the row before was mended on; on a fresh one where it was not."""
    outcomes: list[Outcome] = []
    for row in rows:
        if outcomes and (outcomes[-1].left or outcomes[-1].failed):
            back_to_tuned(lab)
        outcomes.append(attempt(lab, (row,), played))  # one that fails is no reason not to play the others
    return outcomes


def line(outcome: Outcome, row: Sabotage) -> str:
    """A row of the table."""
    if outcome.lacks:
        return f"skipped          {row.name}: {outcome.lacks}"
    wanted = sorted(outcome.wanted[row.name]) or [" ".join(row.notes)]
    found = "no alarm" if not (row.finds or row.notes) else "found" if outcome.met(row) else "MISSED"
    more = f" and {len(wanted) - 2} more" if len(wanted) > 2 else ""
    return f"{found:8}  {'silent' if outcome.silent(row) else 'LEFT':6}  {row.name}: {', '.join(wanted[:2])}{more}"
