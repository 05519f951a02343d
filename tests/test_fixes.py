"""Each fix that the product can print is followed by a row of the sabotage matrix, or leaves a decision to somebody."""

from functools import cache

import pytest

from tests.fixtexts import HOLE, ROOT, product
from tests.lab.fixes import DECISIONS, ELSEWHERE, FOLLOWED
from tests.lab.follow import APPLY, REBOOT, steps
from tests.lab.rows import ROUNDS

ROWS = {row.name: row for played in ROUNDS.values() for row in played.rows}
# What may stand where a text has a hole: a number, a place, a word, a list of CPUs.
VALUES = ("7", "/etc/one.conf:7", "one.service", "0-1", "-f", "remove that setting (/etc/one.conf:7 sets it)")


@cache
def printed() -> dict[str, set[str]]:
    """{text of a task: the files it stands in}."""
    return product().tasks()


@pytest.mark.slow
def test_each_fix_is_in_one_of_the_lists() -> None:
    known = [*FOLLOWED, *DECISIONS, *ELSEWHERE]
    assert len(known) == len(set(known))
    missing = {text: printed()[text] for text in printed().keys() - set(known)}
    assert not missing, "new texts: give each a row of the matrix that prints it (tests/lab/fixes.py)"
    assert not set(known) - printed().keys(), "nobody prints these any more"


@pytest.mark.parametrize("text", FOLLOWED)
def test_a_followed_fix_has_a_row_and_is_typed(text: str) -> None:
    assert FOLLOWED[text]
    for name in FOLLOWED[text]:
        assert ROWS[name].finds
    assert any(steps(text.replace(HOLE, value)) for value in VALUES) or text == "remove that setting"


@pytest.mark.parametrize("text", sorted(DECISIONS))
def test_a_decision_names_nothing_to_type_but_what_comes_after_it(text: str) -> None:
    assert set(steps(text.replace(HOLE, "7"))) <= {APPLY, REBOOT}


@pytest.mark.parametrize("text", ELSEWHERE)
def test_a_fix_for_another_host_has_its_test(text: str) -> None:
    assert (ROOT / ELSEWHERE[text]).is_file()
