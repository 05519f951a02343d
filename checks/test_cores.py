"""Physical cores and the hardware threads on them."""

from tunectl import kinds
from tunectl.checking import Severity, costs, failing, needs_sight, unknown, watches
from tunectl.checking.window import Window, housekeeping_siblings, some, spinners
from tunectl.command import as_data, write
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.fix import to_decide
from tunectl.host.cpusets import CpuFacts
from tunectl.model import Scope


@costs(Severity.SLOWER)
def test_whole_core(isolated_core: CpuSet, cpu_facts: CpuFacts, scope: Scope) -> None:
    """SMT siblings share the core's execution units and first two caches: housekeeping next door slows an isolated CPU.

    Whole cores are isolated, with all of their siblings, or the siblings are switched off.
    Source: Documentation/admin-guide/cputopology.rst (thread_siblings_list).
    """
    left = housekeeping_siblings(isolated_core & scope.online, scope.isolated)
    if left:
        isolated, others = format_cpulist(isolated_core & scope.isolated), format_cpulist(left)
        failing(
            f"CPU {isolated} is isolated and its SMT sibling {others} is not: they share one physical core",
            to_decide(
                f"isolate {format_cpulist(isolated_core)} together, or switch the sibling off: "
                f"{write('0', f'/sys/devices/system/cpu/cpu{min(left)}/online')}"
            ),
            observed=isolated,
            desired=format_cpulist(isolated_core),
        )
    lost = sorted(cpu for cpu in isolated_core & scope.online if not cpu_facts.siblings.get(cpu))
    if lost:
        unknown(f"the siblings of CPU {lost[0]} cannot be read")


@costs(Severity.SLOWER)
@watches(1.0)
@needs_sight
def test_spinners_apart(isolated_core: CpuSet, window: Window, scope: Scope) -> None:
    """Two spinners on the SMT siblings of one core each get little more than half of it.

    Source: Documentation/admin-guide/cputopology.rst (thread_siblings_list).
    """
    busy = spinners(window, isolated_core & scope.online)
    if len(busy) > 1:
        seen = [
            f"{as_data(run.thread.comm)} (pid {run.thread.pid}) on CPU {run.thread.cpu}, {run.busy:.0%}" for run in busy
        ]
        last = busy[-1].thread
        failing(
            f"spinners share the physical core of CPUs {format_cpulist(isolated_core)}: {some(seen)}",
            to_decide(f"move one to another isolated core: {kinds.move_thread(last.tid, 'CPU')}"),
            observed=len(busy),
            desired=1,
        )
