"""A program of the operator's: started without a shell, the alert as JSON on its standard input.

Exit status 0: taken. 65 (sysexits.h, EX_DATAERR): refused, not tried again. Anything else, and a program that does
not end in time, is tried again, a few times: one alert that a hook cannot digest must not hold up all that follow.
"""

import hashlib
import os
from collections.abc import Sequence

from tunectl.address import DeliveryError
from tunectl.errors import TunectlError
from tunectl.hostfile.monitor import check_hook
from tunectl.hostfile.shape import Hook
from tunectl.model import HostId
from tunectl.monitor.model import Alert
from tunectl.monitor.receivers import Receiver
from tunectl.monitor.receivers.message import delivery_id, document

_REFUSED = 65
_TRIES = 10


def open_hook(hook: Hook, host: HostId, number: int = 0) -> Receiver:
    """The receiver that starts `hook`. UsageError where its command cannot be started."""
    check_hook(hook, f"monitor.hooks[{number}]")

    def deliver(alerts: Sequence[Alert]) -> None:
        from tunectl.host.run import run  # subprocess is not cheap to import

        for alert in alerts:
            env = {"HOME": "/", "TUNECTL_ALERT_ID": delivery_id(alert, host)}
            stdin = document(alert, host)
            try:
                done = run(hook.command, timeout_s=hook.timeout_s, env=env, stdin=stdin, capture=False)
            except TunectlError as error:
                raise DeliveryError(str(error)) from None
            if done.returncode:
                # Only the program's name is said: its arguments may be secrets of the operator's.
                why = f"{hook.command[0]} ended with status {done.returncode}"
                raise DeliveryError(why, retry=done.returncode != _REFUSED)

    program = os.path.basename(hook.command[0])
    digest = hashlib.sha256("\0".join(hook.command).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return Receiver(f"hook-{program}-{digest}", deliver, tries=_TRIES)
