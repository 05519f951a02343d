"""What `tunectl-probe contention` counted, as types; which cases are void, and the cells and warnings. Pure."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tunectl.experiments import pair
from tunectl.experiments.ends import SENDER_AND_RECEIVER
from tunectl.experiments.frame import Case, Count, Experiment, Judged, Values
from tunectl.experiments.tick_figures import FEWEST
from tunectl.shapes import CONTENTION_STEPS, ContentionCase, about
from tunectl.wording import plural


class End(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread used from the last warm-up to the end."""

    cpu_ns: Count = 0
    ticks: Count = 0
    preemptions: Count = 0
    sleeps: Annotated[Count, about("It left its CPU by itself: for a lock that another held, or to wait.")] = 0
    page_faults: Count = 0


class RawCase(Case, msgspec.Struct, frozen=True, kw_only=True):
    """One kind of buffers and of hand-over."""

    shape = ContentionCase
    asked = ("buffers", "hand_over", "threads", "bytes", "rate")
    buffers: Literal["malloc", "pool"]
    hand_over: Literal["mutex", "futex", "ring"]
    threads: Annotated[int, Meta(ge=2, description="That take buffers; those beyond two on other CPUs.")]
    bytes: Annotated[int, Meta(gt=0, description="Of the largest buffer.")]
    rate: Annotated[int, Meta(gt=0, description="Buffers a second.")]
    sent: Annotated[Count, about("Buffers, warm-ups left out; all of them arrived.")] = 0
    allocations: Annotated[Count, about("Calls of malloc for these.")] = 0
    taking: Annotated[Values, about("Until a buffer was there, each of its pages written to.")] = []
    handing: Annotated[Values, about("From then until the receiver had it.")] = []
    giving: Annotated[Values, about("Giving back an earlier one, by the receiver.")] = []
    whole: Annotated[Values, about("From due until the receiver had it.")] = []
    ends: Annotated[tuple[End, End], about("The sender and the receiver.")] = (End(), End())


class RawContention(pair.PairRun[RawCase], frozen=True, kw_only=True):
    """What `tunectl-probe contention` counted, in ticks of its counter; docs/probe.md has the definitions."""


def why_void(case: RawCase, run: RawContention) -> str:
    """Why the times of a measured case are no result; "" where they are one."""
    sleeps = (False, case.hand_over == "futex")
    for end, cpu, may_sleep in zip(case.ends, run.cpus, sleeps, strict=True):
        share = pair.cpu_share(end.cpu_ns, end.ticks, run.clock.hz)
        if reason := "" if may_sleep else pair.why_no_spinner(share, cpu):
            return reason
        if end.preemptions > pair.OTHERS_MOST * case.sent:
            times = f"preempted {plural(end.preemptions, 'time')} in {plural(case.sent, 'buffer')}"
            return f"void: the thread on CPU {cpu} was {times} (it may be in {100 * pair.OTHERS_MOST:.0f} %)"
    return ""


def run_warnings(run: RawContention) -> Iterator[str]:
    """About the whole run."""
    return pair.pair_warnings(run, "the hypervisor may stop either CPU unseen, and steps hold that")


def _case_warnings(case: RawCase, _: RawContention) -> Iterator[str]:
    for role, end in zip(SENDER_AND_RECEIVER.names, case.ends, strict=True):
        yield from pair.preempted(role, end.preemptions)


def _counted(run: RawContention, judged: Judged) -> dict[str, Any]:
    case, hz = judged.case, run.clock.hz
    whole = judged.figures(case.whole, hz)
    summary = whole.summary_ns(FEWEST)
    return {
        "n": whole.n,
        "sent": case.sent,
        "allocations": case.allocations,
        "sleeps": [end.sleeps for end in case.ends],
        "preemptions": [end.preemptions for end in case.ends],
        "page_faults": [end.page_faults for end in case.ends],
        **{f"{name}_ns": judged.figures(getattr(case, name), hz).spread_ns(FEWEST) for name in CONTENTION_STEPS},
        "percentiles_ns": summary["percentiles_ns"],
        "max_ns": summary["max_ns"],
        "histogram": whole.histogram_ns(),
    }


CONTENTION = Experiment(
    "contention",
    RawContention,
    kept=("fifo_priority",),
    lists=lambda case: {name: (getattr(case, name), case.sent) for name in (*CONTENTION_STEPS, "whole")},
    why_nothing=lambda case: "" if case.sent else "interrupted before the first buffer",
    why_void=why_void,
    counted=_counted,
    run_warnings=run_warnings,
    warnings=_case_warnings,
)
explained_contention = CONTENTION.explained
