"""plan, apply, verify, restore on a recorded host, and under a kernel that refuses and clamps."""

import errno
import threading
from pathlib import Path

import pytest

from tests.fake_kernel import KernelRoot, Manners
from tests.hosts.builder import HostFactory
from tests.journals import records_of, rewrite
from tests.trees import differences, picture
from tests.tuned import apply, inspection_on, restore, results
from tests.tuning.hosts import small_host
from tunectl.errors import TunectlError
from tunectl.host.writable import WritableSysroot
from tunectl.model import Outcome
from tunectl.tuning.journal import load
from tunectl.tuning.transaction import run_apply


@pytest.mark.parametrize("number", [errno.EIO, errno.EPERM])
def test_a_managed_interrupt_is_refused_and_is_no_failure(lab4: Path, number: int) -> None:
    tree = WritableSysroot(str(lab4))
    changes = inspection_on(tree).assess().changes
    managed = [one for one in changes if one.knob == "irq.affinity" and one.observed in ("2", "3")]
    assert managed
    victim = managed[0].instance
    root = KernelRoot(lab4, Manners(frozenset({victim}), number))
    run = apply(root)
    assert results(run)[f"irq.affinity[{victim}]"] == "refused"
    (finding,) = [one for one in run.plan.findings if one.target == f"irq.affinity[{victim}]"]
    assert finding.outcome is Outcome.REFUSED
    assert "manages interrupt" in finding.reason
    again = apply(root)
    assert again.applied.results == []  # known, and not tried again in this boot


def test_a_value_the_kernel_clamps_is_a_failure_that_says_so(lab4: Path) -> None:
    root = KernelRoot(lab4, Manners(clamp={"proc/sys/vm/swappiness": "7"}))
    run = apply(root)
    (failed,) = [one for one in run.applied.results if one.result == "failed"]
    assert failed.change.knob == "mm.swappiness"
    assert "wrote 1, and the kernel made it 7" in failed.message
    restore(WritableSysroot(str(lab4)))
    assert (lab4 / "proc/sys/vm/swappiness").read_text() == "60\n"


def test_a_knob_that_vanishes_between_plan_and_apply(lab4: Path) -> None:
    root = KernelRoot(lab4, Manners(errors={"sys/kernel/mm/ksm": errno.ENOENT, "proc/sys/kernel/numa": errno.ENODEV}))
    (lab4 / "sys/kernel/mm/ksm/run").write_text("1\n")
    run = apply(root)
    failed = [one for one in run.applied.results if one.result == "failed"]
    assert {one.change.knob for one in failed} <= {"mm.ksm", "mm.numa_balancing"}
    assert all(one.gone and "went away" in one.message for one in failed)


def test_a_read_only_sys_is_one_clear_line_and_nothing_is_lost(lab4: Path) -> None:
    tree = picture(lab4)
    root = KernelRoot(lab4, Manners(errors={"sys/": errno.EROFS}))
    with pytest.raises(TunectlError, match=r"cannot write .*/sys/.*: Read-only file system"):
        apply(root)
    assert restore(WritableSysroot(str(lab4))).complete
    assert not differences(tree, lab4)


def killed_after_writing(tree: Path, path: str) -> None:
    """apply, as if it had been killed once it had written this file: the record of what stands then is missing."""
    apply(tree)
    journal = tree / "var/lib/tunectl/journal.jsonl"
    before = records_of(journal)
    (number,) = [one["seq"] for one in before if one["type"] == "before" and one["path"] == path]
    rewrite(journal, lambda one: (one["type"], one.get("seq")) != ("after", number))
    assert len(records_of(journal)) == len(before) - 1


KILLED_AT = {
    "value": ("proc/sys/vm/swappiness", "33\n"),
    "file": ("etc/default/irqbalance", "IRQBALANCE_ARGS=--theirs\n"),
}


@pytest.mark.parametrize("kind", KILLED_AT)
def test_what_is_neither_ours_nor_the_earlier_after_a_kill_is_said(
    host_root: HostFactory, tmp_path: Path, kind: str
) -> None:
    """A file holds exactly what was written, so it is theirs; a kernel may show our value in a form of its own."""
    tree = small_host(host_root, tmp_path)
    before, (path, theirs) = picture(tree), KILLED_AT[kind]
    killed_after_writing(tree, path)
    (tree / path).write_text(theirs)
    undone = restore(tree)
    (said,) = [one for one in undone.outcome.results if one.message]
    assert (said.path, said.observed) == (f"/{path}", theirs)
    assert said.message.partition(" neither")[0].endswith("it holds")
    if kind == "value":
        assert (said.result, differences(before, tree)) == ("restored", {})
    else:
        assert (said.result, (tree / path).read_text()) == ("changed-since", theirs)
        assert restore(tree, force=True).complete
        assert not differences(before, tree)


@pytest.mark.parametrize("kind", KILLED_AT)
@pytest.mark.parametrize("stands", ["ours", "the earlier"])
def test_after_a_kill_ours_and_the_earlier_are_no_news(
    host_root: HostFactory, tmp_path: Path, kind: str, stands: str
) -> None:
    tree = small_host(host_root, tmp_path)
    before, (path, _) = picture(tree), KILLED_AT[kind]
    texts = {"the earlier": (tree / path).read_text()}
    killed_after_writing(tree, path)
    (tree / path).write_text(texts.get(stands, (tree / path).read_text()))
    undone = restore(tree)
    assert [one.message for one in undone.outcome.results if one.message] == []
    assert undone.complete
    assert not differences(before, tree)


def test_the_first_before_image_counts(lab4: Path) -> None:
    tree = picture(lab4)
    root = WritableSysroot(str(lab4))
    apply(root)
    (lab4 / "proc/sys/vm/swappiness").write_text("33\n")
    apply(root)
    assert restore(root).complete
    assert not differences(tree, lab4)


def test_runtime_only_leaves_the_boot_loader_alone(lab4: Path) -> None:
    run = apply(WritableSysroot(str(lab4)), runtime_only=True)
    assert not run.plan.reboot_required  # a reboot would put nothing in force
    assert not (lab4 / "etc/default/grub.d/99-tunectl.cfg").exists()
    assert not [one for one in run.applied.results if one.change.knob.startswith("boot.")]


def test_a_new_interrupt_during_apply_is_moved_in_a_second_pass(lab4: Path) -> None:
    class HotPlug(KernelRoot):
        def write_value(self, path: str, text: str) -> None:
            super().write_value(path, text)
            if path == "proc/irq/default_smp_affinity":
                new = lab4 / "proc/irq/99"
                new.mkdir()
                (new / "smp_affinity_list").write_text("3\n")
                (new / "effective_affinity_list").write_text("3\n")

    run = apply(HotPlug(lab4, Manners()))
    assert results(run)["irq.affinity[99]"] == "changed"


def test_what_comes_into_force_a_moment_later_is_no_drift(lab4: Path) -> None:
    late, whole = lab4 / "proc/sys/vm/swappiness", lab4 / "later"

    class Late(KernelRoot):
        def write_value(self, path: str, text: str) -> None:
            super().write_value(path, text)
            if path == "proc/sys/vm/stat_interval":
                whole.write_text(late.read_text())
                late.write_text("60\n")
                threading.Timer(0.15, whole.rename, (late,)).start()

    run = apply(Late(lab4, Manners()))
    assert results(run)["mm.swappiness"] == "changed"
    assert "mm.swappiness" not in {one.target for one in run.plan.findings if one.outcome is Outcome.DRIFTED}


def test_what_stays_out_of_force_is_drift(lab4: Path) -> None:
    class Stubborn(KernelRoot):
        def write_value(self, path: str, text: str) -> None:
            super().write_value(path, text)
            if path == "proc/sys/vm/stat_interval":
                (lab4 / "proc/sys/vm/swappiness").write_text("60\n")

    run = apply(Stubborn(lab4, Manners()))
    assert "mm.swappiness" in {one.target for one in run.plan.findings if one.outcome is Outcome.DRIFTED}


def test_the_ban_list_is_a_union(lab4: Path) -> None:
    (lab4 / "etc/default/irqbalance").write_text("# ours\nIRQBALANCE_BANNED_CPULIST=1\nIRQBALANCE_ARGS=\n")
    apply(WritableSysroot(str(lab4)))
    text = (lab4 / "etc/default/irqbalance").read_text()
    assert text == "# ours\nIRQBALANCE_BANNED_CPULIST=1-3\nIRQBALANCE_ARGS=\n"


def test_the_journal_of_another_run_is_read_under_the_lock(lab4: Path) -> None:
    root = WritableSysroot(str(lab4))
    stale = inspection_on(root)
    apply(root)
    run = run_apply(stale._replace(), root, f"{lab4}/var/lib/tunectl", runtime_only=False, wait_s=0)
    assert len(load(f"{lab4}/var/lib/tunectl").entries) == len(inspection_on(root).journal.entries)
    assert run.applied.results == []
