"""The contracts: what is recorded below expected/ is what the product still says. `python -m tests.golden --update`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.golden.cases import CASES, EXPECTED, made
from tests.golden.world import World


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One place for all cases of this process."""
    one = World()
    yield one
    one.close()


@pytest.mark.parametrize("name", CASES)
def test_it_is_as_it_was(world: World, name: str) -> None:
    path = EXPECTED / f"{name}.txt"
    assert made(name, world) == path.read_text(encoding="utf-8"), (
        f"{path.name} changed: if that is meant, `python -m tests.golden --update {name}`, and read the difference"
    )


def test_every_recording_has_a_case() -> None:
    assert {path.stem for path in EXPECTED.iterdir()} == set(CASES)
