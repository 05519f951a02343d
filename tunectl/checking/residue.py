"""What somebody switched on in the kernel to look at something, and did not switch off again. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from tunectl import kinds
from tunectl.checking.outcomes import Fault
from tunectl.checking.window import some
from tunectl.command import argv, as_data, write
from tunectl.fix import Fix, in_turn, to_decide, to_type
from tunectl.host.observers import Observer, Pin
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import Trace, Tracing
from tunectl.wording import plural


def residue(tracing: Tracing, owners: Mapping[str, str]) -> list[Fault]:
    """What is on. `owners` says by an instance's name which running program holds its files open: that one is in use.

    A probe that is defined and not on costs nothing, and is none.
    """
    place = "/" + tracing.place
    residues = [one for trace in tracing.traces if trace.name not in owners for one in _of(trace)]
    on = {event for trace in tracing.traces for event in trace.events}
    files = sorted({file for file, event in tracing.probes if event in on})
    for file in files:
        names = [event for kind, event in tracing.probes if kind == file and event in on]
        words = ["-:" + event.replace(":", "/") for event in names]
        ends = in_turn(*(to_type(write(word, f"{place}/{file}", append=True)) for word in words))
        residues.append(Fault(f"probes of {file}: {some(names)}", ends))
    if tracing.profiled:
        off = to_type(write("0", f"{place}/function_profile_enabled"))
        residues.append(Fault("every kernel function is timed", off))
    if tracing.stack:
        off = to_type(kinds.stop_stack_tracer())
        residues.append(Fault("every kernel function's stack is measured", off))
    return residues


def _of(trace: Trace) -> list[Fault]:
    where = f"instance {as_data(trace.name)}: " if trace.name else ""
    found = []
    if trace.tracer not in ("", "nop"):
        off = to_type(write("nop", f"/{trace.path}/current_tracer"))
        found.append(Fault(f"{where}the tracer {trace.tracer}", off))
    if trace.events:
        off = to_type(write("", f"/{trace.path}/set_event"))
        found.append(Fault(f"{where}events {some(trace.events)}", off))
    if trace.name and found:
        whats = " and ".join(one.what.removeprefix(where) for one in found)
        return [Fault(where + whats, to_type(argv("sudo", "rmdir", of=[f"/{trace.path}"])))]
    return found


def hidden_probes(tracing: Tracing) -> tuple[str, ...]:
    """The functions with an armed kprobe while no probe of tracefs is on: a program's, by perf or BPF."""
    on = {event for trace in tracing.traces for event in trace.events}
    return () if any(event in on for _, event in tracing.probes) else tracing.armed


def of_pins(pins: Sequence[Pin]) -> list[Fault]:
    """The links that last without a process, and what ends them."""
    links = [as_data(link) for link in sorted({pin.link for pin in pins})]
    what = f"BPF programs at {some(links)}, pinned at {some(pin.path for pin in pins)}"
    end = to_type(argv("sudo", "rm", of=[pin.path for pin in pins]), "or end the program that pinned them")
    return [Fault(what, end)] if pins else []


def of_observers(observers: Iterable[Observer], online: int) -> list[Fault]:
    """The processes that have programs run, or perf events counted, on every CPU: what each holds, and what ends it."""
    found = []
    for observer in observers:
        if observer.runs_programs or observer.watches_all(online):
            held = [as_data(link) for link in observer.links] or [f"a {kind} program" for kind in observer.programs]
            parts = [f"BPF programs at {some(held)}"] if held else []
            parts += [plural(observer.perf_events, "perf event")] if observer.perf_events else []
            end = to_decide(f"end the program that holds them: {observer.holder.stop}")
            found.append(Fault(f"{observer.holder.name} holds {' and '.join(parts)}", end))
    return found


def uncertain(observers: Iterable[Observer]) -> list[str]:
    """The processes with perf events that may be of one CPU or one thread, in words."""
    return [f"{observer.perf_events} of {observer.holder.name}" for observer in observers if observer.perf_events]


_NUMA_HOLDS = "it holds until the next boot; the knob mm.numa_balancing in the host file does it at each"
_KSM_HOLDS = "it holds until the next boot; the knob mm.ksm in the host file does it at each"
# It does where the file says one of these.
_MOVERS = {
    "proc/sys/kernel/numa_balancing": ("123", to_type(kinds.stop_numa_balancing(), _NUMA_HOLDS)),
    "sys/kernel/mm/ksm/run": ("1", to_type(kinds.stop_merging_pages(), _KSM_HOLDS)),
}


def page_movers(root: Sysroot) -> list[tuple[str, Fix]]:
    """Each that is on, in words, and what ends it."""
    return [
        (f"/{path} is {value}: the kernel moves or merges pages of processes", stop)
        for path, (on, stop) in _MOVERS.items()
        if (value := root.get(path)) and value in on
    ]
