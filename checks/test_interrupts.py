"""Interrupts of devices and the isolated CPUs."""

from tunectl import kinds
from tunectl.checking import Severity, costs, failing, watches
from tunectl.checking.outcomes import IRQ_HOLDS
from tunectl.checking.window import Landed, Window, device_interrupts, some
from tunectl.cpulist import format_cpulist
from tunectl.fix import Fix, in_turn, to_type
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.irq import KEPT_OFF
from tunectl.model import Scope
from tunectl.wording import plural, seconds_of


@costs(Severity.INTERRUPT)
@watches(1.0)
def test_device_interrupts(isolated_cpu: int, window: Window, host: Sysroot, scope: Scope) -> None:
    """A device interrupt takes the CPU from the trading thread for the handler and the softirq work behind it.

    Masks are intentions: this counts where interrupts arrived. One that the kernel manages itself cannot be moved
    by writing its mask; isolcpus=managed_irq keeps it away where its mask also holds a housekeeping CPU.
    Source: Documentation/core-api/irq/irq-affinity.rst; kernel-parameters.txt (isolcpus); fs/proc/interrupts.c.
    """
    landed = device_interrupts(window, isolated_cpu)
    if not landed:
        return
    seen = [f"IRQ {one.irq} ({one.device}) {plural(one.times, 'time')}" for one in landed]
    where = format_cpulist(scope.housekeeping & scope.online)
    fixes = [_fix(one, where, host.mode(f"proc/irq/{one.irq}/smp_affinity_list")) for one in landed]
    failing(
        f"in {seconds_of(window.seconds)} CPU {isolated_cpu} took {some(seen)}",
        in_turn(*fixes),
        observed=sum(one.times for one in landed),
        desired=0,
    )


def _fix(one: Landed, housekeeping: str, mode: int | None) -> Fix:
    # Since 6.12 the mode says that the kernel places it (kernel/irq/proc.c); before, only a refused write does.
    if mode == 0o444:
        return KEPT_OFF
    return to_type(kinds.move_interrupt(one.irq, housekeeping), IRQ_HOLDS)
