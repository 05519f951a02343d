"""The mutants still fit the source, and the command tells a dead one from a survivor."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT, Mutant, judged, read_mutants

MUTANTS = read_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_it_fits_the_source(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1, f"{mutant.file} no longer has {mutant.old!r} once"
    assert mutant.old != mutant.new
    assert mutant.rule
    for word in mutant.tests:
        assert not word.startswith("tests/") or (ROOT / word.partition("::")[0]).exists(), word


def test_their_names_are_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asserts", "verdict"), [("assert answer == 42", "died"), ("assert answer", "SURVIVED")], ids=["dies", "survives"]
)
def test_a_survivor_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asserts: str, verdict: str) -> None:
    (tmp_path / "answers.py").write_text("answer = 42\n")
    (tmp_path / "test_answers.py").write_text(f"from answers import answer\n\ndef test_it():\n    {asserts}\n")
    monkeypatch.setattr("tests.mutants.__main__.ROOT", tmp_path)
    mutant = Mutant("a.b", "answers.py", "answer = 42", "answer = 43", "the answer", ("test_answers.py",))
    assert judged(mutant, tmp_path) == verdict
    assert judged(mutant._replace(old="nothing"), tmp_path).startswith("STALE")
