"""What stands of an earlier apply though no journal names it: said by verify and by each restore, and kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_commands import valid
from tests.conftest import LOW_LATENCY, write_host_file
from tests.ran import Ran
from tests.trees import differences, picture, write
from tests.tuned import apply, inspection_on, restore, state_of
from tunectl.errors import TunectlError
from tunectl.host.writable import WritableSysroot
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


@pytest.mark.parametrize("lose", [drops_its_directory, leads_nowhere, is_a_file])
def test_without_a_state_directory_a_tuned_host_is_no_new_one(
    host: Path, tunectl: Tunectl, lose: Callable[[Path], None]
) -> None:
    lose(host)
    before = picture(host)
    (first, *_) = tunectl("verify", "--root", host, "--format", "json").json["findings"]
    assert (first["target"], first["outcome"], first["observed"]) == ("journal", "drifted", "gone")
    for words in (["restore"], ["restore", "--dry-run"]):
        ran = tunectl(*words, "--root", host)
        assert (ran.code, ran.err) == (1, "")
        assert "nothing was restored" in " ".join(ran.out.split())
        told = tunectl(*words, "--root", host, "--format", "json").json
        assert "/etc/systemd/system/tunectl-reapply@.service" in told["standing"]
        assert all(path in ran.out for path in told["standing"])
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
    page = " ".join(tunectl("restore", "--root", host).out.split())
    assert "kernel.stat_interval is 10 the kernel starts with 1" in page
    assert "what an earlier host file asked for" in page
    (host / "etc/tunectl/host.toml").unlink()
    blind = tunectl("restore", "--root", host, "--format", "json").json
    assert (blind["may_be_tuned"], blind["standing"]) == ([], ran.json["standing"])
    assert any("is not known without the host file" in note for note in blind["notes"])


def test_a_host_that_was_never_applied_has_nothing_to_restore(lab4: Path, tunectl: Tunectl) -> None:
    write_host_file(lab4, LOW_LATENCY)
    shutil.rmtree(lab4 / STATE, ignore_errors=True)
    write(lab4, "etc/systemd/system/system.slice.d/zz-tunectl.conf", "[Slice]\nAllowedCPUs=0-1\n")  # nobody's mark
    assert tunectl("restore", "--root", lab4).code == 0
    assert inspection_on(lab4).journal_trouble() is None


def ours(host: Path, before: set[str]) -> set[str]:
    return {f"/{path}" for path in picture(host) if path.startswith("etc/") and path not in before}


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
    left = {path for path in ours(lab4, before) if (lab4 / path[1:]).is_file() and "apply.service" not in path}
    assert left
    assert left <= set(ran.json["standing"])
    tuned = {one["target"] for one in ran.json["may_be_tuned"]}
    assert {"mm.thp_enabled", "systemd.apply_at_boot"} <= tuned
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
    undone = restore(host)
    assert (undone.complete, undone.standing) == (True, ())
    assert not (host / JOURNAL).exists()
