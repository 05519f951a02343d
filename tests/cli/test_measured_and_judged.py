"""GO means measured and judged: whatever else is in order, without a judged probe no format of preflight says GO."""

import ast
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.places import answering, this_host_file
from tests.probe.samples import cpu_result, result
from tests.ran import Ran
from tunectl.model import Document, HostId
from tunectl.probe.doubt import doubt_of_go
from tunectl.report import render
from tunectl.report.findings import finding_of
from tunectl.shapes import Preflight, typed

Run = Callable[..., Ran]
CPU = max(os.sched_getaffinity(0))
ROOT = Path(__file__).parents[2]
CHECKS = [
    node.name.removeprefix("test_")
    for path in sorted((ROOT / "checks").glob("test_*.py"))
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]
HEAT = ("throttle", "interrupts", "bios_limit", "max_frequency", "clock", "zone", "cooling")
BUDGET: dict[str, float] = {"max_ns": 50000, "p99_9_ns": 10000, "interruptions_per_s": 10, "stolen_ppm": 100}
FORMATS = ("text", "nagios", "junit", "prometheus")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.pins,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: none is left for housekeeping"),
]


class Host:
    """This machine, of which nothing is asked and everything that checks and sensors may say is waived."""

    def __init__(self, tunectl: Run, below: Path) -> None:
        self._tunectl, self._below = tunectl, below
        self.limits(**BUDGET)
        self.measures(result(cpu_result(CPU)))
        self.says()

    def limits(self, **budget: float) -> None:
        """The profile, with these limits."""
        rows = [f'[budget.{key}]\nvalue = {value}\nreason = "a test"\n' for key, value in budget.items()]
        (self._below / "quiet.toml").write_text("".join(rows))

    def measures(self, document: dict[str, Any]) -> None:
        """What the probe answers."""
        self._env = answering(self._below, document)

    def says(self, text: str = "") -> None:
        """The host file, with this in it."""
        waived = [f"check.{name}" for name in CHECKS] + [f"thermal.{name}" for name in HEAT]
        waivers = [f'[[waivers]]\nknob = "{knob}"\nreason = "a test"\nuntil = 2999-01-01\n' for knob in waived]
        this_host_file(self._below, text + "".join(waivers), "quiet.toml")

    def preflight(self, *words: str) -> Ran:
        """With the document as JSON unless the words say otherwise."""
        places = ("--host", self._below / "host.toml", "--state", self._below / "state")
        given = ("preflight", "--intrude", "--window", "0.1", "--format", "json", *places, *words)
        return self._tunectl(*given, env=self._env)

    def probe(self, *words: str) -> Ran:
        """The probe alone."""
        return self._tunectl("probe", "jitter", "--intrude", "--host", self._below / "host.toml", *words, env=self._env)


@pytest.fixture
def host(tunectl: Run, tmp_path: Path) -> Host:
    return Host(tunectl, tmp_path)


def drawn(document: dict[str, Any], fmt: str) -> str:
    parts = [document["verify"], document["check"], document["thermal"]]
    findings = tuple(finding_of(one) for part in parts for one in part["findings"])
    return render(Document("preflight", HostId(**document["host"]), document["at"], document, findings), fmt, width=200)


def says_go(text: str, fmt: str) -> bool:
    if fmt == "prometheus":
        return 'verdict{report="preflight",verdict="go"} 1.0' in text
    if fmt == "junit":
        return re.search(r'<testcase name="verdict" classname="tunectl" ?/>', text) is not None
    return text.startswith(("GO ", "TUNECTL OK")) or "ready to trade" in text


def test_measured_and_within_every_limit_is_go_and_the_headline_says_on_what_terms(host: Host) -> None:
    ran = host.preflight()
    assert (ran.code, ran.json["verdict"], ran.json["reasons"]) == (0, "go", [])
    count = len(CHECKS) + len(HEAT)
    assert f"{count} waivers stand, the next expires on 2999" in ran.json["headline"]
    assert (ran.json["waivers"]["standing"], ran.json["waivers"]["expired"]) == (count, 0)
    assert ran.json["looser"] == []
    # A reader repeats it, but for what the test makes up: another host's probe, and no setting that is asked for.
    here = {"host": ran.json["host"], "at": ran.json["at"]}
    asked = {"verdict": "compliant", "findings": ran.json["check"]["findings"]}
    made = ran.json | {"probe": ran.json["probe"] | here, "verify": asked}
    assert doubt_of_go(typed(made, Preflight)) == ""
    assert [fmt for fmt in FORMATS if says_go(drawn(ran.json, fmt), fmt)] == list(FORMATS)


def test_a_limit_that_permits_more_than_the_profiles_is_named_with_both_figures_in_every_format(host: Host) -> None:
    host.says("[budget]\nmax_ns = 60000\nstolen_ppm = 90\n")
    host.measures(result(cpu_result(CPU, max_ns=60000, stolen_ppm=90)))
    ran = host.preflight()
    assert ran.json["verdict"] == "go"
    looser = {"key": "max_ns", "limit": 60000, "profile_limit": 50000, "profile": "low-latency"}
    assert ran.json["looser"] == [looser]
    for fmt in ("text", "nagios", "junit"):
        assert "longest interruption 60 µs (profile 50 µs)" in " ".join(drawn(ran.json, fmt).split()), fmt
    assert 'tunectl_probe_budget_looser_ratio{limit="max_ns",report="preflight"} 1.2' in drawn(ran.json, "prometheus")


def test_the_probe_names_such_a_limit_too_whatever_its_page_leaves_out(host: Host) -> None:
    host.says("[budget]\nmax_ns = 60000\nstolen_ppm = 90\n")
    for words in ((), ("-v",), ("--runs", "2", "--pause", "0")):
        ran = host.probe(*words)
        assert "longest interruption 60 µs (profile 50 µs)" in " ".join(ran.out.split()), words
    assert host.probe("--format", "json").json["budget"]["looser"] == [
        {"key": "max_ns", "limit": 60000, "profile_limit": 50000, "profile": "low-latency"}
    ]


def test_a_sites_own_profile_does_not_set_its_own_measure(host: Host) -> None:
    """It inherits nothing of ours: no GO says nothing of limits that low-latency would not permit."""
    host.limits(**(BUDGET | {"max_ns": 60000}))
    host.measures(result(cpu_result(CPU, max_ns=60000)))
    ran = host.preflight()
    assert ran.json["verdict"] == "go"
    assert (
        "looser limits than profile low-latency has: longest interruption 60 µs (profile 50 µs)" in ran.json["headline"]
    )


LEFT = "an engine runs there"
UNJUDGED: dict[str, tuple[dict[str, float], dict[str, Any], str]] = {
    "no budget": ({}, result(cpu_result(CPU)), "no limit is set"),
    "interrupted": (BUDGET, result(cpu_result(CPU), interrupted=True), "the run was interrupted"),
    "too short": (BUDGET, result(cpu_result(CPU, duration_ns=10**9, interruptions=5), duration_s=1.0), "needs 5 s"),
    "starved": (BUDGET, result(cpu_result(CPU, loops=0)), "a CPU was never measured"),
    "moved": (BUDGET, result(cpu_result(CPU), not_measured=[{"cpu": 0, "reason": LEFT}]), LEFT),
    "all moved": (BUDGET, result(not_measured=[{"cpu": CPU, "reason": LEFT}]), "nothing was measured"),
}


@pytest.mark.parametrize("case", UNJUDGED)
def test_a_probe_that_was_not_judged_is_unknown_in_every_format(host: Host, case: str) -> None:
    budget, document, why = UNJUDGED[case]
    host.limits(**budget)
    host.measures(document)
    ran = host.preflight()
    assert (ran.code, ran.json["verdict"]) == (1, "unknown")
    assert why in " ".join(ran.json["reasons"])
    assert [fmt for fmt in FORMATS if says_go(drawn(ran.json, fmt), fmt)] == []


def test_nagios_says_unknown_of_what_was_not_judged(host: Host) -> None:
    host.limits()
    ran = host.preflight("--format", "nagios")
    assert (ran.code, ran.out.startswith("TUNECTL UNKNOWN - unknown: ")) == (3, True)


def test_a_limit_that_nobody_set_is_named_and_is_no_go(host: Host) -> None:
    host.limits(max_ns=50000)
    missing = [key for key in BUDGET if key != "max_ns"]
    ran = host.preflight()
    assert (ran.code, ran.json["verdict"]) == (1, "unknown")
    assert [key for key in missing if any(key in reason for reason in ran.json["reasons"])] == missing
