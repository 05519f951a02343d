"""Threads of interrupts: the boot argument that makes them, and the priority that the host file gives a card's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.tree import Tree
from tests.hosts.user_files import write_irq_thread
from tests.trees import write
from tests.tuned import apply, judged
from tunectl.model import Finding


def finding(root: Path, target: str) -> Finding:
    return judged(root, target.partition("[")[0])[target]


def threaded(host: Path, *words: str) -> Path:
    """A host file that asks for threads, on a boot with these words."""
    line = host / "proc/cmdline"
    line.write_text(" ".join([line.read_text().rstrip(), *words]) + "\n")
    host_file = host / "etc/tunectl/host.toml"
    host_file.write_text(f'{host_file.read_text()}[knobs]\n"boot.threadirqs" = true\n')
    apply(host)
    return host


def test_threadirqs_shows_as_threads_of_interrupts(lab4: Path) -> None:
    threaded(lab4, "threadirqs")
    found = finding(lab4, "boot.threadirqs")
    assert (found.outcome, found.observed) == ("drifted", "0 threads of interrupts")
    assert found.fix == "the kernel was built without CONFIG_IRQ_FORCED_THREADING (dmesg names the cause)"
    write_irq_thread(Tree(lab4), 900, "irq/30-eth0-rx-0", "0")
    found = finding(lab4, "boot.threadirqs")
    assert (found.outcome, found.observed) == ("compliant", "present")
    assert found.points
    assert found.points["kernel"] == "1 thread of interrupts"


def test_threads_of_some_drivers_are_not_threadirqs(lab4: Path) -> None:
    threaded(lab4)
    write_irq_thread(Tree(lab4), 900, "irq/30-eth0-rx-0", "0")
    assert finding(lab4, "boot.threadirqs").outcome == "pending-reboot"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("sys/kernel/realtime", "1\n"),
        ("proc/version", "Linux version 6.12.1-rt-amd64 (gcc) #1 SMP PREEMPT_RT Debian 6.12.1-1 (2026-01-01)\n"),
    ],
)
def test_preempt_rt_has_threads_of_interrupts_whatever_its_command_line_says(lab4: Path, path: str, text: str) -> None:
    write(lab4, path, text)
    threaded(lab4)
    found = finding(lab4, "boot.threadirqs")
    assert (found.outcome, found.observed) == ("compliant", "always")
    assert found.reason.startswith("PREEMPT_RT runs every interrupt in a thread")
