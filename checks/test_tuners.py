"""Other programs that tune this host."""

import os
from collections.abc import Mapping
from typing import Any

from tunectl.checking import Severity, costs, failing, needs_sight, unknown
from tunectl.fix import NOTHING
from tunectl.host.cpusets import CpuFacts
from tunectl.host.refusals import AS_ROOT
from tunectl.model import Scope
from tunectl.tuners.conflicts import FoundTuner, objection, unasked, unseen, unseen_fix


@costs(Severity.INTERRUPT)
@needs_sight
def test_other_tuners(tuner: FoundTuner, settings: Mapping[str, Any], scope: Scope, cpu_facts: CpuFacts) -> None:
    """Two programs that write the same knob take turns, and the last one wins, at a time nobody chose.

    A program that runs and touches none of our knobs is no matter.
    Source: irqbalance(1); sysctl.d(5); each program's own documentation of what it writes.
    """
    against = objection(tuner, settings, scope.isolated, cpu_facts)
    if against:
        failing(against.reason, against.fix, observed=against.observed, desired=against.desired)
    if hidden := unseen(tuner, settings):
        unknown(f"what may overwrite our knobs here is not known: {hidden}", unseen_fix(tuner, settings))
    if silent := unasked(tuner):
        unknown(f"what {tuner.name} bans now is not known: {silent}", AS_ROOT if os.geteuid() else NOTHING)
