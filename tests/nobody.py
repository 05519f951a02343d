"""A user who is not root: the product on a recorded host, where what may not be read is denied for real; any script."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import TUNECTL
from tests.ran import Ran
from tests.starter import DROP, shared_starter

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="to become another user needs root")


def open_to_all(below: Path) -> None:
    """Everybody may read what is there."""
    for place in (below, *below.rglob("*")):
        if not place.is_symlink():
            place.chmod(0o755)


def close(place: Path) -> None:
    """Only root may read it; programs and directories stay what they are."""
    place.chmod(0o700 if place.is_dir() or place.stat().st_mode & 0o100 else 0o600)


def as_nobody(tree: Path, *words: str) -> Ran:
    """`tunectl WORDS` on a recorded host, its answer as JSON."""
    argv = [str(TUNECTL), *words, "--format", "json", "--root", str(tree)]
    return shared_starter(nobody=True).run(argv, os.environ, None, cwd="/")


def as_user(script: str, *shell: str) -> str:
    """What a script prints that nobody runs, of the shell if of no other program; it has to succeed."""
    argv = [*DROP, *(shell or ("sh", "-e")), "-c", script]
    ran = subprocess.run(argv, cwd="/", capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@contextmanager
def at_work(script: str, *words: object, drop: Sequence[str] = DROP) -> Iterator[int]:
    """The pid of a Python script that runs as nobody, or as `drop` makes it: from its first line of output on."""
    argv = [*drop, sys.executable, "-c", script, *map(str, words)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "it ended before it did its work"
            yield process.pid
        finally:
            process.kill()
