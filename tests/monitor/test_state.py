"""What survives a restart: whole or not at all, and only one monitor's."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from tunectl.errors import TunectlError
from tunectl.monitor.state import OccupiedError, State


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    state = State(str(tmp_path / "new/monitor"))
    assert state.load() == {}
    state.save({"alerts": {"a": [1, "µ"]}})
    assert State(state.directory).load() == {"version": 1, "alerts": {"a": [1, "µ"]}}
    assert os.listdir(state.directory) == ["alerts.json"]


def test_a_directory_has_one_monitor(tmp_path: Path) -> None:
    first, second = State(str(tmp_path)), State(str(tmp_path))
    first.hold()
    with pytest.raises(OccupiedError, match="another monitor"):
        second.hold()
    first.release()
    second.hold()
    second.release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}', "\udcff"])
def test_a_damaged_file_is_said_and_not_believed(tmp_path: Path, text: str) -> None:
    (tmp_path / "alerts.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TunectlError, match="start anew"):
        State(str(tmp_path)).load()


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    state = State(str(tmp_path))
    state.save({"alerts": {}})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(TunectlError, match="cannot save"):
            state.save({"alerts": {"x": "y" * 4096}})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert state.load() == {"version": 1, "alerts": {}}
    assert os.listdir(tmp_path) == ["alerts.json"]


def test_a_place_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    state = State(str(tmp_path / "file/monitor"))
    with pytest.raises(TunectlError, match="not remembered"):
        state.hold()
    with pytest.raises(TunectlError, match="cannot save"):
        state.save({})
