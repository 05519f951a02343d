"""A boot that is tried by each boot loader's own entry: from the choice to the confirmation, and back."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bootloader.test_entries_once import a_bls_host, a_systemd_boot_host, a_uki_host
from tests.bootloader.test_grub_once import a_host
from tests.hosts.builder import build, named
from tests.ran import Ran
from tests.trees import picture
from tests.tuned import inspection_on, restore, state_of
from tests.tuning.hosts import wish
from tunectl.bootloader.oneshot import PREFIX, is_our_entry
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.model import Proved
from tunectl.tuning.trial import boot_time
from tunectl.tuning.tryboot import Trying, confirm_boot, prove, try_boot

confirming = pytest.importorskip("tunectl.tuning.confirming")
records = pytest.importorskip("tunectl.tuning.trial")

ISOLATED = "sys/devices/system/cpu/isolated"


def a_grub_host(below: Path) -> Path:
    """Debian with GRUB, on ext4."""
    tree = build(below / "grub", named("lab4"))
    return Path(a_host(tree).root)


def of(make: Callable[[Path], tuple[Sysroot, object]]) -> Callable[[Path], Path]:
    return lambda below: Path(make(below)[0].root)


HOSTS: dict[str, Callable[[Path], Path]] = {
    "grub": a_grub_host,
    "bls": of(a_bls_host),
    "systemd-boot": of(a_systemd_boot_host),
    "uki": of(a_uki_host),
}
# What each loader puts in front of the line that it was given.
LEADS = {"grub": "BOOT_IMAGE=/vmlinuz ", "bls": "BOOT_IMAGE=(hd0,gpt2)/vmlinuz ", "systemd-boot": "", "uki": ""}
every_loader = pytest.mark.parametrize("loader", HOSTS)


def wanting(loader: str, below: Path) -> Path:
    """A host that wants one boot argument."""
    tree = HOSTS[loader](below)
    (tree / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
    (tree / "boot/efi/loader/entries").mkdir(parents=True, exist_ok=True)  # as `bootctl install` leaves it
    wish(tree, {"boot.isolcpus": '"isolated"'}, 'isolated = "2-3"\n')
    return tree


def choose(tree: Path) -> None:
    root = WritableSysroot(str(tree))
    try_boot(inspection_on(root), root, state_of(root), Trying(), wait_s=0)


def entries_of(tree: Path) -> list[str]:
    """Where an entry of ours stands."""
    files = [path for path in (tree / "boot").rglob("*") if path.is_file()]
    inside = [str(path) for path in files if path.suffix == ".cfg" and PREFIX in path.read_text()]
    return [*inside, *(str(path) for path in files if is_our_entry(path.name))]


def boot_it(tree: Path, loader: str) -> str:
    """The boot that is tried; its id."""
    root, boot_id = WritableSysroot(str(tree)), "99999999-0000-4000-8000-000000000001"
    trial = records.read_trial(state_of(root), root)
    (tree / "proc/sys/kernel/random/boot_id").write_text(f"{boot_id}\n")
    (tree / "proc/cmdline").write_text(f"{LEADS[loader]}{trial.tries.line.replace(' $tuned_params', '')}\n")
    (tree / ISOLATED).write_text("2-3\n")
    confirming.end_when_due(root, state_of(root), boot_id, wait_s=0)
    return str(trial.id)


@every_loader
def test_it_is_proved_confirmed_and_leaves_no_entry(loader: str, tmp_path: Path) -> None:
    tree = wanting(loader, tmp_path)
    choose(tree)
    assert len(entries_of(tree)) == 1
    trial_id = boot_it(tree, loader)
    root = WritableSysroot(str(tree))
    assert prove(inspection_on(root), root, state_of(root), wait_s=0) == []
    assert proofs_of(tree) == {Proved.DECLARED}
    confirm_boot(inspection_on(root), root, state_of(root), trial_id, wait_s=0)
    assert entries_of(tree) == []
    assert proofs_of(tree) == {Proved.TRIED}


def proofs_of(tree: Path) -> set[Proved]:
    """How it is known what the next boot has of what is asked for."""
    return {finding.proved for finding in inspection_on(WritableSysroot(str(tree))).assess().findings if finding.next}


def another_kernel(tree: Path) -> None:
    for path in [path for path in tree.glob("boot/**/vmlinuz-*") if path.is_file()]:
        path.write_bytes(path.read_bytes() + b"another")
        record = Path(state_of(WritableSysroot(str(tree)))) / "trial.json"  # and proved long before
        record.write_text(re.sub('(?<="proved_at":")[^"]*', "2020-01-01T00:00:00Z", record.read_text()))


def another_word(tree: Path) -> None:
    for path in tree.glob("etc/default/grub"):
        path.write_text(path.read_text().replace('quiet"', 'quiet nosmt"'))


def by_kexec(tree: Path) -> None:
    record = Path(state_of(WritableSysroot(str(tree)))) / "trial.json"
    record.write_text(record.read_text().replace('"by":"loader"', '"by":"kexec"'))


@pytest.mark.parametrize("change", [another_kernel, another_word, by_kexec])
def test_what_became_another_since_was_not_tried(change: Callable[[Path], None], tmp_path: Path) -> None:
    tree = wanting("grub", tmp_path)
    choose(tree)
    trial_id = boot_it(tree, "grub")
    root = WritableSysroot(str(tree))
    prove(inspection_on(root), root, state_of(root), wait_s=0)
    confirm_boot(inspection_on(root), root, state_of(root), trial_id, wait_s=0)
    assert proofs_of(tree) == {Proved.TRIED}
    change(tree)
    assert proofs_of(tree) == {Proved.DECLARED}


@every_loader
def test_it_is_taken_back_and_the_boot_partition_is_as_before(loader: str, tmp_path: Path) -> None:
    tree = wanting(loader, tmp_path)
    before = picture(tree / "boot")
    choose(tree)
    assert picture(tree / "boot") != before
    restore(tree)
    assert picture(tree / "boot") == before


@pytest.mark.parametrize(("by", "status"), [("verify", "confirmed"), ("preflight", "armed")])
def test_it_is_confirmed_by_itself_where_that_holds(
    by: str, status: str, tunectl: Callable[..., Ran], tmp_path: Path
) -> None:
    """Preflight says GO of no recorded host: nothing can be measured there. A person may confirm it still."""
    tree = wanting("bls", tmp_path)
    assert tunectl("apply", "--try-boot", "--confirm-by", by, "--root", tree).code == 4
    unit = (tree / "etc/systemd/system/tunectl-deadline.service").read_text()
    assert ("CAP_IPC_LOCK" in unit) is (by == "preflight")
    trial_id = boot_it(tree, "bls")
    record = tree / "var/lib/tunectl/trial.json"
    record.write_text(record.read_text().replace('"deadline_s":600.0', f'"deadline_s":{boot_time() + 600}'))
    done = tunectl("deadline", "--root", tree)
    assert (done.code, "boot.isolcpus" in done.err) == (0, False), done
    root = WritableSysroot(str(tree))
    trial = records.read_trial(state_of(root), root)
    assert (trial.status, bool(trial.tries.proved_at)) == (status, True)
    assert tunectl("confirm", trial_id, "--root", tree).code == 0
