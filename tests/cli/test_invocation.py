"""How this tunectl is started again, by the service at boot: by a program that is there."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from tunectl.cli.options import Options


@pytest.mark.parametrize(
    ("is_there", "started", "expected"),
    [
        (True, "/usr/local/bin/tunectl", "{scripts}/tunectl"),  # a link or copy on PATH: the installation's own counts
        (False, "/usr/local/bin/tunectl", "/usr/local/bin/tunectl"),
        (False, "tunectl", "{scripts}/tunectl"),  # from where nobody knows
        (False, "/opt/site/tunectl/__main__.py", "{scripts}/tunectl"),
    ],
)
def test_a_program_that_is_gone_is_not_started_again(
    is_there: bool, started: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_there:
        (tmp_path / "tunectl").touch()
    monkeypatch.setattr(sysconfig, "get_path", lambda *_, **__: str(tmp_path))
    monkeypatch.setattr(sys, "argv", [started, "apply"])
    assert Options().invocation == (sys.executable, "-I", expected.format(scripts=tmp_path))
