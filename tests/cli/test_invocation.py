"""How this tunectl is started again, by the service at boot: by a program that is there."""

import sys
import sysconfig
from pathlib import Path

import pytest

from tunectl.cli.options import Options


@pytest.mark.parametrize(
    ("name", "started", "expected"),
    [
        ("tunectl", "/usr/local/bin/tunectl", "{scripts}/tunectl"),  # a copy on PATH: the installation's own counts
        ("other", "/usr/local/bin/tunectl", "/usr/local/bin/tunectl"),
        ("other", "tunectl", "{scripts}/tunectl"),  # from where nobody knows
        ("other", "/opt/site/tunectl/__main__.py", "{scripts}/tunectl"),
    ],
)
def test_a_program_that_is_gone_is_not_started_again(
    name: str, started: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).touch()
    monkeypatch.setattr(sysconfig, "get_path", lambda *_, **__: str(tmp_path))
    monkeypatch.setattr(sys, "argv", [started, "apply"])
    assert Options().invocation == (sys.executable, "-I", expected.format(scripts=tmp_path))
