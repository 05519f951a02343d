"""The scheduler's tick on the isolated CPUs."""

import pytest

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.checking import costs, unknown, unsupported, watches
from tunectl.checking.measure import Spinning, timers_under_spinner
from tunectl.checking.subject import Subject
from tunectl.checking.tick import SEVERITY, SHORTEST_S, meaning_of, settle
from tunectl.checking.window import some
from tunectl.command import as_data
from tunectl.fix import REBOOT, in_turn, to_decide
from tunectl.host.cpusets import CpuFacts
from tunectl.host.fairserver import may_serve
from tunectl.host.openfiles import perf_users
from tunectl.host.sysroot import Sysroot
from tunectl.host.timers import has_cpu_timer
from tunectl.knobs.drivers.bootline import BootSwitch, by_hand_fix
from tunectl.model import Outcome

_ALONE = to_decide(
    "nothing of ours goes where somebody else's threads run: check again when they spin, or do not run; "
    "`tunectl check --intrude` takes time from them"
)


@costs(SEVERITY)
@watches(SHORTEST_S)
def test_tick_off(isolated_cpu: int, cpu_facts: CpuFacts, subject: Subject, request: pytest.FixtureRequest) -> None:
    """The tick interrupts a thread 100 to 1000 times a second; with nohz_full in force, one that is alone has none.

    A spinner runs on the CPU and the local timer interrupts are counted for as long as it does: what the boot line asks
    for is no proof. Where too many come, root sees in /proc/timer_list which timers they are.
    Source: Documentation/timers/no_hz.rst; kernel/time/tick-sched.c (tick_dep_mask); kernel/sched/deadline.c.
    """
    if isolated_cpu not in cpu_facts.nohz_full:
        unsupported(f"nohz_full is not in force on CPU {isolated_cpu}: its tick never stops under a running thread")
    spinning: Spinning = request.getfixturevalue("spinning")
    count = spinning.ticks.get(isolated_cpu)
    if count is None:
        left = spinning.left.get(isolated_cpu)
        if left:
            unknown(left, _ALONE)
        unknown(f"this host does not count the idle time of CPU {isolated_cpu}")
    over = count.ticks is not None and count.ticks > count.allowed
    word = BootSwitch("nohz").is_on(parse_cmdline(subject.root.get_text("proc/cmdline")))[1] if over else ""
    said = [f"this boot had {word}: no CPU ever stops its tick"] if word else []
    seen = said or (_seen(subject.root, spinning, isolated_cpu) if over else ())
    answer = settle(count, seen, lambda cpu: may_serve(subject.root, cpu))
    if word:
        answer.fix = in_turn(by_hand_fix(word), REBOOT)
    if answer.outcome is Outcome.UNREADABLE and spinning.spinner:
        answer.fix = _ALONE
    raise answer


def _seen(root: Sysroot, spinning: Spinning, cpu: int) -> list[str]:
    """What was there that brings timer interrupts: other threads, their CPU timers, the timers that are set."""
    ran = [run.thread for run in spinning.window.runs if run.ran and run.thread.cpu == cpu]
    beside = [one for one in ran if (one.pid, one.tid) != spinning.spinner]
    seen = (
        [f"it shared the CPU with {some(f'{as_data(one.comm)} (pid {one.pid})' for one in beside)}"] if beside else []
    )
    timed = [one for one in ran if not one.kernel and has_cpu_timer(root, one.pid)]
    seen += [f"{as_data(one.comm)} (pid {one.pid}) has a POSIX CPU timer" for one in timed]
    return seen + meaning_of(timers_under_spinner(root, cpu, taken=spinning.spinner is not None), perf_users(root))
