"""Interrupts: the isolated CPUs' counts, the devices that came to one, and no verdict where the table is gone."""

from __future__ import annotations

from pathlib import Path

from tests.monitor.watched import CPU, of, watch
from tunectl.monitor.model import Freshness


def test_counts_by_kind_and_device(tmp_path: Path) -> None:
    host = watch(tmp_path, "xeon2s", {2, 18})
    snapshot = host.look()
    assert set(of(snapshot, "timer_ticks")) == {"cpu2", "cpu18"}
    assert len(of(snapshot, "thermal_interrupts")) == 32
    assert "irq61" not in of(snapshot, "interrupts")
    for label, cpu in (("LOC", 2), ("CAL", 18), ("RES", 2), ("TRM", 9), ("61", 18)):
        host.count(label, cpu, 7)
    later = host.look()
    assert of(later, "timer_ticks")["cpu2"].value == of(snapshot, "timer_ticks")["cpu2"].value + 7  # type: ignore[operator]
    assert of(later, "function_calls")["cpu18"].value == of(snapshot, "function_calls")["cpu18"].value + 7  # type: ignore[operator]
    assert of(later, "reschedules")["cpu2"].value == of(snapshot, "reschedules")["cpu2"].value + 7  # type: ignore[operator]
    assert of(later, "thermal_interrupts")["cpu9"].value == 7
    irq = of(later, "interrupts")["irq61"]
    assert (irq.value, irq.kind, sorted(irq.cpus)) == (7, "ens2f0-1", [18])


def test_a_table_that_cannot_be_read_is_no_data_for_every_count(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    host.look()
    host.remove("proc/interrupts")
    snapshot = host.look()
    for quantity in ("interrupts", "timer_ticks", "function_calls", "reschedules", "thermal_interrupts"):
        assert {name: one.freshness for name, one in of(snapshot, quantity).items()} == {"host": Freshness.NO_DATA}
    assert of(snapshot, "own_interruptions")["host"].freshness is Freshness.NO_DATA


def test_an_offline_cpu_has_no_column(tmp_path: Path) -> None:
    host = watch(tmp_path, "sparse", {8, 9})
    assert set(of(host.look(), "timer_ticks")) == {"cpu8", "cpu9"}
    table = host.root / "proc/interrupts"
    lines = table.read_bytes().split(b"\n")
    table.write_bytes(b"\n".join(line[: 5 + 33] + line[5 + 44 :] if b"CPU" in line else line for line in lines))
    host.write(f"{CPU}/online", "2-3,8")
    assert set(of(host.look(), "timer_ticks")) == {"cpu8"}
