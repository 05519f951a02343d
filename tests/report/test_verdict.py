"""The verdict: what fails a gate, and that nothing skipped or unknown makes it better."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunectl.model import Finding, Outcome
from tunectl.verdict import fails_gate, verdict_of

RANK = ["compliant", "pending-reboot", "unreadable", "drifted"]


def finding(outcome: Outcome, harmful: bool = True) -> Finding:
    return Finding("irq.affinity", "42", outcome, harmful=harmful)


HARMLESS = finding(Outcome.REFUSED, harmful=False)
HARMFUL = finding(Outcome.REFUSED)
COMPLIANT, DRIFTED, PENDING, UNSUPPORTED, _, UNREADABLE, WAIVED = map(finding, Outcome)
BOOT_UNKNOWN = Finding("boot.isolcpus", "", Outcome.UNREADABLE)  # of this boot, or of the next
found_lists = st.lists(st.builds(finding, st.sampled_from(Outcome), st.booleans()), max_size=6)


@pytest.mark.parametrize(
    ("one", "lenient", "strict"),
    [
        (DRIFTED, True, True),
        (HARMFUL, True, True),
        (HARMLESS, False, False),
        (UNREADABLE, False, True),
        (PENDING, False, False),
        (UNSUPPORTED, False, False),
        (WAIVED, False, False),
        (COMPLIANT, False, False),
    ],
)
def test_gate(one: Finding, lenient: bool, strict: bool) -> None:
    assert (fails_gate(one), fails_gate(one, strict=True)) == (lenient, strict)


@pytest.mark.parametrize(
    ("found", "lenient", "strict"),
    [
        ([], "compliant", "compliant"),
        ([COMPLIANT, UNSUPPORTED, WAIVED, HARMLESS], "compliant", "compliant"),
        ([COMPLIANT, DRIFTED, PENDING, UNREADABLE], "drifted", "drifted"),
        ([COMPLIANT, HARMFUL], "drifted", "drifted"),
        ([COMPLIANT, UNREADABLE], "compliant", "unreadable"),
        ([UNREADABLE], "unreadable", "unreadable"),
        ([UNREADABLE, UNSUPPORTED, HARMLESS], "unreadable", "unreadable"),
        ([PENDING, COMPLIANT], "pending-reboot", "pending-reboot"),
        ([PENDING, UNREADABLE], "pending-reboot", "unreadable"),
        ([WAIVED, UNREADABLE], "compliant", "unreadable"),
        ([COMPLIANT, BOOT_UNKNOWN], "unreadable", "unreadable"),
        ([PENDING, BOOT_UNKNOWN], "unreadable", "unreadable"),
        ([DRIFTED, BOOT_UNKNOWN], "drifted", "drifted"),
        ([UNSUPPORTED], "compliant", "compliant"),
    ],
)
def test_verdict(found: list[Finding], lenient: str, strict: str) -> None:
    assert verdict_of(found) == lenient
    assert verdict_of(found, strict=True) == strict


@given(found_lists, st.sampled_from([UNSUPPORTED, UNREADABLE, HARMLESS]), st.booleans())
def test_a_skipped_item_never_improves_a_verdict(found: list[Finding], skipped: Finding, strict: bool) -> None:
    assert RANK.index(verdict_of([*found, skipped], strict)) >= RANK.index(verdict_of(found, strict))


@given(found_lists)
def test_an_absent_knob_changes_nothing(found: list[Finding]) -> None:
    assert verdict_of([*found, UNSUPPORTED]) == verdict_of(found)


@given(found_lists)
def test_strict_is_never_milder(found: list[Finding]) -> None:
    assert RANK.index(verdict_of(found, strict=True)) >= RANK.index(verdict_of(found))


@given(st.permutations([COMPLIANT, PENDING, UNREADABLE, WAIVED, HARMLESS]))
def test_the_order_of_findings_does_not_matter(found: list[Finding]) -> None:
    assert verdict_of(iter(found)) == "pending-reboot"
