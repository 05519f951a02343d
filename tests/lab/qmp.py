"""QEMU's machine protocol: one JSON object a line over a unix socket."""

import json
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from .shell import LabError

Event = dict[str, Any]


class Qmp:
    """One conversation with a running QEMU; use it as a context manager.

    >>> with Qmp(run_dir / "qmp") as qmp:
    ...     qmp.execute("query-status")["status"]
    'running'
    """

    def __init__(self, path: Path, timeout: float = 300) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        self._events: list[Event] = []
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise LabError(f"no QEMU answers at {path}: {error}") from error
        self._lines = self._socket.makefile("r", encoding="utf-8")
        self._receive()  # the greeting
        self.execute("qmp_capabilities")

    def __enter__(self) -> "Qmp":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._socket.close()

    def execute(self, command: str, arguments: Mapping[str, object] | None = None) -> Any:
        """Run a command and return its result; LabError carries QEMU's own description if it refuses."""
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments or {}}).encode() + b"\n")
        while True:
            reply = self._receive()
            if "event" in reply:
                self._events.append(reply)
            elif "error" in reply:
                raise LabError(f"QEMU refuses {command}: {reply['error']['desc']}")
            else:
                return reply["return"]

    def monitor(self, command: str, cpu: int) -> str:
        """What QEMU's human monitor answers, as that CPU sees the machine."""
        arguments = {"command-line": command, "cpu-index": cpu}
        return str(self.execute("human-monitor-command", arguments)).replace("\r", "")

    def wait_event(self, wanted: Callable[[Event], bool], what: str, timeout: float) -> Event:
        """The first event, past or coming, for which wanted(event) holds."""
        deadline = time.monotonic() + timeout
        while True:
            for event in self._events:
                if wanted(event):
                    return event
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise LabError(f"{what} did not happen within {timeout:.0f} s")
            self._socket.settimeout(remaining)
            message = self._receive()
            if "event" in message:
                self._events.append(message)

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._lines.readline()
        except TimeoutError as error:
            raise LabError("QEMU did not answer in time") from error
        if not line:
            raise LabError("QEMU closed the conversation")
        message: dict[str, Any] = json.loads(line)
        return message
