"""What was switched on in the kernel for a while, and stayed."""

from collections.abc import Iterable

from tunectl.checking import Severity, compliant, costs, unknown, unsupported
from tunectl.checking.outcomes import Fault, failing_of
from tunectl.checking.residue import hidden_probes, of_observers, of_pins, residue, uncertain
from tunectl.checking.window import some
from tunectl.fix import in_turn, to_decide
from tunectl.host.cpusets import CpuFacts
from tunectl.host.observers import DESCRIPTORS, read_observers, read_pins
from tunectl.host.openfiles import Holder, find_holders
from tunectl.host.refusals import AS_ROOT
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import Trace, Tracing, read_tracing

_OF_INSTANCES = "/tracing/instances/"


@costs(Severity.SLOWER)
def test_tracing(host: Sysroot, cpu_facts: CpuFacts) -> None:
    """A tracer, an event or a probe that is left on runs at each call of what it watches, on every CPU.

    Looked at: the global trace and the instances of tracefs, the probes that are on, the kprobes that a program
    armed by perf or BPF, who holds BPF programs and perf events, and which programs are pinned in bpffs: these show
    nowhere in tracefs. An instance whose
    files a running program holds open is in use (rasdaemon's); a probe that is defined and not on costs nothing.
    Source: Documentation/trace/ftrace.rst; Documentation/trace/events.rst; Documentation/trace/kprobes.rst;
    kernel/bpf/syscall.c (bpf_link_show_fdinfo).
    """
    try:
        tracing = read_tracing(host)
    except PermissionError:
        unknown("what is traced is root's to see: the tracer, the events and the probes of tracefs", AS_ROOT)
    except OSError as error:
        unknown(f"tracefs cannot be read: {error.strerror}")
    holders = find_holders(host, rf".*{_OF_INSTANCES}.*|{DESCRIPTORS}").found
    observers = read_observers(host, holders)
    traces = [trace for trace in tracing.traces if trace.on] if tracing else []
    owners = {trace.name: name for trace in traces if (name := _owner(trace, holders))}
    found = residue(tracing, owners) + _of_kprobes(tracing, [one.holder for one in observers]) if tracing else []
    found += of_observers(observers, len(cpu_facts.online)) + of_pins(read_pins(host))
    if found:
        failing_of("the kernel traces", found)
    if doubts := uncertain(observers):
        stops = in_turn(*(to_decide(f"end it: {one.holder.stop}") for one in observers if one.perf_events))
        unknown(f"on which CPUs these perf events count, no file shows: {some(doubts)}", stops)
    if tracing is None:
        unsupported("no tracefs is mounted here")
    used = [f"{owner} uses instance {name}" for name, owner in owners.items()]
    off = [f"probe {event} is defined and off" for _, event in tracing.probes]
    compliant(some(used + off))


def _owner(trace: Trace, holders: Iterable[Holder]) -> str:
    """Who holds a file of an instance open: the global trace belongs to nobody."""
    below = f"{_OF_INSTANCES}{trace.name}/"
    return next((one.name for one in holders if trace.name and any(below in file for file in one.files)), "")


def _of_kprobes(tracing: Tracing, holders: list[Holder]) -> list[Fault]:
    armed = hidden_probes(tracing)
    if not armed:
        return []
    who = f", held by {some(one.name for one in holders)}" if holders else ""
    stops = "; ".join(one.stop for one in holders)
    fix = to_decide(f"end the program that holds them: {stops}" if holders else "find who loaded them")
    return [Fault(f"kprobes of a program, by perf or BPF, on {some(armed)}{who}", fix)]
