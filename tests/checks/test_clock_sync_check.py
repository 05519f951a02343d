"""check.clock_sync: a recorded host, and the limit of the host file; tests/host/clock has the daemons."""

from pathlib import Path

from tests.checks.conftest import Judge
from tunectl.model import Outcome

CHECK = "test_clock_sync.py"


def test_a_recorded_host_is_unknown(lab4: Path, judge: Judge) -> None:
    finding = judge(lab4, {2, 3}, CHECK)["check.clock_sync"]
    assert finding.outcome == Outcome.UNREADABLE
    assert finding.reason == "a recorded host: nobody can be asked how far off its clock was"
    assert not finding.fix
