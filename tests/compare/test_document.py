"""Files that are no probe's result: one line that says which file, which key, and what would be right."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compare.feeds import feed_document
from tests.compare.reading import compared
from tests.compare.runs import cpu_of, document, simulated
from tests.compare.wakes import cell, wake_document
from tests.conftest import examples
from tunectl.errors import TunectlError
from tunectl.probe.document import read_document

GOOD = document(cpu_of(simulated(1, 2.0), 2.0), seconds=2.0)
WHOLE = json.dumps(GOOD)


def complaint(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(TunectlError) as caught:
        read_document(path)
    said = str(caught.value)
    assert "\n" not in said
    assert str(path) in said
    return said.replace(str(path), "FILE")


JITTER = '"schema": "tunectl.probe.jitter/1"'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "is not JSON"),
        (WHOLE[: len(WHOLE) // 2], "is not JSON"),
        ("hello", "is not JSON"),
        (b"\x1f\x8b\x08\x00", "is not JSON"),
        (b'"\xff\xfe"', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        (f'{{{JITTER}, "duration_s": NaN}}', "is not JSON"),
        (f'{{{JITTER}, "duration_s": 1e999}}', "is not JSON"),
        ("[]", "schema: is missing"),
        ("{}", "schema: is missing"),
        ('{"schema": 1}', "schema: is missing"),
        ('{"schema": "tunectl.verify/1"}', "schema: tunectl.verify/1 "),
        ('{"schema": "tunectl.probe.jitter/2"}', "schema: tunectl.probe.jitter/2 is of another version"),
        ('{"schema": "tunectl.probe.jitter.raw/2"}', "schema: tunectl.probe.jitter.raw/2 is of another version"),
        ('{"schema": "tunectl.probe.wake.raw/2"}', "schema: tunectl.probe.wake.raw/2 is of another version"),
        (f"{{{JITTER}}}", "the document: Object missing required field `threshold_ns`"),
    ],
)
def test_what_is_no_result(tmp_path: Path, text: str | bytes, place: str) -> None:
    assert complaint(tmp_path / "x.json", text).startswith(f"FILE: {place}")


def changed(*path: Any, to: Any) -> str:
    made: Any = copy.deepcopy(GOOD)
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(made)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        *((changed("cpus", 0, "max_ns", to=bad), "cpus[0].max_ns") for bad in ("x", -1, 10**300)),
        (changed("cpus", 0, "interruptions", to=True), "cpus[0].interruptions"),
        # Of another shape; ends before it begins; is of no cause among the labels; ends at once.
        *((changed("cpus", 0, "events", 3, to=to), "cpus[0].events[3]") for to in ([1, 2], [9, 2, 0])),
        *((changed("cpus", 0, "events", 3, to=to), "cpus[0].events[3]") for to in ([8, 9, 1], [9, 9, 0])),
        (changed("cpus", 0, "histogram", 0, to=[9, 2, 1]), "cpus[0].histogram"),
        (changed("cpus", 0, "histogram", to=[]), "cpus[0].histogram: holds 0 of "),
        (changed("cpus", 0, "duration_ns", to=4 * 10**9), "duration_s: 2, and the longest duration_ns is 4 s"),
        (changed("duration_s", to=4.0), "duration_s: 4, and the longest duration_ns is 2 s"),
        (changed("cpus", 0, "events", to=[]), "cpus[0].events: 0 and 0 lost are not the "),
        (changed("cpus", 0, "events_lost", to=1), "cpus[0].events"),
        (changed("cpus", to=[]), "cpus"),
        (changed("cpus", to=GOOD["cpus"] * 2), "cpus"),
        (changed("cpus", to=None), "cpus"),
        *((changed("duration_s", to=to), "duration_s") for to in (0, 1e300)),
        (changed("clock", "hz", to=0), "clock.hz"),
        (changed("threshold_ns", to=None), "threshold_ns"),
        (json.dumps(wake_document()), "cells"),
        (json.dumps(feed_document()), "cells"),
        (json.dumps(wake_document(cell("a", "b", 1, n=5))), "cells[0].histogram: holds 201 of 5"),
    ],
)
def test_what_is_wrong_in_a_result(tmp_path: Path, text: str, place: str) -> None:
    assert complaint(tmp_path / "x.json", text).startswith(f"FILE: {place}")


def test_the_twins_that_are_right(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for body, name in ((GOOD, "probe.jitter"), (wake_document(cell("a", "b", 1)), "probe.wake")):
        path.write_text(json.dumps({**body, "of the future": [1]}))
        assert read_document(path).name == name


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(TunectlError, match=r"cannot read .*/none: No such file or directory"):
        read_document(tmp_path / "none")
    with pytest.raises(TunectlError, match="Is a directory"):
        read_document(tmp_path)


EDGES = [0, 1, 2**63 - 1, [5, 5, 0]]
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from(EDGES)
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
places = st.sampled_from(
    [
        *[(key,) for key in GOOD],
        *[("cpus", 0, key) for key in GOOD["cpus"][0]],
        *[("clock", "hz"), ("host", "hostname"), ("cpus", 0, "events", 2, 0), ("cpus", 0, "histogram", 1, 2)],
        *[("cpus", 0, "events", 2), ("cpus", 0, "events", 2, 1), ("cpus", 0, "histogram", 1)],
        *[("cpus", 0, "series"), ("cpus", 0, "causes"), ("cpus", 0, "counters", "irq"), ("budget", "broken")],
    ]
)


@settings(max_examples=examples(50))
@given(places, anything)
def test_any_value_anywhere_is_compared_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], value: Any
) -> None:
    """Never a traceback: whatever the type checks let through, the statistics can bear, and so can the page."""
    from tunectl.model import Document, HostId
    from tunectl.report import render

    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_text(changed(*place, to=value))
    try:
        file = read_document(path)
        body = compared(file, file)
    except TunectlError:
        return
    shown = {"files": [{**vars(file), "doubt": ""}] * 2, "compare": body}
    assert render(Document("report", HostId(), "", shown), "html").startswith("<!doctype html>")
    assert render(Document("compare", HostId(), "", body), "text")
    json.dumps(json.loads(render(Document("compare", HostId(), "", body), "json")), allow_nan=False)
