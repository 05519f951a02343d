"""What the operator's own threads did while the host was watched, and what runs in their processes."""

from collections.abc import Sequence
from contextlib import suppress

from tunectl import kinds
from tunectl.checking import Match, Severity, compliant, costs, failing, unknown, unsupported, watches
from tunectl.checking.ipis import PER_S, SHORTEST_S, allowed
from tunectl.checking.placing import at_next_start
from tunectl.checking.residue import page_movers
from tunectl.checking.traders import Defaults, Trader, cpus_for, is_stopped, loose, named, pollers, sleeps, span_of
from tunectl.checking.window import Window, some
from tunectl.command import as_data
from tunectl.cpulist import format_cpulist
from tunectl.fix import in_turn, to_decide, to_type
from tunectl.host.openfiles import Polled, read_polled
from tunectl.host.procs import Thread
from tunectl.host.refusals import AS_ROOT
from tunectl.host.runtimes import Runtime, collectors, read_runtimes, settings_of
from tunectl.host.sysroot import Sysroot
from tunectl.model import Scope
from tunectl.wording import plural, seconds_of

_BUSY_POLL = "proc/sys/net/core/busy_poll"
_BUSY_READ = "proc/sys/net/core/busy_read"
_PREFAULT = (
    "touch all memory before the session: mlockall(MCL_CURRENT | MCL_FUTURE), MAP_POPULATE, a dummy array on each "
    "stack, mallopt(M_TRIM_THRESHOLD, M_MMAP_MAX); a JVM with -XX:+AlwaysPreTouch"
)


@costs(Severity.STALL)
@watches(1.0)
def test_trading_spins(trading_thread: Trader, window: Window) -> None:
    """A spinner that sleeps has to be woken: that takes microseconds each time, and it misses what comes meanwhile.

    `spins = true` in its declaration says that it never does. Compared: voluntary_ctxt_switches before and after. A
    lock, an allocator, a page fault from a disk and a blocking call count; being preempted and sched_yield(2) do not.
    Source: proc(5); kernel/sched/core.c (__schedule).
    """
    declared = trading_thread.declared
    if not declared.spins:
        unsupported("its declaration does not say spins = true")
    span = span_of(window, trading_thread)
    if is_stopped(span):
        again = to_decide("let it go on, then check again")
        unknown(f"{as_data(declared.name)} is stopped, by a signal or a debugger", again)
    times = sleeps(span)
    if times is None:
        unknown(f"/proc/{span.after.pid}/task/{span.after.tid}/status does not count voluntary switches")
    if times:
        failing(
            f"{as_data(declared.name)} (tid {span.after.tid}) is declared to spin, and slept {plural(times, 'time')} "
            f"in {seconds_of(window.seconds)}: a lock, an allocator, a page fault or a blocking call (a stop by a "
            "signal counts the same)",
            to_decide(
                f"find the call it waits in, outside a session (sudo perf trace -s -t {span.after.tid}), and have it "
                "poll instead; or take spins = true out of its declaration"
            ),
            observed=times,
            desired=0,
        )


@costs(Severity.STALL)
@watches(SHORTEST_S)
def test_trading_faults(trading_thread: Trader, window: Window, host: Sysroot) -> None:
    """The first touch of a page stops the thread in the kernel for a microsecond or more; one from a disk, for longer.

    Compared: the thread's minor and major faults before and after. Ten minor faults a second are let pass, and no major
    one: memory that was touched beforehand and is locked has none.
    Source: proc(5), fields minflt and majflt of stat; mlockall(2).
    """
    before, after = span_of(window, trading_thread)
    minor, major = after.minor - before.minor, after.major - before.major
    if not major and minor <= allowed(window.seconds):
        return
    movers = page_movers(host)
    per_s = round(minor / window.seconds, 1)
    failing(
        f"{as_data(trading_thread.declared.name)} (tid {after.tid}) took {minor} minor and {major} major page faults "
        f"in {seconds_of(window.seconds)}" + "".join(f"; {mover}" for mover, _ in movers),
        in_turn(to_decide(_PREFAULT), *(fix for _, fix in movers)),
        observed=major or per_s,
        desired=0 if major else PER_S,
        match=Match.AT_MOST,
    )


@costs(Severity.STALL)
def test_trading_collector(trading_thread: Trader, host: Sysroot, scope: Scope, traders: list[Trader]) -> None:
    """A garbage collector that runs on an isolated CPU takes it from a trading thread, and stops its own program's.

    Found by what the process maps and executes: the JVM, .NET, Go, Node.js. Looked at: where the collector's threads
    may run; in Go and Node.js any thread may collect. Declared threads are left out. What sets the collector is said as
    far as the command line and the environment show it.
    Source: /proc/PID/maps, exe, cmdline, environ (proc(5)).
    """
    pid = trading_thread.thread.pid
    try:
        found = read_runtimes(host, pid)
    except PermissionError as error:
        unknown(f"what process {pid} runs cannot be read: {error.strerror}", AS_ROOT)
    except (OSError, ValueError) as error:
        unknown(
            f"what process {pid} runs is not known: {getattr(error, 'strerror', None) or f'its executable {error}'}"
        )
    if not found:
        looked_for = ", ".join(one.value for one in Runtime)
        compliant(
            f"process {pid} shows none of the runtimes with a garbage collector that are known here: {looked_for}"
        )
    threads = {one: collectors(host, pid, one) for one in found}
    settings = "; ".join(_set(host, pid, one) for one in found)
    astray = [one for each in threads.values() for one in loose(each, traders, scope.isolated)]
    if astray:
        _astray(pid, dict.fromkeys(astray), found, settings, scope)
    hidden = [one for each in threads.values() for one in each if one.allowed is None]
    if hidden:
        unknown(f"where {some(as_data(one.comm) for one in hidden)} may run is not known; {settings}")
    compliant(f"process {pid}: {settings}")


def _astray(pid: int, astray: dict[Thread, None], found: tuple[Runtime, ...], settings: str, scope: Scope) -> None:
    names = " and ".join(one.value for one in found)
    seen = (f"{as_data(one.comm)} (tid {one.tid}) on CPUs {format_cpulist(one.allowed or ())}" for one in astray)
    others = format_cpulist(scope.housekeeping & scope.online)
    failing(
        f"the garbage collector of {names} in process {pid} may run on isolated CPUs: {some(seen, 3)}; {settings}",
        to_decide(
            f"start process {pid} on CPUs {others} (CPUAffinity={others} in its unit), and have only its trading "
            "threads pin themselves to their CPUs (sched_setaffinity(2))"
        ),
        observed=len(astray),
        desired=0,
    )


def _set(host: Sysroot, pid: int, runtime: Runtime) -> str:
    words, whole = settings_of(host, pid, runtime)
    said = " ".join(words) or "nothing sets its collector"
    return f"{runtime.value}: {said}" + ("" if whole else " on the command line (its environment is not ours to read)")


@costs(Severity.SLOWER)
@watches(1.0)
def test_trading_polls(trading_thread: Trader, window: Window, host: Sysroot, traders: list[Trader]) -> None:
    """A thread that busy-polls one socket does not look at another one meanwhile: each wants a CPU for itself.

    Asked of a duplicate of each descriptor (pidfd_getfd(2), root only): SO_BUSY_POLL of the process's Internet sockets,
    and the parameters of its epoll instances. Compared: how many there are, and the CPUs of its declared threads.
    Which thread polls which, and whether it goes round several with reads that do not wait, shows nowhere: where there
    are more, the answer is unknown.
    Source: socket(7); Documentation/networking/napi.rst; Documentation/admin-guide/sysctl/net.rst.
    """
    after = span_of(window, trading_thread).after
    defaults = Defaults(*(int(host.get(path).strip() or 0) for path in (_BUSY_READ, _BUSY_POLL)))
    sharing = [
        one for one in traders if one.declared.name != trading_thread.declared.name and _shares(window, one, after)
    ]
    try:
        polled = read_polled(host, after.pid)
    except OSError as error:
        if any(defaults):
            _refuse_sharing(trading_thread, sharing, after, str(defaults))
        unknown(f"what process {after.pid} busy-polls cannot be seen: {error.strerror}", AS_ROOT)
    found = pollers(polled, defaults)
    if not found:
        unsupported(f"process {after.pid} busy-polls nothing: no socket has SO_BUSY_POLL, no epoll instance polls")
    also = [one for one in sharing if _polls_too(host, one, after.pid, found, defaults)]
    _refuse_sharing(trading_thread, also, after, f"SO_BUSY_POLL or epoll, {max(one.usecs for one in found)} us")
    own = {one.declared.cpu for one in traders for there in one.threads if there.pid == after.pid}
    threads = [one for (pid, _), one in window.after.threads.items() if pid == after.pid and one.alive]
    said = f"process {after.pid} busy-polls {named(found)}"
    if len(found) <= len(own):
        compliant(f"{said}; its declared threads have {plural(len(own), 'CPU')}")
    where = f"{said}; its {plural(len(threads), 'thread')} can be on {plural(cpus_for(threads), 'CPU')} at once"
    each = to_decide("give each socket that is busy-polled a declared thread and a CPU of its own, or poll fewer")
    unknown(f"{where}, {len(own)} of them declared: which thread polls which shows nowhere", each)


def _refuse_sharing(trader: Trader, beside: list[Trader], thread: Thread, how: str) -> None:
    """Two threads that poll and are held to one CPU take turns there."""
    if not beside:
        return
    others = f"so {'do' if len(beside) > 1 else 'does'} {some(as_data(one.declared.name) for one in beside)}"
    home = [one for one in (trader, *beside) if one.thread.allowed != frozenset({one.declared.cpu})]
    failing(
        f"{as_data(trader.declared.name)} polls on CPU {thread.cpu} ({how}), and {others}",
        in_turn(
            *(to_type(kinds.move_thread(one.thread.tid, str(one.declared.cpu))) for one in home),
            *(at_next_start(one.declared) for one in home),
        ),
        observed=len(beside),
        desired=0,
    )


def _polls_too(host: Sysroot, other: Trader, pid: int, found: Sequence[Polled], defaults: Defaults) -> bool:
    """Does another declared thread's process poll? A thread of the same one may have the second socket."""
    if other.thread.pid == pid:
        return len(found) > 1
    with suppress(OSError):
        return bool(pollers(read_polled(host, other.thread.pid), defaults))
    return False


def _shares(window: Window, other: Trader, thread: Thread) -> bool:
    """Is another declared thread held to the CPU that this one is held to?"""
    found = [window.after.threads.get((one.pid, one.tid)) for one in other.threads]
    return any(one and one.allowed == thread.allowed == frozenset({thread.cpu}) for one in found)
