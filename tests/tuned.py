"""The product on a recorded host, as the command line runs it: an inspection, apply, restore."""

from pathlib import Path

from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.knobs import KNOBS
from tunectl.model import Finding
from tunectl.tuning.inspection import JOURNAL, Inspection, open_inspection
from tunectl.tuning.transaction import Run, Undone, run_apply, run_restore
from tunectl.verdict import verdict_of


def inspection_on(host: Path | Sysroot) -> Inspection:
    """A look at the host."""
    root = WritableSysroot(str(host)) if isinstance(host, Path) else host
    state = state_of(root)
    return open_inspection(root, f"{root.root}/etc/tunectl/host.toml", state, ("/usr/bin/tunectl",), "2026-11-21")


def judged(host: Path | Sysroot, *knobs: str) -> dict[str, Finding]:
    """{target: finding} of these rows, as far as they are or were asked for; otherwise as `verify` judges them all.

    What is wrong with the journal is among them.
    """
    assert set(knobs) <= {*KNOBS, JOURNAL}
    inspection = inspection_on(host)
    settings = inspection.config.settings
    if not {one.knob for one in settings}.issuperset(knobs):
        settings += inspection.leftovers()
    return {one.target: one for one in inspection.assess(tuple(one for one in settings if one.knob in knobs)).findings}


def verdict(host: Path | Sysroot) -> str:
    """`tunectl verify`, in one word."""
    return verdict_of(inspection_on(host).assess().findings)


def apply(host: Path | WritableSysroot, *, runtime_only: bool = False) -> Run:
    """`tunectl apply --yes`."""
    root = WritableSysroot(str(host)) if isinstance(host, Path) else host
    return run_apply(inspection_on(root), root, state_of(root), runtime_only=runtime_only, wait_s=0)


def restore(host: Path | WritableSysroot, *, force: bool = False) -> Undone:
    """`tunectl restore`."""
    root = WritableSysroot(str(host)) if isinstance(host, Path) else host
    return run_restore(root, state_of(root), read_identity(root).boot_id, force=force, wait_s=0)


def state_of(root: Sysroot) -> str:
    """Where the journal is."""
    return f"{root.root}/var/lib/tunectl"


def results(run: Run) -> dict[str, str]:
    """What became of each target."""
    return {one.change.target: one.result for one in run.applied.results}
