"""Documents in which one thing is otherwise: what is new on their pages, and how many lines are gone."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.compare.feeds import TRIP, feed_document
from tests.compare.hedges import hedge_document, simulated_hedge
from tests.experiments import feeds, hedges
from tests.report.documents import AT, HOST, body, document
from tests.report.pages import file, page
from tunectl.model import Document
from tunectl.report import render

_TRACE = {"method": "trace", "reason": "", "event_cost_ns": None, "clock": "mono_raw", "clock_error_ns": 31.5}
_COUNTERS = {"method": "counters", "reason": "tracefs is not mounted"}
_GAP: dict[str, Any] = {
    "cpu": 3, "tsc_start": 1_000, "tsc_end": 56_000, "at_ns": 1_200_000_000, "length_ns": 55_000, "cause": "thread x",
    "before": [[-2_000, "local timer"]], "events_left_out": 0,
    "events": [[1_500, "thread x has the CPU"], [54_000, "the probe has it again"]],
    "unseen": ["what is not seen"],
    "others": [{"cpu": 2, "gaps": [[-500, 3_000, "irq 9 x"]]}, {"cpu": 4, "gaps": []}],
}  # fmt: skip
_UNTIL = {"ended_by": "until", "until": {"least_ns": 50_000, "gap": _GAP}}
_STOPS = {
    "count": 12, "total_ns": 1_200_000, "max_ns": 110_000, "least_ns": 50_000, "by_chance": 0.01, "reason": "",
    "explanation": "firmware (an SMI) or hardware",
}  # fmt: skip
_UNMEASURED = {"limits": {"max_ns": 50_000}, "verdict": "not-judged", "broken": [], "reason": "interrupted"}
_HW = {"asked": "hw", "kind": "hw", "reason": "", "were_on": None, "uncertainty_ticks": 900, "stepped": False}
Changes = dict[str, Any]


def _cpus(**first: Any) -> Changes:
    """The sample of the probe, of whose first CPU something is otherwise."""
    cpus = body("probe.jitter")["cpus"]
    return {"cpus": [cpus[0] | first, *cpus[1:]]}


def _taken(steal_ns: int = 0, **causes: int) -> Changes:
    """Time that the hypervisor has, and time that went to causes of these kinds."""
    first = body("probe.jitter")["cpus"][0]
    more = [{"kind": kind, "count": 1, "total_ns": ns, "max_ns": ns, "cause": kind, "name": kind}
            for kind, ns in causes.items()]  # fmt: skip
    return _cpus(counters=first["counters"] | {"steal_ns": steal_ns}, causes=[*first["causes"], *more])


def _loaded(ran: bool) -> Changes:
    made = body("probe.jitter.loaded")
    made["loaded"][0]["load"].update(ran=ran, reason="stress-ng has ended: killed")
    return {"loaded": made["loaded"], "comparison": None}


def _judged(**changed: Any) -> Changes:
    return {"judged": body("compare")["judged"] | changed}


def _fed(limits: Changes, verdict: str) -> Changes:
    return {"feed": body("preflight")["feed"] | {"budget": {"limits": limits, "verdict": verdict, "broken": []}}}


def _void() -> Changes:
    (first, *others) = body("probe.wake")["cells"]
    empty = dict.fromkeys(("min_ns", "mean_ns", "percentiles_ns", "max_ns", "after_send_ns", "send_call_ns", "late_ns"))
    void = {"n": 0, "histogram": [], "is_void": True, "reason": "void: the spinner had 14 %"}
    return {"cells": [first | empty | void, *others], "speedups": []}


def _runs() -> Changes:
    first, second = body("probe.jitter.runs")["runs"]
    return {"runs": [first, second | _UNTIL | {"duration_s": 2.0}]}


# What is otherwise, in which document, and the fields that say so.
_HANG = [
    {"phase": "loader", "by": "nothing", "what": "", "seconds": None},
    {"phase": "kernel", "by": "bmc", "what": "IPMI", "seconds": None},
    {"phase": "panic", "by": "line", "what": "panic=30", "seconds": 30},
    {"phase": "initramfs", "by": "unknown", "what": "", "seconds": None},
    {"phase": "userspace", "by": "watchdog", "what": "i6300ESB timer", "seconds": 60},
]
_ROWS: tuple[tuple[str, str, Callable[[], Changes]], ...] = (
    ("the hypervisor took more than is unexplained", "probe.jitter", lambda: _taken(30_000_000)),
    *(
        (f"throttled for {ms} ms, of which 3 are known", "probe.jitter",
         lambda ms=ms: _taken(throttle=3_000_000, unknown=5_000_000) | {"throttled_ns": ms * 10**6})
        for ms in (2, 40)
    ),
    ("an event may be off", "probe.jitter", lambda: {"attribution": _TRACE}),
    ("no trace", "probe.jitter", lambda: {"attribution": _COUNTERS}),
    ("no causes were asked for", "probe.jitter", lambda: {"attribution": None}),
    ("the account does not add up", "probe.jitter", lambda: _cpus(conservation_ppm=-1700.4)),
    ("within budget", "probe.jitter", lambda: {"budget": _UNMEASURED | {"verdict": "within"}}),
    ("not judged", "probe.jitter", lambda: {"budget": _UNMEASURED}),
    ("a gap ended the run", "probe.jitter", lambda: _UNTIL),
    ("no gap ended the run", "probe.jitter", lambda: {"until": {"least_ns": 50_000, "gap": None}}),
    ("periods were searched in a part", "probe.jitter", lambda: _cpus(periods_searched_ns=820_000_000)),
    ("others had the CPU", "probe.jitter", lambda: _cpus(periods_searched_ns=0)),
    ("all CPUs stood still", "probe.jitter", lambda: {"simultaneous_stops": _STOPS}),
    ("none stood still", "probe.jitter", lambda: {"simultaneous_stops": _STOPS | {"count": 0}}),
    ("a gap ended one of two runs", "probe.jitter.runs", _runs),
    ("the load did not run", "probe.jitter.loaded", lambda: _loaded(ran=False)),
    ("nothing was measured under load", "probe.jitter.loaded", lambda: {"loaded": [], "comparison": None}),
    ("all was found", "probe.selftest", lambda: {"passed": True}),
    ("no length is vouched for", "probe.selftest", lambda: {"vouched_ns": None}),
    ("two set-ups", "compare", lambda: _judged(of="sets")),
    ("no difference", "compare", lambda: _judged(outcome="no-difference")),
    ("cannot tell", "compare", lambda: _judged(outcome="cannot-tell", reason="the rate drifts within a run")),
    ("a cold sender", "probe.wake", lambda: {"has_warm_sender": False}),
    ("a void cell", "probe.wake", _void),
    ("stamps cost nothing that is known", "probe.feed", lambda: {"stamp_cost_ns": None}),
    ("stamps cost less than nothing", "probe.feed", lambda: {"stamp_cost_ns": -20}),
    *((verdict, "preflight", lambda verdict=verdict: {"verdict": verdict})
      for verdict in ("go", "pending-reboot", "unknown")),
    ("without a probe", "preflight", lambda: {"probe": None}),
    ("feed within its limit", "preflight", lambda: _fed({"due_to_book_p99_9_ns": 60_000}, "within")),
    ("feed not judged", "preflight", lambda: _fed({"due_to_book_p99_9_ns": 60_000}, "not-judged")),
    ("feed without a limit", "preflight", lambda: _fed({}, "not-judged")),
    ("nothing to plan", "plan", lambda: {"changes": [], "reboot_required": False, "findings": []}),
    ("nothing that can be planned", "plan", lambda: {"changes": [], "reboot_required": False}),
    ("what ends a hang", "plan", lambda: {"hang": _HANG}),
    ("nothing to apply", "apply", lambda: {"changes": [], "verdict": "compliant", "not_run": [], "notes": []}),
    ("nothing that can be applied", "apply",
     lambda: {"changes": [], "verdict": "drifted", "findings": body("plan")["findings"]}),
)  # fmt: skip
_HTML = ("probe.jitter", "probe.jitter.runs", "probe.jitter.loaded", "probe.wake", "preflight")


def variants() -> str:
    """Each row's difference, on the page as text and, where there is one, as HTML."""
    return "".join([*_rows(), _more_detail(), *_whole()])


def _rows() -> Iterator[str]:
    for title, name, changes in _ROWS:
        yield f"# {name}: {title}\n"
        yield _differing(_text(name), _text(name, **changes()))
        if name in _HTML:
            yield _differing(_words(name), _words(name, **changes()), "html ")


def _more_detail() -> str:
    more = render(document("probe.jitter")._replace(verbose=1), "text", width=80)
    return f"# probe.jitter: -v\n{_differing(_text('probe.jitter'), more)}"


def _whole() -> Iterator[str]:
    """Documents that are other ones altogether: their first lines."""
    calm, short = hedges.tail(20_000), hedges.tail(20_000, 6_000)
    made = {
        "feed, there and back": feed_document(feeds.case(feeds.tail(1_000), stamps=_HW), trip=TRIP),
        "feed, nothing measured": feed_document(feeds.unmeasured("the kernel refuses it")),
        "hedge, simulated": simulated_hedge(hedges.case(calm), hedges.case(short, hedged=20_000, delay="0")),
        "hedge, no gain": hedge_document(hedges.case(calm), hedges.case(calm, hedged=9, delay="0")),
    }
    for title, whole in made.items():
        lines = render(Document(f"probe.{title.partition(',')[0]}", HOST, AT, whole), "text", width=80).splitlines()
        yield "\n".join([f"# {title}", *lines[:8], ""])


def _text(name: str, **changes: Any) -> str:
    return render(document(name, **changes), "text", width=80)


def _words(name: str, **changes: Any) -> str:
    return "\n".join(" ".join(line.split()) for line in page(file(name, body(name) | changes)).words.splitlines())


def _differing(before: str, after: str, mark: str = "") -> str:
    """The lines that are new, and how many are gone. How wide a column is does not count."""
    was, now = ([" ".join(line.split()) for line in text.splitlines()] for text in (before, after))
    new = "".join(f"{mark}+ {line}\n" for line in now if line and line not in was)
    gone = len([line for line in was if line and line not in now])
    return new + (f"{mark}- {gone} lines\n" if gone else "")
