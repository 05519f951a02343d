"""InterruptOnIsolatedCpu and MonitorDisturbs."""

from tests.monitor.series import Watch, healths, sample, told
from tunectl.monitor.model import Freshness, Health, Sample


def irq(number: int, count: int | None, freshness: Freshness = Freshness.FRESH, cpus: tuple[int, ...] = (3,)) -> Sample:
    return sample("interrupts", f"irq{number}", count, "interrupts", freshness=freshness, kind="eth0-TxRx-1", cpus=cpus)


def on(cpu: int, count: int) -> Sample:
    """What one CPU counted of interrupt 33."""
    return sample("interrupts", f"irq33.cpu{cpu}", count, "interrupts", cpus=(cpu,), whole="irq33")


def ticks(*cpus: int) -> list[Sample]:
    return [sample("timer_ticks", f"cpu{cpu}", 9, "interrupts", cpus=(cpu,)) for cpu in cpus]


def own(count: int, cpu: int = 2, freshness: Freshness = Freshness.FRESH) -> Sample:
    return sample("own_interruptions", f"cpu{cpu}", count, "audit", freshness=freshness)


def calls(count: int, cpu: int = 2) -> Sample:
    return sample("function_calls", f"cpu{cpu}", count, "interrupts")


def test_an_interrupt_that_was_moved_is_named_with_its_device_and_cpu() -> None:
    transitions = Watch().see([irq(42, 10)], [irq(42, 10)], [irq(42, 13)])
    assert [(at, name) for at, name, _ in transitions] == [(2.0, "+InterruptOnIsolatedCpu[irq42]")]
    alert = transitions[0][2]
    assert (alert.observed, alert.expected, alert.cpus) == (3, 0, "3")


def test_a_count_that_wraps_is_no_other_interrupt_and_falls_are_of_each_cpu() -> None:
    fired = [alert for _, _, alert in Watch().see([on(3, 4294967290), on(2, 7)], [on(3, 3), on(2, 9)])]
    assert [(alert.subject, alert.observed, alert.cpus) for alert in fired] == [("irq33", 11, "2-3")]
    # CPU 2 goes off and takes its count along: what came to CPU 3 meanwhile is no less.
    fired = [alert for _, _, alert in Watch().see([on(3, 5), on(2, 700)], [on(3, 8)])]
    assert [(alert.observed, alert.cpus) for alert in fired] == [(3, "3")]


def test_an_interrupt_that_was_requested_anew_counts_from_nothing() -> None:
    assert Watch().names([on(3, 5000)], [on(3, 0)], [on(3, 0)]) == []
    assert [alert.observed for _, _, alert in Watch().see([on(3, 5000)], [on(3, 2)])] == [2]


def test_a_cpu_that_comes_back_brings_no_interrupts_along() -> None:
    whole = [*ticks(2, 3), on(2, 1), on(3, 5000)]
    assert Watch().names(whole, [*ticks(2), on(2, 1)], whole, whole) == []
    first = Watch().see([*ticks(2, 3), on(2, 1)], whole)
    assert [alert.observed for _, _, alert in first] == [5000]


def test_what_came_before_the_monitor_is_old() -> None:
    assert Watch().names([irq(42, 999)], [irq(42, 999)]) == []


def test_an_interrupt_that_is_new_to_isolated_cpus_counts_from_nothing() -> None:
    # The source names only interrupts that ever came to an isolated CPU.
    assert Watch().names([irq(7, 5)], [irq(7, 5), irq(42, 2)]) == [(1.0, "+InterruptOnIsolatedCpu[irq42]")]


def test_the_first_that_ever_comes_to_an_isolated_cpu_counts_if_the_table_was_read() -> None:
    ticks = sample("timer_ticks", "cpu3", 1, "interrupts")
    assert Watch().names([ticks], [ticks, irq(42, 2)]) == [(1.0, "+InterruptOnIsolatedCpu[irq42]")]
    dark = sample("interrupts", "host", None, "interrupts", freshness=Freshness.NO_DATA)
    assert Watch().names([dark], [ticks, irq(42, 2)]) == []
    assert Watch().names([ticks, irq(42, None, Freshness.NO_DATA)], [ticks, irq(42, 2)]) == []


def test_one_that_comes_now_and_then_is_one_event_and_one_that_is_freed_is_over() -> None:
    watch = Watch()
    counts = [0, 1, *[1] * 9, 2, *[2] * 9, 3]
    assert [name for _, name in watch.names(*[[irq(42, count)] for count in counts])] == [
        "+InterruptOnIsolatedCpu[irq42]"
    ]
    gone = [[irq(7, 0)]] * 31
    assert [name for _, name in watch.names(*gone)] == ["-InterruptOnIsolatedCpu[irq42]"]


def test_a_table_that_cannot_be_read_neither_fires_nor_resolves() -> None:
    watch = Watch()
    assert len(watch.names([irq(42, 0)], [irq(42, 1)])) == 1
    dark = sample("interrupts", "host", None, "interrupts", freshness=Freshness.NO_DATA)
    assert watch.names(*[[dark]] * 100) == []
    assert set(told(watch)) == {"InterruptOnIsolatedCpu[irq42]", "SourceLost[interrupts]"}


def test_the_monitor_that_disturbs_says_so() -> None:
    rows = [[own(4), calls(100 + 4 * second)] for second in range(4)]
    transitions = Watch().see(*rows)
    assert [(at, name) for at, name, _ in transitions] == [(2.0, "+MonitorDisturbs[monitor]")]


def test_what_comes_all_the_time_is_not_its_own() -> None:
    assert Watch().names(*[[own(1), calls(100 * second)] for second in range(1, 20)]) == []
    assert Watch().names(*[[own(0), calls(5)]] * 20) == []
    assert Watch().names(*[[own(1 if second == 5 else 0), calls(5 + (second >= 5))] for second in range(20)]) == []


def test_an_audit_that_is_old_says_nothing() -> None:
    assert healths("MonitorDisturbs", [[own(9, freshness=Freshness.STALE)]]) == [{"monitor": Health.UNKNOWN}]
    rows = [[own(9), calls(9 * second)] for second in range(1, 3)]
    stale = [own(9, freshness=Freshness.STALE), calls(18)]
    transitions = Watch().names(rows[0], *[stale] * 9, rows[1], *[stale] * 9, [own(9), calls(27)])
    assert transitions == [(20.0, "+MonitorDisturbs[monitor]")]
