"""The contracts: what is recorded below expected/ is what the product still says. `python -m tests.golden --update`."""

import json
from collections.abc import Iterator

import pytest

from tests.golden.cases import CASES, EXPECTED, made
from tests.golden.once import new_paragraphs, short_json
from tests.golden.world import World


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One place for all cases of this process."""
    one = World()
    yield one
    one.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_is_as_it_was(world: World, name: str) -> None:
    path = EXPECTED / f"{name}.txt"
    assert made(name, world) == path.read_text(encoding="utf-8"), (
        f"{path.name} changed: if that is meant, `python -m tests.golden --update {name}`, and read the difference"
    )


def test_every_recording_has_a_case() -> None:
    assert {path.stem for path in EXPECTED.iterdir()} == set(CASES)


def test_what_repeats_is_shown_once_and_counted() -> None:
    rows = [
        {"outcome": outcome, "reason": why} for outcome, why in (("drifted", "a"), ("drifted", "b"), ("waived", ""))
    ]
    shown = json.loads(short_json(json.dumps({"findings": rows})))["findings"]
    assert shown == [rows[0], rows[2], "... 1 more"]
    assert json.loads(short_json(json.dumps({"findings": rows}), "reason"))["findings"] == rows
    assert new_paragraphs(["one 1\n\ntwo\n", "one 2\n\nthree\n"]) == "one 1\n\ntwo\n\nthree\n\n... 1 more\n\n"
