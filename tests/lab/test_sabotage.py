"""The sabotage matrix: recall 100 %, false alarms 0. The table is printed at the end of the session."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.sections import MATRIX

from .evidence import reaches_isolated
from .follow import APPLY, KINDS, REBOOT, in_order, kinds, steps
from .lab import Lab
from .product import tunectl
from .sabotage import ROUNDS, Kind, Round, Sabotage

CASES = [
    pytest.param(name, row, id=f"{name}-{row.name}".replace(" ", "-"), marks=[pytest.mark.long] if played.long else [])
    for name, played in ROUNDS.items()
    for row in played.rows
]
NAMES = [pytest.param(name, marks=[pytest.mark.long] if played.long else []) for name, played in ROUNDS.items()]
SHORT = {name for name, played in ROUNDS.items() if not played.long}  # what CI plays


def test_what_ci_plays_has_a_row_of_each_kind() -> None:
    assert {row.kind for name in SHORT for row in ROUNDS[name].rows if row.finds} == set(Kind)
    assert all(ROUNDS[name].after in ("", *SHORT) for name in SHORT)


def failing(document: Any) -> dict[str, Any]:
    """target -> finding, of those that fail a gate."""
    return {
        one["target"]: one
        for one in document["findings"]
        if one["outcome"] == "drifted" or (one["outcome"] == "refused" and one["harmful"])
    }


def look(lab: Lab, commands: set[str]) -> dict[str, Any]:
    """What `verify` and `check` find failing now."""
    found: dict[str, Any] = {}
    for command in sorted(commands):
        found |= failing(tunectl(lab, f"{command} --format json").json)
    return found


def named(lab: Lab, target: str) -> str:
    """The number of the NIC's interrupt in place of NIC."""
    if "[NIC]" not in target:
        return target
    row = next(line for line in lab.read("/proc/interrupts").splitlines() if "virtio0-input" in line)
    return target.replace("NIC", row.split(":")[0].strip())


@dataclass
class Outcome:
    """What came of a round."""

    wanted: dict[str, set[str]] = field(default_factory=dict)  # by the row's name
    found: dict[str, Any] = field(default_factory=dict)
    true: set[str] = field(default_factory=set)  # found, not named by a row, and the kernel's own files agree
    followed: set[str] = field(default_factory=set)  # kinds of fixes
    left: dict[str, Any] = field(default_factory=dict)

    def stray(self) -> set[str]:
        """Found, and nobody broke it."""
        return self.found.keys() - self.true - set().union(*self.wanted.values())

    def met(self, name: str) -> bool:
        """Was this row found?"""
        return self.wanted[name] <= self.found.keys()

    def silent(self, name: str) -> bool:
        """Is this row no longer found, its fix followed?"""
        return not self.wanted[name] & self.left.keys()


def play(lab: Lab, played: Round) -> Outcome:
    """Break everything, look, follow the fixes, look again."""
    outcome = Outcome({row.name: {named(lab, target) for target in row.finds} for row in played.rows})
    for row in played.rows:
        lab.run(row.breaks, check=False)
    if played.reboots:
        lab.reboot()
    commands = {"verify"} | {row.command for row in played.rows}
    outcome.found = look(lab, commands)
    follows = [pattern for row in played.rows for pattern in row.follows]
    for target in outcome.stray():
        if any(fnmatchcase(target, pattern.replace("[", "[[]")) for pattern in follows):
            outcome.true |= {target} if reaches_isolated(lab, target) else set()
    fixes = [one["fix"] for one in outcome.found.values()]
    outcome.followed = set().union(*map(kinds, fixes))
    todo = in_order(fixes)
    for step in todo:
        lab.reboot() if step == REBOOT else lab.run(step, check=False, timeout=300)
    if played.after and REBOOT not in todo:
        lab.reboot()
    outcome.left = look(lab, commands)
    return outcome


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """By round."""
    return {}


def outcome_of(name: str, outcomes: dict[str, Outcome], request: pytest.FixtureRequest) -> Outcome:
    """A round is played once, from a tuned host, or from what the round before it left."""
    if name not in outcomes:
        before = ROUNDS[name].after
        if before and before not in outcomes:
            pytest.fail(f"run the rows of {before!r} first")
        lab: Lab = request.getfixturevalue("lab" if before else "tuned")
        outcomes[name] = play(lab, ROUNDS[name])
    return outcomes[name]


@pytest.mark.parametrize(("name", "row"), CASES)
def test_found_by_name_and_mended(
    name: str, row: Sabotage, lab: Lab, outcomes: dict[str, Outcome], request: pytest.FixtureRequest
) -> None:
    outcome = outcome_of(name, outcomes, request)
    wanted = outcome.wanted[row.name]
    assert outcome.met(row.name), f"missed: {wanted - outcome.found.keys()}"
    for target in wanted:
        assert steps(outcome.found[target]["fix"]), f"nothing to follow: {outcome.found[target]}"
    assert outcome.silent(row.name), {target: outcome.left.get(target) for target in wanted}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_else_was_found_and_nothing_is_left(
    name: str, lab: Lab, outcomes: dict[str, Outcome], request: pytest.FixtureRequest
) -> None:
    outcome = outcome_of(name, outcomes, request)
    assert not outcome.stray(), {target: outcome.found[target] for target in outcome.stray()}
    assert not outcome.left


def test_the_table(lab: Lab, outcomes: dict[str, Outcome], record_property: Callable[[str, str], None]) -> None:
    """Recall and false alarms of this session, which played all rounds or those that CI plays."""
    if outcomes.keys() not in (ROUNDS.keys(), SHORT):
        pytest.skip("not every round was played in this session")
    rows = [(outcome, name) for outcome in outcomes.values() for name in outcome.wanted]
    broken = [(outcome, name) for outcome, name in rows if outcome.wanted[name]]
    recalled = sum(outcome.met(name) for outcome, name in broken)
    alarms = sum(len(outcome.stray()) + len(outcome.left) for outcome in outcomes.values())
    lines = [line(outcome, name) for outcome, name in rows]
    lines += [f"{len(broken)} sabotages: recall {100 * recalled / len(broken):.0f} %, false alarms {alarms}"]
    for text in lines:
        record_property(MATRIX, text)
    assert len(broken) >= (30 if outcomes.keys() == ROUNDS.keys() else 20)
    assert recalled == len(broken)
    assert alarms == 0
    # Whether a fix says `reboot` depends on what else the round left to do; the others are asked for in any case.
    assert KINDS - set().union(*(outcome.followed for outcome in outcomes.values())) <= {"reboot"}


def line(outcome: Outcome, name: str) -> str:
    """A row of the table."""
    wanted = sorted(outcome.wanted[name])
    found = "no alarm" if not wanted else "found" if outcome.met(name) else "MISSED"
    more = f" and {len(wanted) - 2} more" if len(wanted) > 2 else ""
    return f"{found:8}  {'silent' if outcome.silent(name) else 'LEFT':6}  {name}: {', '.join(wanted[:2])}{more}"


@pytest.mark.long
def test_a_plugged_card_is_no_alarm(tuned: Lab) -> None:
    """Its interrupts start on housekeeping CPUs, by the default mask: in force, so nothing is called broken."""
    tuned.nic_add("nic1")
    assert not look(tuned, {"verify"})


@pytest.mark.long
def test_a_plugged_card_on_the_isolated_cpus_is_mended_by_the_rule(tuned: Lab) -> None:
    """systemd.apply_on_hotplug: udev starts a run of apply two seconds after the card is announced."""
    tuned.run("systemctl stop irqbalance; echo c > /proc/irq/default_smp_affinity")
    tuned.nic_add("nic1")
    tuned.wait_for("grep -qx 3 /proc/irq/default_smp_affinity", 120)  # a run of apply takes long under emulation
    tuned.wait_for("! systemctl -q is-active 'tunectl-reapply@*'")
    assert not look(tuned, {"verify"})


def test_a_plugged_card_on_the_isolated_cpus_is_found(tuned: Lab) -> None:
    """Where nothing mends it: the rule is taken away first, which is found as well."""
    tuned.run("systemctl stop irqbalance; echo c > /proc/irq/default_smp_affinity")
    tuned.run("rm /etc/udev/rules.d/95-tunectl.rules && udevadm control --reload")
    tuned.nic_add("nic1")
    found = look(tuned, {"verify"})
    assert {"irq.default_affinity", "systemd.apply_on_hotplug"} <= found.keys()
    assert [target for target in found if target.startswith("irq.affinity[")]
    tuned.run(APPLY, check=False)
    assert not look(tuned, {"verify"})
