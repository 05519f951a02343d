"""Parts of the story that several tests tell: preflight under emulation, and the way back to the byte."""

import re
from typing import Any

from tests.ran import Ran

from .lab import Lab
from .product import EMULATED_BUDGET, tunectl

TICK = "emulation gives its spinners less than a fifth of their time"


def waiver(knob: str, reason: str, until: str) -> str:
    """For each target of the knob."""
    return f'\n[[waivers]]\nknob = "{knob}"\nreason = "{reason}"\nuntil = {until}\n'


def loosened(host_file: str) -> str:
    """The same with limits that emulation can keep, and a waiver for the clock that it has not."""
    for key, limit in EMULATED_BUDGET.items():
        host_file, times = re.subn(rf"^{key} = .*$", f"{key} = {limit}", host_file, flags=re.MULTILINE)
        assert times == 1, host_file
    return host_file + waiver("thermal.clock", "emulation has no clock of its own", "2099-12-31")


def starved(document: Any) -> bool:
    """Is it unknown for the one reason that the spinners had too little time to prove that the tick is off?"""
    if document["verdict"] != "unknown" or any(not one.startswith("check.tick_off[") for one in document["reasons"]):
        return False
    return bool(max(one["stolen_ppm"] for one in document["probe"]["cpus"]) > 750_000)


def preflight(lab: Lab, words: str = "preflight", verdict: str = "go") -> Ran:
    """The first of three that says so, or whose spinners starved: a machine that stalls in one does not in each."""
    for _ in range(3):
        ran = tunectl(lab, f"{words} --format json", timeout=600)
        if ran.json["verdict"] == verdict or starved(ran.json):
            break
    return ran


def judged(lab: Lab, host_file: str) -> tuple[Ran, str]:
    """preflight, and how its headline ends.

    Where the machine is too busy to emulate a spinner, the operator waives what it cannot prove. That the tick is off
    has a test of its own.
    """
    ran = preflight(lab)
    if not starved(ran.json):
        return ran, "1 waiver stands, until 2099-12-31 (thermal.clock)"
    lab.write("/etc/tunectl/host.toml", host_file + waiver("check.tick_off", TICK, "2099-12-30"))
    return preflight(lab), "2 waivers stand, the next expires on 2099-12-30 (check.tick_off)"


def tick_is_off_or_waived_as_unknown(document: Any) -> bool:
    """Of each isolated CPU; what is waived was not seen to tick, for then its finding would say how often."""
    found = {one["target"]: one for one in document["check"]["findings"] if one["knob"] == "check.tick_off"}
    assert found.keys() == {"check.tick_off[2]", "check.tick_off[3]"}
    return all(
        one["outcome"] == "compliant"
        or (one["outcome"] == "waived" and one["observed"] is None and one["reason"].startswith(TICK))
        for one in found.values()
    )


def difference(before: dict[str, str], after: dict[str, str]) -> dict[str, Any]:
    """Path -> (before, after)."""
    return {
        path: (before.get(path), after.get(path)) for path in {*before, *after} if before.get(path) != after.get(path)
    }


def restored(lab: Lab) -> None:
    """Everything is restored; an interrupt that irqbalance, which runs, has moved since only when told to."""
    ran = tunectl(lab, "restore --format json")
    if since := [one for one in ran.json["results"] if one["result"] == "changed-since"]:
        assert all(target.startswith("irq.affinity[") for one in since for target in one["targets"]), since
        ran = tunectl(lab, "restore --force --format json")
    assert ran.code == 0, ran.json


def volatile(path: str) -> bool:
    """Files that any boot rewrites."""
    return path in ("/etc", "/etc/resolv.conf", "/etc/machine-id", "/etc/mtab") or path.endswith(".cache")
