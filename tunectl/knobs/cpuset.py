"""Isolation at run time: an isolated partition of control group v2."""

from typing import Any

from tunectl.cpulist import format_cpulist
from tunectl.fix import APPLY, in_turn, to_decide
from tunectl.knobs.codecs import CPULIST
from tunectl.knobs.drivers.cpuset import CGROUP, SLICE, IsolatedPartition, PartitionFacts
from tunectl.knobs.row import Absence, Facts, Judgement, Knob
from tunectl.model import Outcome, Reading, Severity


def judge_partition(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """In force when the partition is valid and its CPUs are these; or when this boot's isolcpus= isolates them all.

    From 6.7 on a kernel that was booted with isolcpus= may take no partition beside it, and none is needed then: with
    `isolation = "both"` the partition fills the time until the reboot. The kernel's reason for an invalid one is told.
    """
    found = reading.of_facts(PartitionFacts)
    observed = format_cpulist(reading.value)
    if desired is None:
        reason = f"/{CGROUP} is still an isolated partition, and the host file no longer asks for one"
        return Judgement(Outcome.DRIFTED, observed, None, reason)
    shown = format_cpulist(desired)
    here = desired & found.online
    if here and here <= found.boot and found.shown != "isolated":
        reason = "this boot's isolcpus= keeps these CPUs out of the scheduler's load balancing already"
        return Judgement(Outcome.COMPLIANT, format_cpulist(found.boot & desired), shown, reason)
    if found.problem:
        fix = to_decide('isolation = "boot" in the host file isolates with boot arguments')
        return Judgement(Outcome.DRIFTED, observed, shown, found.problem, fix, changeable=False)
    if reading.value & found.online == desired & found.online and found.cpus == desired:
        return Judgement(Outcome.COMPLIANT, observed, shown)
    beside = _beside_isolcpus(found)
    if not found.shown:
        reason = f"there is no control group /{CGROUP} with CPUs of its own{beside}"
        return Judgement(Outcome.DRIFTED, observed, shown, reason)
    reason = f"/{CGROUP}/cpuset.cpus.partition is '{found.shown}', with CPUs {format_cpulist(found.cpus) or 'none'}"
    is_invalid = found.shown.startswith("isolated invalid")
    if is_invalid and found.others and found.cpus == desired:
        # Only the partition may name its CPUs. Which of the two must give way is the operator's decision.
        others = ", ".join(found.others)
        reason += f"; {others} asks for them, too"
        fix = in_turn(to_decide(f"take these CPUs out of the AllowedCPUs= (cpuset.cpus) of {others}"), APPLY)
        return Judgement(Outcome.DRIFTED, observed, shown, reason, fix)
    if is_invalid and beside:
        again = "boot again with isolcpus= for all of these CPUs, or without it: boot.isolcpus says what comes next"
        return Judgement(Outcome.DRIFTED, observed, shown, reason + beside, to_decide(again), changeable=False)
    return Judgement(Outcome.DRIFTED, observed, shown, reason + beside)


def _beside_isolcpus(partition_facts: PartitionFacts) -> str:
    """Why the kernel may refuse any partition: docs/kernel-facts.md, "Effective state"."""
    if not partition_facts.boot or partition_facts.shown == "isolated":
        return ""
    cpus = format_cpulist(partition_facts.boot)
    return f"; this boot's isolcpus= isolates CPUs {cpus}, and a kernel may take no partition beside it"


KNOBS = (
    Knob(
        "cpuset.isolated",
        IsolatedPartition(),
        CPULIST,
        Severity.STALL,
        judge=judge_partition,
        why="The CPUs of an isolated partition leave the scheduler's load balancing and every other control group at "
        "once, without a reboot; nothing runs there but what is put there.",
        source="Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition",
        risk=f"threads on these CPUs are moved away, trading threads too, unless they live in {SLICE} "
        f"(Slice={SLICE}, or systemd-run --slice={SLICE}); the tick and RCU callbacks stay: those need boot arguments",
        after=("cpu.online", "smt.control"),
        absence=Absence(("cgroup_disable=cpuset",), with_cgroup2=True),
    ),
)
