"""What a review by hand found wrong once, each as a test."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LOW_LATENCY, write_host_file
from tests.fake_kernel import KernelRoot, Manners
from tests.trees import differences, picture
from tests.tuned import apply, inspection_on, restore, results
from tests.tuning.calls import on, watched
from tunectl.errors import TunectlError
from tunectl.host.writable import WritableSysroot
from tunectl.knobs.row import Step
from tunectl.model import Finding, Outcome
from tunectl.tuning import restore as backwards
from tunectl.tuning.apply import before_image
from tunectl.tuning.journal import Journal
from tunectl.tuning.transaction import require_private, run_apply

CPUFREQ = "sys/devices/system/cpu/cpufreq"


def judged(root: WritableSysroot, target: str) -> Finding:
    (finding,) = [one for one in inspection_on(root).assess().findings if one.target == target]
    return finding


def test_a_linked_file_stays_a_link_and_keeps_its_mode(lab4: Path) -> None:
    (lab4 / "opt").mkdir()
    os.rename(lab4 / "etc/default/irqbalance", lab4 / "opt/irqbalance")
    (lab4 / "opt/irqbalance").chmod(0o640)
    os.symlink("../../opt/irqbalance", lab4 / "etc/default/irqbalance")
    before = picture(lab4)
    root = WritableSysroot(str(lab4))
    apply(root)
    assert (lab4 / "etc/default/irqbalance").is_symlink()
    assert (lab4 / "opt/irqbalance").stat().st_mode & 0o777 == 0o640
    assert "IRQBALANCE_BANNED_CPULIST=2-3" in (lab4 / "opt/irqbalance").read_text()
    restore(root)
    assert not differences(before, lab4)


def test_two_cpus_of_one_policy_keep_the_original(lab4: Path) -> None:
    link = lab4 / "sys/devices/system/cpu/cpu3/cpufreq"
    link.unlink()
    os.symlink("../cpufreq/policy2", link)
    before = picture(lab4)
    root = WritableSysroot(str(lab4))
    apply(root)
    write_host_file(lab4, LOW_LATENCY + '[knobs]\n"cpufreq.governor" = "powersave"\n')
    apply(root)
    assert (lab4 / CPUFREQ / "policy2/scaling_governor").read_text() == "powersave\n"
    restore(root)
    write_host_file(lab4, LOW_LATENCY)
    assert not differences(before, lab4)


def test_two_cpus_of_one_policy_share_a_failure(lab4: Path) -> None:
    link = lab4 / "sys/devices/system/cpu/cpu3/cpufreq"
    link.unlink()
    os.symlink("../cpufreq/policy2", link)
    root = KernelRoot(lab4, Manners(errors={f"{CPUFREQ}/policy2/scaling_governor": errno.EINVAL}))
    made = results(apply(root))
    assert (made["cpufreq.governor[2]"], made["cpufreq.governor[3]"]) == ("failed", "failed")


def test_an_edit_between_two_applies_is_what_comes_back(lab4: Path) -> None:
    root = WritableSysroot(str(lab4))
    apply(root)
    (lab4 / "etc/default/irqbalance").write_text("# mine\nIRQBALANCE_ARGS=--debug\n")
    apply(root)
    restore(root)
    assert (lab4 / "etc/default/irqbalance").read_text() == "# mine\nIRQBALANCE_ARGS=--debug\n"


def test_an_unmovable_interrupt_without_further_evidence_is_harmful(lab4: Path) -> None:
    irq = lab4 / "proc/irq/77"
    irq.mkdir()
    (irq / "smp_affinity_list").write_text("0-3\n")
    (irq / "effective_affinity_list").write_text("2\n")
    (irq / "smp_affinity_list").chmod(0o444)
    finding = judged(WritableSysroot(str(lab4)), "irq.affinity[77]")
    assert (finding.outcome, finding.harmful) == (Outcome.REFUSED, True)


def test_a_value_the_kernel_does_not_offer_fails_the_gate(lab4: Path) -> None:
    write_host_file(lab4, LOW_LATENCY + '[knobs]\n"cpufreq.governor" = "perfomance"\n')
    finding = judged(WritableSysroot(str(lab4)), "cpufreq.governor[2]")
    assert finding.outcome is Outcome.DRIFTED
    assert finding.reason.startswith("this kernel offers only ")
    assert not [
        one for one in inspection_on(WritableSysroot(str(lab4))).assess().changes if one.knob == "cpufreq.governor"
    ]


def test_the_service_is_outdated_when_the_host_file_is_another(lab4: Path) -> None:
    root = WritableSysroot(str(lab4))
    first = inspection_on(root)
    run_apply(
        first._replace(invocation=("/usr/bin/tunectl", "--host", "/a 100%.toml")),
        root,
        f"{lab4}/var/lib/tunectl",
        runtime_only=False,
        wait_s=0,
    )
    unit = (lab4 / "etc/systemd/system/tunectl-apply.service").read_text()
    assert 'ExecStart=/usr/bin/tunectl --host "/a 100%%.toml" apply --yes --runtime' in unit
    assert judged(root, "systemd.apply_at_boot").observed == "outdated"


def test_boot_arguments_nobody_wants_any_more_are_found_and_removed(lab4: Path) -> None:
    root = WritableSysroot(str(lab4))
    apply(root)
    write_host_file(lab4, LOW_LATENCY.replace("low-", "balanced-"))
    assert judged(root, "boot.isolcpus").outcome is Outcome.DRIFTED
    assert results(apply(root))["boot.isolcpus"] == "changed"
    assert not (lab4 / "etc/default/grub.d/99-tunectl.cfg").exists()
    write_host_file(lab4, LOW_LATENCY + '[knobs]\n"boot.tsc" = "unmanaged"\n')
    apply(root)
    assert "tsc=" not in (lab4 / "etc/default/grub.d/99-tunectl.cfg").read_text()


def test_an_explicit_clock_limit_is_a_limit(lab4: Path) -> None:
    write_host_file(lab4, LOW_LATENCY + '[knobs]\n"cpufreq.max_khz" = 2400000\n')
    assert judged(WritableSysroot(str(lab4)), "cpufreq.max_khz[2]").outcome is Outcome.DRIFTED


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("boot.tsc", "tsc=reliable tsc=nowatchdog"),
        ("boot.rcu_nocbs", "rcu_nocbs=2 nohz_full=2-3"),
        ("boot.isolcpus", "isolcpus=domain,managed_irq,2,3 isolcpus=domain,1"),
    ],
)
def test_arguments_in_force_are_not_called_broken(host_root, tmp_path: Path, target: str, line: str) -> None:  # type: ignore[no-untyped-def]
    tree = host_root.fresh("lab4", tmp_path, tuned_boot=frozenset({2, 3}))
    write_host_file(tree, LOW_LATENCY)
    cmdline = tree / "proc/cmdline"
    cmdline.chmod(0o644)
    key = target.removeprefix("boot.")
    rest = [word for word in cmdline.read_text().split() if not word.startswith((f"{key}=", "nohz_full="))]
    more = "" if "nohz_full" in line else " nohz_full=2-3"
    cmdline.write_text(" ".join(rest) + f" {line}{more}\n")
    assert judged(WritableSysroot(str(tree)), target).outcome is Outcome.COMPLIANT


def test_cpus_that_are_not_there_are_nobodys(lab4: Path) -> None:
    (lab4 / "sys/devices/system/cpu/possible").write_text("0-127\n")
    (lab4 / "proc/irq/default_smp_affinity").write_text("ffffffff,ffffffff,ffffffff,fffffff3\n")
    assert judged(WritableSysroot(str(lab4)), "irq.default_affinity").outcome is Outcome.COMPLIANT


def test_smt_that_is_not_there_is_off(lab4: Path) -> None:
    write_host_file(lab4, LOW_LATENCY + '[knobs]\n"smt.control" = "off"\n')
    assert judged(WritableSysroot(str(lab4)), "smt.control").outcome is Outcome.COMPLIANT


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_a_restored_file_has_its_earlier_mode(lab4: Path, mode: int) -> None:
    """Also where somebody else changed the mode of what we wrote, and where we had removed the file."""
    (lab4 / "etc/default/irqbalance").chmod(mode)
    before = picture(lab4)
    root = WritableSysroot(str(lab4))
    apply(root)
    assert (lab4 / "etc/default/irqbalance").stat().st_mode & 0o7777 == mode
    (lab4 / "etc/default/irqbalance").chmod(0o666)
    restore(root)
    assert not differences(before, lab4)


def test_a_removed_file_comes_back_with_its_mode(lab4: Path) -> None:
    root = WritableSysroot(str(lab4))
    (lab4 / "etc/extra").write_text("text\n")
    (lab4 / "etc/extra").chmod(0o640)
    before = picture(lab4)
    journal = Journal(str(lab4))
    journal.before(before_image(root, Step("removal", "etc/extra", "", ()), "boot"))
    root.remove("etc/extra")
    outcome = backwards.restore(root, journal, "boot")
    journal.remove()
    assert [one.result for one in outcome.results] == ["restored"]
    assert not differences(before, lab4)


def test_a_file_whose_mode_cannot_be_read_is_not_touched(lab4: Path) -> None:
    (lab4 / "etc/extra").write_text("text\n")

    def fail(name: str, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        if on("lstat", "etc/extra")(name, args):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with watched(fail), pytest.raises(OSError, match="Input/output"):
        before_image(WritableSysroot(str(lab4)), Step("removal", "etc/extra", "", ()), "boot")


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o640])
@pytest.mark.parametrize("name", ["", "journal.jsonl"])
def test_a_journal_that_only_its_owner_writes_is_obeyed(tmp_path: Path, name: str, mode: int) -> None:
    require_private(*state_with(tmp_path, name, mode))


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o602, 0o620])
@pytest.mark.parametrize("name", ["", "journal.jsonl"])
def test_a_journal_that_others_may_write_is_not_obeyed(tmp_path: Path, name: str, mode: int) -> None:
    with pytest.raises(TunectlError, match=rf"{name or 'state'} can be written by others than root: it is not"):
        require_private(*state_with(tmp_path, name, mode))


@pytest.mark.parametrize("name", ["", "journal.jsonl"])
def test_a_journal_of_another_owner_is_not_obeyed(tmp_path: Path, name: str) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file away")
    root, state = state_with(tmp_path, name, 0o600)
    os.chown(os.path.join(state, name), 1, -1)
    with pytest.raises(TunectlError, match="can be written by others than root"):
        require_private(root, state)


@pytest.mark.parametrize("name", ["", "journal.jsonl"])
def test_a_link_to_a_journal_is_not_obeyed_where_another_made_it(tmp_path: Path, name: str) -> None:
    """lstat(2): whoever owns the link decides what is read."""
    root, state = state_with(tmp_path, "journal.jsonl", 0o600)
    link = tmp_path / "link"
    link.symlink_to(os.path.join(state, name))
    assert os.lstat(link).st_mode & 0o022
    with pytest.raises(TunectlError, match="can be written by others than root"):
        require_private(root, str(link))


def test_a_journal_that_is_not_there_yet_is_nobodys(tmp_path: Path) -> None:
    root, state = state_with(tmp_path, "journal.jsonl", 0o600)
    os.unlink(f"{state}/journal.jsonl")
    require_private(root, state)
    require_private(root, f"{tmp_path}/none")


def state_with(tmp_path: Path, name: str, mode: int) -> tuple[WritableSysroot, str]:
    """The running host, and a state directory in which one thing has this mode, the other is private."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "journal.jsonl").touch(0o600)
    (state / name).chmod(mode)
    return WritableSysroot("/"), str(state)
