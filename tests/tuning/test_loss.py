"""What was in force and is gone: a knob that a boot has not any more, and the journal itself."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import as_nobody
from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import HostFactory
from tests.journals import rewrite
from tests.ran import Ran
from tests.trees import write
from tests.tuned import apply, inspection_on, judged, restore, state_of
from tunectl.errors import TunectlError
from tunectl.host.modprobe import parse_modprobe
from tunectl.host.refusals import AS_ROOT
from tunectl.host.writable import WritableSysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.row import Facts
from tunectl.model import Finding, Held, Outcome, Reading, State
from tunectl.tuning.journal import Journal, load
from tunectl.tuning.loss import judge_absent
from tunectl.verdict import verdict_of

Tunectl = Callable[..., Ran]
CPU = "sys/devices/system/cpu"
BOOT_ID = "proc/sys/kernel/random/boot_id"


@pytest.fixture(scope="module")
def applied(host_root: HostFactory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host that was applied, and then booted again: its files stand, its journal has another boot's id."""
    root = host_root.fresh("lab4", tmp_path_factory.mktemp("applied"))
    write_host_file(root, f'{LOW_LATENCY}[network]\ninterfaces = ["eth0"]\n')
    apply(root)
    (root / BOOT_ID).write_text("11111111-0000-4000-8000-000000000001\n")
    return root


@pytest.fixture
def host(applied: Path, tmp_path: Path) -> Path:
    """Such a host of one's own."""
    subprocess.run(["cp", "-a", applied, tmp_path / "applied"], check=True)
    return tmp_path / "applied"


def findings(host: Path, knob: str) -> list[Finding]:
    return [one for one in judged(host, knob).values() if one.knob == knob]


def boots_with(host: Path, *words: str) -> None:
    line = (host / "proc/cmdline").read_text().rstrip()
    (host / "proc/cmdline").write_text(" ".join([line, *words]) + "\n")


def takes_cpufreq_away(host: Path) -> None:
    for path in (host / CPU).glob("cpu[0-9]*/cpufreq"):
        shutil.rmtree(path) if not path.is_symlink() else path.unlink()
    if (host / CPU / "cpufreq").exists():
        shutil.rmtree(host / CPU / "cpufreq")


def journal_of(host: Path) -> Journal:
    return load(state_of(WritableSysroot(str(host))))


BARRED = "etc/modprobe.d/power.conf"


@pytest.mark.parametrize(
    ("words", "lines", "causes"),
    [
        *(((word,), "", [word]) for word in (
            "cpufreq.off=1",
            "cpufreq.off",
            "modprobe.blacklist=floppy,acpi-cpufreq",
            "module_blacklist=acpi_cpufreq",
            "initcall_blacklist=acpi_cpufreq_init",
            "intel_pstate=disable",
            "amd_pstate=disable",
        )),
        ((), "blacklist acpi_cpufreq\nblacklist pcc_cpufreq\n", [f"/{BARRED}:1", f"/{BARRED}:2"]),
        # What switches all of it off comes before a driver, and a driver before its choice.
        (("intel_pstate=disable",), "blacklist acpi_cpufreq\n", [f"/{BARRED}:1"]),
        (("intel_pstate=disable", "cpufreq.off=1"), "blacklist acpi_cpufreq\n", ["cpufreq.off=1"]),
        # Other modules are no cause.
        *((("modprobe.blacklist=floppy",), text, []) for text in (
            "blacklist floppy\n", "# blacklist acpi_cpufreq\n", "options acpi_cpufreq x=1\n"
        )),
    ],
)  # fmt: skip
def test_a_governor_that_is_gone_is_drift_with_the_cause_named(
    host: Path, words: tuple[str, ...], lines: str, causes: list[str]
) -> None:
    takes_cpufreq_away(host)
    write(host, BARRED, lines)
    boots_with(host, *words)
    (found,) = findings(host, "cpufreq.governor")
    assert (found.outcome, found.observed, found.desired) == (Outcome.DRIFTED, None, "performance")
    candidates = (*words, f"/{BARRED}:1", f"/{BARRED}:2")
    assert [one for one in candidates if f"{one} says" in found.reason or f"argument {one}," in found.reason] == causes
    assert [one for one in words if f"take {one} out" in str(found.fix)] == [one for one in words if one in causes]


@pytest.mark.parametrize(
    "line",
    [
        "blacklist acpi_cpufreq",
        "blacklist acpi-cpufreq",
        "install acpi_cpufreq /bin/false",
        "install acpi-* /bin/true",
        "alias acpi_cpufreq off",
    ],
)
def test_a_driver_that_modprobe_keeps_away_comes_back_by_what_its_fix_types(host: Path, line: str) -> None:
    takes_cpufreq_away(host)
    write(host, BARRED, f"# quiet\n{line}\n")
    (found,) = findings(host, "cpufreq.governor")
    assert found.outcome is Outcome.DRIFTED
    sed, modprobe, last = (step.words for command in found.fix.commands for step in command.steps)
    assert (modprobe, last) == (("sudo", "modprobe", "acpi_cpufreq"), ("sudo", "tunectl", "apply"))
    subprocess.run([*sed[1:-1], str(host) + sed[-1]], check=True)
    assert (host / BARRED).read_text() == "# quiet\n"


def test_another_driver_that_does_it_has_lost_nothing(host: Path) -> None:
    write(host, BARRED, "blacklist acpi_cpufreq\n")
    boots_with(host, "intel_pstate=disable", "modprobe.blacklist=acpi_cpufreq")
    assert {one.outcome for one in findings(host, "cpufreq.governor")} == {"compliant"}


def test_a_driver_that_is_loaded_all_the_same_is_no_cause_and_lines_that_may_not_be_read_are_said() -> None:
    knob = KNOBS["cpufreq.governor"]
    held = Held("performance", "2026-11-01T08:00:00Z", "6.1", frozenset({0}), ())
    facts = Facts(held={knob.name: held}, barred=tuple(parse_modprobe("blacklist acpi_cpufreq\n", BARRED)))
    gone = Reading(knob.name, "", State.ABSENT, reason="gone")
    assert BARRED in judge_absent(knob, gone, "performance", facts).reason
    loaded = facts._replace(modules=frozenset({"acpi_cpufreq", "virtio"}), unseen="/etc/modprobe.d: Permission denied")
    reason = judge_absent(knob, gone, "performance", loaded).reason
    assert (BARRED in reason, loaded.unseen in reason) == (False, True)


def test_a_loss_is_known_after_every_later_apply_until_it_is_mended_or_no_longer_asked_for(host: Path) -> None:
    first = journal_of(host).in_force()["cpufreq.governor"]
    takes_cpufreq_away(host)
    for number in (2, 3):
        (host / BOOT_ID).write_text(f"11111111-0000-4000-8000-00000000000{number}\n")
        (host / "proc/sys/vm/swappiness").write_text("60\n")  # so that there is something to write
        run = apply(host, runtime_only=True)
        assert run.applied.results
        assert [one.outcome for one in run.plan.findings if one.knob == "cpufreq.governor"] == ["drifted"]
        assert journal_of(host).in_force()["cpufreq.governor"] == first
    write_host_file(host, f'{LOW_LATENCY}[network]\ninterfaces = ["eth0"]\n[knobs]\n"cpufreq.governor" = "unmanaged"\n')
    assert findings(host, "cpufreq.governor") == []
    (host / "proc/sys/vm/swappiness").write_text("60\n")
    apply(host)
    assert "cpufreq.governor" not in journal_of(host).in_force()


def test_another_kernel_is_named(host: Path) -> None:
    takes_cpufreq_away(host)
    before = (host / "proc/sys/kernel/osrelease").read_text().strip()
    (host / "proc/sys/kernel/osrelease").write_text("6.12.9-rt\n")
    (found,) = findings(host, "cpufreq.governor")
    assert f"the kernel was {before} then, and is 6.12.9-rt now" in found.reason


def test_one_cpu_and_one_interface_that_are_lost_are_named_alone(host: Path) -> None:
    (host / CPU / "cpu2/cpufreq/scaling_governor").unlink()
    drifted = {one.target for one in findings(host, "cpufreq.governor") if one.outcome is Outcome.DRIFTED}
    assert drifted == {"cpufreq.governor[2]"}
    assert {one.outcome for one in findings(host, "net.rps_cpus")} == {Outcome.COMPLIANT}
    shutil.rmtree(host / "sys/class/net/eth0", ignore_errors=True)
    if (host / "sys/class/net/eth0").is_symlink():
        (host / "sys/class/net/eth0").unlink()
    (found,) = findings(host, "net.rps_cpus")
    assert (found.instance, found.outcome) == ("eth0", Outcome.DRIFTED)


# --- the nearest innocent hosts


def test_what_was_never_in_force_is_unsupported_as_before(lab4: Path) -> None:
    write_host_file(lab4, LOW_LATENCY)
    takes_cpufreq_away(lab4)
    apply(lab4)
    boots_with(lab4, "cpufreq.off=1")
    assert [one.outcome for one in findings(lab4, "cpufreq.governor")] == ["unsupported"]


def test_a_boot_that_has_everything_has_lost_nothing(host: Path) -> None:
    plan = inspection_on(host).assess()
    assert not [one for one in plan.findings if "had it in force" in one.reason]
    boots_with(host, "cpufreq.off=0", "quiet")
    assert {one.outcome for one in findings(host, "cpufreq.governor")} == {"compliant"}


def test_where_absence_fulfils_the_wish_nothing_is_lost_and_that_is_said(host: Path) -> None:
    for path in (host / CPU).glob("cpu[0-9]*/cpuidle"):
        shutil.rmtree(path)
    (host / "sys/kernel/mm/ksm/run").unlink()
    for knob in ("cpuidle.max_latency_us", "mm.ksm"):
        (found,) = findings(host, knob)
        assert found.outcome is Outcome.UNSUPPORTED
        assert "nothing is lost" in found.reason


def test_interfaces_that_the_host_file_no_longer_names_are_not_lost(host: Path) -> None:
    write_host_file(host, LOW_LATENCY)
    assert [one.outcome for one in findings(host, "net.rps_cpus")] == ["unsupported"]


def test_a_waiver_covers_a_loss(host: Path) -> None:
    takes_cpufreq_away(host)
    text = (host / "etc/tunectl/host.toml").read_text()
    waiver = '[[waivers]]\nknob = "cpufreq.governor"\nreason = "fixed clock"\nuntil = 2027-01-31\n'
    write_host_file(host, text + waiver)
    assert [one.outcome for one in findings(host, "cpufreq.governor")] == ["waived"]


def test_after_restore_nothing_is_missed(host: Path) -> None:
    restore(host)
    takes_cpufreq_away(host)
    assert [one.outcome for one in findings(host, "cpufreq.governor")] == ["unsupported"]


def test_after_a_partial_restore_what_was_restored_is_nobodys_wish(lab4: Path) -> None:
    write_host_file(lab4, LOW_LATENCY)
    apply(lab4)
    assert {"cpufreq.governor", "mm.swappiness"} <= set(journal_of(lab4).in_force())
    (lab4 / "proc/sys/vm/swappiness").write_text("33\n")
    undone = restore(lab4)
    assert [one.path for one in undone.outcome.results if one.result == "changed-since"] == ["/proc/sys/vm/swappiness"]
    assert (journal_of(lab4).held, set(journal_of(lab4).in_force())) == (None, {"mm.swappiness"})
    takes_cpufreq_away(lab4)
    assert [one.outcome for one in findings(lab4, "cpufreq.governor")] == ["unsupported"]


def test_of_an_interrupt_that_was_moved_since_it_is_said_who_moves_them(lab4: Path) -> None:
    write_host_file(lab4, LOW_LATENCY)
    apply(lab4)
    (lab4 / "proc/irq/24/smp_affinity_list").write_text("1\n")
    (left,) = [one for one in restore(lab4).outcome.results if one.result == "changed-since"]
    assert left.message.endswith("irqbalance, where it runs, and the card's driver move interrupts; left alone")


def test_a_journal_of_an_earlier_version_knows_what_it_wrote(lab4: Path) -> None:
    write_host_file(lab4, LOW_LATENCY)
    apply(lab4)
    path = lab4 / "var/lib/tunectl/journal.jsonl"
    rewrite(path, lambda one: one["type"] != "held")
    takes_cpufreq_away(lab4)
    (lab4 / BOOT_ID).write_text("11111111-0000-4000-8000-000000000001\n")
    assert [one.outcome for one in findings(lab4, "cpufreq.governor")] == ["drifted"]
    (lab4 / "proc/sys/vm/swappiness").write_text("60\n")
    apply(lab4, runtime_only=True)
    assert [one.outcome for one in findings(lab4, "cpufreq.governor")] == ["drifted"]


# --- the journal itself


def loses_its_journal(host: Path) -> None:
    (host / "var/lib/tunectl/journal.jsonl").unlink()
    (host / "var/lib/tunectl").mkdir(exist_ok=True)


def test_a_journal_that_is_gone_is_the_first_finding_and_apply_takes_nothing_for_the_original(host: Path) -> None:
    loses_its_journal(host)
    plan = inspection_on(host).assess()
    first = plan.findings[0]
    assert (first.target, first.outcome, first.observed) == ("journal", Outcome.DRIFTED, "gone")
    assert "tunectl applied here before (" in first.reason
    assert str(first.fix).endswith("sudo tunectl apply --adopt")
    assert "--state" in str(first.fix)  # the earlier apply may have had another directory
    assert verdict_of(plan.findings) == "drifted"
    (host / "proc/sys/vm/swappiness").write_text("60\n")
    with pytest.raises(TunectlError, match="nothing was changed"):
        apply(host)
    assert (host / "proc/sys/vm/swappiness").read_text() == "60\n"
    assert not (host / "var/lib/tunectl/journal.jsonl").exists()


def puts_an_older_journal_back(host: Path) -> None:
    """All before the first write that udev's rule needed."""
    journal = host / "var/lib/tunectl/journal.jsonl"
    journal.write_text(journal.read_text().partition("95-tunectl.rules")[0].rpartition("\n")[0] + "\n")


def cuts_a_line_out_of_its_journal(host: Path) -> None:
    journal = host / "var/lib/tunectl/journal.jsonl"
    first, _, *others = journal.read_text().splitlines(keepends=True)
    journal.write_text(first + "".join(others))


@pytest.mark.parametrize(
    ("lose", "state"),
    [
        (loses_its_journal, "is gone"),
        (puts_an_older_journal_back, "is not whole"),
        (cuts_a_line_out_of_its_journal, "is not whole"),
    ],
)
def test_without_a_whole_journal_nobody_knows_which_interrupt_the_kernel_manages(
    host: Path, lose: Callable[[Path], None], state: str
) -> None:
    irq = next(path for path in (host / "proc/irq").iterdir() if (path / "effective_affinity_list").exists())
    (irq / "effective_affinity_list").write_text("2\n")
    (irq / "smp_affinity_list").write_text("2\n")
    assert "drifted" in {one.outcome for one in findings(host, "irq.affinity")}
    lose(host)
    assert [one.outcome for one in findings(host, "journal")] == ["drifted"]
    found = [one for one in findings(host, "irq.affinity") if one.instance == irq.name]
    assert [one.outcome for one in found] == ["unreadable"]
    assert f"the journal {state}" in found[0].reason


@pytest.mark.parametrize("isolcpus", ["managed", "unmanaged"])
@pytest.mark.parametrize(
    ("booted", "outcome"),
    [
        ("managed_irq,2-3", "unreadable"),
        ("domain,2-3", "drifted"),
        ("managed_irq,2", "drifted"),
        ("managed_irq,2-x", "drifted"),
    ],
)
def test_what_managed_irq_keeps_off_is_known_whoever_set_it(
    lab4: Path, isolcpus: str, booted: str, outcome: str
) -> None:
    left_alone = '[knobs]\n"boot.isolcpus" = "unmanaged"\n' if isolcpus == "unmanaged" else ""
    write_host_file(lab4, LOW_LATENCY + left_alone)
    boots_with(lab4, f"isolcpus={booted}")
    irq = next(path for path in (lab4 / "proc/irq").iterdir() if (path / "effective_affinity_list").exists())
    (irq / "effective_affinity_list").write_text("0\n")
    (irq / "smp_affinity_list").write_text("0-3\n")
    assert [one.outcome for one in findings(lab4, "irq.affinity") if one.instance == irq.name] == [outcome]


def test_a_host_on_which_apply_never_ran_or_everything_was_restored_misses_no_journal(lab4: Path) -> None:
    write_host_file(lab4, LOW_LATENCY)
    (lab4 / "var/lib/tunectl").mkdir(parents=True, exist_ok=True)
    assert inspection_on(lab4).journal_gone() is None
    apply(lab4)
    assert inspection_on(lab4).journal_gone() is None
    restore(lab4)
    (lab4 / "var/lib/tunectl").mkdir(parents=True, exist_ok=True)
    assert inspection_on(lab4).journal_gone() is None


def test_a_recording_of_a_tuned_host_holds_no_journal_and_misses_none(host: Path) -> None:
    shutil.rmtree(host / "var/lib/tunectl")
    write(host, "tunectl-recording.json", "{}\n")  # `tunectl snapshot` leaves its mark
    assert inspection_on(host).journal_gone() is None


def empties_its_journal(host: Path) -> None:
    (host / "var/lib/tunectl/journal.jsonl").write_bytes(b"")


def test_a_restore_where_nothing_of_ours_stands_has_nothing_to_say(lab4: Path, tunectl: Tunectl) -> None:
    write_host_file(lab4, LOW_LATENCY)
    assert tunectl("restore", "--root", lab4).code == 0
    (lab4 / "var/lib/tunectl").mkdir(parents=True)
    empties_its_journal(lab4)
    assert tunectl("restore", "--root", lab4).code == 0


def test_after_a_cut_off_line_a_file_that_somebody_changed_since_is_known_and_not_lost(host: Path) -> None:
    with (host / "etc/systemd/system/tunectl-reapply@.service").open("a") as file:
        file.write("# mine\n")
    with (host / "var/lib/tunectl/journal.jsonl").open("ab") as file:
        file.write(b"0badcafe {")
    undone = restore(host)
    assert undone.complete
    assert [one.result for one in undone.outcome.results if one.path.endswith("reapply@.service")] == ["changed-since"]
    assert not [note for note in undone.notes if "still stand" in note]


# --- a journal that this user may not read


@pytest.fixture
def hidden(host_root: HostFactory, public: Path) -> Path:
    """A host that was applied, has lost cpufreq since, and shows its state directory to root alone."""
    root = host_root.fresh("lab4", public, tuned_boot=frozenset({2, 3}))
    write_host_file(root, LOW_LATENCY)
    apply(root)
    takes_cpufreq_away(root)
    (root / "var/lib/tunectl").chmod(0o700)
    return root


def test_who_may_not_read_the_journal_is_told_that_losses_are_not_known(hidden: Path) -> None:
    ran = as_nobody("verify", "--root", hidden, "--format", "json")
    found = {one["target"]: one for one in ran.json["findings"]}
    first = ran.json["findings"][0]
    path = f"{hidden}/var/lib/tunectl/journal.jsonl"
    assert (first["target"], first["outcome"], first["fix"]) == ("journal", "unreadable", str(AS_ROOT))
    assert first["reason"].startswith(f"cannot read {path}: Permission denied")
    lost = found["cpufreq.governor"]
    assert (lost["outcome"], lost["fix"]) == ("unreadable", str(AS_ROOT))
    assert "whether tunectl had it in force is not known" in lost["reason"]
    assert as_nobody("verify", "--strict", "--root", hidden).code == 1
    assert {one.outcome for one in findings(hidden, "cpufreq.governor")} == {Outcome.DRIFTED}  # root knows


def test_whose_absence_would_be_no_loss_stays_unsupported_for_everybody(hidden: Path) -> None:
    (hidden / "sys/kernel/mm/ksm/run").unlink()
    ran = as_nobody("verify", "--root", hidden, "--format", "json")
    assert {one["outcome"] for one in ran.json["findings"] if one["knob"] == "mm.ksm"} == {"unsupported"}
    (hidden / "var/lib/tunectl").chmod(0o755)
    ran = as_nobody("verify", "--root", hidden, "--format", "json")
    assert {one["outcome"] for one in ran.json["findings"] if one["knob"] == "cpufreq.governor"} == {"drifted"}
    assert "journal" not in {one["knob"] for one in ran.json["findings"]}


def test_without_the_journal_nobody_is_told_that_a_managed_interrupt_is_broken(hidden: Path) -> None:
    irq = next(path for path in (hidden / "proc/irq").iterdir() if (path / "effective_affinity_list").exists())
    (irq / "effective_affinity_list").write_text("2\n")
    (irq / "smp_affinity_list").write_text("2\n")
    ran = as_nobody("verify", "--root", hidden, "--format", "json")
    (found,) = [one for one in ran.json["findings"] if one["target"] == f"irq.affinity[{irq.name}]"]
    assert found["outcome"] == "unreadable"
    assert "the journal cannot be read" in found["reason"]


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_apply_makes_a_journal_that_everybody_may_read_whatever_the_umask(lab4: Path, umask: int) -> None:
    write_host_file(lab4, LOW_LATENCY)
    before = os.umask(umask)
    try:
        apply(lab4)
    finally:
        os.umask(before)
    state = lab4 / "var/lib/tunectl"
    assert stat.S_IMODE(state.stat().st_mode) == 0o755
    assert stat.S_IMODE((state / "journal.jsonl").stat().st_mode) == 0o644
