"""A repair that made things worse goes back and is not made again in this boot; any other stays."""

from pathlib import Path

import pytest

from tests.hosts.builder import HostFactory
from tests.trees import differences, picture
from tests.tuned import inspection_on, restore, state_of
from tests.tuning.hosts import small_host, wish
from tunectl.host.identity import read_identity
from tunectl.host.writable import WritableSysroot
from tunectl.model import Change, Finding, Lifetime, Outcome, Plan
from tunectl.tuning.confirming import apply_set
from tunectl.tuning.repairing import came_with, taken_back, was_taken_back
from tunectl.tuning.transaction import Run, planned
from tunectl.tuning.trial import read_set

SWAPPINESS, STAT = "proc/sys/vm/swappiness", "proc/sys/vm/stat_interval"
BOOT_ID = "proc/sys/kernel/random/boot_id"
DRIFTED, COMPLIANT = Outcome.DRIFTED, Outcome.COMPLIANT


def plan(changes: str, **outcomes: Outcome) -> Plan:
    """`changes` are names of one letter; so are the findings."""
    made = tuple(Change("k.k", name, None, None, Lifetime.RUNTIME, "", None) for name in changes)
    return Plan(made, tuple(Finding("k.k", name, outcome) for name, outcome in outcomes.items()), False)


@pytest.mark.parametrize(
    ("before", "now", "came"),
    [
        (plan("a", a=DRIFTED, b=COMPLIANT), plan("ab", a=DRIFTED, b=DRIFTED), ("k.k[b]",)),
        (plan("a", a=DRIFTED, b=COMPLIANT), plan("b", a=COMPLIANT, b=DRIFTED), ()),  # what was asked for is mended
        (plan("a", a=DRIFTED, b=COMPLIANT), plan("a", a=DRIFTED, b=COMPLIANT), ()),  # it did not help, and harmed none
        (plan("a", a=DRIFTED, b=DRIFTED), plan("a", a=DRIFTED, b=DRIFTED), ()),
        (plan("a", a=DRIFTED), plan("ab", a=DRIFTED, b=DRIFTED), ("k.k[b]",)),  # an interrupt that came with it
    ],
)
def test_worse_is_what_drifts_anew_beside_what_drifts_still(before: Plan, now: Plan, came: tuple[str, ...]) -> None:
    assert came_with(before, now) == came


class Tied(WritableSysroot):
    """A kernel that makes a swappiness of 1 one of 2, and as long as it has that keeps another value low."""

    def write_value(self, path: str, text: str) -> None:
        super().write_value(path, {(SWAPPINESS, "1\n"): "2\n"}.get((path, text), text))
        if self.read_value(SWAPPINESS) == "2":
            super().write_value(STAT, "1\n")


@pytest.fixture
def tree(host_root: HostFactory, tmp_path: Path) -> Path:
    """A tuned host on which one of two values was lost since."""
    made = small_host(host_root, tmp_path)
    wish(made, {"mm.swappiness": "1", "kernel.stat_interval": "120"}, 'isolated = "1"\n')
    (made / STAT).write_text("120\n")
    return made


def repair(root: WritableSysroot) -> Run:
    inspection = inspection_on(root)
    chosen = read_set(inspection.config)
    return apply_set(
        inspection, root, state_of(root), chosen, joins=True, runtime_only=True, wait_s=0, unless_worse=True
    )


def refused(root: WritableSysroot) -> str:
    return was_taken_back(state_of(root), root, read_identity(root).boot_id, planned(inspection_on(root), True))


def test_a_repair_that_made_things_worse_goes_back_and_is_not_made_again_in_this_boot(tree: Path) -> None:
    before = picture(tree)
    root = Tied(str(tree))
    run = repair(root)
    assert {result.result for result in run.applied.results} == {"failed"}
    assert (tree / STAT).read_text() == "120\n"
    assert {finding.target: finding.outcome for finding in run.plan.findings} == {
        "mm.swappiness": DRIFTED,
        "kernel.stat_interval": COMPLIANT,
    }
    assert taken_back(state_of(root), root, read_identity(root).boot_id) == {"mm.swappiness"}
    assert refused(root)
    (tree / STAT).write_text("30\n")  # another repair is another one
    assert not refused(root)
    (tree / STAT).write_text("120\n")
    restore(tree)
    assert not differences(before, tree)


def test_in_the_next_boot_it_is_made_again(tree: Path) -> None:
    root = Tied(str(tree))
    repair(root)
    (tree / BOOT_ID).write_text("99999999-0000-4000-8000-000000000009\n")
    assert not refused(root)


def test_a_repair_that_mends_stays(tree: Path) -> None:
    run = repair(WritableSysroot(str(tree)))
    assert {result.result for result in run.applied.results} == {"changed"}
    assert (tree / SWAPPINESS).read_text() == "1\n"
    assert not refused(WritableSysroot(str(tree)))
