"""Every knob that a rival's table names is a row: a word that leads nowhere would hide a conflict."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tunectl.host.managers import TOOLS
from tunectl.knobs import KNOBS
from tunectl.rivals import keyfiles, tuned, tunednet


def test_the_tables_name_rows() -> None:
    named = {
        knob for table in (keyfiles._TLP, keyfiles._CPUPOWER, keyfiles._AUTO) for row in table.values() for knob in row
    }
    assert named | set(tuned._KNOB_OF.values()) | set(tunednet.KNOB_OF.values()) <= set(KNOBS)


def test_the_patterns_of_programs_match_rows() -> None:
    for tool in TOOLS:
        for pattern in tool.overwrites:
            assert any(fnmatchcase(knob, pattern) for knob in KNOBS), (tool.name, pattern)
