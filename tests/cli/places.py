"""Where and as whom the program is run: on a terminal, without root, in a mount namespace of its own."""

import fcntl
import json
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TUNECTL
from tests.ran import Ran
from tests.starter import NOBODY, shared_starter

IS_ROOT = os.geteuid() == 0
PROGRAM = [sys.executable, str(TUNECTL)]

_can_unshare = IS_ROOT and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
needs_mounts = pytest.mark.skipif(not _can_unshare, reason="needs root and unshare(1), to mount in a namespace")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours, without what would change the program's answers."""
    dropped = ("TUNECTL_", "COLUMNS", "LINES", "NO_COLOR")  # a worker of pytest-xdist has the two in the middle
    return {**{key: value for key, value in os.environ.items() if not key.startswith(dropped)}, **(extra or {})}


@cache
def unprivileged(user: int = NOBODY) -> list[str]:
    """The words in front of a command that make it this user's. Skips where root cannot be given up."""
    if not IS_ROOT:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv(1), to give root up")
    words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    if subprocess.run([*words, *PROGRAM, "--version"], capture_output=True).returncode:
        pytest.skip(f"nobody may not run {TUNECTL}")
    return words


def this_host_file(place: Path, more: str = "", profile: str = "low-latency") -> Path:
    """A host file that fits the machine of the tests: its last CPU is isolated."""
    path = place / "host.toml"
    isolated = max(os.sched_getaffinity(0))
    path.write_text(f'profile = "{profile}"\nisolated = "{isolated}"\nallow_split_siblings = true\n{more}')
    return path


def answering(place: Path, document: Mapping[str, Any]) -> dict[str, str]:
    """The environment in which tunectl-probe answers with this document."""
    program = place / "tunectl-probe"
    program.write_text(f"#!{sys.executable}\nprint({json.dumps(document)!r})\n")
    program.chmod(0o755)
    return {"TUNECTL_PROBE": str(program)}


def started(*words: object, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[str]:
    """The program, with pipes for what it says; `more` is subprocess.Popen's."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more
    return subprocess.Popen([*PROGRAM, *map(str, words)], env=environment(env), **pipes)


def wait_until_it_waits(process: subprocess.Popen[Any]) -> None:
    """Until it only waits: it sleeps, and has used no CPU time for half a second. A busy machine delays that."""
    end = time.monotonic() + 60
    before, since = None, time.monotonic()
    while time.monotonic() - since < 0.5:
        assert time.monotonic() < end, "it never waits"
        assert process.poll() is None, f"it ended with {process.returncode}"
        state, *rest = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        now = rest[10:12]  # its CPU time: proc(5), utime and stime
        if now != before or state != "S":
            before, since = now, time.monotonic()
        time.sleep(0.02)


def as_nobody(*words: object, env: Mapping[str, str] | None = None) -> Ran:
    """The program without root; like the `tunectl` fixture otherwise."""
    unprivileged()
    done = shared_starter(nobody=IS_ROOT).run([str(TUNECTL), *map(str, words)], environment(env), None, cwd="/")
    assert "Traceback" not in done.err, done.err
    return done


def with_mounts(script: str, *words: object) -> list[Ran]:
    """A shell script in a mount namespace of its own, where `run` is the program. What became of every `run`."""
    prologue = "run() { n=$((n + 1)); mkdir r$n; rc=0\n"
    prologue += '"$PYTHON" "$TUNECTL" "$@" >r$n/out 2>r$n/err </dev/null || rc=$?; echo $rc >r$n/rc; }\n'
    place = Path(tempfile.mkdtemp())
    try:
        env = environment({"PYTHON": sys.executable, "TUNECTL": str(TUNECTL)})
        command = ["unshare", "-m", "sh", "-euc", f"n=0\n{prologue}{script}", "sh", *map(str, words)]
        subprocess.run(command, env=env, cwd=place, check=True, timeout=120)
        results = sorted(place.glob("r[0-9]*"), key=lambda path: int(path.name[1:]))
        return [
            Ran(int((one / "rc").read_text()), (one / "out").read_text(), (one / "err").read_text()) for one in results
        ]
    finally:
        shutil.rmtree(place)


def on_terminal(
    *words: object,
    answer: str = "",
    at: str = "",
    then: Callable[[], None] | None = None,
    env: Mapping[str, str] | None = None,
    result_too: bool = False,
    lines: int = 24,
) -> tuple[int, str]:
    """Runs the program with stdin and stderr (`result_too`: and stdout) on a terminal: (exit code, what it showed).

    Once it shows `at`, `then` is called and `answer` typed. The terminal has 80 columns.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80, 0, 0))
    out = slave if result_too else subprocess.DEVNULL
    process = subprocess.Popen(
        [*PROGRAM, *map(str, words)],
        stdin=slave,
        stdout=out,
        stderr=slave,
        env=environment({"TERM": "xterm", **(env or {})}),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,  # so that typing ^C means something
    )
    os.close(slave)
    shown = typed = b""
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 0.2)[0]:
                if process.poll() is not None:
                    break
                if typed in (b"\x03", b"\x04"):  # it may have come a moment before the program waited for it
                    os.write(master, typed)
                continue
            try:
                shown += os.read(master, 65536)
            except OSError:  # EIO: the last one who held the terminal has gone
                break
            if answer and at.encode() in shown:
                if then:
                    then()
                typed, answer = answer.encode(), ""
                os.write(master, typed)
        return process.wait(timeout=60), shown.decode("utf-8", "replace")
    finally:
        process.kill()
        process.wait()
        os.close(master)


def code_of_cases(document: Mapping[str, Any]) -> int:
    """How `probe wake` and `probe feed` have to end: on a busy machine every case may be void."""
    return 0 if any(cell["n"] for cell in document["cells"]) else 1


def complaint(done: Ran, code: int) -> str:
    """What a failed command says: one line, the right exit code, no result."""
    assert (done.code, done.out) == (code, ""), (done.code, done.out[:500], done.err)
    assert done.err.startswith("tunectl: ")
    assert done.err.endswith("\n")
    assert done.err.count("\n") == 1
    assert done.err.rstrip("\n").isprintable()
    assert "internal error" not in done.err
    return done.err.removeprefix("tunectl: ").rstrip("\n")
