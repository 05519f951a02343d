"""Starts the product hundreds of times for the price of a fork: everything is imported once, in a process of its own.

    shared_starter().run([...words], env, stdin) -> Ran

A child of the server is a process that has just imported the product's modules and now runs its console script: own
environment, own standard streams, own end. What an interpreter reads when it starts (PYTHON*, the locale) it has read
already: `needs_own_interpreter` says for which environments that will not do.
"""

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.ran import Ran

LIMIT_S = 300
NOBODY = 65534
DROP = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all")
_ROOT = Path(__file__).parent.parent


def needs_own_interpreter(env: Mapping[str, str]) -> bool:
    """Would an interpreter that started in `env` behave otherwise from its first line on?"""
    at_start = ("PYTHON", "LC_", "LANG", "MALLOC", "LD_")
    return any(env.get(key) != os.environ.get(key) for key in {*env, *os.environ} if key.startswith(at_start))


class Starter:
    """One server, and the socket to it. With `nobody`, root has given all it has up before the interpreter starts."""

    def __init__(self, *, nobody: bool = False) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [*(DROP if nobody else ()), sys.executable, "-m", "tests.starter", str(theirs.fileno())]
        self._server = subprocess.Popen(argv, cwd=_ROOT, pass_fds=[theirs.fileno()])
        theirs.close()

    def run(
        self, argv: Sequence[str], env: Mapping[str, str], stdin: str | None, cwd: str = "", first: str = ""
    ) -> Ran:
        """`argv[0]` is a Python script; `first` is what the process does before it. TimeoutError after LIMIT_S."""
        with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin or "")
            given.seek(0)
            request = {"argv": list(argv), "env": dict(env), "cwd": cwd or os.getcwd(), "first": first}
            with tempfile.TemporaryFile("w+") as asked:  # a host file's worth of words may not fit a datagram
                json.dump(request, asked)
                asked.flush()
                fds = [asked.fileno(), given.fileno(), out.fileno(), err.fileno()]
                socket.send_fds(self._ours, [b"run"], fds)
                code = int(self._ours.recv(64))
            if code == -signal.SIGALRM:
                raise TimeoutError(f"{argv} took more than {LIMIT_S} s")
            return Ran(code, _text(out.fileno()), _text(err.fileno()))

    def close(self) -> None:
        """Ends the server and waits for it."""
        self._ours.close()
        self._server.wait(timeout=60)


_SHARED: dict[bool, Starter] = {}


def shared_starter(*, nobody: bool = False) -> Starter:
    """The one that every test of this process shares; end_shared_starters() ends it."""
    if nobody not in _SHARED:
        _SHARED[nobody] = Starter(nobody=nobody)
    return _SHARED[nobody]


def end_shared_starters() -> None:
    """Those that were started."""
    while _SHARED:
        _SHARED.popitem()[1].close()


def _text(fd: int) -> str:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(os.dup(fd)) as stream:
        return stream.read()


def _serve(requests: socket.socket) -> None:
    while True:
        word, fds, _, _ = socket.recv_fds(requests, 16, 4)
        if not word:
            return
        child = os.fork()
        if not child:
            requests.close()
            _become(*fds)
        for fd in fds:
            os.close(fd)
        _, status = os.waitpid(child, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(asked: int, stdin: int, stdout: int, stderr: int) -> None:
    """The child: the product, as if it had just been started."""
    with os.fdopen(asked) as stream:
        stream.seek(0)
        request = json.load(stream)
    for target, fd in enumerate((stdin, stdout, stderr)):
        os.dup2(fd, target)
        os.close(fd)
    signal.alarm(LIMIT_S)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = request["argv"]
    exec(request["first"], {})
    runpy.run_path(sys.argv[0], run_name="__main__")
    os._exit(0)


def _import_the_product() -> None:
    import importlib
    import pkgutil

    for package in ("tunectl.cli", "tunectl.report", "tunectl.checking", "tunectl.compare"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    from tunectl.hostfile.profile import load_profile, shipped

    for name in shipped():  # a process reads a shipped profile once
        load_profile(name)


if __name__ == "__main__":
    _import_the_product()
    _serve(socket.socket(fileno=int(sys.argv[1])))
