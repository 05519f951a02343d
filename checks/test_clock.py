"""The clock that timestamps are taken from."""

from tunectl.checking import Severity, costs, failing, unknown, unsupported
from tunectl.checking.window import CLOCKSOURCE, Window
from tunectl.host.sysroot import Sysroot

# The counters that user space reads without a system call; all others cost a device access for each time stamp.
_COUNTERS = ("tsc", "arch_sys_counter")
_KEPT_BY = frozenset({"constant_tsc", "nonstop_tsc"})


@costs(Severity.SLOWER)
def test_clocksource(host: Sysroot) -> None:
    """clock_gettime() reads the CPU's own counter without a system call; any other clock costs a device access.

    The kernel leaves the TSC for good when its watchdog finds it unstable.
    Source: Documentation/timers/timekeeping.rst; kernel/time/clocksource.c; Documentation/virt/kvm/x86/timekeeping.rst.
    """
    current = host.get(f"{CLOCKSOURCE}/current_clocksource").strip()
    if not current:
        unknown(f"{host.path(CLOCKSOURCE)}/current_clocksource cannot be read")
    if current in _COUNTERS:
        return
    available = host.get(f"{CLOCKSOURCE}/available_clocksource").split()
    counter = next((name for name in _COUNTERS if name in available), None)
    if counter:
        fix = f"echo {counter} > /sys/devices/system/clocksource/clocksource0/current_clocksource"
        failing(f"the clocksource is {current}, though {counter} is there", fix, observed=current, desired=counter)
    flags = next((line for line in host.get_text("proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    if not flags.split() or not set(flags.split()) >= _KEPT_BY:
        unsupported(f"this machine has no counter that runs at one rate always: the clocksource is {current}")
    failing(
        f"the clocksource is {current}: the kernel took the TSC out of its list, though the CPU promises a steady one",
        "see why: dmesg | grep -i tsc (unstable, skew between sockets, firmware that writes it), and mend that",
        observed=current,
        desired="tsc",
    )


@costs(Severity.SLOWER)
def test_clocksource_stable(window: Window) -> None:
    """A clock that is replaced under way makes time stamps jump, and each one costs more from then on.

    Source: kernel/time/clocksource.c (clocksource_watchdog).
    """
    before, after = window.before.clocksource, window.after.clocksource
    if before != after:
        failing(
            f"the clocksource changed from {before} to {after} within {window.seconds:.1f} s",
            "see why: dmesg | grep -i clocksource",
            observed=after,
            desired=before,
        )
