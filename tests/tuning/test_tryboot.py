"""A boot that is tried: one boot alone has the new line and the values of its set, and nothing else is written before.

The loader is a row of this file: what each of tunectl's own writes for such an entry has tests of its own.
"""

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bootloader.test_kexec import a_host as a_kexec_host
from tests.hosts.builder import build, named
from tests.ran import Ran
from tests.trees import Picture, lay_out, picture
from tests.tuned import inspection_on, restore, state_of
from tests.tuning.calls import in_child, killed_at, on, watched
from tests.tuning.hosts import wish
from tests.tuning.stride import STRIDES
from tests.tuning.test_power import after_losses, booted
from tunectl.bootloader.families import FAMILIES
from tunectl.bootloader.family import Default, Journaled, Once, OnceEntry, Refusal, Write
from tunectl.errors import TunectlError
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.model import Finding, Match, NextBoot, Outcome
from tunectl.tuning.confirming import Ended, apply_set, choose_set, end_when_due
from tunectl.tuning.inspection import Inspection, open_inspection
from tunectl.tuning.proved import unproved
from tunectl.tuning.trial import Due, Trial, boot_time, read_confirmed, read_set, read_trial
from tunectl.tuning.tryboot import Trying, confirm_boot, prove, try_boot

LOADER = "raspberry-pi"
LINE, ENTRY, KERNEL = "boot/firmware/cmdline.txt", "boot/firmware/once.txt", "boot/firmware/kernel8.img"
SWAPPINESS, ISOLATED = "proc/sys/vm/swappiness", "sys/devices/system/cpu/isolated"
ARM, DISARM = "reload-monitor", "reload-systemd"  # named, and not run, on a recorded host
ENOUGH = 20_000


def default(root: Sysroot, journaled: Journaled) -> Default:
    text, ours = root.read_text(LINE), journaled.get(LINE)
    return Default((ours[0] if ours and ours[0] is not None else text).strip(), (KERNEL,))


def once(*refusals: Refusal) -> Once:
    """An entry that is one file with the line."""
    return Once(
        lambda root: refusals,
        default,
        lambda root, trial_id, line: OnceEntry((Write("file", ENTRY, f"{line}\n"),), ARM, DISARM),
        lambda root: "",
    )


class Host:
    """A host whose line is a file of the operator's, and that wants an argument and a value beside it."""

    def __init__(self, tree: Path) -> None:
        self.tree, self.root = tree, WritableSysroot(str(tree))
        self.state, self.boots = state_of(self.root), 0
        (tree / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
        (tree / KERNEL).write_text("a kernel")
        wish(tree, {"boot.isolcpus": '"isolated"', "mm.swappiness": "1"}, 'isolated = "2-3"\n')
        self.before = self.files()

    def files(self) -> Picture:
        return {path: one for path, one in picture(self.tree).items() if path.startswith(("etc", "boot"))}

    @property
    def boot_id(self) -> str:
        return read_identity(self.root).boot_id

    @property
    def trial(self) -> Trial:
        found = read_trial(self.state, self.root)
        assert found
        return found

    def arm(self, *, attended: bool = False, reach: str = "") -> None:
        inspection = inspection_on(self.root)
        try_boot(inspection, self.root, self.state, Trying(attended=attended, reach=reach), wait_s=0)

    def boot(self, line: str) -> None:
        """Another boot: of a kernel that obeys the line."""
        self.boots += 1
        (self.tree / "proc/sys/kernel/random/boot_id").write_text(f"99999999-0000-4000-8000-{self.boots:012d}\n")
        (self.tree / "proc/cmdline").write_text(f"{line}\n")
        (self.tree / ISOLATED).write_text("2-3\n" if "isolcpus=" in line else "\n")
        (self.tree / SWAPPINESS).write_text("60\n")

    def boot_tried(self) -> None:
        assert self.trial.tries
        self.boot(self.trial.tries.line)
        self.end()

    def boot_permanent(self) -> None:
        self.boot((self.tree / LINE).read_text().strip())
        self.end()

    def start(self) -> bool:
        """What systemd starts in a boot: what is due, the set that belongs to it, what was cut off. Is it confirmed?"""
        self.boot_permanent()
        given = choose_set(self.root, self.state, self.boot_id, read_set(inspection_on(self.root).config)).set
        if given and self.trial.status != "returned":
            texts, path = given.texts, given.host_file
            inspection = open_inspection(self.root, path, self.state, (), "2026-11-21", texts=texts)
            apply_set(inspection, self.root, self.state, given, joins=True, runtime_only=True, wait_s=0)
        if not self.trial.is_over:
            self.confirm()
        return self.trial.status == "confirmed"

    def is_whole(self, confirmed: bool) -> None:
        """This boot, the next one and the values are of one set, and nothing of ours is left that was to end it."""
        has = ["isolcpus=" in (self.tree / path).read_text() for path in ("proc/cmdline", LINE)]
        assert has == [confirmed, confirmed]
        assert (self.tree / SWAPPINESS).read_text() == ("1\n" if confirmed else "60\n")
        assert [path for path in self.files() if "tunectl-try" in path or path == ENTRY] == []

    def end(self) -> Ended | None:
        return end_when_due(self.root, self.state, self.boot_id, wait_s=0)

    def inspection(self) -> Inspection:
        texts = self.trial.set.texts
        return open_inspection(self.root, self.trial.set.host_file, self.state, (), "2026-11-21", texts=texts)

    def prove(self) -> list[str]:
        return prove(self.inspection(), self.root, self.state, wait_s=0)

    def confirm(self, trial_id: str | None = None) -> Ended:
        given = self.trial.id if trial_id is None else trial_id
        return confirm_boot(self.inspection(), self.root, self.state, given, wait_s=0)

    def is_refused(self, trial_id: str | None = None) -> None:
        """It cannot be confirmed, and nothing is changed by that."""
        before = self.files()
        with pytest.raises(TunectlError):
            self.confirm(trial_id)
        assert self.files() == before
        assert self.trial.status != "confirmed"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setitem(FAMILIES, LOADER, FAMILIES[LOADER]._replace(once=once()))
    return Host(build(tmp_path / LOADER, replace(named("lab4"), loader=LOADER, os="debian")))


# ---- armed


def test_only_the_entry_and_the_units_are_written_and_this_boot_stays_as_it_is(host: Host) -> None:
    swappiness = (host.tree / SWAPPINESS).read_text()
    host.arm()
    assert (host.tree / SWAPPINESS).read_text() == swappiness
    assert host.files()[LINE] == host.before[LINE]
    written = {path for path in host.files() if host.files()[path] != host.before.get(path)}
    assert {path for path in written if "tunectl" not in path and not path.endswith(".wants")} == {ENTRY}
    assert "isolcpus=" in (host.tree / ENTRY).read_text()
    assert (host.trial.kind, host.trial.status) == ("boot", "armed")
    assert host.end() == Ended(host.trial, Due.WAIT)


def test_what_puts_it_back_needs_neither_var_nor_this_program(host: Host) -> None:
    host.arm()
    units = host.tree / "etc/systemd/system"
    condition = f"ConditionKernelCommandLine=tunectl.try={host.trial.id}"
    for unit in ("tunectl-try.timer", "tunectl-try.service"):
        assert condition in (units / unit).read_text().splitlines()
    for target in ("sysinit", "emergency", "rescue"):
        assert (units / f"{target}.target.wants/tunectl-try.timer").is_symlink()


def test_every_reason_against_it_is_named_and_nothing_is_written(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = once(Refusal("it asks for a passphrase", attended=True))
    monkeypatch.setitem(FAMILIES, LOADER, FAMILIES[LOADER]._replace(once=refusing))
    with pytest.raises(TunectlError, match="passphrase"):
        host.arm()
    assert host.files() == host.before
    host.arm(attended=True)
    assert host.trial.status == "armed"


def test_a_loader_that_boots_nothing_once_is_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, LOADER, FAMILIES[LOADER]._replace(once=None))
    with pytest.raises(TunectlError):
        host.arm()
    assert host.files() == host.before


def test_where_the_loader_cannot_kexec_tries_the_line_and_it_becomes_permanent(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FAMILIES, LOADER, FAMILIES[LOADER]._replace(once=None))
    a_kexec_host(host.tree)
    before = host.files()
    try_boot(inspection_on(host.root), host.root, host.state, Trying("kexec"), wait_s=0)
    assert [path for path in host.tree.glob("run/tunectl-try/*") if "isolcpus=" in path.read_text()]
    host.boot_tried()
    assert host.prove() == []
    host.confirm()
    assert host.trial.tries
    assert host.trial.tries.by == "kexec"
    assert "isolcpus=" in (host.tree / LINE).read_text()
    assert restore(host.root).complete
    assert host.files() == before
    assert not list(host.tree.glob("run/tunectl-try/*"))


# ---- the boot that is tried


def test_tried_proved_and_confirmed_it_is_permanent(host: Host) -> None:
    host.arm()
    host.boot_tried()
    assert choose_set(host.root, host.state, host.boot_id, read_set(inspection_on(host.root).config)).set
    assert host.prove() == []
    assert (host.tree / SWAPPINESS).read_text() == "1\n"
    assert host.files()[LINE] == host.before[LINE]
    assert host.trial.tries
    assert host.trial.tries.proved_at
    host.confirm()
    assert "isolcpus=" in (host.tree / LINE).read_text()
    assert "tunectl.try" not in (host.tree / LINE).read_text()
    left = [path for path in host.files() if "tunectl-" in path or path == ENTRY]
    assert left == []
    assert read_confirmed(host.state) == host.trial.set
    assert host.confirm().was_confirmed
    host.boot_permanent()
    assert host.trial.status == "confirmed"
    assert restore(host.root).complete
    assert host.files() == host.before


def test_what_the_next_boot_lacks_of_one_that_is_proved_is_confirmed(host: Host) -> None:
    """`apply` is refused there: it says to confirm first."""

    def fix() -> str:
        (found,) = (one for one in inspection_on(host.root).assess().findings if one.knob == "boot.isolcpus")
        assert found.outcome is Outcome.DRIFTED
        return str(found.fix)

    host.arm()
    host.boot_tried()
    assert fix() == "sudo tunectl apply"
    assert host.prove() == []
    assert fix() == f"sudo tunectl confirm {host.trial.id}"
    host.boot_permanent()
    assert fix() == "sudo tunectl apply"


def test_a_boot_that_does_not_prove_itself_is_booted_again_and_one_that_does_stays(host: Host) -> None:
    host.arm()
    host.boot_tried()
    deadline = f'"deadline_s":{boot_time() - 1}'
    record = Path(host.state) / "trial.json"
    record.write_text(record.read_text().replace('"deadline_s":600.0', deadline))
    assert host.end() == Ended(host.trial, Due.REBOOT)
    host.prove()
    assert host.end() == Ended(host.trial, Due.WAIT)


@pytest.mark.parametrize(("peer", "missing"), [("127.0.0.1:1", []), ("nobody.invalid:22", ["nobody.invalid:22"])])
def test_who_has_to_answer_is_a_part_of_the_proof(host: Host, peer: str, missing: list[str]) -> None:
    host.arm(reach=peer)
    host.boot_tried()
    assert host.prove() == missing
    assert host.trial.tries
    assert bool(host.trial.tries.proved_at) is not bool(missing)


@pytest.mark.parametrize("times", [0, 1])
def test_any_boot_with_the_old_line_takes_it_back(host: Host, times: int) -> None:
    """The one that was to be tried never came up; or it came, and the host booted again."""
    host.arm()
    for _ in range(times):
        host.boot_tried()
    host.boot_permanent()
    assert host.trial.status == "returned"
    assert host.files() == host.before
    given = choose_set(host.root, host.state, host.boot_id, read_set(inspection_on(host.root).config))
    assert given.set is None  # none was ever confirmed
    host.is_refused()


def test_a_restore_before_that_boot_disarms_it(host: Host) -> None:
    host.arm()
    undone = restore(host.root)
    assert undone.complete
    assert any("daemon-reload" in line for line in undone.outcome.not_run)
    assert host.files() == host.before
    assert not Path(host.state).exists()


def test_a_restore_in_the_boot_that_is_tried_has_nothing_boot_it_again(host: Host) -> None:
    host.arm()
    host.boot_tried()
    assert "/usr/bin/systemctl stop tunectl-try.timer" in restore(host.root).outcome.not_run
    assert host.files() == host.before


# ---- what is not confirmed


def test_only_the_boot_that_was_tried_confirms_and_only_by_its_id(host: Host) -> None:
    host.arm()
    host.is_refused()  # it is still to come
    host.boot_tried()
    host.is_refused()  # it has not proved itself
    host.prove()
    for wrong in ("", "00000000", "ffffffff"):
        host.is_refused(wrong)
    assert host.trial.tries
    (host.tree / "proc/cmdline").write_text(host.trial.tries.line.replace(host.trial.id, "00000000"))
    host.is_refused()


def upgrade(host: Host) -> None:
    (host.tree / KERNEL).write_text("another kernel")


def remove(host: Host) -> None:
    (host.tree / KERNEL).unlink()


@pytest.mark.parametrize("change", [upgrade, remove])
def test_a_kernel_that_changed_meanwhile_is_not_confirmed(host: Host, change: Callable[[Host], None]) -> None:
    host.arm()
    host.boot_tried()
    host.prove()
    change(host)
    host.is_refused()


FINDING = Finding("boot.isolcpus", "", Outcome.DRIFTED, "domain,2-3", "domain,2-3", points={"asked": "domain,2-3"})


@pytest.mark.parametrize(
    ("finding", "fails"),
    [
        (FINDING._replace(next=NextBoot.OTHER), False),
        (FINDING._replace(observed="domain,1-3", match=Match.COVERS), False),
        (FINDING._replace(observed="domain,3"), True),
        (FINDING._replace(observed=None), True),
        (FINDING._replace(outcome=Outcome.PENDING_REBOOT), True),
        (FINDING._replace(outcome=Outcome.COMPLIANT), False),
        (FINDING._replace(outcome=Outcome.WAIVED), False),
        (Finding("nextboot", "", Outcome.UNREADABLE), False),
        (Finding("mm.swappiness", "", Outcome.DRIFTED, 60, 1), True),
        (Finding("mm.swappiness", "", Outcome.UNREADABLE, None, 1), True),
        (Finding("mm.swappiness", "", Outcome.UNSUPPORTED, None, 1), False),
    ],
)
def test_what_keeps_a_boot_from_being_proved(finding: Finding, fails: bool) -> None:
    assert bool(unproved([finding])) is fails


# ---- a confirmation that is cut off


def cut_off(host: Host) -> None:
    """Once the line is permanent, and nobody has noted that it is confirmed."""
    host.arm()
    host.boot_tried()
    host.prove()
    is_record = on("rename", "trial.json.new")
    calls = 0

    def kill(name: str, args: tuple[object, ...], _: dict[str, object]) -> None:
        nonlocal calls
        calls += is_record(name, args)
        if calls == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    def child() -> None:
        with watched(kill):
            host.confirm()

    assert in_child(child) is None
    assert "isolcpus=" in (host.tree / LINE).read_text()
    assert host.trial.status == "armed"


def test_the_boot_that_has_the_line_by_a_confirmation_cut_off_finishes_it(host: Host) -> None:
    cut_off(host)
    assert host.start()
    host.is_whole(True)
    assert restore(host.root).complete
    assert host.files() == host.before


def test_its_unit_finishes_it(host: Host, tunectl: Callable[..., Ran]) -> None:
    cut_off(host)
    host.boot((host.tree / LINE).read_text().strip())
    assert tunectl("deadline", "--boot", "--root", host.tree).code == 0
    assert host.trial.status == "armed"
    assert tunectl("deadline", "--root", host.tree, "--format", "json").json["status"] == "confirmed"
    host.is_whole(True)


def test_a_boot_of_another_entry_undoes_it_though_the_line_is_written(host: Host) -> None:
    cut_off(host)
    host.boot("root=/dev/sda1")
    host.end()
    assert (host.trial.status, host.files()) == ("returned", host.before)


def test_the_boot_that_was_tried_may_confirm_it_again(host: Host) -> None:
    cut_off(host)
    assert host.confirm().trial.status == "confirmed"


# ---- crashes


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
def test_killed_while_it_is_armed_the_next_boot_ends_it(host: Host, stride: int) -> None:
    for count in range(1, ENOUGH, stride):
        killed = killed_at(count, host.arm)
        host.boot_permanent()
        host.end()
        assert host.files() == host.before, count
        if not killed:
            break
    assert count > 30


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
def test_killed_while_it_is_confirmed_the_next_boot_has_one_of_the_two(host: Host, stride: int) -> None:
    for count in range(1, ENOUGH, stride):
        host.arm()
        host.boot_tried()
        host.prove()
        killed = killed_at(count, host.confirm)
        stays = host.start()
        host.is_whole(stays)
        assert restore(host.root).complete
        assert host.files() == host.before, count
        if not killed:
            break
    assert count > 30
    assert stays


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
def test_the_power_fails_while_it_is_confirmed_and_the_next_boot_has_one_of_the_two(host: Host, stride: int) -> None:
    host.arm()
    host.boot_tried()
    host.prove()
    before, ends = picture(host.tree), set()
    for disk in after_losses(host.tree, host.confirm)[::stride]:
        shutil.rmtree(host.tree)
        host.tree.mkdir()
        lay_out(booted(before, disk), host.tree)
        stays = host.start()
        host.is_whole(stays)
        ends.add(stays)
    assert ends == {True, False}
