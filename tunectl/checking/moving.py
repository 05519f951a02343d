"""The lines that move what runs on a CPU to others, until something else moves it: what checks print as a fix."""

from __future__ import annotations

from tunectl.fix import Fix, to_type


def move_thread(tid: int, cpus: str) -> Fix:
    """A thread to these CPUs, and no other."""
    return to_type(f"sudo taskset -cp {cpus} {tid}")


def move_interrupt(irq: int, cpus: str) -> Fix:
    """An interrupt; the kernel has its thread, where it has one, follow."""
    return to_type(f"echo {cpus} | sudo tee /proc/irq/{irq}/smp_affinity_list")
