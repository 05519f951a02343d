"""The rooms of the C part, kept by reading the #include lines: a .c file and the .h file of its name are one unit."""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.artefacts import NATIVE

SRC = NATIVE / "src"
INCLUDE = re.compile(r'^#include "(.+)\.h"$', re.MULTILINE)


def includes(src: Path) -> dict[str, set[str]]:
    """The units that each unit includes: {"wake/wake": {"lib/stop", ...}}."""
    graph: dict[str, set[str]] = {}
    for path in sorted(src.rglob("*.[ch]")):
        unit = str(path.relative_to(src).with_suffix(""))
        graph.setdefault(unit, set()).update(set(INCLUDE.findall(path.read_text())) - {unit})
    return graph


def cycle(graph: dict[str, set[str]]) -> list[str]:
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def crossings(graph: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """What a room includes that is neither of itself nor of lib; main.c alone may include every experiment."""
    for unit, others in graph.items():
        room = unit.rpartition("/")[0]
        yield from ((unit, other) for other in others if room and other.split("/")[0] not in {room, "lib"})


def test_no_cycle_and_no_experiment_that_another_room_includes() -> None:
    graph = includes(SRC)
    assert len(graph) > 30
    assert cycle(graph) == []
    assert list(crossings(graph)) == []


def test_every_experiment_is_a_folder_and_a_row_in_main() -> None:
    folders = {path.name for path in SRC.iterdir() if path.is_dir()} - {"lib"}
    assert includes(SRC)["main"] == {
        "contention/run",
        "feed/run",
        "hedge/run",
        "jitter/run",
        "wake/run",
        "sentinel/sentinel",
        "lib/options",
        "lib/thread",
    }
    assert {include.partition("/")[0] for include in includes(SRC)["main"]} == folders | {"lib"}
    rows = r"\{&(\w+)_command, (?:\1_main, NULL|NULL, &\1_experiment)\}"
    assert set(re.findall(rows, (SRC / "main.c").read_text())) == folders


def test_a_cycle_and_a_crossing_are_found(tmp_path: Path) -> None:
    for name, text in {
        "lib/a.h": "",
        "lib/a.c": '#include "lib/b.h"\n',
        "lib/b.c": '#include "lib/a.h"\n',
        "jitter/c.c": '#include <time.h>\n#include "lib/a.h"\n#include "wake/d.h"\n',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = includes(tmp_path)
    assert set(cycle(graph)) == {"lib/a", "lib/b"}
    assert list(crossings(graph)) == [("jitter/c", "wake/d")]
