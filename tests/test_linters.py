"""The linters are tests: what they say of the tree is said at once, not by a reviewer."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("ruff", "check", "."), id="lint"),
        pytest.param(("ruff", "format", "--check", "."), id="format"),
        pytest.param(("mypy",), id="types", marks=pytest.mark.slow),
    ],
)
def test_linter_is_silent(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
