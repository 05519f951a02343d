"""A reason says what it is about by how it begins: whoever reads a document can tell its own from all others."""

from __future__ import annotations

import pytest

from tunectl.knobs import KNOBS
from tunectl.model import Finding, Match, Outcome, Severity, Target
from tunectl.wording import over_limit, sentence, standing, subject, unexplained


def made(knob: str, instance: str = "", reason: str = "because") -> str:
    one = Finding(knob, instance, Outcome.DRIFTED, 5, 2, severity=Severity.SLOWER, match=Match.AT_MOST)
    return sentence(str(Target(knob, instance)), standing(one), reason)


def test_a_sentence_has_the_name_the_values_and_the_reason() -> None:
    assert made("mm.swappiness", "") == "mm.swappiness is 5, should be at most 2: because"
    assert sentence("journal", "", "cannot be read") == "journal: cannot be read"
    assert sentence("mm.swap", "is on", "") == "mm.swap is on"


@pytest.mark.parametrize("knob", [*KNOBS, "journal", "check.ipis", "thermal.clock"])
def test_each_knob_is_known_by_its_sentence(knob: str) -> None:
    for instance in ("", "42", "eth0/rx-1"):
        assert subject(made(knob, instance)) == knob
    assert subject(f"{knob}: a reason without values") == knob


def test_only_whole_names_and_whole_limits_explain_a_reason() -> None:
    broken = "CPU 3: the longest interruption: 9 ns, allowed 5 ns (max_ns)"
    own = [made("mm.swap"), made("irq.affinity", "7"), over_limit(broken)]
    other = [made("mm.swappiness"), made("check.ipis", "3"), over_limit("not run"), broken, "", "the fan failed"]
    assert unexplained([*own, *other], {"mm.swap", "irq.affinity", "check"}, {"probe": [broken]}) == other
