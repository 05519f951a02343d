"""What the module makes of tunectl's documents."""

import json
from typing import Any

import pytest

from tests.ansible.units import load

outcome = load("outcome")
HEADER = {"schema": "tunectl.x/1", "host": {"boot_id": "b"}}


def finding(target: str, word: str, observed: str = "a", desired: str = "b", reason: str = "") -> dict[str, Any]:
    return {"target": target, "outcome": word, "observed": observed, "desired": desired, "reason": reason}


def change(target: str, result: str | None = None, message: str = "") -> dict[str, Any]:
    made = {"target": target, "observed": "60", "desired": "1", "lifetime": "runtime"}
    return made if result is None else {**made, "result": result, "message": message}


def back(path: str, result: str, message: str = "") -> dict[str, Any]:
    return {"path": path, "result": result, "observed": "1\n", "before": None, "message": message}


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("tunectl: there is no host file\n", "there is no host file"),
        ("a warning\ntunectl: no (why)\n", "no (why)"),
        ("sh: not found\n", "sh: not found"),
        ("", "tunectl ended with exit code 1 and said nothing"),
    ],
)
def test_the_complaint(stderr: str, said: str) -> None:
    assert outcome.complaint(stderr, 1) == said


def test_only_an_unknown_word_is_a_tunectl_that_is_too_old() -> None:
    assert outcome.too_old("No such option: --candidate See 'tunectl plan --help'.")
    assert outcome.too_old("No such command 'service'.")
    assert not outcome.too_old("host.toml: unknown key 'x'")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON: ''"),
        ("[1]", "speaks no schema"),
        ('{"schema": "tunectl.verify/2"}', "speaks tunectl.verify/2, and this collection reads tunectl.verify/1"),
    ],
)
def test_what_is_no_document(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        outcome.parse(text, "verify")


def test_the_document() -> None:
    assert outcome.parse(json.dumps({"schema": "tunectl.verify/1", "x": 1}), "verify")["x"] == 1


@pytest.mark.parametrize(
    ("document", "code", "verdict"),
    [
        ({"verdict": "no-go"}, 3, "no-go"),
        ({"changes": []}, 0, "compliant"),
        ({"changes": []}, 4, "pending-reboot"),
        ({"budget": {"verdict": "not-judged"}}, 0, "not-judged"),
    ],
)
def test_the_verdict(document: dict[str, Any], code: int, verdict: str) -> None:
    assert outcome.verdict(document, code) == verdict


def test_findings_of_every_part() -> None:
    document = {
        "verify": {"findings": [finding("mm.ksm", "drifted", "1", "0", "somebody wrote"), finding("a", "compliant")]},
        "check": {"findings": [finding("check.tick", "unreadable", "", "off")]},
        "thermal": {"findings": []},
        "probe": None,
    }
    assert outcome.outcomes(document) == {"drifted": 1, "compliant": 1, "unreadable": 1}
    assert [one["target"] for one in outcome.notable(document)] == ["mm.ksm", "check.tick"]
    assert outcome.reasons(document) == [
        "mm.ksm is 1, should be 0: somebody wrote",
        "check.tick is empty, should be off",
    ]
    bound = {**finding("mm.swappiness", "drifted", "60", "1", "it swaps"), "match": "at most"}
    assert outcome.reasons({"findings": [bound]}) == ["mm.swappiness is 60, should be at most 1: it swaps"]
    assert outcome.reasons({**document, "reasons": ["the probe found more"]}) == ["the probe found more"]


@pytest.mark.parametrize(
    ("command", "document", "changed"),
    [
        ("apply", {"changes": []}, False),
        ("apply", {"changes": [change("a", "refused")]}, False),
        ("apply", {"changes": [change("a", "refused"), change("b", "changed")]}, True),
        ("apply", {"changes": [change("a")]}, True),  # check mode: a plan
        ("plan", {"changes": [change("a")]}, False),
        ("restore", {"results": [back("/a", "already"), back("/b", "changed-since")]}, False),
        ("restore", {"results": [back("/a", "restored")]}, True),
        ("restore", {"results": [back("/a", "would-restore")]}, True),
        ("verify", {"findings": [finding("a", "drifted")]}, False),
        ("confirm", {"status": "confirmed", "already": False}, True),
        ("confirm", {"status": "confirmed", "already": True}, False),
        ("confirm", {"unconfirmed": {"id": "0123abcd"}}, True),  # check mode: a look
        ("confirm", {"cpus": []}, False),
    ],
)
def test_changed_is_true_only_if_something_changed(command: str, document: dict[str, Any], changed: bool) -> None:
    assert outcome.changed(command, document) is changed


@pytest.mark.parametrize(
    ("action", "wanted", "states", "changed"),
    [
        ("install", "present", ["unchanged", "unchanged"], False),
        ("install", "present", ["unchanged", "written"], True),
        ("remove", "absent", ["absent"], False),
        ("remove", "absent", ["removed"], True),
        ("show", "present", ["installed"], False),
        ("show", "present", ["outdated"], True),
        ("show", "absent", ["absent"], False),
        ("show", "absent", ["installed"], True),
    ],
)
def test_a_service_is_changed_when_a_unit_is(action: str, wanted: str, states: list[str], changed: bool) -> None:
    document = {"action": action, "units": [{"state": state} for state in states]}
    assert outcome.service_changed(document, wanted) is changed


@pytest.mark.parametrize(
    ("command", "document", "code", "said"),
    [
        ("verify", {"verdict": "unreadable"}, 1, ""),
        ("preflight", {"verdict": "no-go"}, 3, ""),
        ("propose", {"refusal": None}, 0, ""),
        ("propose", {"refusal": "one core only"}, 1, "one core only"),
        ("apply", {"changes": [change("a", "failed", "EIO")], "verdict": "drifted"}, 1, "a: EIO"),
        ("apply", {"changes": [], "notes": ["update-grub: 1"], "verdict": "drifted"}, 1, "update-grub: 1"),
        ("apply", {"changes": [], "notes": [], "verdict": "unreadable"}, 1, ""),
        ("apply", {"changes": [change("a", "failed", "gone")], "verdict": "compliant"}, 0, ""),
        ("restore", {"results": [back("/a", "changed-since")], "notes": []}, 3, ""),
        ("restore", {"results": [back("/a", "failed", "EIO")], "notes": ["kept"]}, 1, "/a: EIO; kept"),
        ("service", {"notes": ["systemctl failed: 1"]}, 1, "systemctl failed: 1"),
    ],
)
def test_a_verdict_is_no_failure(command: str, document: dict[str, Any], code: int, said: str) -> None:
    assert outcome.failure(command, document, code) == said


def test_the_diff_is_one_part_for_all_settings_and_one_for_each_file() -> None:
    document = {"changes": [change("mm.swappiness", "changed"), change("irq.affinity[33]", "refused")]}
    assert outcome.diff(document) == [part("settings", "mm.swappiness = 60\n", "mm.swappiness = 1\n")]
    results = [back("/etc/x", "would-restore"), back("/etc/y", "already"), back("/etc/z", "restored")]
    results[2]["observed"] = "one\ntwo\n"
    assert outcome.diff({"results": results}) == [
        part("settings", "/etc/x = 1\n", "/etc/x = not set\n"),
        part("/etc/z", "one\ntwo\n", ""),
    ]


def part(name: str, before: str, after: str) -> dict[str, str]:
    return {"before_header": name, "after_header": name, "before": before, "after": after}


def test_what_changes_alike_is_one_line() -> None:
    targets = [f"cpufreq.governor[{cpu}]" for cpu in (*range(128), 130)] + ["net.rx_ring[eth1]", "net.rx_ring[eth0]"]
    (shown,) = outcome.diff({"changes": [change(target, "changed") for target in targets]})
    assert shown["after"] == "cpufreq.governor[0-127,130] = 1\nnet.rx_ring[eth1,eth0] = 1\n"
    findings = [finding(target, "drifted") for target in targets] + [finding("cpufreq.governor[200]", "drifted", "c")]
    assert outcome.reasons({"findings": findings}) == [
        "cpufreq.governor[0-127,130] is a, should be b",
        "net.rx_ring[eth1,eth0] is a, should be b",
        "cpufreq.governor[200] is c, should be b",
    ]


def test_a_long_complaint_is_cut_and_counted() -> None:
    lost = [change(f"irq.affinity[{irq}]", "failed", "EIO") for irq in range(1000)]
    said = outcome.failure("apply", {"changes": lost, "verdict": "drifted"}, 1)
    assert said == "irq.affinity[0]: EIO; irq.affinity[1]: EIO; irq.affinity[2]: EIO; and 997 more"
