"""Words of the kernel's command line with which the TSC is not the clock. Pure.

Source: arch/x86/kernel/tsc.c, notsc_setup(), tsc_setup(); kernel/time/clocksource.c, boot_override_clocksource().
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tunectl.bootloader.cmdline import Arg, kernel_args


def taking_tsc(args: Iterable[Arg], others: Collection[str]) -> frozenset[Arg]:
    """The words with which the kernel gives the TSC up, or takes another clock first; `others`: those of this machine.

    Of several clocksource= the last one counts, and a clock that is not there leaves the choice to the kernel.
    """
    mine = kernel_args(args)
    given_up = {arg for arg in mine if arg.key == "notsc" or arg == Arg("tsc", "unstable")}
    chosen = [arg for arg in mine if arg.key == "clocksource"][-1:]
    return frozenset(given_up | {arg for arg in chosen if arg.value in others})
