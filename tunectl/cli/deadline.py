"""tunectl deadline"""

import time
from functools import partial

import click

from tunectl.cli.command import emit, stay_off, tunectl_command
from tunectl.cli.confirm import of_set, tried
from tunectl.cli.helped import FAILED, OK, Example
from tunectl.cli.options import WINDOW_S, Options
from tunectl.cpulist import parse_cpulist
from tunectl.host.identity import read_identity
from tunectl.host.writable import WritableSysroot
from tunectl.tuning.commands import run_commands
from tunectl.tuning.confirming import end_when_due, give_up, is_cut_off
from tunectl.tuning.inspection import Inspection
from tunectl.tuning.transaction import require_root
from tunectl.tuning.trial import Due, Trial, boot_time, due_now, read_trial
from tunectl.tuning.tryboot import confirm_boot, prove
from tunectl.wording import few

_SLICE_S = 1.0  # sleep(3) does not count what the host sleeps, and nobody tells that it was confirmed
_MISSED = 5  # times in a row that nobody answered: a link comes up again after its card was set up anew
_PROOF_S = 5.0  # between two looks at a boot that is tried: services come up meanwhile
_WAIT_S = 600.0  # an apply or a restore at work has its own limits


@tunectl_command(
    exits={OK: "nothing is due any more, or yet", FAILED: "something could not be taken back: run it again"},
    examples=(Example("Take back now what is due, after its unit failed:", "sudo tunectl deadline"),),
)
@click.option("--boot", is_flag=True, help="Early in a boot: wait for nothing, and restart no service.")
def command(options: Options, boot: bool) -> int:
    """Wait until an unconfirmed change is due, and take it back; end at once when it is confirmed.

    It is what the units run that `apply --confirm-within` writes. Of a recorded host nothing is waited for.
    """
    root = WritableSysroot(options.root)
    require_root(root, "deadline")
    identity = read_identity(root)
    ended = end_when_due(root, options.state_path, identity.boot_id, wait_s=_WAIT_S, early=boot)
    if ended and ended.due is Due.WAIT and ended.trial.tries and not boot:
        return _prove(options, root, ended.trial)
    missed = 0
    while ended and ended.due is Due.WAIT and root.live and not boot:
        stay_off(root, parse_cpulist(ended.trial.isolated))
        time.sleep(min(_SLICE_S, max(0.05, ended.trial.deadline_s - boot_time())))
        missed = missed + 1 if is_cut_off(root, ended.trial) else 0
        if missed >= _MISSED:
            give_up(root, options.state_path, f"{ended.trial.reach} did not answer any more", wait_s=_WAIT_S)
        ended = end_when_due(root, options.state_path, identity.boot_id, wait_s=_WAIT_S)
    if ended is None:
        return OK
    waits = ended.due is Due.WAIT and not ended.trial.tries
    notes = [f"it is due in {ended.trial.deadline_s - boot_time():.0f} s"] if waits else []
    emit(options, "trial", identity, tried(ended, notes))
    return OK if ended.complete else FAILED


def _prove(options: Options, root: WritableSysroot, trial: Trial) -> int:
    """The boot that is tried: its runtime values, again and again until all is in force or its time is over."""
    inspection = of_set(options, root, trial)
    stay_off(root, inspection.config.scope.isolated)
    identity, state = inspection.identity, options.state_path
    if trial.tries and trial.tries.confirming:  # it was cut off
        confirm_boot(inspection, root, state, trial.id, wait_s=_WAIT_S)
    while due_now(read_trial(state, root), root, identity.boot_id) is Due.WAIT and identity.boot_id != trial.boot_id:
        left = prove(of_set(options, root, trial), root, state, wait_s=_WAIT_S)
        if not left:
            by = trial.tries.confirms if trial.tries else None
            if by == "verify" or (by == "preflight" and _is_go(options, of_set(options, root, trial))):
                confirm_boot(of_set(options, root, trial), root, state, trial.id, wait_s=_WAIT_S)
            break
        click.echo(f"not in force yet: {few(left)}", err=True)
        if not root.live:
            break
        time.sleep(_PROOF_S)
    ended = end_when_due(root, state, identity.boot_id, wait_s=_WAIT_S)
    if ended is None:
        return OK
    emit(options, "trial", identity, tried(ended, []))
    if ended.due is Due.REBOOT:
        run_commands(root, ["reboot"])
    return OK if ended.complete else FAILED


def _is_go(options: Options, inspection: Inspection) -> bool:
    """Does preflight say GO to the boot that is tried? Otherwise the reasons are told, and a person may confirm it."""
    from tunectl.preflight.run import Request, run_preflight  # it brings the checks along

    request = Request(
        root=inspection.root,
        host_path=options.host_path,
        host_required=True,
        state=options.state_path,
        invocation=options.invocation,
        today=inspection.today,
        duration_s=None,
        window_s=WINDOW_S,
        strict=False,
        tell=lambda _: None,
        intrude=False,
        stay_off=partial(stay_off, inspection.root),
        tried=inspection,
    )
    flight = run_preflight(request)
    if flight.verdict != "go":
        reasons = few([reason.text for reason in flight.reasons])
        click.echo(f"preflight does not confirm it ({flight.verdict}): {reasons}", err=True)
    return flight.verdict == "go"
