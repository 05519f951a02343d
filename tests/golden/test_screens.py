"""What a command says by default fits a screen: 40 lines, and 24 where all is well."""

import re
from collections.abc import Iterator

import pytest

from tests.golden.cases import EXPECTED

# The commands of which the default page is one screen; `plan` and `show` have a line for each thing a host has.
_PAGES = ("preflight", "verify", "check", "probe", "compare", "fleet", "monitor")
_MOST, _MOST_OF_A_GO = 40, 24
_WELL = ("GO ", "COMPLIANT", "WITHIN", "OK ")


def _pages() -> Iterator[tuple[str, list[str]]]:
    for path in sorted(EXPECTED.glob("*-text.txt")):
        name = path.name.removeprefix("drawn-")
        if name.startswith(_PAGES):
            text = re.sub(r"\A\$ .*\nexit \d\n", "", path.read_text())
            yield path.stem, text.rstrip("\n").split("\n")


PAGES = dict(_pages())


@pytest.mark.parametrize("name", PAGES)
def test_a_default_page_is_no_longer_than_a_screen(name: str) -> None:
    lines = PAGES[name]
    assert len(lines) <= (_MOST_OF_A_GO if lines[0].startswith(_WELL) else _MOST)
