"""Whether a change waits for its confirmation, and how long still: what `apply --confirm-within` noted of it."""

from collections.abc import Iterator

from tunectl.errors import TunectlError
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.watched_host import Source, WatchedHost
from tunectl.tuning.trial import read_trial

_NAME, _QUANTITY = "unconfirmed", "unconfirmed_s"


def read(host: WatchedHost) -> Iterator[Sample]:
    """Of a change that waits, the seconds until it is taken back; nothing where none waits."""
    try:
        trial = read_trial(host.inspection.journal.directory, host.root)
    except TunectlError as error:
        yield Sample(_QUANTITY, "host", None, _NAME, Freshness.NO_DATA, error.message)
        return
    if trial and not trial.is_over:
        is_of_this_boot = trial.boot_id == host.inspection.identity.boot_id
        yield Sample(_QUANTITY, "host", max(0.0, trial.deadline_s - host.now()) if is_of_this_boot else 0.0, _NAME)


SOURCE = Source(
    _NAME,
    ("trial.json in the state directory",),
    "nobody: a small file",
    "always",
    read,
)
