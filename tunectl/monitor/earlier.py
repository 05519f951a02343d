"""What tunectl kept before it had one store: alerts.json, and a spool for each receiver. Taken over once, then removed.

A line of a spool is a mark, a CRC-32 and a JSON object: `+` waits, `-` is done. A line without its newline was cut off
by a crash and never promised to anybody.
"""

from __future__ import annotations

import glob
import json
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tunectl.durable import decode, read_regular
from tunectl.monitor.alerts import alert_of
from tunectl.monitor.model import Alert

_LARGEST = 64 << 20  # bytes
LOG = logging.getLogger("tunectl.monitor.store")


class Earlier(NamedTuple):
    """The files of one state directory, read."""

    paths: Sequence[str] = ()
    state: Mapping[str, Any] | None = None
    waiting: Sequence[tuple[str, Alert]] = ()  # for each receiver in the order in which they were queued
    lost: Mapping[str, int] = {}  # by receiver: damaged lines
    damaged: str = ""  # the path of a state that cannot be understood


def read_earlier(directory: str) -> Earlier:
    """Nothing where this directory never was an earlier version's. What cannot be read is said, and left there."""
    waiting: list[tuple[str, Alert]] = []
    lost: Counter[str] = Counter()
    paths, state, damaged = [], None, ""
    for name in ["alerts.json", *sorted(glob.glob("spool/*.spool", root_dir=directory))]:
        path = os.path.join(directory, name)
        try:
            data = read_regular(path, _LARGEST)
        except FileNotFoundError:
            continue
        except OSError as error:
            LOG.error("%s cannot be read (%s): it is left there", path, error.strerror)
            continue
        paths.append(path)
        if name == "alerts.json":
            state = _state(data)
            damaged = "" if state is not None else path
        else:
            receiver = os.path.basename(path).removesuffix(".spool")
            found = list(_waiting(data))
            waiting += [(receiver, alert) for alert in found if alert is not None]
            lost[receiver] += found.count(None)
    return Earlier(paths, state, waiting, +lost, damaged)


def remove_earlier(earlier: Earlier) -> None:
    """All of it stands in the store now."""
    for path in earlier.paths:
        with suppress(OSError):
            os.unlink(path)
        if path.endswith(".spool"):
            with suppress(OSError):
                os.rmdir(os.path.dirname(path))


def _waiting(data: bytes) -> Iterator[Alert | None]:
    """The alerts of a spool that are not done; None for each line that is not as it was written."""
    for line in data.split(b"\n")[:-1]:
        if not line.startswith(b"- "):
            yield alert_of(decode(line[2:])) if line.startswith(b"+ ") else None


def _state(data: bytes) -> Mapping[str, Any] | None:
    with suppress(ValueError):
        saved = json.loads(data)
        if isinstance(saved, dict) and saved.get("version") == 1:
            return saved
    return None
