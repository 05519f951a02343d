"""Physical cores and the hardware threads on them."""

from tunectl.checking import Severity, costs, failing, needs_sight, unknown, watches
from tunectl.checking.placing import calmed, home_of, moved
from tunectl.checking.traders import Trader
from tunectl.checking.window import Window, housekeeping_siblings, some, spinners
from tunectl.command import as_data, write
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.fix import Fix, in_turn, to_decide
from tunectl.host.cpusets import CpuFacts
from tunectl.host.procs import Thread
from tunectl.model import Scope
from tunectl.wording import percent


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
                f"{write('0', f'/sys/devices/system/cpu/cpu{min(left)}/online')} (until the next boot)"
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
def test_spinners_apart(isolated_core: CpuSet, window: Window, scope: Scope, traders: list[Trader]) -> None:
    """Two spinners on the SMT siblings of one core each get little more than half of it.

    Source: Documentation/admin-guide/cputopology.rst (thread_siblings_list).
    """
    busy = spinners(window, isolated_core & scope.online)
    if len(busy) > 1:
        seen = [
            f"{as_data(run.thread.comm)} (pid {run.thread.pid}) on CPU {run.thread.cpu}, {percent(run.busy * 100)}"
            for run in busy
        ]
        failing(
            f"spinners share the physical core of CPUs {format_cpulist(isolated_core)}: {some(seen)}",
            _apart([run.thread for run in busy], traders, scope.housekeeping & scope.online),
            observed=len(busy),
            desired=1,
        )


def _apart(spinning: list[Thread], traders: list[Trader], housekeeping: CpuSet) -> Fix:
    """Who strayed from a declaration goes home, who has none makes way for one that has; else somebody decides."""
    homes = {thread: home_of(thread, traders) for thread in spinning}
    astray = [thread for thread, home in homes.items() if home != thread.cpu]
    if not astray or set(homes.values()) == {None}:
        return to_decide("declare one of them for another isolated core, and move it there")
    fixes = ((calmed(thread, traders, housekeeping), moved(thread, traders, housekeeping)) for thread in astray)
    return in_turn(*(fix for pair in fixes for fix in pair))
