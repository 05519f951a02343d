"""The way into the guest: one kept ssh connection a user, since a handshake costs a second here."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .shell import LabError, tail

LOGIN_S = 90
LOGINS = 3


def time_left(seconds: float, waited: Callable[[], float]) -> Callable[[], float]:
    """Tells how much is left of so many seconds, of which those do not count that were waited for a CPU.

    A guest beside much other work takes longer on the clock, and is no slower for that.
    """
    begun, before = time.monotonic(), waited()
    return lambda: seconds - (time.monotonic() - begun) + max(waited() - before, 0)


@dataclass(frozen=True)
class Result:
    """What a command in the guest did."""

    command: str
    code: int
    out: str
    err: str
    raw: bytes = b""  # stdout as it came, for files that are no text

    def __str__(self) -> str:
        """Everything a failing test should show."""
        return f"{self.command!r} ended with {self.code}\n{tail(self.out, 60)}\n{tail(self.err, 60)}"


@dataclass(frozen=True)
class Ssh:
    """A guest's ssh server on a loopback port of this machine."""

    run_dir: Path
    key: Path
    port: int
    waited: Callable[[], float] = lambda: 0.0  # seconds for which the guest has waited for a CPU

    def argv(self, user: str = "root", tty: bool = False) -> list[str]:
        """ssh's command line up to, and with, the destination."""
        options = {
            # The host key is new with each image, and the way there is a loopback port of our own QEMU.
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
            "ConnectTimeout": "30",
            "ControlMaster": "auto",
            "ControlPersist": "yes",
            "ControlPath": str(self.run_dir / f"ssh-{user}"),
            # A guest that was killed or resumed does not say goodbye.
            "ServerAliveInterval": "15",
            "ServerAliveCountMax": "20",
        }
        words = ["ssh", "-F", "/dev/null", "-i", str(self.key), "-p", str(self.port), "-t" if tty else "-T"]
        for name, value in options.items():
            words += ["-o", f"{name}={value}"]
        return [*words, f"{user}@127.0.0.1"]

    def run(self, command: str, user: str, stdin: bytes | None, timeout: float) -> Result:
        """Run a shell command; LabError if it takes longer than timeout seconds or the connection breaks."""
        self._connect(user)
        done = self._pipe([*self.argv(user), command], stdin, timeout, command)
        text = [stream.decode(errors="replace") for stream in (done.stdout, done.stderr)]
        return Result(command, done.returncode, text[0], text[1], done.stdout)

    def wait(self, timeout: float, alive: Callable[[], bool]) -> None:
        """Wait until the server greets; LabError after timeout seconds or when the machine has ended.

        Looks for the greeting only: a whole login tried too early would slow down the boot it waits for.
        """
        left = time_left(timeout, self.waited)
        while not self.greets():
            if not alive():
                raise LabError("QEMU ended while the guest booted")
            if left() <= 0:
                raise LabError(f"no ssh server in the guest after {timeout:.0f} s")
            time.sleep(0.3)

    def close(self) -> None:
        """End the kept connections; the next command makes a new one."""
        for control in self.run_dir.glob("ssh-*"):
            user = control.name.removeprefix("ssh-")
            argv = [*self.argv(user)[:-1], "-O", "exit", f"{user}@127.0.0.1"]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(argv, capture_output=True, check=False, timeout=10)
            control.unlink(missing_ok=True)

    def greets(self) -> bool:
        """Is a server there that lets somebody in?"""
        address = ("127.0.0.1", self.port)
        with contextlib.suppress(OSError), socket.create_connection(address, timeout=10) as connection:
            return connection.recv(4) == b"SSH-"
        return False

    def _connect(self, user: str) -> None:
        """Start the kept connection on its own: a command's pipes it would hold open for ever.

        Right after a boot on a busy machine a handshake may take longer than either side waits: it is tried again.
        """
        if (self.run_dir / f"ssh-{user}").exists():
            return
        argv = [*self.argv(user)[:-1], "-fN", f"{user}@127.0.0.1"]
        if not any(_quietly(argv) == 0 for _ in range(LOGINS)):
            raise LabError(f"the guest does not let {user} in: asked {LOGINS} times")

    def _pipe(
        self, argv: Sequence[str], stdin: bytes | None, timeout: float, what: str
    ) -> "subprocess.CompletedProcess[bytes]":
        left, pipe = time_left(timeout, self.waited), subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            while True:
                try:
                    out, err = process.communicate(stdin, max(left(), 0))
                    break
                except subprocess.TimeoutExpired as error:
                    stdin = None  # it has it
                    if left() <= 0:
                        process.kill()
                        raise LabError(f"{what!r} did not end within {timeout:.0f} s") from error
        if process.returncode == 255:
            raise LabError(f"the connection broke during {what!r}: {err.decode(errors='replace')}")
        return subprocess.CompletedProcess(argv, process.returncode, out, err)


def _quietly(argv: Sequence[str]) -> int:
    """Run a program and return its exit code; -1 where it takes longer than a login may."""
    nothing = subprocess.DEVNULL
    try:
        return subprocess.run(
            argv, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True, timeout=LOGIN_S, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return -1
