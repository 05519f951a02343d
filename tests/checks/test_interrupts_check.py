"""check.device_interrupts: does it see an interrupt that arrives, and only where it arrives?"""

from pathlib import Path

import pytest

from tests.checking.fake_kernel import Row
from tests.checks.conftest import Judge
from tunectl.host.interrupts import parse_interrupts
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome

pytestmark = pytest.mark.slow

CHECK = "test_interrupts.py"
CPUS = range(4)
NET = "PCI-MSIX-0000:00:04.0   1-edge      virtio0-input.0"


def test_an_interrupt_on_an_isolated_cpu_is_found(lab4: Path, judge: Judge) -> None:
    found = judge(lab4, {2, 3}, CHECK, rows=[Row("31", NET, {2: 500.0})])
    hit, clean = found["check.device_interrupts[2]"], found["check.device_interrupts[3]"]
    assert hit.outcome == Outcome.DRIFTED
    assert "IRQ 31 (virtio0-input.0)" in hit.reason
    assert hit.observed == 1000  # 500 a second, for two seconds
    assert str(*hit.fix.commands) == "echo 0-1 | sudo tee /proc/irq/31/smp_affinity_list"
    assert clean.outcome == Outcome.COMPLIANT


def test_interrupts_elsewhere_and_those_of_no_device_are_silent(lab4: Path, judge: Judge) -> None:
    local = Row("LOC", "Local timer interrupts", dict.fromkeys(CPUS, 1000.0))
    found = judge(lab4, {2, 3}, CHECK, rows=[Row("31", NET, {0: 500.0, 1: 500.0}), local])
    assert {finding.outcome for finding in found.values()} == {Outcome.COMPLIANT}


def test_private_interrupts_of_an_arm_cpu_are_no_devices(lab4: Path, judge: Judge) -> None:
    rows = [Row("3", "GICv3  27 Level     arch_timer", {2: 250.0}), Row("7", "GICv3  23 Level     arm-pmu", {2: 9.0})]
    rows.append(Row("5", "RISC-V INTC   5 Edge      riscv-timer", {2: 250.0}))
    found = judge(lab4, {2}, CHECK, rows=[*rows, Row("48", "xen-percpu    -virq      timer0", {2: 90.0})])
    assert found["check.device_interrupts[2]"].outcome == Outcome.COMPLIANT
    found = judge(lab4, {2}, CHECK, rows=[Row("45", "GICv3  78 Level     eth0", {2: 250.0})])
    assert "IRQ 45 (eth0)" in found["check.device_interrupts[2]"].reason


def test_what_the_kernel_places_itself_gets_another_fix(xeon: Path, judge: Judge) -> None:
    managed = Row("82", "PCI-MSIX-0000:18:00.0   2-edge      nvme0q2", {2: 100.0})
    found = judge(xeon, {2}, CHECK, rows=[managed])
    assert "isolcpus=managed_irq" in str(found["check.device_interrupts[2]"].fix)


def test_a_recording_stands_still(lab4: Path, judge: Judge) -> None:
    found = judge(lab4, {2, 3}, CHECK)
    assert {finding.outcome for finding in found.values()} == {Outcome.UNREADABLE}


def test_this_machine(judge: Judge) -> None:
    """The running host: the disk's interrupts are found on the CPU that takes them, if any arrives."""
    cpus = parse_interrupts(Sysroot().get_text("proc/interrupts")).cpus
    if len(cpus) < 2:
        pytest.skip("one CPU")
    found = judge("/", {1}, CHECK, live_s=1.0)  # silence of a shorter time proves nothing
    assert found["check.device_interrupts[1]"].outcome in (Outcome.COMPLIANT, Outcome.DRIFTED)
