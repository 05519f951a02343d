"""Counting, naming and gathering of findings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.documents import body, findings, hostile
from tunectl.cpulist import parse_cpulist
from tunectl.fix import APPLY
from tunectl.model import Finding, Outcome, Target, parse_target
from tunectl.report.findings import (
    brief,
    compact,
    counts,
    finding_body,
    finding_of,
    generalised,
    groups,
    name_of,
    spread,
)


def irq(number: int, observed: str = "0-3", reason: str = "why", outcome: Outcome = Outcome.DRIFTED) -> Finding:
    return Finding("irq.affinity", str(number), outcome, observed, "0-1", reason, APPLY)


def test_counts_have_every_outcome() -> None:
    found = counts([irq(1), irq(2), irq(3, outcome=Outcome.COMPLIANT)])
    assert list(found) == list(Outcome)
    assert (found[Outcome.DRIFTED], found[Outcome.COMPLIANT], found[Outcome.WAIVED]) == (2, 1, 0)


def test_brief_names_the_worst_first() -> None:
    harmless = irq(1, outcome=Outcome.REFUSED)._replace(harmful=False)
    found = [irq(9, outcome=Outcome.COMPLIANT), harmless, irq(3, outcome=Outcome.REFUSED), irq(2)]
    assert brief(found) == "1 drifted, 1 refused (harmful), 1 refused (harmless), 1 compliant"
    assert brief([]) == "nothing was examined"


@pytest.mark.parametrize(
    ("instances", "text"),
    [
        (["24", "27", "33", "30", "31", "32"], "24,27,30-33"),
        (["eth0-rx-0", "eth0-rx-1", "eth0-rx-2", "tap"], "eth0-rx-{0-2},tap"),
        (["cpu7"], "cpu7"),
        (["a", "a"], "a"),
        (["007", "7"], "007,7"),
        (["x\n1", "x\n2"], "x\\n{1-2}"),
        ([], ""),
    ],
)
def test_compact(instances: list[str], text: str) -> None:
    assert compact(instances) == text


@given(st.sets(st.integers(0, 4095), min_size=1))
def test_compact_numbers_are_a_cpulist(numbers: set[int]) -> None:
    assert parse_cpulist(compact(map(str, numbers), limit=5000)) == numbers


def test_compact_says_how_many_it_leaves_out() -> None:
    assert compact(map(str, range(0, 4096, 2)), limit=3) == "0,2,4,… (2,048 in all)"


@given(st.lists(hostile))
def test_compact_prints_on_one_line(instances: list[str]) -> None:
    assert compact(instances).isprintable()


@pytest.mark.parametrize(
    ("target", "instance"),
    [("irq.affinity[42]", "42"), ("irq.affinity", ""), ("42", "42"), ("irq.affinity[a]b]", "a]b")],
)
def test_a_target_is_read_back_from_its_name(target: str, instance: str) -> None:
    assert parse_target(target, "irq.affinity") == Target("irq.affinity", instance)


@given(hostile, hostile)
def test_a_name_and_its_target_are_the_same(knob: str, instance: str) -> None:
    assert parse_target(str(Target(knob, instance)), knob) == Target(knob, instance)


@given(st.from_regex(r"[a-z.0-9_]+", fullmatch=True), hostile)
def test_the_journal_needs_no_more_than_the_name(knob: str, instance: str) -> None:
    assert parse_target(str(Target(knob, instance))) == Target(knob, instance)


def test_name_of() -> None:
    assert name_of("irq.affinity", ["1", "2"]) == "irq.affinity[1-2]"
    assert name_of("mm.ksm", [""]) == "mm.ksm"


@pytest.mark.parametrize(
    ("text", "instance", "expected"),
    [
        ("IRQ 42 is managed.", "42", "IRQ N is managed."),
        ("/proc/irq/42/smp_affinity_list", "42", "/proc/irq/N/smp_affinity_list"),
        ("may run on 0-42", "42", "may run on 0-42"),
        ("on 3,42", "42", "on 3,42"),
        ("took 42.5 us of 420", "42", "took 42.5 us of 420"),
        ("kworker/u8:1 runs there", "kworker/u8:1", "N runs there"),
        ("a word", "a", "a word"),
    ],
)
def test_generalised(text: str, instance: str, expected: str) -> None:
    assert generalised(text, instance) == expected


def test_identical_targets_are_one_group() -> None:
    found = [irq(number, reason=f"IRQ {number} is not where it should be") for number in range(4096)]
    (group,) = groups(found)
    assert (group.reason, str(group.fix), len(group.instances)) == ("IRQ N is not where it should be", str(APPLY), 4096)
    assert len(group.rows) == 1


def test_a_single_target_keeps_its_words() -> None:
    (group,) = groups([irq(42, reason="IRQ 42 is managed")])
    assert group.reason == "IRQ 42 is managed"


def test_values_of_one_reason_are_rows() -> None:
    (group,) = groups([irq(1, "0-3"), irq(2, "2"), irq(3, "0-3")])
    assert [(row.instances, row.observed) for row in group.rows] == [(("1", "3"), "0-3"), (("2",), "2")]


def test_a_number_and_its_text_are_two_values() -> None:
    (group,) = groups([irq(1)._replace(observed=1), irq(2)._replace(observed="1"), irq(3)._replace(observed=True)])
    assert len(group.rows) == 3


def test_a_reason_for_each_target_is_told_once() -> None:
    found = [irq(number, reason=f"managed by nvme{chr(97 + number)}") for number in range(20)]
    (group,) = groups(found)
    assert group.reason == "managed by nvmea (one of 20 different reasons; --format json has each)"
    assert len(group.instances) == 20


def test_a_row_of_many_reasons_has_one_of_its_own() -> None:
    found = [irq(n, str(n % 3), reason=f"interrupt {n} is delivered by nvme{chr(97 + n)}") for n in range(1, 20)]
    rows = {row.observed: row for row in groups(found)[0].rows}
    more = "one of 6 different reasons; --format json has each"
    assert rows["0"].reason == f"interrupt 3 is delivered by nvmed ({more})"
    assert {row.instances[0] in row.reason for row in rows.values()} == {True}
    alone = [irq(n, str(n), reason=f"interrupt {n} is delivered by nvme{chr(97 + n)}") for n in range(20)]
    assert [row.reason for row in groups(alone)[0].rows] == [finding.reason for finding in alone]
    (alike,) = groups([irq(n, str(n), reason=f"interrupt {n} is delivered") for n in (1, 2)])
    assert (alike.reason, {row.reason for row in alike.rows}) == ("interrupt N is delivered", {""})


def test_the_worst_comes_first() -> None:
    order = [group.outcome for group in groups([irq(1, outcome=outcome) for outcome in Outcome])]
    assert order[:2] == [Outcome.DRIFTED, Outcome.REFUSED]


@given(st.lists(findings))
def test_no_finding_is_lost(found: list[Finding]) -> None:
    assert sum(len(group.instances) for group in groups(found)) == len(found)


def test_spread() -> None:
    assert spread(["0", "5", "2-3"], ["0-1"] * 3) == "3 CPU sets within 0,2-3,5"
    assert spread(["always", "never"], ["never"] * 2) is None
    assert spread(["0", "1"], ["0", "1"]) is None
    assert spread([1, 2], ["0", "0"]) is None


@pytest.mark.parametrize("one", body("verify")["findings"])
def test_a_body_and_its_finding_are_the_same(one: dict[str, object]) -> None:
    assert finding_body(finding_of(one)) == one
