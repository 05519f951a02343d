"""The clock that timestamps are taken from."""

from tunectl.bootloader.cmdline import kernel_args, parse_cmdline
from tunectl.checking import Severity, compliant, costs, failing, unknown, unsupported, watches
from tunectl.checking.window import CLOCKSOURCE, Window
from tunectl.command import write
from tunectl.fix import REBOOT, in_turn, to_decide, to_type
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.drivers.bootline import by_hand_fix
from tunectl.wording import seconds_of

# The counters that user space reads without a system call.
_COUNTERS = ("tsc", "arch_sys_counter")
# So are these, by a page that the hypervisor keeps; all others cost a system call, and most an access to a device.
_SHARED = {"kvm-clock": "KVM", "hyperv_clocksource_tsc_page": "Hyper-V"}
_KEPT_BY = frozenset({"constant_tsc", "nonstop_tsc"})


@costs(Severity.SLOWER)
def test_clocksource(host: Sysroot) -> None:
    """clock_gettime() reads the CPU's own counter without a system call; most other clocks cost a device access.

    The kernel leaves the TSC for good when its watchdog finds it unstable, or when an argument of the boot says so.
    Source: Documentation/timers/timekeeping.rst; kernel/time/clocksource.c; Documentation/virt/kvm/x86/timekeeping.rst;
    arch/x86/include/asm/vdso/gettimeofday.h (vread_pvclock, vread_hvclock); kernel-parameters.txt (clocksource, tsc).
    """
    current = host.get(f"{CLOCKSOURCE}/current_clocksource").strip()
    if not current:
        unknown(f"{host.path(CLOCKSOURCE)}/current_clocksource cannot be read")
    if current in _COUNTERS:
        return
    if current in _SHARED:
        compliant(f"{current}: read without a system call too, from a page that {_SHARED[current]} keeps")
    word = _asked_for(host, current)
    asked = f"; this boot had {word}" if word else ""
    available = host.get(f"{CLOCKSOURCE}/available_clocksource").split()
    counter = next((name for name in _COUNTERS if name in available), None)
    if counter:
        now = write(counter, "/sys/devices/system/clocksource/clocksource0/current_clocksource")
        lasts = "it holds until the next boot; the knob clocksource.current in the host file does it at each"
        note = f"for the next boot, {by_hand_fix(word)}" if word else lasts
        failing(
            f"the clocksource is {current}, though {counter} is there{asked}",
            to_type(now, note),
            observed=current,
            desired=counter,
        )
    flags = next((line for line in host.get_text("proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    if not flags.split() or not set(flags.split()) >= _KEPT_BY:
        unsupported(f"this machine has no counter that runs at one rate always: the clocksource is {current}")
    see = "see why: dmesg | grep -i tsc (unstable, skew between sockets, firmware that writes it), and mend that"
    failing(
        f"the clocksource is {current}: the kernel took the TSC out of its list, though the CPU promises a steady one"
        f"{asked}",
        in_turn(by_hand_fix(word), REBOOT) if word else to_decide(see),
        observed=current,
        desired="tsc",
    )


def _asked_for(host: Sysroot, current: str) -> str:
    """The argument of this boot that chose the clock, or forbade the counter; "" where none did."""
    args = kernel_args(parse_cmdline(host.get_text("proc/cmdline")))
    asked = [str(one) for one in args if one.key == "clocksource"][-1:]  # the last one counts
    asked += [str(one) for one in args if one.key in ("tsc", "notsc")]
    return next((word for word in asked if word in (f"clocksource={current}", "tsc=unstable", "notsc")), "")


@costs(Severity.SLOWER)
@watches(1.0)
def test_clocksource_stable(window: Window) -> None:
    """A clock that is replaced under way makes time stamps jump, and each one costs more from then on.

    Source: kernel/time/clocksource.c (clocksource_watchdog).
    """
    before, after = window.before.clocksource, window.after.clocksource
    if before != after:
        failing(
            f"the clocksource changed from {before} to {after} within {seconds_of(window.seconds)}",
            to_decide("see why: dmesg | grep -i clocksource"),
            observed=after,
            desired=before,
        )
