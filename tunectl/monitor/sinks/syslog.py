"""syslog, for hosts whose log is no journal: the standard library's handler, one line an alert.

The line is for people; what follows it, in RFC 5424's own form of structured data, is for programs. Local daemons
read the older header from /dev/log, so the structured part stands in the message.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from logging.handlers import SysLogHandler

from tunectl.model import HostId
from tunectl.monitor.model import Alert
from tunectl.monitor.sinks.kinds import Notifier, SinkError
from tunectl.monitor.sinks.message import fields, level, line

SOCKET = "/dev/log"
_NAMES = {2: "critical", 4: "warning", 5: "notice", 6: "info"}
_UNSAFE = str.maketrans({"\\": "\\\\", '"': '\\"', "]": "\\]"})  # RFC 5424, section 6.3.3


class _Handler(SysLogHandler):
    """Says when a line was not taken; the library's own prints it and goes on."""

    def mapPriority(self, levelName: str) -> str:  # noqa: N802, N803 - the library's names
        return levelName

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        error = sys.exc_info()[1]
        self.close()
        if error is not None:
            raise error


def open_syslog(host: HostId, path: str = SOCKET) -> Notifier:
    """The notifier of the syslog daemon that listens at `path`."""

    def deliver(alerts: Sequence[Alert]) -> None:
        failed = ""
        try:
            handler = _Handler(path, SysLogHandler.LOG_DAEMON)
            handler.ident = f"tunectl[{os.getpid()}]: "
            for alert in alerts:
                handler.emit(_record(alert, host))
            handler.close()
        except OSError as error:
            failed = error.strerror or "no answer"
        if failed:
            raise SinkError(f"syslog does not take a line at {path}: {failed}")

    return Notifier("syslog", deliver)


def text(alert: Alert, host: HostId) -> str:
    """`FrequencyDrop[package0] firing: ... [tunectl rule="FrequencyDrop" ...]`, on one line."""
    pairs = " ".join(f'{name}="{value.translate(_UNSAFE)}"' for name, value in fields(alert, host).items())
    return f"{line(alert)} [tunectl {pairs}]"


def _record(alert: Alert, host: HostId) -> logging.LogRecord:
    # The level's name is what the handler makes a priority of; the record never passes a logger.
    record = logging.LogRecord("tunectl", logging.INFO, "", 0, text(alert, host), None, None)
    record.levelname = _NAMES[level(alert)]
    return record
