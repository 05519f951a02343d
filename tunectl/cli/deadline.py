"""tunectl deadline"""

import time

import click

from tunectl.cli.command import emit, stay_off, tunectl_command
from tunectl.cli.confirm import tried
from tunectl.cli.helped import FAILED, OK, Example
from tunectl.cli.options import Options
from tunectl.cpulist import parse_cpulist
from tunectl.host.identity import read_identity
from tunectl.host.writable import WritableSysroot
from tunectl.tuning.confirming import Ended, end_when_due
from tunectl.tuning.transaction import require_root
from tunectl.tuning.trial import Due, boot_time, read_trial

_SLICE_S = 1.0  # sleep(3) does not count what the host sleeps, and nobody tells that it was confirmed
_WAIT_S = 600.0  # an apply or a restore at work has its own limits


@tunectl_command(
    exits={OK: "nothing is due any more, or yet"},
    examples=(Example("Take back now what is due, after its unit failed:", "sudo tunectl deadline --boot"),),
)
@click.option("--boot", is_flag=True, help="Do not wait: take back only what is due now.")
def command(options: Options, boot: bool) -> int:
    """Wait until an unconfirmed change is due, and take it back; end at once when it is confirmed.

    It is what the units run that `apply --confirm-within` writes. Of a recorded host nothing is waited for.
    """
    root = WritableSysroot(options.root)
    require_root(root, "deadline")
    identity = read_identity(root)
    ended = end_when_due(root, options.state_path, identity.boot_id, wait_s=_WAIT_S)
    while ended and ended.due is Due.WAIT and root.live and not boot:
        stay_off(root, parse_cpulist(ended.trial.isolated))
        _sleep(root, options.state_path)
        ended = end_when_due(root, options.state_path, identity.boot_id, wait_s=_WAIT_S)
    if ended is None:
        return OK
    emit(options, "trial", identity, tried(ended, _said(ended)))
    return OK if ended.complete else FAILED


def _sleep(root: WritableSysroot, state: str) -> None:
    trial = read_trial(state, root)
    time.sleep(min(_SLICE_S, max(0.05, trial.deadline_s - boot_time())) if trial else 0.0)


def _said(ended: Ended) -> list[str]:
    return [f"it is due in {ended.trial.deadline_s - boot_time():.0f} s"] if ended.due is Due.WAIT else []
