"""Configured is not effective: the point is named at which a boot argument, or a value, fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.knobs.test_laws import SABOTAGES, broken, sabotage
from tests.tuned import apply

CPU = "sys/devices/system/cpu"
CMDLINE = "proc/cmdline"
TUNED = "isolcpus=managed_irq,domain,2-3"
NONE_OF_OURS = "BOOT_IMAGE=/boot/vmlinuz root=UUID=5f3c-0001 ro quiet"
ALONE = [name for name, row in SABOTAGES.items() if name.startswith("boot.") and row["host"] == "lab4"]
ALONE.remove("boot.rcu_nocbs")  # nohz_full= does it, too
ALONE.remove("boot.nohz_full")  # the kernel shows what is in force


@pytest.mark.parametrize("name", ALONE)
def test_an_argument_this_boot_did_not_have(host: Callable[[str], Path], name: str) -> None:
    root = host("lab4")
    line = (root / CMDLINE).read_text()
    words = [word for word in line.split() if word.partition("=")[0] != name.removeprefix("boot.")]
    (root / CMDLINE).write_text(" ".join(words) + "\n")
    findings = broken(root)
    assert set(findings) == {name}
    finding = findings[name]
    assert (finding.outcome, finding.observed, str(finding.fix)) == ("pending-reboot", None, "reboot")
    (root / CMDLINE).write_text(line)
    assert broken(root) == {}


@pytest.mark.parametrize(
    ("row", "target", "outcome", "observed"),
    [
        ({"put": {CMDLINE: NONE_OF_OURS}}, "boot.isolcpus", "pending-reboot", None),
        ({"cut": {CMDLINE: {TUNED: "isolcpus=managed_irq,2-3"}}}, "boot.isolcpus", "pending-reboot", "managed_irq,2-3"),
        ({"cut": {CMDLINE: {TUNED: f"isolcpus=3 {TUNED}"}}}, "boot.isolcpus", "pending-reboot", "domain,3"),
        (
            {"cut": {CMDLINE: {"rcu_nocbs=2-3": "rcu_nocbs=3", "nohz_full=2-3": "rcu_nocbs=3"}}},
            "boot.rcu_nocbs",
            "pending-reboot",
            "3",
        ),
        (
            {"cut": {CMDLINE: {"nohz_full=2-3": "quiet"}}, "put": {f"{CPU}/nohz_full": " (null)"}},
            "boot.nohz_full",
            "pending-reboot",
            None,
        ),
        ({"put": {f"{CPU}/isolated": ""}}, "boot.isolcpus", "drifted", ""),
        ({"put": {f"{CPU}/isolated": "2"}}, "boot.isolcpus", "drifted", "2"),
        ({"put": {f"{CPU}/nohz_full": " (null)"}}, "boot.nohz_full", "drifted", ""),
    ],
    ids=[
        "dropped in the boot menu",
        "no domain",
        "the first isolcpus= wins",
        "the last rcu_nocbs= wins",
        "no nohz_full=",
        "isolcpus not accepted",
        "isolcpus accepted in part",
        "nohz_full not accepted",
    ],
)
def test_configured_is_not_effective(
    host: Callable[[str], Path], row: dict[str, Any], target: str, outcome: str, observed: str | None
) -> None:
    root = host("lab4")
    sabotage(root, row)
    finding = broken(root)[target]
    assert (finding.outcome, finding.observed) == (outcome, observed)
    assert finding.points
    assert finding.points["asked"]


def test_a_kernel_that_offloads_no_callbacks(host: Callable[[str], Path]) -> None:
    root = host("lab4")
    threads = [path for path in root.glob("proc/*/comm") if path.read_text().startswith("rcuo")]
    assert threads
    for path in threads:
        path.write_text("other\n")
    finding = broken(root)["boot.rcu_nocbs"]
    assert (finding.outcome, finding.observed) == ("drifted", "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("zz-site.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'),
        ("50-site.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="isolcpus=1 $GRUB_CMDLINE_LINUX_DEFAULT"\n'),
    ],
    ids=["a later file overwrites ours", "an earlier file's isolcpus= comes first"],
)
def test_what_apply_cannot_mend_names_the_file(host: Callable[[str], Path], name: str, text: str) -> None:
    root = host("lab4")
    (root / "etc/default/grub.d" / name).write_text(text)
    assert (broken(root)["boot.isolcpus"].outcome, broken(root)["boot.isolcpus"].observed) == (
        "drifted",
        "managed_irq,domain,2-3",
    )
    apply(root)
    assert f"grub.d/{name}:1" in str(broken(root)["boot.isolcpus"].fix)
    (root / "etc/default/grub.d" / name).unlink()
    apply(root)
    assert broken(root) == {}


def test_values_that_do_more_than_asked_are_no_drift(host: Callable[[str], Path]) -> None:
    root = host("lab4")
    more = {
        "proc/sys/vm/swappiness": "0",
        "proc/sys/vm/stat_interval": "120",
        "proc/irq/default_smp_affinity": "1",
        "sys/devices/virtual/workqueue/cpumask": "00000001",
        "etc/default/irqbalance": "IRQBALANCE_BANNED_CPULIST=1-3",
        "sys/kernel/mm/ksm/run": "2",
        f"{CPU}/cpu2/power/pm_qos_resume_latency_us": "n/a",
    }
    sabotage(root, {"put": more})
    assert broken(root) == {}
