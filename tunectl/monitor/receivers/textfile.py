"""A file for node_exporter's textfile collector: written beside and renamed, so that it is never half there.

Source: node_exporter, collector/textfile.go: *.prom only, and no time stamps; it exports each file's age itself.
"""

from prometheus_client import generate_latest

from tunectl.durable import replace_file
from tunectl.errors import TunectlError
from tunectl.hostfile.monitor import check_textfile
from tunectl.monitor.model import Status
from tunectl.monitor.receivers import Exporter
from tunectl.monitor.receivers.metrics import Shown

_EVERY_S = 10.0  # Prometheus asks node_exporter each 15 s by default; what fires is written at once


def file_exporter(path: str) -> Exporter:
    """The exporter to `path`. UsageError where no textfile collector would read it."""
    check_textfile(path)
    return Exporter("textfile", Textfile(path).show, lambda: None)


class Textfile:
    """One file. Where the disk is full or the directory missing, the next look tries again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._shown = Shown()
        self._due_s = float("-inf")
        self._firing: frozenset[str] = frozenset()

    def show(self, status: Status) -> None:
        """Writes, if it is time or something began or ceased to fire. TunectlError."""
        self._shown.see(status)
        firing = frozenset(alert.identity for alert in status.firing)
        if status.snapshot.monotonic_s < self._due_s and firing == self._firing:
            return
        try:
            # Readable for everybody, whatever our umask: node_exporter is another user.
            data = generate_latest(self._shown.registry)
            replace_file(self._path, data, beside=f"{self._path}.new", durable=False)
        except OSError as error:
            raise TunectlError(f"cannot write {self._path}: {error.strerror}") from error
        self._due_s, self._firing = status.snapshot.monotonic_s + _EVERY_S, firing
