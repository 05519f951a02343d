"""A repair that made things worse: it goes back, and the same one is not made again in this boot.

Worse is: of what the repair was to mend something drifts still, and something drifts that did not before.
"""

from collections.abc import Collection

import msgspec

from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.model import Plan
from tunectl.shapes import now_utc
from tunectl.tuning.apply import execute
from tunectl.tuning.inspection import Inspection
from tunectl.tuning.takeback import Before, take_back
from tunectl.tuning.transaction import Run, drifted, planned
from tunectl.tuning.trial import WORSE, read_record, write_record
from tunectl.wording import few


class Worse(msgspec.Struct, frozen=True):
    """The repair that was taken back last."""

    boot_id: str
    at: str  # UTC, for people
    targets: tuple[str, ...]  # what it was to mend


def came_with(before: Plan, now: Plan) -> tuple[str, ...]:
    """What drifts since, where something that was to be mended drifts still; () where it is no worse. Pure."""
    still = {change.target for change in before.changes} & drifted(now)
    return tuple(sorted(drifted(now) - drifted(before))) if still else ()


def taken_back(state: str, root: Sysroot, boot_id: str) -> frozenset[str]:
    """The targets that a repair of this boot was to mend, and only made other things worse."""
    worse = read_record(state, WORSE, Worse)
    return frozenset(worse.targets) if worse and worse.boot_id == boot_id else frozenset()


def was_taken_back(state: str, root: Sysroot, boot_id: str, plan: Plan) -> str:
    """Why this repair is not made; "" where it is another one, or the first. TunectlError."""
    wanted = {change.target for change in plan.changes}
    if not wanted or not wanted <= taken_back(state, root, boot_id):
        return ""
    return f"{few(sorted(wanted))}: an earlier repair of it in this boot made things worse, and is not made again"


def back_where_worse(root: WritableSysroot, state: str, before: Plan, run: Run, stood: Before) -> Run:
    """The run; taken back where it made things worse. Under the lock. TunectlError where the disk stops it."""
    came = came_with(before, run.plan)
    if not came:
        return run
    inspection, journal = run.inspection, run.inspection.journal
    wanted = tuple(sorted(change.target for change in before.changes))
    boot_id = inspection.identity.boot_id
    taken = take_back(root, journal, boot_id, journal.numbers_of_run, stood)
    _put_in_force_again(root, inspection, came)
    write_record(state, WORSE, Worse(boot_id, now_utc(), wanted))
    why = (
        f"it made things worse and was taken back: {few(came)} drifted with it, and not all of {few(wanted)} is mended"
    )
    results = [result._replace(result="failed", message=why) for result in run.applied.results]
    failed = [*run.applied.failed, why, *taken.outcome.failed_commands]
    return run._replace(applied=run.applied._replace(results=results, failed=failed), plan=planned(inspection, True))


def _put_in_force_again(root: WritableSysroot, inspection: Inspection, came: Collection[str]) -> None:
    """What drifted along was in force before, and no entry tells it: once it is so again, none has to."""
    journal, boot_id = inspection.journal, inspection.identity.boot_id
    lost = [change for change in planned(inspection, True).changes if change.target in came]
    applied = execute(root, inspection.view(), lost, journal, boot_id)
    if all(result.result == "changed" for result in applied.results):
        mended = {seq for seq in journal.numbers_of_run if {*map(str, journal.entries[seq].targets)} <= {*came}}
        journal.keep(sorted(journal.entries.keys() - mended), boot_id, "what it changed is restored")
