"""Made-up preflight documents, and sessions of them."""

import json
from pathlib import Path
from typing import Any

import msgspec

from tests.probe.samples import cpu_result, figures_of, result
from tunectl.fleet.records import Absent, Answer, Asked, Session, summary_of
from tunectl.fleet.store import open_session, record_absent, record_document
from tunectl.shapes import Preflight

BEGAN = "2026-11-21T08:30:00Z"
NOW = "2026-11-21T08:40:00Z"
HARDWARE = {
    "vendor": "Generated Systems",
    "product": "R1",
    "cpu_model": "Xeon 6334",
    "sockets": 2,
    "cores": 16,
    "cpus": 16,
    "numa_nodes": 2,
    "hypervisor": "",
}
HEADER = {
    "tunectl_version": "0.1.0",
    "host": {"hostname": "controller", "kernel": "6.12", "boot_id": "c", "machine": "x86_64"},
}


# Whatever keeps the first keeps all, as `preflight` makes them.
LIMITS = {"max_ns": 50_000, "p99_9_ns": 25_000, "interruptions_per_s": 10, "stolen_ppm": 1_250}


def good(target: str) -> dict[str, Any]:
    """A finding that is as it should be."""
    knob = target.partition("[")[0]
    return {
        "knob": knob,
        "target": target,
        "outcome": "compliant",
        "observed": 1,
        "desired": 1,
        "reason": "",
        "fix": "",
    }


def preflight(
    name: str = "tx-01", verdict: str = "go", *, max_ns: float | None = 4_000, **changes: Any
) -> dict[str, Any]:
    """A whole document of a host with one isolated CPU; without `max_ns` the probe did not run."""
    probe = None
    if max_ns is not None:
        longest = int(max_ns)
        cpu = cpu_result(15, **figures_of([longest] * 50))
        kept = {"limits": dict(LIMITS), "verdict": "within", "broken": [], "not_judged": [], "reason": ""}
        probe = result(cpu, budget=kept)
    made: dict[str, Any] = {
        "schema": "tunectl.preflight/1",
        "tunectl_version": "0.1.0",
        "host": {"hostname": name, "kernel": "6.12.5", "boot_id": f"boot-{name}", "machine": "x86_64"},
        "at": "2026-11-21T08:30:05Z",
        "verdict": verdict,
        "reasons": [] if verdict == "go" else [f"the reason of {name}"],
        "cpu_sets": {"online": "0-15", "isolated": "15", "housekeeping": "0-14", "from": "/etc/tunectl/host.toml"},
        "hardware": dict(HARDWARE),
        "verify": {"verdict": "compliant", "findings": [good("mm.swappiness")]},
        "check": {"verdict": "compliant", "findings": [good("check.ipis[15]")]},
        "probe": probe,
        "thermal": {"verdict": "ok", "findings": [], "evidence": {}},
        "notes": [],
    }
    made |= changes
    if probe:
        probe |= {"host": made["host"], "at": made["at"]}  # of the same boot, also where a test changes that
    return made


def asked(name: str, document: dict[str, Any] | None = None, problem: str = "it left no document") -> Asked:
    """The host as `store` hands it on."""
    if document is None:
        return Asked(name, Answer.SILENT, problem=problem)
    return Asked(name, Answer.DOCUMENT, summary_of(msgspec.convert(document, Preflight)), file=f"/s/hosts/{name}.json")


def session(*hosts: str, **changes: Any) -> Session:
    """A session that asked these."""
    return Session("morning", "/s", BEGAN, "ny4", hosts)._replace(**changes)


def cage() -> list[Asked]:
    """Twelve hosts: eight GO of which one is slow, one NO-GO, one that waits for its reboot, two without a document."""
    quiet = [3_900, 4_000, 4_100, 4_050, 3_950, 4_000, 4_200]
    hosts = [asked(f"tx-{n:02}", preflight(f"tx-{n:02}", max_ns=ns)) for n, ns in enumerate(quiet, 1)]
    slow = preflight("tx-08", max_ns=31_000)
    slow["host"]["kernel"] = "6.1.0-39"
    bad = preflight("tx-09", "no-go", max_ns=90_000, reasons=["irq.affinity[24] is 0-3, should be 0-1", "fan failed"])
    other = preflight("old-1", "pending-reboot", hardware={**HARDWARE, "product": "R0"})
    return [
        *hosts,
        asked("tx-08", slow),
        asked("tx-09", bad),
        asked("old-1", other),
        Asked("tx-10", Answer.UNREACHABLE, problem="unreachable: ssh: connect to host tx-10 port 22: No route to host"),
        asked("tx-11"),
    ]


def hall(hosts: int = 42, bad: int = 15, silent: int = 2, knobs: int = 30) -> list[Asked]:
    """Many hosts: a third NO-GO for many causes, with much to do; two without a document, the others GO."""
    drifted = [
        {"knob": f"mm.k{chr(97 + n % 26)}{n // 26}", "outcome": "drifted", "observed": "always", "desired": "never",
         "reason": "khugepaged copies and remaps memory behind the application, " * 3, "fix": "", "severity": "stall"}
        for n in range(knobs)
    ]  # fmt: skip
    findings = [one | {"target": one["knob"]} for one in drifted]
    steps = [
        {"kind": kind, "arguments": arguments, "mends": [knob["target"]], "reboot": kind == "reboot"}
        for kind, arguments, knob in zip(
            ("apply", "reboot", *["move-thread"] * 9),
            ({}, {}, *({"tid": n, "cpus": f"0-{n}"} for n in range(1, 10))),
            findings,
            strict=False,
        )
    ]
    made = []
    for n in range(1, hosts + 1 - silent):
        name = f"ny4-tx-{n:0{len(str(hosts))}}"
        if n > hosts - silent - bad:
            mine = findings[n % 3 :]
            own = [{"decide": f"take /etc/sysctl.d/{place}-site.conf out", "mends": ["mm.ksm"]} for place in range(5)]
            made.append(
                preflight(
                    name,
                    "no-go",
                    max_ns=300_000 + 10_000 * (n % 40),
                    reasons=[f"{one['target']} is always, should be never" for one in mine],
                    reasons_about=[one["knob"] for one in mine],
                    verify={"verdict": "drifted", "findings": mine},
                    actions=[*steps, *own],
                    waivers={"standing": 4, "expired": 0, "next": None},
                )
            )
        else:
            made.append(preflight(name, max_ns=4_000 + n % 9))
    return [*(asked(one["host"]["hostname"], one) for one in made), *(asked(f"silent-{n}") for n in range(silent))]


def written(
    store: Path, documents: dict[str, dict[str, Any] | None], name: str = "morning", at: str = BEGAN
) -> Session:
    """A session on disk: None is a host that could not be reached."""
    made = open_session(store, Session(name, "", at, "", tuple(documents)), HEADER)
    for host, document in documents.items():
        if document is None:
            record_absent(Path(made.directory), host, Absent(Answer.UNREACHABLE, "No route to host", at))
        else:
            record_document(Path(made.directory), host, json.dumps(document).encode())
    return made
