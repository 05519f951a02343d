"""When a calendar time of systemd comes round: systemd's own answer, for nobody else reads it as systemd does.

Source: systemd.time(7), "Calendar events"; systemd-analyze(1), "calendar".
"""

import re
from datetime import UTC, datetime

from tunectl.errors import TunectlError, UsageError, words_of
from tunectl.host.run import run

_TIMEOUT_S = 10.0
_WRITTEN = re.compile(r"[A-Za-z0-9 ,.:*/~_+-]{1,200}")  # no percent sign, which a unit expands, and no end of line
_COMES = re.compile(r"^ *(?:Next elapse|Iter\. #\d+): \w+ ([\d-]+ [\d:]+) UTC$", re.MULTILINE)


def check_calendar(when: str) -> str:
    """The time as it was given. UsageError where systemd does not read it, it never comes, or nobody here can tell."""
    if not _WRITTEN.fullmatch(when):
        raise UsageError(f"--at {when!r}: is no calendar time", '"Mon..Fri 07:45 Europe/London": systemd.time(7)')
    try:
        is_known = bool(elapses(when, datetime.now(UTC), 1))
    except TunectlError as error:
        raise UsageError(f"--at {when!r}: {error.message}", "systemd.time(7) has what can be written") from None
    if not is_known:
        raise UsageError(f"--at {when!r}: never comes again")
    return when


def elapses(when: str, since: datetime, most: int) -> list[datetime]:
    """The first times after `since`. TunectlError where systemd-analyze is not there, or does not read `when`."""
    base = since.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    argv = ["systemd-analyze", "calendar", f"--iterations={most}", f"--base-time={base}", "--", when]
    done = run(argv, timeout_s=_TIMEOUT_S, env={"TZ": "UTC", "SYSTEMD_COLORS": "0"})
    if done.returncode:
        raise TunectlError(words_of(done.stderr) or f"systemd-analyze ended with status {done.returncode}")
    return [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in _COMES.findall(done.stdout)]
