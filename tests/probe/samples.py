"""A made-up result with round numbers."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tunectl.probe.explain import ARRIVALS, GAPS
from tunectl.probe.lengths import Lengths
from tunectl.shapes import Jitter, typed


def figures_of(lengths: Sequence[int], run_ns: int = 10**10) -> dict[str, Any]:
    """What a CPU's result says of gaps of these lengths in ns, none of which is listed."""
    all_of_them, stolen = Lengths((length, 1) for length in lengths), sum(lengths)
    arrivals = {name: int(all_of_them.arrival_percentile(share, run_ns)) for name, share in ARRIVALS.items()}
    return {
        "duration_ns": run_ns,
        "interruptions": len(lengths),
        "stolen_ns": stolen,
        "stolen_ppm": stolen * 1e6 / run_ns,
        "max_ns": max(lengths, default=0),
        "gap_ns": {name: int(all_of_them.percentile(share)) for name, share in GAPS.items()},
        "arrival_ns": arrivals,
        "histogram": [[length, length, count] for length, count in sorted(Counter(lengths).items())],
        "events_lost": len(lengths),
        "events": [],
    }


def cpu_result(cpu: int = 2, **changes: Any) -> dict[str, Any]:
    """10 s, 50 interruptions, 1 ms stolen in all."""
    values: dict[str, Any] = {
        "cpu": cpu,
        **figures_of([19_000] * 10 + [19_250] * 38 + [38_500, 40_000]),
        "loops": 1_000_000_000,
        "loop_ns": {"mean": 10.0, "min": 9.9},
        "percentile_error_ppm": 0,
        "counters": {
            "irq": {},
            "softirq": {},
            "context_switches": {"voluntary": 0, "involuntary": 0},
            "page_faults": 0,
            "steal_ns": 0,
        },
        "core_khz": {"before": 3_500_000, "after": 3_500_000},
    }
    return values | changes


def typed_result(*cpus: dict[str, Any], **changes: Any) -> Jitter:
    """The same as everybody has it who only reads."""
    return typed(result(*cpus, **changes), Jitter)


def result(*cpus: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A document around these CPUs."""
    values: dict[str, Any] = {
        "schema": "tunectl.probe.jitter/1",
        "tunectl_version": "0.1.0",
        "host": {"hostname": "h", "kernel": "6.12", "boot_id": "b", "machine": "x86_64"},
        "at": "2026-11-21T09:00:00Z",
        "threshold_ns": 160,
        "duration_s": 10.0,
        "interrupted": False,
        "ended_by": "duration",
        "clock": {"source": "tsc", "hz": 2.6e9, "granule_ns": 10.0, "drift_ppm": 0.0},
        "warnings": [],
        "budget": {"limits": {}, "verdict": "not-judged", "broken": []},
        "cpus": list(cpus),
        "not_measured": [],
    }
    return values | changes


HZ = 1e9  # so that a tick is a nanosecond


def raw_cpu(cpu: int = 2, *gaps: tuple[int, int], lost: int = 0, **changes: Any) -> dict[str, Any]:
    """What the program writes of one CPU: these gaps, all listed, in a run of 10 s that begins at 1,000 ticks."""
    run_ticks = 10**10
    lengths = [end - start for start, end in gaps]
    start, stolen = 1_000, sum(lengths)
    values: dict[str, Any] = {
        "cpu": cpu,
        "tsc_start": start,
        "tsc_end": start + run_ticks,
        "interruptions": len(gaps) + lost,
        "stolen_ticks": stolen,
        "max_ticks": max(lengths, default=0),
        "turns": (run_ticks - stolen) // 10 + len(gaps) + lost,
        "turns_merged": 0,
        "quiet_turns": (run_ticks - stolen) // 10,
        "quiet_ticks": run_ticks - stolen,
        "steps_back": 0,
        "step_ticks": 9.9,
        "recording_ticks": 20.0,
        "cycles_per_tick_before": 1.0,
        "cycles_per_tick_after": 1.0,
        "clock_readings": [[0, 5_000], [start + run_ticks + 1_000, 5_000 + start + run_ticks + 1_000]],
        "memory_locked": True,
        "stayed": True,
        "migrations": 0,
        "waited_ns": 0,
        "governor": "performance",
        "counters": {"context_switches": {"voluntary": 0, "involuntary": 0}, "page_faults": 0},
        "histogram": [[length, length + 1, 1, length] for length in sorted(lengths)],
        "series": {"tsc_start": start, "interval_s": 1, "intervals": []},
        "events_lost": lost,
        "events": [[begin, end, 0] for begin, end in gaps],
    }
    values |= changes
    siblings, runtime = values.pop("siblings", ()), values.pop("fair_server_ns", "")
    return {"fair_server_runtime": str(runtime), "core_cpus": ",".join(map(str, {cpu, *siblings})), **values}


def table(cpus: list[dict[str, Any]], kind: str, names: dict[str, str]) -> str:
    """/proc/interrupts or /proc/softirqs with what came on these CPUs."""
    labels = sorted({label for cpu in cpus for label in cpu.get("counters", {}).get(kind, ())})
    rows = [
        " ".join([f"{label}:", *(str(cpu["counters"][kind].get(label, 0)) for cpu in cpus), names.get(label, "")])
        for label in labels
    ]
    return "\n".join([" ".join(f"CPU{cpu['cpu']}" for cpu in cpus), *rows, "ERR: 7\n"])


def times(of: dict[str, list[int]], column: int) -> str:
    """/proc/stat of a host that counts in ms: busy (user and steal), idle and steal of each CPU."""
    rows = [f"cpu{cpu} {busy - steal} 0 0 {idle} 0 0 0 {steal}" for cpu, (busy, idle, steal) in of.items()]
    return "\n".join(["cpu 0", *rows]) if column else "\n".join(f"cpu{cpu} 0 0 0 0" for cpu in of)


def raw_run(
    *cpus: dict[str, Any],
    facts: dict[str, Any] | None = None,
    names: dict[str, str] | None = None,
    cpu_times_ms: dict[str, list[int]] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """What the program writes, around these CPUs: a quiet, tuned host whose CPUs 2 and 3 are isolated.

    `names` describe interrupts in the CPUs' `counters`; `cpu_times_ms` are busy, idle and steal of a CPU.
    """
    host = {
        "online": [0, 1, 2, 3],
        "isolated": [2, 3],
        "nohz_full": [2, 3],
        "main_thread": [0, 1],
        "throttled_us": 0,
        "user_hz": 1000,
    }
    values: dict[str, Any] = {
        "schema": "tunectl.probe.jitter.raw/1",
        "tunectl_version": "0.1.0",
        "host": {"hostname": "h", "kernel": "6.12", "boot_id": "b", "machine": "x86_64"},
        "at": "2026-11-21T09:00:00Z",
        "holds": "",
        "threshold_ns": 200,
        "threshold_ticks": 200,
        "default_threshold_ns": 200,
        "duration_requested_s": 10.0,
        "interrupted": False,
        "fifo_priority": 0,
        "clock": {
            "source": "tsc",
            "kernel_source": "tsc",
            "hz": HZ,
            "granule_ns": 1.0,
            "drift_ppm": 0.0,
            "error_ppm": 0.1,
            "initial_error_ppm": 1.0,
            "cntfrq": 0,
        },
        "facts": host | (facts or {}),
        "host_files": {},
        "files_before": {},
        "files_after": {},
        "cpus": list(cpus),
        "not_measured": [],
    }
    after = {kind: table(list(cpus), kind, names or {}) for kind in ("irq", "softirq")}
    stat = [times(cpu_times_ms or {}, column) for column in (0, 1)]
    # Before, every CPU was there and nothing had come.
    header = {kind: text.partition("\n")[0] + "\n" for kind, text in after.items()}
    values["files_before"] = {
        "/proc/stat": stat[0],
        "/proc/interrupts": header["irq"],
        "/proc/softirqs": header["softirq"],
    }
    values["files_after"] = {
        "/proc/stat": stat[1],
        "/proc/interrupts": after["irq"],
        "/proc/softirqs": after["softirq"],
    }
    return values | changes
