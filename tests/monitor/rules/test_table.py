"""The table of rules: every row is complete, and its conditions bear its name."""

import pytest

from tunectl.monitor.model import Snapshot
from tunectl.monitor.rules import RULES, Rule
from tunectl.monitor.rules.history import DEPTH, History


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_row_is_complete(rule: Rule) -> None:
    assert rule.why
    assert rule.source_of_truth
    assert 1 <= rule.bad[0] <= rule.bad[1] <= DEPTH
    assert rule.good >= 1


def test_names_are_unique_and_explanations_name_rules() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert {name for rule in RULES for name in rule.explained_by} <= {*names}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_look_without_samples_breaks_no_rule(rule: Rule) -> None:
    history = History()
    for _ in range(3):
        history.add(Snapshot(0.0, "2026-11-21T10:00:00.000Z", ()))
        assert all(condition.rule == rule.name for condition in rule.judge(history))
