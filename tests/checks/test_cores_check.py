"""check.whole_core and check.spinners_apart: SMT siblings."""

from pathlib import Path

from tests.checking.fake_kernel import Process
from tests.checks.conftest import Judge
from tunectl.model import Outcome

CHECK = "test_cores.py"


def test_a_housekeeping_sibling_is_found_on_a_recording_too(xeon: Path, judge: Judge) -> None:
    found = judge(xeon, {2, 3, 19}, CHECK)
    assert found["check.whole_core[2,18]"].outcome == Outcome.DRIFTED
    assert "CPU 2 is isolated and its SMT sibling 18 is not" in found["check.whole_core[2,18]"].reason
    assert "cpu18/online" in str(found["check.whole_core[2,18]"].fix)
    assert found["check.whole_core[3,19]"].outcome == Outcome.COMPLIANT


def test_a_whole_core_is_silent(xeon: Path, judge: Judge) -> None:
    assert judge(xeon, {2, 18}, CHECK)["check.whole_core[2,18]"].outcome == Outcome.COMPLIANT


def test_cpus_without_smt_are_whole_cores(lab4: Path, judge: Judge) -> None:
    found = judge(lab4, {2, 3}, CHECK)
    assert found["check.whole_core[2]"].outcome == found["check.whole_core[3]"].outcome == Outcome.COMPLIANT


def test_two_spinners_on_one_core_are_found(xeon: Path, judge: Judge) -> None:
    spinners = [Process(730, "feed", 2, "2", 1.0), Process(731, "orders", 18, "18", 1.0)]
    found = judge(xeon, {2, 18}, CHECK, processes=spinners)
    finding = found["check.spinners_apart[2,18]"]
    assert finding.outcome == Outcome.DRIFTED
    assert "feed (pid 730) on CPU 2" in finding.reason
    assert "orders (pid 731) on CPU 18" in finding.reason


def test_spinners_on_cores_of_their_own_are_silent(xeon: Path, judge: Judge) -> None:
    spinners = [
        Process(730, "feed", 2, "2", 1.0),
        Process(731, "orders", 3, "3", 1.0),
        Process(732, "helper", 18, "18", 0.05),
        Process(733, "build", 4, "0-31", 1.0),
        Process(734, "build", 20, "0-31", 1.0),  # two busy threads on a housekeeping core are no concern
    ]
    found = judge(xeon, {2, 3, 18, 19}, CHECK, processes=spinners)
    assert set(found) == {f"check.{c}[{i}]" for c in ("whole_core", "spinners_apart") for i in ("2,18", "3,19")}
    assert {finding.outcome for finding in found.values()} == {Outcome.COMPLIANT}
