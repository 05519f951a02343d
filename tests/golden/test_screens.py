"""What a command says by default fits a screen: 40 lines, and 24 where all is well. A text for a file is no page."""

import re
from collections.abc import Iterator

import pytest

from tests.golden.cases import EXPECTED
from tests.golden.world import World

_MOST, _MOST_OF_A_GO = 40, 24
_WELL = ("GO ", "COMPLIANT", "WITHIN", "OK ")
# Other formats, a unit's text, and a catalogue that was asked for by name.
_NO_PAGE = re.compile(r".*(--format (?!text)|threads unit |service show )")
_LARGE = ("xeon2s", "epyc")
_COMMANDS = (
    "plan",
    "show",
    "apply --yes",
    "verify",
    "restore --dry-run",
    "restore",
    "propose",
    "monitor --once --interval 0.05",
    "check --window 0.05",
    "preflight --window 0.05 --duration 0.1",
    "knobs",
    "knobs net",
    "knobs boot",
    "knobs cpufreq",
)


def _pages() -> Iterator[tuple[str, list[str]]]:
    """Those that were recorded, whole: the transcripts of one command after the other, and the drawn ones."""
    for path in sorted(EXPECTED.glob("*.txt")):
        for place, told in enumerate(re.split(r"(?m)^(?=\$ tunectl )", path.read_text())):
            command, _, rest = told.partition("\n")
            if command.startswith("$ ") and not _NO_PAGE.match(command):
                said = re.sub(r"\Aexit \d\n(stderr: .*\n)*", "", re.split(r"(?m)^--- ", rest)[0])
                yield f"{path.stem}-{place}", said.rstrip("\n").split("\n")
            elif told and place == 0 and path.stem.endswith("-text"):
                yield path.stem, told.rstrip("\n").split("\n")


PAGES = dict(_pages())


@pytest.mark.parametrize("name", PAGES)
def test_a_default_page_is_no_longer_than_a_screen(name: str) -> None:
    lines = PAGES[name]
    assert len(lines) <= (_MOST_OF_A_GO if lines[0].startswith(_WELL) else _MOST)


@pytest.mark.slow
@pytest.mark.parametrize("host", _LARGE)
def test_so_is_every_page_of_a_large_host_at_80_columns(host: str) -> None:
    world = World()
    try:
        world.host(host, "own")
        shown = {line: world.run(f"{line} --root own", env={"COLUMNS": "80"}).out.splitlines() for line in _COMMANDS}
    finally:
        world.close()
    assert {line: len(lines) for line, lines in shown.items() if not 0 < len(lines) <= _MOST} == {}
    assert {text for lines in shown.values() for text in lines if len(text) > 80 and " " in text.strip()} == set()
