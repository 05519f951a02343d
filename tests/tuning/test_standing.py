"""What stands of an earlier apply though no journal names it: said by verify and by each restore, and kept."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_commands import valid
from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import build_named
from tests.ran import Ran
from tests.trees import differences, picture, write
from tests.tuned import apply, inspection_on, restore, state_of
from tunectl.errors import TunectlError
from tunectl.host.writable import WritableSysroot
from tunectl.tuning.evidence import lasting
from tunectl.tuning.journal import Journal
from tunectl.tuning.transaction import run_apply

Tunectl = Callable[..., Ran]
STATE = "var/lib/tunectl"
JOURNAL = f"{STATE}/journal.jsonl"


@pytest.fixture
def host(lab4: Path) -> Path:
    write_host_file(lab4, LOW_LATENCY)
    apply(lab4)
    return lab4


def drops_its_directory(host: Path) -> None:
    shutil.rmtree(host / STATE)


def leads_nowhere(host: Path) -> None:
    shutil.rmtree(host / STATE)
    (host / STATE).symlink_to("/nowhere")


def is_a_file(host: Path) -> None:
    shutil.rmtree(host / STATE)
    (host / STATE).write_text("")


def loses_its_journal(host: Path) -> None:
    (host / JOURNAL).unlink()


def empties_its_journal(host: Path) -> None:
    (host / JOURNAL).write_bytes(b"")


def keeps_half_a_line(host: Path) -> None:
    os.truncate(host / JOURNAL, 20)


LOSSES = (
    drops_its_directory,
    leads_nowhere,
    is_a_file,
    loses_its_journal,
    empties_its_journal,
    keeps_half_a_line,
)


@pytest.mark.slow
@pytest.mark.parametrize("lose", LOSSES)
def test_without_a_journal_a_tuned_host_is_no_new_one(
    host: Path, tunectl: Tunectl, lose: Callable[[Path], None]
) -> None:
    lose(host)
    before = picture(host)
    (first, *_) = tunectl("verify", "--root", host, "--format", "json").json["findings"]
    assert (first["target"], first["outcome"]) == ("journal", "drifted")
    for words in (["restore"], ["restore", "--dry-run"], ["restore", "--salvage"]):
        ran = tunectl(*words, "--root", host)
        assert (ran.code, ran.err) == (1, "")
        told = tunectl(*words, "--root", host, "--format", "json").json
        assert "/etc/systemd/system/tunectl-reapply@.service" in told["standing"]
        assert (told["results"], [path for path in told["standing"] if path not in ran.out]) == ([], [])
    assert not differences(before, host)


def test_without_a_journal_the_values_of_the_running_kernel_are_named_with_what_it_starts_with(
    host: Path, tunectl: Tunectl
) -> None:
    drops_its_directory(host)
    (host / "proc/sys/vm/swappiness").write_text("60\n")  # somebody put it back: that is not tunectl's any more
    ran = tunectl("restore", "--root", host, "--format", "json")
    valid("restore", ran.out)
    tuned = {one["target"]: (one["observed"], one["boots_with"]) for one in ran.json["may_be_tuned"]}
    assert tuned["kernel.stat_interval"] == (10, 1)
    assert tuned["kernel.sched_rt_runtime_us"] == (-1, 950000)
    assert tuned["mm.thp_enabled"] == ("never", None)  # that depends on how the kernel was built
    assert not {"mm.swappiness", "mm.ksm", "cpu.online[2]"} & tuned.keys()  # as every kernel starts with them
    assert ran.json["results"] == []
    (host / "etc/tunectl/host.toml").unlink()
    blind = tunectl("restore", "--root", host, "--format", "json").json
    assert (blind["may_be_tuned"], blind["standing"]) == ([], ran.json["standing"])


def test_without_a_journal_each_target_that_nobody_can_judge_has_its_reason(host: Path, tunectl: Tunectl) -> None:
    """An interrupt that is readable, but may be one that the kernel does not let go."""
    for name in ("smp_affinity_list", "effective_affinity_list"):
        write(host, f"proc/irq/28/{name}", "3\n")
    drops_its_directory(host)
    notes = tunectl("restore", "--root", host, "--format", "json").json["notes"]
    (said,) = [one for one in notes if one.startswith("whether tunectl set these is not known")]
    assert ": irq.affinity[28] (the journal is gone: whether the kernel manages interrupt 28 " in said


def test_a_host_that_was_never_applied_has_nothing_to_restore(lab4: Path, tunectl: Tunectl) -> None:
    write_host_file(lab4, LOW_LATENCY)
    shutil.rmtree(lab4 / STATE, ignore_errors=True)
    write(lab4, "etc/systemd/system/system.slice.d/zz-tunectl.conf", "[Slice]\nAllowedCPUs=0-1\n")  # nobody's mark
    assert tunectl("restore", "--root", lab4).code == 0
    assert inspection_on(lab4).journal_trouble() is None


def ours(host: Path, before: set[str]) -> set[str]:
    return {f"/{path}" for path in picture(host) if path.startswith("etc/") and path not in before}


@pytest.mark.slow
def test_after_a_cut_journal_all_that_stands_is_named_and_the_next_restore_says_so_again(
    lab4: Path, tunectl: Tunectl
) -> None:
    write_host_file(lab4, LOW_LATENCY)
    before = set(picture(lab4))
    apply(lab4)
    lines = (lab4 / JOURNAL).read_bytes().splitlines(keepends=True)
    cut = b"".join(lines[: len(lines) // 2])
    (lab4 / JOURNAL).write_bytes(cut)
    found = tunectl("verify", "--root", lab4, "--format", "json").json["findings"][0]
    assert (found["target"], found["observed"]) == ("journal", "older")
    ran = tunectl("restore", "--root", lab4, "--format", "json")
    assert ran.code == 1
    assert (lab4 / f"{JOURNAL}.damaged.1").read_bytes() == cut
    left = {path for path in ours(lab4, before) if (lab4 / path[1:]).is_file()}
    assert left
    assert left <= set(ran.json["standing"])
    tuned = {one["target"] for one in ran.json["may_be_tuned"]}
    assert "mm.thp_enabled" in tuned
    assert "systemd.apply_at_boot" not in tuned  # its file is named
    assert "values of the running kernel" in ran.json["standing"]
    assert not tuned & {name for one in ran.json["results"] for name in one["targets"]}
    again = tunectl("restore", "--root", lab4)
    assert again.code == 1
    assert all(path in again.out for path in left)
    # Put back, it says the same on the page, which has each path.
    os.rename(lab4 / f"{JOURNAL}.damaged.1", lab4 / JOURNAL)
    page = tunectl("restore", "--root", lab4)
    assert page.code == 1
    first, *_ = page.out.splitlines()
    assert f"{len(ran.json['standing'])} more things that tunectl wrote and the journal does not name" in first
    assert all(path in page.out for path in left)


def test_a_run_that_was_ended_leaves_nothing_that_its_journal_does_not_name(host: Path) -> None:
    """Its last line is missing, as after kill -9: the records of all writes are there."""
    lines = (host / JOURNAL).read_bytes().splitlines(keepends=True)
    (host / JOURNAL).write_bytes(b"".join(lines[:-1]))
    assert inspection_on(host).journal_trouble() is None
    undone = restore(host)
    assert (undone.complete, undone.standing) == (True, ())
    assert not (host / STATE).exists()


def widen(host: Path) -> None:
    write_host_file(host, f'{LOW_LATENCY}isolation = "both"\n')
    apply(host)


def test_a_journal_of_an_earlier_run_names_what_the_later_one_wrote(host: Path, tunectl: Tunectl) -> None:
    earlier = (host / JOURNAL).read_bytes()
    files = set(picture(host))
    widen(host)
    later = {path for path in ours(host, files) if (host / path[1:]).is_file()}
    assert later
    newest = (host / JOURNAL).read_bytes()
    (host / JOURNAL).write_bytes(earlier)
    (first, *_) = inspection_on(host).assess().findings
    assert (first.target, first.observed) == ("journal", "older")
    assert "is not the newest" in first.reason
    (host / "proc/sys/vm/swappiness").write_text("60\n")
    with pytest.raises(TunectlError, match="nothing was changed"):
        apply(host)
    assert tunectl("restore", "--root", host, "--dry-run").code == 1
    ran = tunectl("restore", "--root", host, "--format", "json")
    assert ran.code == 1
    assert not [
        one for one in ran.json["notes"] if "whether tunectl set these" in one
    ]  # it restored those a moment ago
    assert later <= set(ran.json["standing"])
    assert "/sys/fs/cgroup/isolated.slice/cpuset.cpus.partition" in ran.json["standing"]
    assert (host / f"{JOURNAL}.damaged.1").read_bytes() == earlier
    assert not (host / JOURNAL).exists()
    # The newest one, put back, undoes it all.
    (host / JOURNAL).write_bytes(newest)
    assert restore(host).standing == ()


def test_two_runs_with_their_whole_journal_are_undone(host: Path) -> None:
    widen(host)
    assert inspection_on(host).journal_trouble() is None
    undone = restore(host)
    assert (undone.complete, undone.standing, undone.set_aside) == (True, (), False)
    assert not (host / STATE).exists()


def test_the_fix_of_an_older_journal_mends_it(host: Path) -> None:
    earlier = (host / JOURNAL).read_bytes()
    widen(host)
    (host / JOURNAL).write_bytes(earlier)
    root = WritableSysroot(str(host))
    run_apply(inspection_on(host), root, state_of(root), runtime_only=False, wait_s=0, adopt=True)
    assert inspection_on(host).journal_trouble() is None
    assert restore(host).standing == ()


def test_what_was_adopted_is_the_original_and_stands_after_a_restore(host: Path) -> None:
    drops_its_directory(host)
    root = WritableSysroot(str(host))
    run_apply(inspection_on(host), root, state_of(root), runtime_only=False, wait_s=0, adopt=True)
    assert inspection_on(host).journal_trouble() is None
    for _ in range(2):  # its record stays: without it what was adopted would be an apply whose journal is gone
        undone = restore(host)
        assert (undone.complete, undone.standing) == (True, ())
        assert "`apply --adopt` took" in undone.notes[-1]
        assert inspection_on(host).journal_trouble() is None
    for path in [one for one in lasting(root, Journal(state_of(root))) if one.startswith("/")]:
        (host / path[1:]).unlink()
    assert restore(host).complete
    assert not (host / JOURNAL).exists()


BALANCED = LOW_LATENCY.replace("low-latency", "balanced-latency")


def on_bls(tree: Path, text: str = LOW_LATENCY) -> Path:
    """A host whose boot arguments stand among the operator's own, where nothing marks them as ours."""
    machine = build_named(tree, "xeon2s")
    write_host_file(machine, text.replace('"2-3"', '"2-3,18-19"'))
    apply(machine)
    return machine


def cut_before(path: str) -> Callable[[bytes], bytes]:
    def cut(text: bytes) -> bytes:
        lines = text.splitlines(keepends=True)
        number = next(number for number, line in enumerate(lines) if f'"path":"{path}"'.encode() in line)
        return b"".join(lines[:number])

    return cut


def words_of(machine: Path) -> set[str]:
    return {f"the boot argument {word}" for word in (machine / "etc/kernel/cmdline").read_text().split()[3:]}


@pytest.mark.parametrize("shorten", [None, cut_before("etc/default/grub")], ids=["older", "cut"])
def test_what_bears_no_mark_is_known_beside_the_journal(
    tmp_path: Path, tunectl: Tunectl, shorten: Callable[[bytes], bytes] | None
) -> None:
    machine = on_bls(tmp_path / "host", LOW_LATENCY if shorten else BALANCED)
    older = (machine / JOURNAL).read_bytes()
    write_host_file(machine, LOW_LATENCY.replace('"2-3"', '"2-3,18-19"'))
    if shorten:
        newest, older = older, shorten(older)
    else:
        apply(machine)
        newest = (machine / JOURNAL).read_bytes()
    assert inspection_on(machine).journal_trouble() is None
    (machine / JOURNAL).write_bytes(older)
    trouble = inspection_on(machine).journal_trouble()
    assert trouble
    assert trouble.observed == "older"
    words = words_of(machine)
    assert "the boot argument isolcpus=managed_irq,domain,2-3,18-19" in words
    for _ in range(2):  # no later restore forgets it
        ran = tunectl("restore", "--root", machine, "--format", "json")
        assert ran.code == 1
        assert {*words, "values of the running kernel"} <= set(ran.json["standing"])
        assert shorten or "cpufreq.governor[2]" in {one["target"] for one in ran.json["may_be_tuned"]}
    (machine / JOURNAL).write_bytes(newest)
    assert restore(machine).complete
    assert os.listdir(machine / STATE) == ["journal.jsonl.damaged.1"]
    assert not words_of(machine)


def test_what_the_operator_took_out_and_what_ended_with_the_boot_stands_no_more(lab4: Path) -> None:
    write_host_file(lab4, LOW_LATENCY)
    apply(lab4)
    os.unlink(lab4 / JOURNAL)
    (lab4 / "etc/default/grub.d/99-tunectl.cfg").unlink()
    named = restore(lab4).standing
    assert "values of the running kernel" in named
    assert not any("boot argument" in one for one in named)
    write(lab4, "proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-00000000beef\n")
    assert "values of the running kernel" not in restore(lab4).standing


@pytest.mark.parametrize("text", ["", "0 {}\n", '{"run":true}\n', "x" * 99])
def test_a_note_of_the_newest_run_that_is_damaged_says_nothing(host: Path, text: str) -> None:
    write(host, f"{STATE}/newest", text)
    assert inspection_on(host).journal_trouble() is None
    assert restore(host).complete
    assert not (host / STATE).exists()


def test_entries_that_are_forgotten_make_a_journal_no_older(host: Path) -> None:
    """At the next boot, and after a restore that left what somebody had changed."""
    write(host, "proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-00000000beef\n")
    (host / "proc/sys/vm/swappiness").write_text("60\n")
    apply(host)
    assert inspection_on(host).journal_trouble() is None
    (host / "proc/sys/vm/swappiness").write_text("33\n")
    restore(host)
    assert (host / JOURNAL).exists()
    assert inspection_on(host).journal_trouble() is None


@pytest.mark.parametrize("name", ["lab4", "vm2"])
def test_the_service_alone_tells_that_apply_ran_and_the_same_unit_installed_by_hand_does_not(
    tmp_path: Path, tunectl: Tunectl, name: str
) -> None:
    machine = build_named(tmp_path / "host", name)
    text = (
        LOW_LATENCY if name == "lab4" else 'profile = "balanced-latency"\nisolated = "1"\nallow_split_siblings = true\n'
    )
    write_host_file(machine, text)
    unit = machine / "etc/systemd/system/tunectl-apply.service"
    link = machine / "etc/systemd/system/multi-user.target.wants/tunectl-apply.service"
    assert tunectl("service", "install", "apply", "--root", machine).code == 0
    link.parent.mkdir(exist_ok=True)
    link.symlink_to("/etc/systemd/system/tunectl-apply.service")
    installed = unit.read_bytes()
    assert inspection_on(machine).journal_trouble() is None
    assert restore(machine).complete
    apply(machine)
    assert unit.read_bytes() == installed  # it is right as it is
    assert restore(machine).complete
    assert unit.read_bytes() == installed
    unit.unlink()
    link.unlink()
    assert tunectl("apply", "--yes", "--root", machine).code in (0, 4)
    assert "unchanged" in tunectl("service", "install", "apply", "--root", machine).out
    shutil.rmtree(machine / STATE)
    for path in picture(machine):
        if (
            "tunectl" in path.rpartition("/")[2]
            and path.startswith("etc/")
            and "apply.service" not in path
            and (machine / path).is_file()
        ):
            (machine / path).unlink()
    trouble = inspection_on(machine).journal_trouble()
    assert trouble
    assert trouble.observed == "gone"
    ran = tunectl("restore", "--root", machine, "--format", "json")
    assert ran.code == 1
    assert ran.json["standing"] == [f"/{path.relative_to(machine)}" for path in (unit, link)]


@pytest.mark.parametrize("where", ["etc/kernel/cmdline", "etc/default/grub.d/50-site.cfg"])
def test_boot_arguments_as_the_host_file_asks_are_named_where_no_journal_explains_them(
    tmp_path: Path, tunectl: Tunectl, where: str
) -> None:
    machine = on_bls(tmp_path / "host") if "kernel" in where else build_named(tmp_path / "host", "lab4")
    if "kernel" not in where:
        write_host_file(machine, LOW_LATENCY)
        apply(machine)
        os.rename(machine / "etc/default/grub.d/99-tunectl.cfg", machine / where)
        text = (machine / where).read_text().split("\n")
        (machine / where).write_text("\n".join(line for line in text if not line.startswith("#")))
    shutil.rmtree(machine / STATE)
    ran = tunectl("restore", "--root", machine, "--format", "json")
    valid("restore", ran.out)
    boot = {one["target"]: one for one in ran.json["may_be_tuned"] if one["target"].startswith("boot.")}
    assert {"boot.isolcpus", "boot.nohz_full", "boot.nosoftlockup", "boot.tsc"} <= boot.keys()
    for one in boot.values():
        assert f"/{where}" in {place.rpartition(":")[0] for place in one["given_at"]}
    page = tunectl("restore", "--root", machine).out
    assert f"/{where}:" in "".join(page.split())


@pytest.mark.slow
def test_an_operators_own_boot_arguments_tell_of_no_apply(tmp_path: Path, tunectl: Tunectl) -> None:
    machine = on_bls(tmp_path / "host")
    line = (machine / "etc/kernel/cmdline").read_text()
    assert restore(machine).complete
    for path in ("etc/kernel/cmdline", "etc/default/grub"):
        write(machine, path, line if "cmdline" in path else f'GRUB_CMDLINE_LINUX="{line.strip()}"\n')
    entries = machine / "boot/loader/entries"
    for entry in entries.iterdir():
        write(machine, str(entry.relative_to(machine)), entry.read_text().replace("ro quiet", line.strip()[18:]))
    assert inspection_on(machine).journal_trouble() is None
    ran = tunectl("restore", "--root", machine, "--format", "json")
    assert (ran.code, ran.json["standing"], ran.json["may_be_tuned"]) == (0, [], [])
    apply(machine)  # they are right: no record names them, and none is missing
    assert inspection_on(machine).journal_trouble() is None
    assert restore(machine).complete
    assert words_of(machine)


def test_the_link_of_a_unit_that_went_with_a_cut_journal_is_named(host: Path) -> None:
    link = "etc/systemd/system/multi-user.target.wants/tunectl-apply.service"
    (host / JOURNAL).write_bytes(cut_before(link)((host / JOURNAL).read_bytes()))
    assert f"/{link}" in restore(host).standing
    assert not (host / "etc/systemd/system/tunectl-apply.service").exists()
