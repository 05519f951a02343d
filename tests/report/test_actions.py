"""What to do: each thing once, in the order to do it, and as it is typed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.lab.fixes import DECISIONS, ELSEWHERE, FOLLOWED
from tunectl.model import Finding, Outcome, Severity
from tunectl.report.actions import APPLY, REBOOT, Todo, actions_of, steps_of, todo

POINTS = {"asked": "2-3", "next_boot": None, "this_boot": None, "kernel": ""}
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/tunectl.preflight-1.json").read_text())


def drifted(
    knob: str, fix: str = APPLY, instance: str = "", severity: Severity = Severity.SLOWER, **more: Any
) -> Finding:
    return Finding(knob, instance, more.pop("outcome", Outcome.DRIFTED), 1, 2, "why", fix, severity=severity, **more)


def words(found: list[Finding], **more: Any) -> list[str]:
    return [one.get("command") or one["decide"] for one in actions_of(found, **more)]


def test_a_host_that_is_as_it_should_be_has_nothing_to_do() -> None:
    innocent = (Outcome.COMPLIANT, Outcome.UNSUPPORTED, Outcome.WAIVED)
    assert actions_of([drifted("mm.ksm", outcome=one) for one in innocent]) == []
    assert actions_of([drifted("irq.affinity", "boot again", outcome=Outcome.REFUSED, harmful=False)]) == []


def test_apply_is_said_once_with_all_that_it_mends_the_worst_first() -> None:
    (action,) = actions_of([
        drifted("cpufreq.governor", instance="2"),
        drifted("irq.affinity", "tunectl apply", "7", Severity.INTERRUPT),
        drifted("mm.swap", severity=Severity.STALL),
    ])  # fmt: skip
    mends = ["mm.swap", "irq.affinity[7]", "cpufreq.governor[2]"]
    assert action == {"command": APPLY, "mends": mends, "reboot": False}


def test_what_decides_the_boot_comes_first_then_apply_then_one_reboot_then_what_is_to_be_decided() -> None:
    menu = "sudo sed -i '3s/ *systemd.mask=x//' /etc/default/grub && sudo update-grub"
    found = [
        drifted("check.nic_node", "use a NIC near the others", severity=Severity.STALL),
        drifted("boot.nohz_full", points=POINTS),
        drifted("boot.rcu_nocbs", "reboot", outcome=Outcome.PENDING_REBOOT, points=POINTS),
        drifted("boot.isolcpus", menu, points=POINTS),
        drifted("check.device_interrupts", "echo 0-1 > /proc/irq/7/smp_affinity_list", "2"),
        drifted("systemd.apply_at_boot", f"sudo rm /etc/systemd/system/x && {APPLY}", severity=Severity.HYGIENE),
    ]
    assert words(found, over_budget=True) == [
        menu,
        "sudo rm /etc/systemd/system/x",
        "echo 0-1 > /proc/irq/7/smp_affinity_list",
        APPLY,
        REBOOT,
        "use a NIC near the others",
        "sudo tunectl probe jitter --attribute",
    ]
    (reboot,) = [one for one in actions_of(found) if one.get("command") == REBOOT]
    assert set(reboot["mends"]) == {"boot.isolcpus", "boot.nohz_full", "boot.rcu_nocbs"}


def test_a_boot_argument_that_is_in_force_and_would_be_lost_needs_no_reboot() -> None:
    (action,) = actions_of([drifted("boot.isolcpus", points={**POINTS, "this_boot": "2-3"})])
    assert action == {"command": APPLY, "mends": ["boot.isolcpus"], "reboot": False}


def test_words_for_a_boot_loader_that_is_not_ours_are_one_step() -> None:
    fix = "add {} to the kernel command line yourself, then reboot"
    found = [
        drifted("boot.isolcpus", fix.format("isolcpus=domain,2-3"), points=POINTS),
        drifted("boot.nosoftlockup", fix.format("nosoftlockup"), points=POINTS),
    ]
    first, second = actions_of(found)
    assert first["decide"] == "put these 2 words on the kernel command line yourself: isolcpus=domain,2-3 nosoftlockup"
    assert first["mends"] == second["mends"] == ["boot.isolcpus", "boot.nosoftlockup"]
    assert (second["command"], second["reboot"], first["reboot"]) == (REBOOT, True, True)


def test_decisions_that_differ_only_in_their_target_are_one() -> None:
    found = [drifted("irq.affinity", f"IRQ {irq} is the kernel's: fewer queues for it", str(irq)) for irq in (40, 41)]
    (action,) = actions_of(found)
    assert (action["decide"], len(action["mends"])) == ("IRQ N is the kernel's: fewer queues for it", 2)


def test_a_decision_about_one_target_is_in_the_words_of_its_fix() -> None:
    fix = "take /etc/sysctl.d/90-site.conf:2 out, or say vm.swappiness = 1 there"
    (action,) = actions_of([drifted("check.other_tuners", fix, "sysctl.d")])
    assert action["decide"] == fix


def test_commands_for_many_targets_are_one_line_on_a_page_and_all_in_the_document() -> None:
    found = [drifted("check.movable_threads", f"taskset -cp 0-1 {tid}; or declare it", str(tid)) for tid in range(40)]
    actions = actions_of(found)
    assert len(actions) == 40
    (one,) = todo(actions)
    assert (len(one.commands), one.note, len(one.mends)) == (40, "or declare it", 40)


def test_what_the_probe_found_beyond_the_budget_is_looked_for() -> None:
    (action,) = actions_of([], over_budget=True)
    assert action["mends"] == ["probe.budget"]


@pytest.mark.parametrize("fix", sorted(fix for fix in {**FOLLOWED, **ELSEWHERE} if fix.split()[0] in ("sudo", "echo")))
def test_a_command_is_what_a_shell_takes(fix: str) -> None:
    """sh -n reads it; … stands for a value."""
    commands = [step.command for step in steps_of(fix.replace("…", "x")) if step.command]
    assert commands
    for command in commands:
        assert subprocess.run(["sh", "-n"], input=command, text=True, capture_output=True).stderr == ""


@pytest.mark.parametrize("fix", sorted(DECISIONS))
def test_a_decision_is_never_called_a_command(fix: str) -> None:
    assert all(step.command in ("", APPLY, REBOOT) for step in steps_of(fix))


@pytest.mark.parametrize(
    ("fix", "command", "note"),
    [
        ("kill 7: its service did not start it", "kill 7", "its service did not start it"),
        ("systemctl disable --now x; or waive it", "systemctl disable --now x", "or waive it"),
        ("sudo grub-editenv x unset y, then sudo update-grub", "sudo grub-editenv x unset y && sudo update-grub", ""),
        ("sudo sed -i 's/a: b; c//' /etc/x", "sudo sed -i 's/a: b; c//' /etc/x", ""),
    ],
)
def test_the_explanation_is_no_part_of_the_command(fix: str, command: str, note: str) -> None:
    (step,) = steps_of(fix)
    assert (step.command, step.note) == (command, note)


def test_several_commands_of_one_fix_are_steps_in_its_order() -> None:
    first, second = "IRQ 36 is the kernel's: fewer queues for it", "echo 0 > /proc/irq/42/x"
    fix = f"{first}; {second}; sudo sed 's/; kill 7//' y; kill 7; or wait"
    assert [(step.command or step.decide, step.note) for step in steps_of(fix)] == [
        (first, ""),
        (second, ""),
        ("sudo sed 's/; kill 7//' y", ""),
        ("kill 7", "or wait"),
    ]


@pytest.mark.parametrize("count", [2, 3, 4, 40])
def test_a_shell_runs_each_command_of_a_long_list_as_it_is_printed(count: int) -> None:
    fix = "; ".join(f"echo moved {tid}" for tid in range(count))
    (one,) = todo(actions_of([drifted("check.movable_threads", fix, "2")]))
    said = subprocess.run(["sh", "-ec", "\n".join(one.typed)], text=True, capture_output=True, check=True).stdout
    assert said == "".join(f"moved {tid}\n" for tid in range(count))
    assert len(one.typed) == (count if count < 4 else 1)


@pytest.mark.parametrize("second", ["echo 'a b' c", "echo a; echo b", "echo $x c", "echo b d"])
def test_commands_that_differ_in_more_than_a_plain_word_stay_apart(second: str) -> None:
    commands = ("echo a c", second, "echo e c", "echo f c")
    assert Todo(commands, "", "", ("check.ipis[2]",), False).typed == commands


def test_without_a_host_file_it_is_proposed_first_of_all() -> None:
    propose, apply = "sudo tunectl --root '/a b' propose --output '/a b/host.toml'", "sudo tunectl --root '/a b' apply"
    found = [
        drifted("mm.ksm", f"{propose} && {apply}"),
        drifted("boot.tsc", f"see who lowered it, then: {propose} && {apply}", points={**POINTS, "this_boot": "2-3"}),
        drifted("check.nic_node", f"sudo sed -i 3d /etc/x && {propose} && {apply}"),
    ]
    assert words(found) == [propose, "see who lowered it", "sudo sed -i 3d /etc/x", apply]
    assert [one.commands for one in todo(actions_of(found[:1]))] == [(propose,), (apply,)]


def test_apply_in_a_list_of_commands_is_the_one_apply() -> None:
    fix = "sudo taskset -cp 0 15; sudo taskset -cp 0 16; sudo tunectl apply, then reboot"
    assert words([drifted("check.movable_threads", fix, "2")]) == [*fix.split("; ")[:2], APPLY, REBOOT]


@pytest.mark.parametrize("fix", sorted({**FOLLOWED, **ELSEWHERE}))
def test_what_changes_a_host_is_typed_with_sudo(fix: str) -> None:
    for step in steps_of(fix.replace("…", "x")):
        for command in filter(None, re.split(r" && |; ", step.command) if "'" not in step.command else [step.command]):
            assert command.startswith(("sudo ", "x")) or "| sudo tee " in command, command


KEPT_OFF = "boot with isolcpus=managed_irq,domain,... (knob boot.isolcpus): then the kernel keeps it off"


@pytest.mark.parametrize(
    "fix", [APPLY, "add isolcpus=managed_irq,domain,2-3 to the kernel command line yourself, then reboot"]
)
def test_an_argument_that_is_on_the_list_already_is_not_decided_again(fix: str) -> None:
    found = [
        drifted("check.device_interrupts", f"{KEPT_OFF}; echo 0 | sudo tee /proc/irq/42/smp_affinity_list", "3"),
        drifted("irq.affinity", KEPT_OFF, "36", outcome=Outcome.REFUSED),
        drifted("boot.isolcpus", fix, points=POINTS)._replace(desired="managed_irq,domain,2-3"),
    ]
    alone = words(found[2:])
    assert words(found) == ["echo 0 | sudo tee /proc/irq/42/smp_affinity_list", *alone]
    *_, reboot = actions_of(found)
    assert set(reboot["mends"]) == {"check.device_interrupts[3]", "irq.affinity[36]", "boot.isolcpus"}


@pytest.mark.parametrize("asked", [{"desired": "domain,2-3"}, {"outcome": Outcome.COMPLIANT}])
def test_one_that_is_not_asked_for_is_decided_once(asked: dict[str, Any]) -> None:
    found = [
        drifted("check.device_interrupts", KEPT_OFF, "3"),
        drifted("irq.affinity", KEPT_OFF, "36", outcome=Outcome.REFUSED),
        drifted("boot.isolcpus", points=POINTS)._replace(**asked),
    ]
    assert words(found).count(KEPT_OFF) == 1


def test_the_schema_takes_it() -> None:
    from jsonschema import Draft202012Validator

    made = actions_of([drifted("mm.swap"), drifted("mm.ksm", "decide"), drifted("boot.tsc", points=POINTS)])
    Draft202012Validator(SCHEMA["properties"]["actions"]).validate(made)
    assert not Draft202012Validator(SCHEMA["properties"]["actions"]).is_valid([{"mends": ["x"], "reboot": False}])
