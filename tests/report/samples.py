"""The body of one document of each kind, made when it is first asked for; wherever that goes, by what makes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.compare.feeds import feed_document
from tests.compare.hedges import hedge_document
from tests.compare.runs import cpu_of, document, simulated
from tests.compare.wakes import cell, wake_document
from tests.experiments import contentions, feeds, hedges
from tests.fleet.made import NOW, asked, cage, preflight, session
from tests.probe.samples import cpu_result, result
from tunectl.compare.compared import compared, quiet_and_loaded
from tunectl.fleet.body import fleet_body, history_body
from tunectl.fleet.documents import session_file
from tunectl.fleet.gate import Canary, gate_body
from tunectl.probe.document import checked
from tunectl.shapes import JitterLoaded, fields_of, typed

Body = dict[str, Any]
_IRQ = (
    "an interrupt that is delivered to an isolated CPU stops the thread that trades there; "
    "keep devices on the housekeeping CPUs"
)
_THP = "khugepaged takes the mmap lock of a trading process to collapse its pages"
_NOTES = ["No host file: judged against tunectl's own proposal, CPUs 2-3."]
_LATER = "2026-11-21T10:00:00Z"
_HEADER = ("schema", "tunectl_version", "host", "at")


def _finding(
    target: str, outcome: str, observed: Any, desired: Any, reason: str, fix: str = "", severity: str = "", **more: Any
) -> Body:
    values = {"outcome": outcome, "observed": observed, "desired": desired, "reason": reason, "fix": fix}
    return {"knob": target.partition("[")[0], "target": target, **values, "severity": severity, **more}


def _irq(irq: int, outcome: str, observed: str, reason: str = _IRQ, fix: str = "", **more: Any) -> Body:
    return _finding(f"irq.affinity[{irq}]", outcome, observed, "0-1", reason, fix, "interrupt", **more)


def _without_header(body: Body) -> Body:
    return {key: value for key, value in body.items() if key not in _HEADER}


# ---- what is asked of a host, and what became of it


def _verify() -> Body:
    apply, idle = "sudo tunectl apply", "IRQ {} is managed, and no interrupt has been delivered there"
    managed = "IRQ 44 (nvme0q4) is managed: the kernel answers EPERM; it delivered 1,204 interrupts to CPU 3 since boot"
    points = {"asked": "2-3", "next_boot": "2-3", "this_boot": None, "kernel": ""}
    denied = "/proc/sys/kernel/sched_rt_runtime_us: Permission denied"
    pending = "configured for the next boot; this boot is older than the change"
    waived = "vendor driver needs it on CPU 2 (until 2027-03-31)"
    epp = "cpufreq.energy_performance_preference"
    findings = [
        *(_irq(irq, "drifted", "0-3", fix=apply) for irq in (24, 27, 30, 31, 32, 33)),
        *(_irq(irq, "drifted", "2", fix=apply) for irq in (40, 41)),
        _irq(44, "refused", "3", managed, "boot with isolcpus=managed_irq,domain,2-3", harmful=True),
        *(_irq(irq, "refused", "2", idle.format(irq), harmful=False) for irq in (45, 46)),
        *(_irq(irq, "compliant", "0-1") for irq in range(24)),
        _finding("mm.transparent_hugepage", "drifted", "always madvise [never]", "madvise", _THP, apply, "stall"),
        _finding("boot.nohz_full", "pending-reboot", None, "2-3", pending, "reboot", "interrupt", points=points),
        *(
            _finding(f"cpufreq.governor[{cpu}]", "compliant", "performance", "performance", "x", "", "slower")
            for cpu in (2, 3)
        ),
        _finding("cpufreq.boost", "unsupported", None, "on", "this machine has no boost switch", "", "slower"),
        *(
            _finding(f"{epp}[{cpu}]", "unsupported", None, "performance", "acpi-cpufreq has no such file", "", "slower")
            for cpu in (2, 3)
        ),
        _finding("kernel.sched_rt_runtime_us", "unreadable", None, -1, denied, "run as root", "stall"),
        _finding("workqueue.cpumask", "waived", "0-3", "0-1", waived, "", "interrupt", until="2027-03-31"),
    ]
    return {"verdict": "drifted", "findings": findings, "notes": _NOTES}


def _check() -> Body:
    device, move = "check.device_interrupts", "move the IRQ: tunectl apply"
    findings = [
        _finding(f"{device}[2]", "drifted", "14 in 10 s", "0", "eth0-rx-1 interrupted CPU 2", move, "interrupt"),
        _finding(f"{device}[3]", "compliant", "0 in 10 s", "0", "", "", "interrupt"),
        _finding("check.clocksource", "compliant", "tsc", "tsc", "", "", "slower"),
        _finding("check.tick", "unsupported", None, None, "nohz_full is not in force", "", "interrupt"),
    ]
    return {"verdict": "drifted", "findings": findings}


def _changes() -> list[Body]:
    rows: list[tuple[str, Any, str, str, str]] = [
        *((f"irq.affinity[{irq}]", "0-3", "0-1", "runtime", _IRQ) for irq in (24, 27, 30, 31, 32, 33)),
        *((f"irq.affinity[{irq}]", "2", "0-1", "runtime", _IRQ) for irq in (40, 41)),
        ("mm.transparent_hugepage", "always", "never", "runtime", "khugepaged takes the mmap lock"),
        ("boot.isolcpus", None, "managed_irq,domain,2-3", "boot", "the scheduler places threads on any other CPU"),
    ]
    keys = ("target", "observed", "desired", "lifetime", "reason")
    return [{"knob": row[0].partition("[")[0], **dict(zip(keys, row, strict=True))} for row in rows]


def _plan() -> Body:
    return {"changes": _changes(), "reboot_required": True, "findings": _verify()["findings"], "notes": []}


def _apply() -> Body:
    failed = {
        "irq.affinity[41]": {"result": "refused", "errno": 5, "message": "the kernel manages IRQ 41 itself"},
        "mm.transparent_hugepage": {
            "result": "failed",
            "errno": 30,
            "message": "/sys/kernel/mm/transparent_hugepage/enabled: Read-only file system",
        },
    }
    changed = {"result": "changed", "errno": None, "message": ""}
    return {
        "changes": [{**change, **failed.get(change["target"], changed)} for change in _changes()],
        "journal": "/var/lib/tunectl/journal",
        "restore": "sudo tunectl restore",
        "reboot_required": True,
        "verdict": "drifted",
        "not_run": ["update-grub", "systemctl daemon-reload"],
        "notes": ["tuned.service is active and sets vm.swappiness too"],
    }


def _restore() -> Body:
    thp, irq = "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/irq/{}/smp_affinity_list"
    since, grub = "tunectl wrote never; something else wrote madvise since", "/etc/default/grub.d/99-tunectl.cfg"
    rows: list[tuple[str, list[str], str, Any, Any, str]] = [
        *((irq.format(n), [f"irq.affinity[{n}]"], "restored", "0-3", "0-3", "") for n in (24, 27, 30, 31)),
        (thp, ["mm.transparent_hugepage"], "changed-since", "madvise", "always", since),
        (irq.format(99), ["irq.affinity[99]"], "gone", None, "0-3", "the interrupt is no longer there"),
        (grub, ["boot.isolcpus", "boot.nohz_full"], "failed", "GRUB_CMDLINE...", None, "Read-only file system"),
        ("/proc/sys/vm/swappiness", ["mm.swappiness"], "already", "60", "60", ""),
    ]
    keys = ("path", "targets", "result", "observed", "before", "message")
    results = [dict(zip(keys, row, strict=True)) for row in rows]
    return {"results": results, "not_run": ["update-grub"], "reboot_required": True, "notes": []}


def _knobs() -> Body:
    interrupted = {"value": "housekeeping", "reason": "spinning threads must not be interrupted"}
    both = {"low-latency": interrupted, "balanced-latency": {"value": "housekeeping", "reason": "costs nothing"}}
    rows: list[tuple[str, str, str, Body]] = [
        ("irq.affinity", _IRQ, "runtime", both),
        ("irq.default_smp_affinity", "a new interrupt starts where this says", "runtime", {"low-latency": interrupted}),
        ("smt.control", "siblings share one core's execution units", "boot", {}),
    ]
    same = {
        "severity": "slower",
        "expects": "a value",
        "after": [],
        "source": "Documentation/core-api/irq/irq-affinity.rst",
        "risk": "none known",
        "match": "within",
        "paths": ["/proc/irq/N/smp_affinity_list", "/proc/irq/N/effective_affinity_list"],
    }
    keys = ("name", "why", "lifetime", "profiles")
    knobs = [{**same, "facility": row[0].partition(".")[0], **dict(zip(keys, row, strict=True))} for row in rows]
    return {"knobs": knobs}


def _preflight() -> Body:
    mends = [one["target"] for one in _verify()["findings"] if one["fix"] == "sudo tunectl apply"]
    say: list[tuple[str, str, str]] = [
        ("sudo tunectl probe jitter --attribute", "probe-jitter", "says what interrupts each CPU"),
        ("sudo tunectl probe feed", "probe-feed", "says which stage takes the time"),
    ]
    decide = {
        "boot with isolcpus=managed_irq,domain,2-3": "irq.affinity[44]",
        "move the IRQ: tunectl apply": "check.device_interrupts[2]",
        "run as root": "kernel.sched_rt_runtime_us",
    }
    late = "99.9 % of messages are in the book 51 µs after they were due, allowed 40 µs (due_to_book_p99_9_ns)"
    broken = f"tcp ws-json, 1 symbol, poll0: {late}"
    throttled = _finding("thermal.throttled", "compliant", 0, 0, "no throttle event during the run", "", "slower")
    budget = {"limits": {"due_to_book_p99_9_ns": 40000}, "verdict": "broken", "broken": [broken], "reason": ""}
    return {
        "verdict": "no-go",
        "headline": "do not trade on this host; feed broke its limit; judged by looser limits than profile low-latency"
        " has: interruptions 20/s (profile 10/s); 2 waivers stand, the next expires on 2026-12-31 (irq.affinity[33])",
        "reasons": [
            "9 targets of irq.affinity and 1 of mm.transparent_hugepage have drifted: "
            "8 IRQs may be delivered to the isolated CPUs 2-3",
            "check.device_interrupts[2]: 14 interrupts of eth0-rx-1 in 10 s",
            "probe: CPU 3: the longest gap, 1.92 ms, is over 50 µs",
            f"feed: {broken}",
        ],
        "reasons_about": ["", "check.device_interrupts", "probe", "feed"],
        "actions": [
            {"command": "sudo tunectl apply", "kind": "apply", "mends": [mends[-1], *mends[:-1]], "reboot": False},
            {"command": "sudo reboot", "kind": "reboot", "mends": ["boot.nohz_full"], "reboot": True},
            *({"decide": text, "mends": [target], "reboot": False} for text, target in decide.items()),
            *(
                {"command": command, "kind": kind, "note": note, "mends": ["probe.budget"], "reboot": False}
                for command, kind, note in say
            ),
        ],
        "waivers": {
            "standing": 2,
            "expired": 0,
            "next": {"target": "irq.affinity[33]", "until": "2026-12-31", "reason": "nvme admin queue"},
        },
        "looser": [{"key": "interruptions_per_s", "limit": 20, "profile_limit": 10, "profile": "low-latency"}],
        "cpu_sets": {"online": "0-3", "isolated": "2-3", "housekeeping": "0-1", "from": "/etc/tunectl/host.toml"},
        "hardware": {
            "vendor": "Dell Inc.",
            "product": "PowerEdge R650",
            "cpu_model": "Xeon 6334",
            "sockets": 1,
            "cores": 4,
            "cpus": 4,
            "numa_nodes": 1,
            "hypervisor": "",
        },
        "verify": _verify(),
        "check": _check(),
        "probe": {"schema": "tunectl.probe.jitter/1", **_jitter()},
        "is_feed_asked": True,
        "feed": feed_document(feeds.case(feeds.tail(20_000), stamped=False, rate=10_000)) | {"budget": budget},
        "thermal": {
            "verdict": "ok",
            "findings": [throttled, _finding("thermal.ratio[2]", "compliant", 0.998, 0.9, "", "", "slower")],
            "evidence": {
                "core_throttle_count": {"before": 0, "after": 0},
                "core_khz": {"2": 3_499_000, "3": 3_498_000},
                "base_frequency_khz": 3_500_000,
            },
        },
        "notes": _NOTES,
    }


# ---- the probes


def _cause(kind: str, name: str, count: int, total_ns: int, max_ns: int, cause: str = "") -> Body:
    return {
        "cause": cause or name,
        "kind": kind,
        "name": name,
        "count": count,
        "total_ns": total_ns,
        "max_ns": max_ns,
    }


def _counted(involuntary: int, **irq: int) -> Body:
    switches = {"voluntary": 0, "involuntary": involuntary}
    return {"irq": irq, "softirq": {"TIMER": 12}, "context_switches": switches, "page_faults": 0, "steal_ns": 0}


def _jitter() -> Body:
    tick, outside = "local timer + softirq TIMER + thread kworker/3:1", "not the kernel: hypervisor, SMI or hardware"
    same = {
        "loop_ns": {"mean": 9.13, "min": 8.9},
        "events_lost": 0,
        "events": [[100, 200, 1]],
        "core_khz": {"before": 3_500_000, "after": 3_499_000},
    }
    quiet = cpu_result(2) | {
        "loops": 547_000_000,
        "interruptions": 24,
        "stolen_ns": 31_000,
        "stolen_ppm": 6.2,
        "max_ns": 12_310,
        "gap_ns": {"50": 820, "99": 12_310, "99.9": 12_310, "99.99": 12_310},
        "arrival_ns": {"50": 0, "99": 0, "99.9": 0, "99.99": 2_200, "99.999": 9_800},
        "histogram": [[800, 832, 20], [1500, 1600, 3], [12_288, 12_544, 1]],
        "counters": _counted(0, LOC=5, RES=1),
        "conservation_ppm": 0.2,
        "causes": [_cause("timer", "local timer", 5, 18_000, 12_310), _cause("outside", outside, 19, 13_000, 1_590)],
        "trace": {"events": 7, "events_apart": 2, "events_lost": 0},
        "series": {"tsc_start": 100, "interval_s": 1, "intervals": [[24, 31_000, 12_310]]},
        "periods": [],
    }
    period = {"period_ns": 1_000_021, "count": 5000, "coverage": 1.0, "mean_ns": 1400, "cause": tick}
    noisy = cpu_result(3) | {
        "loops": 540_000_000,
        "interruptions": 5_012,
        "stolen_ns": 9_120_000,
        "stolen_ppm": 1824.0,
        "max_ns": 1_920_000,
        "gap_ns": {"50": 1_100, "99": 6_500, "99.9": 48_000, "99.99": 1_920_000},
        "arrival_ns": {"50": 0, "99": 0, "99.9": 2_400, "99.99": 910_000, "99.999": 1_900_000},
        "histogram": [
            [1000, 1100, 4800],
            [2048, 2100, 150],
            [6000, 6500, 50],
            [45_000, 48_000, 11],
            [1_900_000, 1_950_000, 1],
        ],
        "counters": _counted(3, LOC=5008, **{"33": 14}),
        "conservation_ppm": -1.7,
        "causes": [
            _cause("timer", "local timer", 5_008, 7_000_000, 1_920_000, tick),
            _cause("irq", "irq 33 eth0-rx-1", 4, 2_120_000, 990_000),
        ],
        "trace": {"events": 15_030, "events_apart": 0, "events_lost": 3},
        "series": {"tsc_start": 100, "interval_s": 1, "intervals": [[5_012, 9_120_000, 1_920_000]]},
        "periods": [{**period, "name": "as often as a timer tick at HZ=1000"}],
    }
    names = {
        "LOC": "Local timer interrupts",
        "RES": "Rescheduling interrupts",
        "33": "PCI-MSIX-0000:00:05.0 1-edge eth0-rx-1",
    }
    made = result(
        *({key: value for key, value in (cpu | same).items() if key != "duration_ns"} for cpu in (quiet, noisy)),
        threshold_ns=100,
        irq_descriptions=names,
        duration_s=5.0,
        duration_requested_s=5.0,
        clock={"source": "tsc", "hz": 2.6e9, "granule_ns": 10.0, "drift_ppm": 0.2},
        warnings=[
            "CPU 3 is not isolated: the scheduler may place any thread there",
            "this is a virtual machine: the hypervisor takes time that no counter here shows",
        ],
        budget={
            "limits": {"max_ns": 50_000, "p99_9_ns": 10_000, "interruptions_per_s": 10, "stolen_ppm": 100},
            "verdict": "broken",
            "reason": "",
            "broken": [
                "CPU 3: the longest gap, 1.92 ms, is over 50 µs",
                "CPU 3: 1,002.4 interruptions a second are over 10",
            ],
        },
        attribution={
            "method": "trace",
            "reason": "",
            "clock": "x86-tsc",
            "buffer_kib": 5120,
            "event_cost_ns": 81.2,
            "events": ["irq_vectors/local_timer_entry", "sched/sched_switch"],
        },
        labels=["", "LOC"],
    )
    return _without_header(made)


def _runs() -> Body:
    runs = [_short_run(seed, f"2026-11-21T09:00:{at}Z") for seed, at in ((1, "01"), (2, "12"))]
    return {"pause_s": 10.0, "warnings": ["only 2 of 5 runs: interrupted"], "runs": runs}


def _short_run(seed: int, at: str, **changes: Any) -> Body:
    return document(cpu_of(simulated(seed, 1.0, 25.0), 1.0), seconds=1.0, at=at, **changes)


def _loaded() -> Body:
    keys = ("load", "stressor", "instances", "bogo_ops", "cpu_s", "max_rss_kib", "proves")
    rows = (
        ("memory", "stream", 2, 1600, 9.8, 51_604, "memory bandwidth"),
        ("timers", "timer", 2, 46_620, 2.31, 2_452, "timers"),
    )
    load = {
        "names": ["memory", "timers"],
        "cpus": "0-1",
        "program": "stress-ng 0.15.06",
        "ran": True,
        "reason": "",
        "stressors": [dict(zip(keys, row, strict=True)) for row in rows],
        "said": [],
    }
    quiet = _short_run(1, "2026-11-21T09:00:01Z", labels=[""])
    loaded = _short_run(2, "2026-11-21T09:31:00Z", labels=[""], load=load)
    made: Body = {"pause_s": 10.0, "warnings": [], "quiet": [quiet], "loaded": [loaded]}
    held = typed(_headed("probe.jitter.loaded", made), JitterLoaded, "loaded")
    return {**made, "comparison": fields_of(quiet_and_loaded(held))}


def _headed(name: str, body: Body) -> Body:
    """The body as a file has it."""
    return {**result(), "schema": f"tunectl.{name}/1"} | body


def _selftest() -> Body:
    forced = {"name": "20 us", "kind": "preemption", "outcome": "failed", "reason": "1 of 200 were not found"}
    ipi = {"name": "interrupt from another CPU", "kind": "ipi", "outcome": "passed", "reason": ""}
    stop = {"name": "stopped for 2.5 s", "kind": "stop", "outcome": "passed", "reason": ""}
    fifo = "SCHED_FIFO is not allowed: it needs CAP_SYS_NICE or `ulimit -r`"
    told = {"counted_as_lost": 0, "gaps_lost": 0, "account_is_exact": True}
    found = {"injected": 200, "found": 199, "missed": 1, "gaps_with_them": 199, "gaps_total": 374}
    length = {"shortest_gap_ns": 39_409, "shortfall_ns": 0, "conservation_ppm": 0.003}
    spread = {"length_error_ns": {"min": 19_402, "median": 30_183, "max": 56_643}}
    every = {"injected": 500, "found": 500, "missed": 0, "gaps_with_them": 500, "gaps_total": 671}
    exact = {"injected": 1, "truth_ns": 2_500_171_184, "max_ns": 2_500_273_768}
    return {
        "cpu": 3,
        "threshold_ns": 154,
        "clock": {"source": "tsc", "hz": 2.6e9, "granule_ns": 10.0, "drift_ppm": 0.2},
        "passed": False,
        "vouched_ns": 912,
        "phases": [
            {**stop, "asked_ns": 2_500_000_000, **exact, "max_error_ns": 0, "percentile_error_ns": 0},
            {**ipi, "asked_ns": 0, **told, **every, "shortest_gap_ns": 912, "conservation_ppm": 0.001},
            {**forced, "asked_ns": 20_000, **told, **found, **length, **spread},
            {**forced, "name": "100 us", "outcome": "not-run", "reason": fifo, "asked_ns": 100_000, "injected": 200},
        ],
    }


_NO_NAPI = (
    "the socket's NAPI id is 0: no device queue that the kernel could poll feeds it (loopback has none), "
    "so SO_BUSY_POLL would change nothing"
)


def _wake() -> Body:
    no_device = "no network device feeds it: there is nothing the kernel could poll"
    reasons = {"channel": no_device, "udp": _NO_NAPI}
    cells = [
        made
        for mechanism, reason in reasons.items()
        for made in (
            *(_wake_cell(mechanism, "sleeping", "block", idle, 4 + idle) for idle in (0.0, 1.0)),
            *(_wake_cell(mechanism, "spinning", "minimal", idle, 0.1 + 9 * idle) for idle in (0.0, 1.0)),
            *(_wake_cell(mechanism, "busy-poll", "busy-poll", idle, 1, reason) for idle in (0.0, 1.0)),
        )
    ]
    shares = {"50": 40.0, "90": 41.0, "95": 42.0, "99": 42.0, "99.9": 43.0, "99.99": 43.0}
    speedups = [
        {
            "mechanism": mechanism,
            "idle_ms": idle,
            "waiting": "spinning",
            "way": "minimal",
            "over": "block",
            "mean": times,
            "percentiles": {share: value * times for share, value in shares.items()},
            "max": times,
        }
        for mechanism in reasons
        for idle, times in ((0.0, 1.0), (1.0, 0.01))
    ]
    return _without_header(wake_document(*cells, speedups=speedups, **_WAKE))


_WAKE = {
    "duration_s": 0.097,
    "interrupted": False,
    "messages": 201,
    "fifo_priority": 0,
    "busy_poll_us": 50,
    "bytes": 32,
    "fds": 1,
    "dirty_kib": 0,
    "timer_slack_ns": 1,
    "has_warm_sender": True,
    "clock": {"source": "tsc", "hz": 2.3e9, "granule_ns": 0.87, "drift_ppm": 0.0438},
    "peer": None,
    "warnings": [
        "not isolated: CPUs 0 and 1; other threads can be scheduled there, and delay a message",
        "no CPU is left for the probe's main thread: it shares CPU 0 with the sender",
        "this is a virtual machine: waking an idle CPU goes through the hypervisor",
    ],
    "no_result": "",
}


def _wake_cell(mechanism: str, waiting: str, way: str, idle_ms: float, scale: float, reason: str = "") -> Body:
    made = cell(mechanism, waiting, idle_ms, scale, way=way, reason=reason, **_WAKE_COUNTS)
    ranks = made["percentiles_ns"]
    lengths = {"50": ranks["50"], **dict.fromkeys(("90", "95", "99"), ranks["99"]), "99.9": ranks["99.9"]}
    made["percentiles_ns"] = {**lengths, "99.99": ranks["99.9"]}
    made["histogram"] = [
        [made["min_ns"], ranks["50"], 101],
        [ranks["50"] + 1, ranks["99"], 99],
        [ranks["99.9"]] * 2 + [1],
    ]
    made["warnings"] = ["the receiver was preempted 1 times"] * (waiting == "spinning" and idle_ms > 0)
    few = {"min": 29, "mean": 33.6, "max": 39, **dict.fromkeys(made["percentiles_ns"], 33)}
    made |= {"after_send_ns": few, "send_call_ns": few, "late_ns": few, "sent": made["n"], "napi_id": 0}
    figures = ("min_ns", "mean_ns", "percentiles_ns", "max_ns", "after_send_ns", "send_call_ns", "late_ns")
    nothing: Body = {**dict.fromkeys((*figures, "receiver_cpu_percent")), "n": 0, "sent": 0, "histogram": []}
    return {**made, **nothing} if reason else made


_WAKE_COUNTS = {
    "is_round_trip": False,
    "is_void": False,
    "lost": 0,
    "duplicates": 0,
    "reordered": 0,
    "far_ns": None,
    "one_way_estimate_ns": None,
    "period_ns": 999_999,
    "late_expirations": None,
}


def _feed() -> Body:
    few = "tcp ws-json, 1 symbol, poll0: 960 messages, and P99.9 needs 10,000"
    dropped = {"socket": 40, "softnet": 0, "nic": None}
    unstamped = feeds.case(stamped=False)["stamps"] | {"reason": "the kernel's TLS gives none"}
    limits = {"limits": {"due_to_book_p99_9_ns": 50_000}, "verdict": "not-judged"}
    made = feed_document(
        feeds.case(feeds.tail(1_000)),
        feeds.lossy(feeds.tail(960), 40, transport="udp", format="binary", symbols=4, drops=dropped),
        feeds.unsent(feeds.tail(900), [40_000_000] * 100, format="json"),
        feeds.case(stamped=False, tls="ktls", stamps=unstamped),
        feeds.case(receiver_ns=140 * feeds.MS, alloc=2),
        feeds.unmeasured(_NO_NAPI, waiting="busy-poll"),
        facts={"cpus": [feeds.GOOD | {"is_isolated": False}, feeds.GOOD]},
    )
    budget = {**limits, "broken": [], "not_judged": [few], "reason": few}
    return {**_without_header(made), "budget": budget, "stamp_cost_ns": 212}


def _hedge() -> Body:
    stalled = [300_000 if at % 500 == 50 else 3_000 + at % 97 for at in range(20_000)]
    collapsed: Body = {"unanswered": 5_000, "queue_sums": [20_000, 0, 0, 900_000]}
    second: Body = {"delay": "p95", "stall": "a"}
    late = hedges.case([900_000] * 15_000, load=0.85, hedged=20_000, hedge_cancelled=20_000, **second, **collapsed)
    made = hedge_document(
        hedges.case(stalled, stall="a"),
        hedges.case(hedges.tail(20_000, 6_000), won=[8_000] * 200, hedged=1_000, wasted_ticks=3_000_000, **second),
        hedges.case(hedges.tail(20_000), load=0.85, stall="a"),
        late,
        hedges.at_once(100_000, 200, stall="common"),
        hedges.case([3_000] * 1_000, threads=[hedges.OWN | {"cpu_ns": 0}] * 3, load=0.7),
        hedges.unmeasured("interrupted before it was measured", load=0.3),
        facts={"cpus": [feeds.GOOD | {"is_isolated": False}, feeds.GOOD, feeds.GOOD]},
    )
    return _without_header(made)


def _contention() -> Body:
    slow = [60_000 if at % 1000 == 500 else 400 + at % 97 for at in range(20_000)]
    made = contentions.contention_document(
        contentions.case(slow, **contentions.end(1, sleeps=1_200)),
        contentions.case([80] * 20_000, buffers="pool"),
        contentions.case([80] * 900, buffers="pool", hand_over="mutex", ends=[contentions.OWN | {"cpu_ns": 0}] * 2),
        contentions.unmeasured("interrupted before it was measured", buffers="pool", hand_over="futex"),
        facts={"cpus": [feeds.GOOD | {"is_isolated": False}, feeds.GOOD]},
    )
    return _without_header(made)


def _compare() -> Body:
    before = document(cpu_of(simulated(1, 10.0), 10.0), cpu_of(simulated(2, 10.0), 10.0, cpu=3))
    quiet, other = cpu_of(simulated(3, 10.0, 20.0), 10.0), cpu_of(simulated(4, 10.0), 10.0, cpu=3)
    after = document(quiet, other, at=_LATER, threshold_ns=120, warnings=["this is a virtual machine"])
    body: dict[str, Any] = fields_of(compared(checked(before, Path("before.json")), checked(after, Path("after.json"))))
    return body


# ---- the rest


def _monitor() -> Body:
    said = "the firmware permits CPUs 2-3 of package 0 no more than 1.2 GHz, 34 % of their base frequency"
    fix = "look for a failed fan, dust, a power cap or a hot aisle; check the BMC's event log"
    fires = _alert("FrequencyDrop[package0]", "firing", "critical", 1_200_000, 3_500_000, "limits", said, fix, "2-3")
    over = _alert(
        "InterruptOnIsolatedCpu[irq42]", "resolved", "warning", 3, 0, "interrupts", "eth0-rx-1 interrupts CPU 3"
    )
    over |= {"fix": "tunectl apply", "cpus": "3", "since": "2026-11-21T09:20:00Z", "at": "2026-11-21T09:21:00Z"}
    counts = ("ticks_per_s", "calls_per_s", "reschedules_per_s")
    named = [fires["identity"]]
    no_data, fallback = "0 kHz is no data", "a fallback: the CPU has no tick"
    cpus = [
        _cpu(0, 1_199_000, "fresh", 4_600_000, **dict.fromkeys(counts)),
        _cpu(1, None, "no-data", 4_600_000, frequency_reason=no_data, **dict.fromkeys(counts)),
        _cpu(2, 1_199_000, "fresh", 1_200_000, frequency_from="package0", throttles=3, throttles_new=1, alerts=named),
        _cpu(3, 800_000, "stale", 1_200_000, frequency_reason=fallback, ticks_per_s=1000.0, calls_per_s=2.0),
    ]
    cpus[3] |= {"interrupts": ["eth0-rx-1 +3"], "alerts": named}
    zone = {"zone": "thermal_zone0", "temperature_mc": 96_000, "trip_mc": 95_000, "health": "fresh", "kind": "acpitz"}
    findings = [
        _finding(fires["identity"], "drifted", 1_200_000, 3_500_000, said, fix),
        _finding("ThermalThrottle[package0]", "compliant", 0, 0, ""),
    ]
    return {
        "verdict": "critical",
        "reasons": [f"{fires['identity']}: {said}"],
        "watched_s": 1.0,
        "isolated": "2-3",
        "housekeeping": "0-1",
        "cpus": cpus,
        "zones": [zone],
        "alerts": [fires],
        "recent": [fires, over],
        "sources": [
            _source("throttle", fresh=5),
            _source(
                "frequency", f"frequency_khz: {fallback}", f"frequency_khz: {no_data}", fresh=1, stale=1, no_data=1
            ),
            _source("cooling", "cooling_state: this host has no cooling device", absent=1),
        ],
        "own": {"cycles_total": 2.0, "cycle_seconds": 0.0031, "cycle_cpu_seconds": 0.0029, "cpu_seconds_total": 0.4},
        "findings": [{key: value for key, value in one.items() if key != "severity"} for one in findings],
        "notes": ["device events: cannot listen for device events: no netlink (the periodic scan still runs)"],
    }


def _alert(
    identity: str,
    status: str,
    severity: str,
    observed: int,
    expected: int,
    source: str,
    summary: str,
    fix: str = "",
    cpus: str = "",
) -> Body:
    rule, _, subject = identity.rstrip("]").partition("[")
    return {
        "identity": identity,
        "rule": rule,
        "subject": subject,
        "status": status,
        "severity": severity,
        "since": "2026-11-21T09:29:58Z",
        "at": "2026-11-21T09:29:59Z",
        "observed": observed,
        "expected": expected,
        "source": source,
        "summary": summary,
        "fix": fix,
        "cpus": cpus,
    }


def _cpu(cpu: int, khz: int | None, health: str, limit_khz: int, **changes: Any) -> Body:
    return {
        "cpu": cpu,
        "role": "isolated" if cpu > 1 else "housekeeping",
        "package": 0,
        "frequency_khz": khz,
        "frequency_from": "sysfs",
        "frequency_health": health,
        "frequency_reason": "",
        "base_khz": 3_500_000,
        "limit_khz": limit_khz,
        "throttles": 0,
        "throttles_new": 0,
        "ticks_per_s": 1.0,
        "calls_per_s": 0.0,
        "reschedules_per_s": 0.0,
        "interrupts": [],
        "alerts": [],
        **changes,
    }


def _source(name: str, *reasons: str, **counts: int) -> Body:
    return {"name": name, "fresh": 0, "stale": 0, "no_data": 0, "absent": 0, **counts, "reasons": [*reasons]}


def _service() -> Body:
    path, unit = "[Path]\nPathChanged=/run/tunectl-monitor/repair-request\n", "[Service]\nType=oneshot\n"
    written = "# Written by `tunectl service`\n"
    place = "/etc/systemd/system/tunectl-repair"
    return {
        "action": "install",
        "name": "repair",
        "units": [
            {"path": f"{place}.path", "state": "written", "text": written + path},
            {"path": f"{place}.service", "state": "unchanged", "text": written + unit},
        ],
        "ran": [["systemctl", "daemon-reload"]],
        "notes": ["`systemctl enable --now tunectl-repair.path` starts it, now and at every boot"],
    }


def _asked() -> list[str]:
    return [one.name for one in cage()]


def _history() -> Body:
    slow = preflight("tx-08", max_ns=31_000)
    slow["host"]["kernel"] = "6.1.0-39"
    failed = preflight(
        "tx-08", "no-go", max_ns=40_000, reasons=["fan failed", "irq.affinity[24] is 0-3, should be 0-1"]
    )
    names = ("friday", "morning", "noon", "evening")
    made = (preflight("tx-08"), slow, failed, None)
    rounds = [(session("tx-08", name=name), asked("tx-08", one)) for name, one in zip(names, made, strict=True)]
    return history_body("tx-08", rounds, NOW)


SAMPLES: dict[str, Callable[[], Body]] = {
    "verify": _verify,
    "check": _check,
    "plan": _plan,
    "apply": _apply,
    "restore": _restore,
    "knobs": _knobs,
    "preflight": _preflight,
    "snapshot": lambda: {
        "file": "/tmp/host.tar.gz",
        "files": 5123,
        "bytes": 1_048_576,
        "skipped": [{"path": "/sys/kernel/debug/sched/fair_server", "reason": "Permission denied"}],
    },
    "probe.jitter": _jitter,
    "probe.jitter.loaded": _loaded,
    "probe.jitter.runs": _runs,
    "probe.selftest": _selftest,
    "probe.wake": _wake,
    "probe.feed": _feed,
    "probe.hedge": _hedge,
    "probe.contention": _contention,
    "compare": _compare,
    "report": lambda: {
        "written": "/tmp/report.html",
        "bytes": 123_456,
        "sources": ["before.json", "after.json"],
        "note": "not compared: nothing to compare",
    },
    "monitor": _monitor,
    "service": _service,
    "fleet": lambda: fleet_body(session(*_asked()), cage(), NOW),
    "fleet.gate": lambda: gate_body(
        session(*_asked()), cage(), NOW, Canary("kernel=6.1.0-39", fact="kernel", value="6.1.0-39"), 0.01, 0.95
    ),
    "fleet.session": lambda: fields_of(session_file(session(*_asked()))) | {"hosts": _asked()},
    "fleet.history": _history,
}
