"""check.nic_node: the NIC and those who read from it."""

from pathlib import Path

from tests.checks.conftest import Judge
from tunectl.model import Outcome

CHECK = "test_nics.py"  # xeon2s: eno1 is on node 0 (CPUs 0-7,16-23), ens2f0 on node 1


def test_readers_across_the_socket_are_found(xeon: Path, judge: Judge) -> None:
    found = judge(xeon, {2, 3, 18, 19}, CHECK, interfaces=("eno1", "ens2f0"))
    assert found["check.nic_node[eno1]"].outcome == Outcome.COMPLIANT
    far = found["check.nic_node[ens2f0]"]
    assert (far.outcome, far.observed, far.desired) == (Outcome.DRIFTED, "2-3,18-19", "8-15,24-31")
    assert "isolate CPUs among 8-15,24-31" in str(far.fix)


def test_one_reader_on_the_node_is_silent(xeon: Path, judge: Judge) -> None:
    found = judge(xeon, {2, 3, 8, 18, 19, 24}, CHECK, interfaces=("eno1", "ens2f0"))
    assert {finding.outcome for finding in found.values()} == {Outcome.COMPLIANT}


def test_one_node_is_near_to_all(lab4: Path, judge: Judge) -> None:
    assert judge(lab4, {2, 3}, CHECK, interfaces=("eth0",))["check.nic_node[eth0]"].outcome == Outcome.COMPLIANT


def test_what_cannot_be_judged_is_said(lab4: Path, judge: Judge) -> None:
    found = judge(lab4, {2, 3}, CHECK, interfaces=("lo", "eth9"))
    assert {target: one.outcome for target, one in found.items()} == dict.fromkeys(
        (f"check.{check}[{nic}]" for check in ("nic_node", "nic_irq_node") for nic in ("lo", "eth9")),
        Outcome.UNSUPPORTED,
    )
    assert [one.outcome for one in judge(lab4, {2, 3}, CHECK).values()] == [Outcome.UNSUPPORTED] * 2
