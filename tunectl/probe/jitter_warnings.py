"""What makes a result of `probe jitter` mean less than it seems to, one sentence each. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tunectl.cpulist import format_cpulist, named_cpus
from tunectl.probe.hostfiles import number
from tunectl.probe.raw import SAME_COUNTER, Cpu, Run, conservation_ppm
from tunectl.wording import nanoseconds, percent, ppm, seconds_of

_TICKS_PER_S = 5  # nohz_full leaves about one a second; skew and chance a few more
_SIBLING_BUSY_PERCENT = 2
_STEAL_SHARE = 1e-3
DRIFT_PPM = 20
CONSERVED_PPM = 1000.0  # beyond this the account of the time is wrong
LEAST_S = 1.0  # of a run: the period of what the kernel does once a second
# A spinner on a busy host gets its CPU a little after the run began: nine observations say nearly as much as ten.
AS_GOOD_AS = 0.9
_FALL = 0.95  # of the core's clock, from before to after
_BELOW_BASE = 0.9
_SHARED = 0.1  # of the run, waiting for a CPU that another thread had


def warnings_of(run: Run) -> list[str]:
    """All of them, in the order in which they matter."""
    left = [f"CPU {cpu.cpu} was not measured: {cpu.reason}; stop that, or say --intrude" for cpu in run.not_measured]
    said = dict.fromkeys(text for cpu in run.cpus for text in unfit(run, cpu))  # once: two CPUs may have the same
    return [
        *left,
        *(f"{text}: no budget is judged by this" for text in said),
        *filter(None, (shared(run, cpu) for cpu in run.cpus)),
        *_result(run),
        *_isolation(run),
        *_smt(run),
        *_machine(run),
        *_core_clock(run),
        *_clock(run),
        *(_fifo(run) if run.fifo_priority else ()),
    ]


def unfit(run: Run, cpu: Cpu) -> Iterator[str]:
    """Why the figures of this CPU are not this CPU's, or not only the host's: no budget is judged by them."""
    if not cpu.stayed or cpu.migrations:
        yield f"the spinner of CPU {cpu.cpu} was moved to another CPU during the run"
    if cpu.counters.context_switches.voluntary:
        yield f"the spinner of CPU {cpu.cpu} was stopped during the run (by a signal, or a debugger)"
    if throttled := throttling(run.facts.throttled_us):
        yield throttled
    if not run.facts.main_thread:
        where = f"CPU {cpu.cpu}" if len(run.cpus) == 1 else "one of the probed CPUs"
        yield f"the probe's own main thread shares {where}"


def throttling(us: int | None) -> str:
    """For how long a cpu.max kept the probe off its CPUs, or that nobody knows (None); "" where none did."""
    if us is None:
        return "whether cgroup throttling (a cpu.max outside what is seen here) stopped the probe is not known"
    stopped = f"cgroup throttling (cpu.max) stopped the probe, on all of its CPUs together for {nanoseconds(us * 1e3)}"
    return stopped if us else ""


def shared(run: Run, cpu: Cpu) -> str:
    """Did other threads have this CPU for long? A limit that broke, did break; one that held, held beside them."""
    if run.facts.throttled_us is None:
        return ""
    others_ns = max(cpu.waited_ns - 1000 * run.facts.throttled_us, 0)  # a throttled thread waits, too, for nobody
    share = min(others_ns / 1e9 / run.seconds(cpu), 1.0) if cpu.run_ticks else 0.0
    had = f"other threads had it for {percent(share * 100)} of the run"
    return f"CPU {cpu.cpu} was shared: {had}" if share >= _SHARED else ""


def _for_cpus(run: Run, keep: Callable[[Cpu], object], before: str, after: str = "") -> list[str]:
    """`before`, "CPUs 2-3" and `after`, for those that `keep` names; nothing where it names none."""
    hit = {cpu.cpu for cpu in run.cpus if keep(cpu)}
    return [f"{before}{named_cpus(hit)}{after}"] if hit else []


def _result(run: Run) -> Iterator[str]:
    if run.interrupted:
        yield "a signal ended the run early: rarer interruptions had less chance to show"
    elif (took_s := min((run.seconds(cpu) for cpu in run.cpus), default=LEAST_S)) < AS_GOOD_AS * LEAST_S:
        yield (
            f"measured for {seconds_of(took_s)}: what comes less often does not show, such as what the kernel "
            f"does once a second; a limit can be judged from {seconds_of(LEAST_S)} on"
        )
    if not run.counted.has_interrupts:
        yield "/proc/interrupts could not be read: interrupts, the tick among them, were not counted"
    if full := [cpu for cpu in run.cpus if cpu.events_lost]:
        yield _not_all_listed(run, full)
    faults = "the probe itself took page faults while measuring on "
    yield from _for_cpus(run, lambda cpu: cpu.counters.page_faults, faults)
    yield from _for_cpus(
        run,
        lambda cpu: run.threshold_ticks < 2 * (cpu.step_ticks + cpu.recording_ticks),
        "the threshold is close to the cost of recording on ",
        ": some interruptions may be the probe's own",
    )
    for cpu in () if run.clock.is_the_kernels else run.cpus:
        if abs(off := conservation_ppm(cpu, run.clock.hz)) > CONSERVED_PPM:
            length = "the run's length on the kernel's clock"
            yield f"on CPU {cpu.cpu} loops and gaps add up to {ppm(off)} more than {length}"


def _not_all_listed(run: Run, full: Sequence[Cpu]) -> str:
    """What `events` has of these CPUs; of several the least."""

    def first(least: int) -> str:
        return nanoseconds(min(run.ns(run.listed_until(cpu, least) - cpu.tsc_start) for cpu in full))

    shares = (sum(end - start for start, end, _ in cpu.events) / max(cpu.stolen_ticks, 1) for cpu in full)
    share, least = percent(100 * min(shares)), nanoseconds(run.ns(run.long_ticks))
    long = f" and of the first {first(run.long_ticks)} those of {least} and more" if run.long_ticks else ""
    return (
        f"the list of events was too short for {named_cpus(cpu.cpu for cpu in full)}: histogram and totals hold every "
        f"interruption, `events` all of the first {first(0)}{long}: {share} of the stolen time (see --events)"
    )


def _isolation(run: Run) -> Iterator[str]:
    facts = run.facts
    yield from _for_cpus(
        run,
        lambda cpu: cpu.cpu not in facts.isolated,
        "not isolated: ",
        "; ordinary threads can be scheduled there and interrupt the probe",
    )
    yield from _for_cpus(run, lambda cpu: cpu.cpu not in facts.nohz_full, "nohz_full is not in force on ")
    yield from _for_cpus(
        run,
        lambda cpu: run.timer_interrupts(cpu) > max(3, _TICKS_PER_S * run.seconds(cpu)),
        "more than five timer interrupts a second on ",
        ": the scheduler's tick, or a timer of somebody's (a POSIX CPU timer, a perf event); --attribute names them",
    )
    yield from _main_thread(run)


def _main_thread(run: Run) -> Iterator[str]:
    """Where the probe's own threads are that do not measure, if that is not where it should be."""
    facts = run.facts
    others = set(facts.online) - run.probed
    nobody = "nobody watches whether somebody else wants them"
    if not facts.main_thread and not others:
        yield f"every online CPU is probed: the probe's own main thread shares one of them, and {nobody}"
    elif not facts.main_thread:
        yield (
            f"{len(run.probed)} of {len(facts.online)} online CPUs are probed, and the probe may use no other (not "
            f"{format_cpulist(others)}): its own main thread shares one of them, and {nobody}"
        )
    elif set(facts.main_thread) & set(facts.isolated):
        cpus = format_cpulist(facts.main_thread)
        yield f"the probe's own main thread is on isolated CPUs, {cpus}: it may use no other"


def _smt(run: Run) -> Iterator[str]:
    for cpu in run.cpus:
        for sibling in sorted(cpu.siblings & set(run.facts.online)):
            ran, idle, _ = run.counted.times.get(sibling, (0, 0, 0))
            busy = 100 * ran / (ran + idle) if ran + idle else 0.0
            if sibling in run.probed and cpu.cpu < sibling:
                yield f"CPU {cpu.cpu} and CPU {sibling} are one physical core: two spinners there slow each other"
            elif sibling not in run.probed and busy >= _SIBLING_BUSY_PERCENT:
                where = f"CPU {sibling}, on the same physical core as CPU {cpu.cpu}"
                yield f"{where}, was busy {percent(busy)} of the run"


def _machine(run: Run) -> Iterator[str]:
    if run.machine.is_virtual:
        yield "this is a virtual machine: the hypervisor takes the CPUs away unseen, and time differs from hardware"
    yield from _for_cpus(
        run,
        lambda cpu: run.steal_ms(cpu.cpu) / 1e3 > _STEAL_SHARE * run.seconds(cpu),
        "the hypervisor stole more than 0.1 % of the run from ",
    )
    yield from _for_cpus(run, lambda cpu: is_slow(cpu.governor), "the frequency governor is not performance on ")
    unlocked = "memory could not be locked for "
    yield from _for_cpus(run, lambda cpu: not cpu.memory_locked, unlocked, " (see `ulimit -l`)")


def is_slow(governor: str) -> bool:
    """May this frequency governor lower the clock? One that cannot be read ("") is not said to."""
    return governor not in ("", "performance")


def _core_clock(run: Run) -> Iterator[str]:
    """Before against after, and against the counter's rate, which on x86 hardware is the core's base clock."""
    base_mhz = run.clock.hz / 1e6
    for cpu in run.cpus:
        before, after = cpu.cycles_per_tick_before, cpu.cycles_per_tick_after
        if after < _FALL * before:
            fall = f"from {before * base_mhz:.0f} to {after * base_mhz:.0f} MHz"
            yield f"the core clock of CPU {cpu.cpu} seemed to fall during the run, {fall}: {_why_slower(run, cpu)}"
        elif run.clock.source == "tsc" and not run.machine.is_virtual and after < _BELOW_BASE:
            yield f"CPU {cpu.cpu} ran at {after * base_mhz:.0f} MHz, below its base clock of {base_mhz:.0f} MHz"


def _why_slower(run: Run, cpu: Cpu) -> str:
    """The clock is timed by a chain of instructions: time that is stolen lengthens that, too."""
    if run.steal_ms(cpu.cpu):
        return "the hypervisor took time from this CPU meanwhile, which looks the same"
    if run.machine.is_virtual:
        return "this is a virtual machine, where time that is taken unseen looks the same"
    if is_slow(cpu.governor):
        return "its frequency governor may lower it"
    return "why is not seen here; `tunectl preflight` looks at heat and power limits"


def _clock(run: Run) -> Iterator[str]:
    clock = run.clock
    wanted = SAME_COUNTER[clock.source][0]
    if clock.kernel_source and clock.kernel_source != wanted:
        other = f"the kernel's clocksource is {clock.kernel_source}, not {wanted}"
        yield f"{other}: it may not trust the counter the probe reads"
    if not run.machine.has_stable_tsc:
        yield "the TSC is not constant_tsc and nonstop_tsc: its ticks are no unit of time"
    if abs(clock.drift_ppm) > DRIFT_PPM:
        moved = ppm(clock.drift_ppm)
        yield f"the counter's rate moved by {moved} between the start and the end of the run"
    yield from _for_cpus(run, lambda cpu: cpu.steps_back, "the counter went backwards on ")


def _fifo(run: Run) -> Iterable[str]:
    """Up to 6.11, and with RT_GROUP_SCHED still, the kernel throttles a FIFO spinner for the rest of each period.

    Since 6.12 the deadline fair server gives the same share to starving ordinary threads, where there are any. Which of
    the two is at work cannot be told from the sysctl, so both are named.
    """
    runtime_us, period_us = run.machine.rt_runtime_us, run.machine.rt_period_us
    if 0 <= runtime_us < period_us:
        taken = f"{nanoseconds((period_us - runtime_us) * 1e3)} of every {nanoseconds(period_us * 1e3)}"
        may = f"the kernel may take the CPU from a SCHED_FIFO spinner for {taken}"
        yield f"sched_rt_runtime_us is {runtime_us} of {period_us}: {may}"
    yield from _for_cpus(
        run,
        lambda cpu: number(cpu.fair_server_runtime),
        "the deadline fair server can take the CPU from a SCHED_FIFO spinner on ",
        " for the sake of starving ordinary threads",
    )
