"""A GO is repeated only where nothing else in its document contradicts it: each condition alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fleet.made import good, preflight
from tunectl.verdict import doubt_of_go

Change = Callable[[dict[str, Any]], Any]


def doubt(change: Change) -> str:
    document = preflight()
    change(document)
    return doubt_of_go(document)


def budget(**changes: Any) -> Change:
    return lambda document: document["probe"]["budget"].update(changes)


def section(name: str, *findings: dict[str, Any], **changes: Any) -> Change:
    return lambda document: document[name].update({"findings": [*document[name]["findings"], *findings], **changes})


BROKEN = "CPU 15: the longest interruption: 90000 ns, allowed 50000 ns (max_ns)"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: document.update(probe=None), "measured nothing"),
        (lambda document: document["probe"].update(interrupted=True), "its probe was interrupted"),
        (lambda document: document["probe"].pop("budget"), "judged nothing: its probe was held to no limit"),
        (budget(limits={}), "judged nothing: its probe was held to no limit"),
        (budget(limits={"max_ns": None, "stolen_ppm": None}), "judged nothing: its probe was held to no limit"),
        (budget(verdict="broken"), "its probe broke a limit"),
        (budget(verdict="broken", broken=[BROKEN]), f"its probe broke a limit: {BROKEN}"),
        (budget(broken=[BROKEN]), f"its probe broke a limit: {BROKEN}"),
        (budget(not_judged=["max_ns: measured for 0.1 s"]), "not judged by a limit: max_ns: measured for 0.1 s"),
        (budget(verdict="not-judged", reason="a CPU was never measured"), "not judged: a CPU was never measured"),
        (budget(verdict=""), "its probe was not judged: no reason is given"),
        (lambda document: document.update(reasons=["fan failed"]), "gives a reason against it: fan failed"),
        (lambda document: document.update(verify=None), "judged none of its settings"),
        (lambda document: document.update(check=None), "judged none of its checks"),
        (section("verify", findings=[]), "judged none of its settings"),
        (section("check", findings=[]), "judged none of its checks"),
        (section("verify", verdict="drifted"), "its verify says drifted"),
        (section("verify", verdict="unreadable"), "its verify says unreadable"),
        (section("verify", verdict=None), "its verify says nothing"),
        (section("check", verdict="drifted"), "its check says drifted"),
        (section("check", verdict="pending-reboot"), "its check says pending-reboot"),
        (section("verify", good("mm.ksm") | {"outcome": "drifted"}), "mm.ksm in it is drifted"),
        (section("verify", good("boot.tsc") | {"outcome": "pending-reboot"}), "boot.tsc in it is pending-reboot"),
        (section("verify", good("irq.affinity[7]") | {"outcome": "refused"}), "irq.affinity[7] in it is refused"),
        (section("thermal", good("thermal.throttled[3]") | {"outcome": "drifted"}), "thermal.throttled[3] in it is"),
    ],
)
def test_what_contradicts_a_go(change: Change, said: str) -> None:
    assert said in doubt(change)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: None,
        lambda document: document.update(thermal={"verdict": "unknown", "findings": [], "evidence": {}}),
        budget(limits={"max_ns": 50_000, "stolen_ppm": None}),
        section("check", verdict="unreadable"),  # nothing but the engine's own threads was to be judged
        section("verify", good("mm.ksm") | {"outcome": "waived"}),
        section("verify", good("irq.affinity[7]") | {"outcome": "refused", "harmful": False}),
        section("verify", good("uncore.min") | {"outcome": "unreadable"}),  # reading it would interrupt a CPU
        section("verify", good("net.rx_usecs[eth0]") | {"outcome": "unsupported"}),
    ],
)
def test_what_stands_beside_a_go(change: Change) -> None:
    assert doubt(change) == ""
