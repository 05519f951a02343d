"""What was switched on in the kernel for a while, and stayed."""

import re

from tunectl.checking import Severity, compliant, costs, failing, unknown, unsupported
from tunectl.checking.residue import Residue, hidden_probes, residue
from tunectl.checking.window import some
from tunectl.fix import in_turn, to_decide
from tunectl.host.openfiles import find_holders
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import Trace, Tracing, read_tracing

_PROGRAMS = r"anon_inode:(\[perf_event\]|bpf-prog|bpf_link|\[bpf_link\]|bpf_prog)"


@costs(Severity.SLOWER)
def test_tracing(host: Sysroot) -> None:
    """A tracer, an event or a probe that is left on runs at each call of what it watches, on every CPU.

    Looked at: the global trace and the instances of tracefs, the probes that are on, and the kprobes that a program
    armed by perf or BPF. An instance whose files a running program holds open is in use (rasdaemon's); a probe that
    is defined and not on costs nothing.
    Source: Documentation/trace/ftrace.rst; Documentation/trace/events.rst; Documentation/trace/kprobes.rst.
    """
    try:
        tracing = read_tracing(host)
    except PermissionError:
        unknown(
            "what is traced is root's to see: the tracer, the events and the probes of tracefs",
            to_decide("run it as root"),
        )
    except OSError as error:
        unknown(f"tracefs cannot be read: {error.strerror}")
    if tracing is None:
        unsupported("no tracefs is mounted here")
    owners = {trace.name: name for trace in tracing.traces if trace.on and (name := _owner(host, trace))}
    found = residue(tracing, owners) + _of_programs(host, tracing)
    if found:
        failing(
            f"the kernel traces: {some(one.what for one in found)}",
            in_turn(*(one.fix for one in found)),
            observed=len(found),
            desired=0,
        )
    used = [f"{owner} uses instance {name}" for name, owner in owners.items()]
    off = [f"probe {event} is defined and off" for _, event in tracing.probes]
    compliant(some(used + off))


def _owner(host: Sysroot, trace: Trace) -> str:
    """Who holds a file of an instance open: the global trace belongs to nobody."""
    if not trace.name:
        return ""
    holders = find_holders(host, rf".*/tracing/instances/{re.escape(trace.name)}/.*").found
    return holders[0].name if holders else ""


def _of_programs(host: Sysroot, tracing: Tracing) -> list[Residue]:
    armed = hidden_probes(tracing)
    if not armed:
        return []
    holders = find_holders(host, _PROGRAMS).found
    who = f", held by {some(one.name for one in holders)}" if holders else ""
    stops = "; ".join(one.stop for one in holders)
    fix = to_decide(f"end the program that holds them: {stops}" if holders else "find who loaded them")
    return [Residue(f"kprobes of a program, by perf or BPF, on {some(armed)}{who}", fix)]
