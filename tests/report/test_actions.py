"""What to do: each thing once, in the order to do it, and as it is typed."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.report.documents import AT, HOST
from tunectl import kinds
from tunectl.cli.command import Typed
from tunectl.command import argv, write
from tunectl.fix import APPLY, REBOOT, Fix, add_words, apply, in_turn, to_decide, to_type
from tunectl.knobs.irq import KEPT_OFF
from tunectl.model import Document, Finding, Outcome, Severity
from tunectl.report import render
from tunectl.report.actions import Todo, actions_of, mended_by_apply, todo

POINTS = {"asked": "2-3", "next_boot": None, "this_boot": None, "kernel": ""}
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/tunectl.preflight-1.json").read_text())


def drifted(
    knob: str, fix: Fix = APPLY, instance: str = "", severity: Severity = Severity.SLOWER, **more: Any
) -> Finding:
    return Finding(knob, instance, more.pop("outcome", Outcome.DRIFTED), 1, 2, "why", fix, severity=severity, **more)


def words(found: list[Finding], **more: Any) -> list[str]:
    return [one.get("command") or one["decide"] for one in actions_of(found, **more)]


def test_a_host_that_is_as_it_should_be_has_nothing_to_do() -> None:
    innocent = (Outcome.COMPLIANT, Outcome.UNSUPPORTED, Outcome.WAIVED)
    assert actions_of([drifted("mm.ksm", outcome=one) for one in innocent]) == []
    assert actions_of([drifted("irq.affinity", to_decide("boot again"), outcome=Outcome.REFUSED, harmful=False)]) == []


def test_apply_is_said_once_with_all_that_it_mends_the_worst_first() -> None:
    (action,) = actions_of([
        drifted("cpufreq.governor", instance="2"),
        drifted("irq.affinity", apply("by hand: a mask"), "7", Severity.INTERRUPT),
        drifted("mm.swap", severity=Severity.STALL),
    ])  # fmt: skip
    mends = ["mm.swap", "irq.affinity[7]", "cpufreq.governor[2]"]
    assert action == {"command": "sudo tunectl apply", "kind": "apply", "mends": mends, "reboot": False}


def test_a_step_counts_findings_as_findings_and_settings_as_settings() -> None:
    """45 targets of 3 knobs are no 45 settings, and no 3; a check is none at all."""
    found = [drifted("irq.affinity", instance=str(irq)) for irq in range(43)]
    found += [drifted("mm.ksm"), drifted("boot.tsc", points=POINTS), drifted("boot.nohz_full", points=POINTS)]
    found += [drifted("check.movable_threads", REBOOT, str(cpu)) for cpu in (2, 3)]
    assert [one.said for one in todo(actions_of(found))] == ["mends 46 findings", "puts 2 settings in force"]


def test_what_decides_the_boot_comes_first_then_apply_then_one_reboot_then_what_is_to_be_decided() -> None:
    menu = argv("sudo", "sed", "-i", "3s/ *systemd.mask=x//", "/etc/default/grub").then(argv("sudo", "update-grub"))
    found = [
        drifted("check.nic_node", to_decide("use a NIC near the others"), severity=Severity.STALL),
        drifted("boot.nohz_full", points=POINTS),
        drifted("boot.rcu_nocbs", REBOOT, outcome=Outcome.PENDING_REBOOT, points=POINTS),
        drifted("boot.isolcpus", to_type(menu), points=POINTS),
        drifted("check.device_interrupts", to_type(kinds.move_interrupt(7, "0-1")), "2"),
        drifted(
            "systemd.apply_at_boot", in_turn(to_type(argv("sudo", "rm", "/etc/x")), APPLY), severity=Severity.HYGIENE
        ),
    ]
    assert words(found, over_budget=True) == [
        menu,
        "sudo rm /etc/x",
        str(APPLY),
        "sudo reboot",
        "use a NIC near the others",
        "sudo tunectl preflight",
    ]
    assert actions_of(found, over_budget=True)[-1]["mends"] == ["check.device_interrupts[2]", "probe.budget"]
    (reboot,) = [one for one in actions_of(found) if one.get("command") == "sudo reboot"]
    assert set(reboot["mends"]) == {"boot.isolcpus", "boot.nohz_full", "boot.rcu_nocbs"}


def test_a_boot_argument_that_is_in_force_and_would_be_lost_needs_no_reboot() -> None:
    (action,) = actions_of([drifted("boot.isolcpus", points={**POINTS, "this_boot": "2-3"})])
    assert action == {"command": "sudo tunectl apply", "kind": "apply", "mends": ["boot.isolcpus"], "reboot": False}


def test_words_for_a_boot_loader_that_is_not_ours_are_one_step() -> None:
    found = [
        drifted("boot.isolcpus", add_words("isolcpus=domain,2-3"), points=POINTS),
        drifted("boot.nosoftlockup", add_words("nosoftlockup"), points=POINTS),
    ]
    first, second = actions_of(found)
    assert first["decide"] == "put on the kernel command line: isolcpus=domain,2-3 nosoftlockup"
    assert first["mends"] == second["mends"] == ["boot.isolcpus", "boot.nosoftlockup"]
    assert (second["command"], second["reboot"], first["reboot"]) == ("sudo reboot", True, True)


def test_decisions_that_differ_only_in_their_target_are_one() -> None:
    found = [
        drifted("irq.affinity", to_decide(f"IRQ {irq} is the kernel's: fewer queues for it"), str(irq))
        for irq in (40, 41)
    ]
    (action,) = actions_of(found)
    assert (action["decide"], len(action["mends"])) == ("IRQ N is the kernel's: fewer queues for it", 2)


def test_a_decision_about_one_target_is_in_the_words_of_its_fix() -> None:
    fix = to_decide("take /etc/sysctl.d/90-site.conf:2 out, or say vm.swappiness = 1 there")
    (action,) = actions_of([drifted("check.other_tuners", fix, "sysctl.d")])
    assert action["decide"] == str(fix)


def test_what_is_to_be_decided_about_one_line_is_one_action() -> None:
    place = "/etc/default/grub:5"
    found = [
        drifted("boot.isolcpus", to_decide(f"remove isolcpus=1 ({place})", line=place)),
        drifted("boot.nohz_full", in_turn(to_decide(f"remove nohz_full=1 ({place})", line=place), APPLY)),
        drifted("check.other_tuners", to_decide(f"take {place} out", line=place), "GRUB"),
        drifted("boot.tsc", to_decide("remove tsc=unstable (/etc/default/grub:6)", line="/etc/default/grub:6")),
        drifted("check.nic_node", to_decide("use a NIC near the others")),
    ]
    first, second, applied, reboot, last = actions_of(found)
    assert first["decide"] == f"remove isolcpus=1 ({place}); remove nohz_full=1 ({place}); take {place} out"
    assert set(first["mends"]) == {"boot.isolcpus", "boot.nohz_full", "check.other_tuners[GRUB]"}
    assert (second["mends"], last["mends"]) == (["boot.tsc"], ["check.nic_node"])
    assert (applied["command"], reboot["command"]) == (str(APPLY), "sudo reboot")


def test_the_same_text_is_one_action_though_it_holds_a_targets_name() -> None:
    fix = in_turn(to_decide("take nr_cpus=2 out of the kernel command line", before_boot=True), REBOOT)
    first, reboot = actions_of([drifted("cpu.online", fix, cpu) for cpu in ("2", "3", "4")])
    assert first["decide"] == "take nr_cpus=2 out of the kernel command line"
    assert first["mends"] == [f"cpu.online[{cpu}]" for cpu in (2, 3, 4)]
    assert reboot["command"] == "sudo reboot"


def test_commands_for_many_targets_are_one_line_on_a_page_and_all_in_the_document() -> None:
    moves = [to_type(kinds.move_thread(tid, "0-1"), "or declare it") for tid in range(40)]
    found = [drifted("check.movable_threads", move, str(tid)) for tid, move in enumerate(moves)]
    actions = actions_of(found)
    assert len(actions) == 40
    (one,) = todo(actions)
    assert (len(one.commands), one.note, len(one.mends)) == (40, "or declare it", 40)


def test_what_the_probe_found_beyond_the_budget_is_looked_for() -> None:
    (action,) = actions_of([], over_budget=True)
    assert action["mends"] == ["probe.budget"]


def test_what_is_to_be_decided_leaves_the_look_after_the_reboot() -> None:
    found, decide, look = (
        [drifted("boot.nohz_full", points=POINTS)],
        to_decide("ask the host below"),
        "sudo tunectl preflight",
    )
    assert words(found, over_budget=True, unproved=[decide])[-2:] == [look, "ask the host below"]
    assert words(found, over_budget=True, unproved=[to_type(kinds.preflight(seconds=9))]).count(look) == 0


def test_the_explanation_is_no_part_of_the_command() -> None:
    fix = in_turn(
        to_type(argv("sudo", "kill", "7")),
        to_type(argv("sudo", "systemctl", "restart", "x"), "its service did not start it"),
    )
    assert str(fix) == "sudo kill 7; sudo systemctl restart x; its service did not start it"
    first, second = actions_of([drifted("check.other_tuners", fix)])
    assert (first["command"], first.get("note")) == ("sudo kill 7", None)
    assert (second["command"], second["note"]) == ("sudo systemctl restart x", "its service did not start it")


def test_several_steps_of_one_fix_are_in_its_order() -> None:
    irq, mask = to_decide("IRQ 36 is the kernel's: fewer queues for it"), to_type(write("0", "/proc/irq/42/x"))
    fix = in_turn(
        mask, to_type(argv("sudo", "sed", "s/; kill 7//", "y")), to_type(argv("kill", "7"), "or wait"), irq, mask
    )
    assert words([drifted("check.ipis", fix)]) == [str(mask), "sudo sed 's/; kill 7//' y", "kill 7", str(irq)]


@pytest.mark.parametrize("count", [2, 3, 4, 40])
def test_a_shell_runs_each_command_of_a_long_list_as_it_is_printed(count: int) -> None:
    fix = in_turn(*(to_type(argv("echo", "moved", str(tid))) for tid in range(count)))
    (one,) = todo(actions_of([drifted("check.movable_threads", fix, "2")]))
    said = subprocess.run(["sh", "-ec", "\n".join(one.typed)], text=True, capture_output=True, check=True).stdout
    assert said == "".join(f"moved {tid}\n" for tid in range(count))
    assert len(one.typed) == (count if count < 4 else 1)


@pytest.mark.parametrize("second", [("a b", "c"), ("a;", "echo", "b"), ("$x", "c"), ("b", "d"), ("-n", "c")])
def test_commands_that_differ_in_more_than_a_plain_word_stay_apart(second: tuple[str, ...]) -> None:
    commands = tuple(argv("echo", *words) for words in (("a", "c"), second, ("e", "c"), ("f", "c")))
    assert Todo(commands, "", "", ("check.ipis[2]",), False).typed == commands


def test_without_a_host_file_it_is_proposed_first_of_all() -> None:
    propose, apply = "sudo tunectl --root '/a b' propose --output '/a b/host.toml'", "sudo tunectl --root '/a b' apply"
    found = [
        drifted("mm.ksm"),
        drifted("boot.tsc", in_turn(to_decide("see who lowered it"), APPLY), points={**POINTS, "this_boot": "2-3"}),
        drifted("check.nic_node", in_turn(to_type(argv("sudo", "sed", "-i", "3d", "/etc/x")), APPLY)),
    ]
    found = [Typed(("--root", "/a b"), "/a b/host.toml").finding(one) for one in found]
    assert str(found[1].fix) == f"see who lowered it, then {propose} && {apply}"
    assert str(found[2].fix) == f"sudo sed -i 3d /etc/x && {propose} && {apply}"
    assert words(found) == [propose, "see who lowered it", "sudo sed -i 3d /etc/x", apply]
    assert [one.commands for one in todo(actions_of(found[:1]))] == [(propose,), (apply,)]


def test_apply_in_a_list_of_commands_is_the_one_apply() -> None:
    moves = [to_type(kinds.move_thread(tid, "0")) for tid in (15, 16)]
    fix = in_turn(*moves, APPLY, REBOOT)
    assert str(fix) == "sudo taskset -cp 0 15; sudo taskset -cp 0 16 && sudo tunectl apply, then reboot"
    strays = drifted("check.movable_threads", fix, "2")
    assert words([strays, drifted("mm.ksm")]) == [str(APPLY), "sudo reboot", "sudo tunectl preflight"]
    stays = strays._replace(fix=in_turn(*moves, APPLY))
    assert words([stays, drifted("mm.ksm")]) == [*map(str, moves), str(APPLY)]


def test_what_ends_with_the_boot_is_left_to_the_boot_and_then_looked_at_again() -> None:
    strays = drifted("check.movable_threads", to_type(kinds.move_thread(15, "0")), "2", Severity.STALL)
    senders = drifted("check.ipis", to_decide("end it", settled_by=("boot.isolcpus", "domain")), "2")
    isolation = drifted("boot.isolcpus", points=POINTS)._replace(desired="managed_irq,domain,2-3")
    assert words([strays, senders, isolation]) == [str(APPLY), "sudo reboot", "sudo tunectl preflight"]
    look = actions_of([strays, senders, isolation])[-1]
    assert (look["mends"], look["note"]) == (["check.movable_threads[2]"], "what ran before the reboot is gone")
    start = ("/opt/x/tunectl", "--root", "/a b")
    assert str(actions_of([strays, isolation], start=start)[-1]["command"]) == f"sudo {shlex.join(start)} preflight"
    found = tuple(map(Typed(start[1:], program=start[0]).finding, (strays, isolation)))
    page = render(Document("check", HOST, AT, {"verdict": "drifted", "findings": found}, found, start=start), "text")
    assert f"sudo {shlex.join(start)} preflight" in page
    assert words([strays, senders]) == ["sudo taskset -cp 0 15", "end it"]
    for_now, for_good = (to_type(kinds.confine_unit("foo.service", "0", lasting)) for lasting in (False, True))
    assert words([strays._replace(fix=for_now), isolation]) == [str(APPLY), "sudo reboot", "sudo tunectl preflight"]
    assert words([strays._replace(fix=for_good), isolation]) == [str(for_good), str(APPLY), "sudo reboot"]


def test_what_only_apply_or_a_reboot_mends_is_told_from_what_needs_more() -> None:
    found = [
        drifted("mm.ksm"),
        drifted("boot.isolcpus", add_words("isolcpus=2"), points=POINTS),
        drifted("boot.tsc", in_turn(to_type(argv("sudo", "rm", "/etc/x")), APPLY), points=POINTS),
        drifted("mm.swap", to_decide("apply is no help")),
    ]
    mended = {"mm.ksm", "boot.isolcpus"}
    assert mended_by_apply(actions_of(found)) == mended
    assert mended_by_apply(actions_of(map(Typed(("--root", "/a b"), "/x").finding, found))) == mended


@pytest.mark.parametrize("fix", [APPLY, add_words("isolcpus=managed_irq,domain,2-3")])
def test_an_argument_that_is_on_the_list_already_is_not_decided_again(fix: Fix) -> None:
    moved = in_turn(KEPT_OFF, to_type(kinds.move_interrupt(42, "0")))
    found = [
        drifted("check.device_interrupts", moved, "3"),
        drifted("irq.affinity", KEPT_OFF, "36", outcome=Outcome.REFUSED),
        drifted("boot.isolcpus", fix, points=POINTS)._replace(desired="managed_irq,domain,2-3"),
    ]
    alone = words(found[2:])
    assert words(found) == [*alone, "sudo tunectl preflight"]
    *_, reboot, _look = actions_of(found)
    assert set(reboot["mends"]) == {"check.device_interrupts[3]", "irq.affinity[36]", "boot.isolcpus"}


@pytest.mark.parametrize("asked", [{"desired": "domain,2-3"}, {"outcome": Outcome.COMPLIANT}])
def test_one_that_is_not_asked_for_is_decided_once(asked: dict[str, Any]) -> None:
    found = [
        drifted("check.device_interrupts", KEPT_OFF, "3"),
        drifted("irq.affinity", KEPT_OFF, "36", outcome=Outcome.REFUSED),
        drifted("boot.isolcpus", points=POINTS)._replace(**asked),
    ]
    assert words(found).count(str(KEPT_OFF)) == 1


def test_the_schema_takes_it() -> None:
    from jsonschema import Draft202012Validator

    made = actions_of([drifted("mm.swap"), drifted("mm.ksm", to_decide("decide")), drifted("boot.tsc", points=POINTS)])
    schema = Draft202012Validator({**SCHEMA["properties"]["actions"], "$defs": SCHEMA["$defs"]})
    schema.validate(made)
    assert not schema.is_valid([{"mends": ["x"], "reboot": False}])
