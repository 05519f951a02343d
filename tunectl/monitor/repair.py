"""--repair: a request file that tunectl-repair.path turns into a run of apply. The monitor itself writes no host file.

A drifted knob is asked for once; while it stays drifted, again after a pause that doubles. What apply cannot mend
(somebody sets it back at once) thus costs three runs and one line, not a run a minute for ever.
"""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tunectl.errors import TunectlError
from tunectl.monitor.model import Alert
from tunectl.wording import few

RULE = "KnobDrift"
REQUEST = "repair-request"
_NEXT_BOOT = "boot."  # what only a reboot brings is nothing for `apply --runtime`
PAUSE_S = 60.0
MAX_TRIES = 3


class Asked(NamedTuple):
    """What was asked for, and when to ask again."""

    identities: frozenset[str]
    tries: int
    again_s: float  # CLOCK_BOOTTIME


class Repair:
    """Decides when a repair is asked for, and asks."""

    def __init__(
        self, directory: str, pause_s: float = PAUSE_S, taken_back: Callable[[], frozenset[str]] = frozenset
    ) -> None:
        """`directory` is the service's RuntimeDirectory; `taken_back` tells what a repair only made worse."""
        self.path = os.path.join(directory, REQUEST)
        self._pause_s, self._taken_back = pause_s, taken_back
        self._asked = Asked(frozenset(), 0, 0.0)

    def consider(self, firing: Iterable[Alert], now_s: float) -> str:
        """Asks where a knob drifted; returns what is to be said of it, or "". TunectlError where it cannot ask."""
        drifted = frozenset(
            alert.identity for alert in firing if alert.rule == RULE and not alert.subject.startswith(_NEXT_BOOT)
        )
        asked = self._asked
        if not drifted:
            # The pause stays: a knob that flaps between two values is no reason to run apply each time.
            self._asked = Asked(frozenset(), 0, asked.again_s)
            return ""
        tries = asked.tries if drifted <= asked.identities else 0
        if now_s < asked.again_s or tries > MAX_TRIES:
            return ""
        if drifted <= {f"{RULE}[{target}]" for target in self._taken_back()}:
            self._asked = Asked(drifted, MAX_TRIES + 1, now_s)
            return f"repair: of {few(drifted)} made things worse and was taken back: not asked for any more"
        pause = self._pause_s * 2**tries
        self._asked = Asked(drifted | asked.identities, tries + 1, now_s + pause)
        if tries == MAX_TRIES:
            return f"repair: {few(drifted)} drifted again after {MAX_TRIES} runs of apply: not asked for any more"
        touch(self.path)
        return f"repair: asked for apply, because of {few(drifted)}"


def touch(path: str) -> None:
    """The file is written again: what PathChanged= of systemd.path(5) waits for. It says nothing: apply finds out."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        os.write(fd, b"1\n")
        os.close(fd)
    except OSError as error:
        raise TunectlError(f"repair: cannot write {path}: {error.strerror}") from error
