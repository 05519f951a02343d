"""A change that takes itself back: confirmed in time it stays, otherwise the host is as the earlier apply left it.

Nobody waits here: the record's deadline is set, or the host gets the boot id of its next boot.
"""

import copy
import datetime
import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.builder import HostFactory
from tests.trees import Lent, Picture, differences, lay_out, picture
from tests.tuned import inspection_on, restore, state_of
from tests.tuning.calls import changes, count_calls, failing_at, killed_at, on
from tests.tuning.hosts import ONE_OF_EACH, small_host, wish
from tests.tuning.stride import STRIDES, thinned
from tunectl.errors import TunectlError
from tunectl.host.identity import read_identity
from tunectl.host.reach import read_links
from tunectl.host.writable import WritableSysroot
from tunectl.tuning.confirming import (
    Ended,
    Wanted,
    apply_set,
    choose_set,
    confirm,
    end_when_due,
    give_up,
    is_cut_off,
)
from tunectl.tuning.journal import load
from tunectl.tuning.transaction import Run
from tunectl.tuning.trial import (
    Due,
    HostSet,
    Trial,
    boot_time,
    decide,
    read_confirmed,
    read_set,
    read_trial,
    unconfirmed_of,
)

BOOT_ID = "proc/sys/kernel/random/boot_id"
NEXT = "99999999-0000-4000-8000-000000000009"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
UNITS = ("tunectl-return.service", "tunectl-deadline.service")
ENOUGH = 20_000
REST = 'isolated = "1"\n[network]\ninterfaces = ["ens3"]\n'
EARLIER = {name: ONE_OF_EACH[name] for name in ("mm.swappiness", "boot.nohz_full", "systemd.allowed_cpus")}


class Host:
    """A host on which a first host file was applied, and then another one that has to be confirmed."""

    def __init__(self, tree: Path, earlier: dict[str, str] | None) -> None:
        self.tree, self.root = tree, WritableSysroot(str(tree))
        self.state = state_of(self.root)
        self.boot_id = read_identity(self.root).boot_id
        self.before_all = self.files()
        if earlier:
            wish(tree, earlier, REST)
            self.apply(None)
        self.earlier = self.files()
        wish(tree, ONE_OF_EACH, REST)

    def at(self, tree: Path) -> "Host":
        """The same host, whose files are there."""
        other = copy.copy(self)
        other.tree, other.root = tree, WritableSysroot(str(tree))
        other.state = state_of(other.root)
        return other

    def files(self) -> Picture:
        """Without the host file, which the operator writes, and without the state."""
        seen = picture(self.tree)
        return {path: one for path, one in seen.items() if not path.startswith(("etc/tunectl", "var/lib", BOOT_ID))}

    def lasting(self, seen: Picture) -> Picture:
        """Of these, what outlives the boot."""
        return {path: one for path, one in seen.items() if path.partition("/")[0] not in ("proc", "sys", "ethtool")}

    def apply(self, wanted: Wanted | None, *, joins: bool = False) -> Run:
        inspection = inspection_on(self.root)
        chosen = read_set(inspection.config)
        return apply_set(inspection, self.root, self.state, chosen, wanted, joins=joins, runtime_only=False, wait_s=0)

    def arm(self, length_s: float = 600) -> Run:
        return self.apply(Wanted(length_s))

    def end(self) -> Ended | None:
        return end_when_due(self.root, self.state, read_identity(self.root).boot_id, wait_s=0)

    def confirm(self, trial_id: str = "") -> Ended:
        return confirm(self.root, self.state, read_identity(self.root).boot_id, trial_id, wait_s=0)

    @property
    def trial(self) -> Trial:
        found = read_trial(self.state, self.root)
        assert found
        return found

    def edit_trial(self, **fields: Any) -> None:
        path = Path(self.state) / "trial.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    def is_due(self) -> None:
        """The deadline is over, where something is armed."""
        if (Path(self.state) / "trial.json").exists():
            self.edit_trial(deadline_s=boot_time() - 1)

    def boot(self) -> None:
        (self.tree / BOOT_ID).write_text(NEXT + "\n")

    def reboot(self) -> None:
        """Another boot: its kernel's files are as the first apply found and made them."""
        now = self.files()
        others = {path for path in now if self.lasting({path: now[path]}) == {} and now[path] != self.earlier.get(path)}
        for path in sorted(others, reverse=True):
            (self.tree / path).rmdir() if now[path][0] == "directory" else (self.tree / path).unlink()
        lay_out({path: self.earlier[path] for path in others if path in self.earlier}, self.tree)
        number = int(read_identity(self.root).boot_id[-4:], 16) + 1
        (self.tree / BOOT_ID).write_text(f"99999999-0000-4000-8000-00000000{number % 0x10000:04x}\n")

    def units(self) -> list[str]:
        return [name for name in UNITS if (self.tree / "etc/systemd/system" / name).exists()]


@pytest.fixture(params=[EARLIER, None], ids=["applied before", "never applied"])
def host(host_root: HostFactory, tmp_path: Path, request: pytest.FixtureRequest) -> Host:
    return Host(small_host(host_root, tmp_path), request.param)


# ---- the decision

ARMED = Trial(
    id="0123abcd",
    kind="runtime",
    boot_id="a",
    deadline_s=100.0,
    mark=1,
    set=HostSet("/etc/tunectl/host.toml", ""),
    held=None,
    words=(),
    isolated="1",
)


@pytest.mark.parametrize(
    ("status", "boot_id", "now_s", "due"),
    [
        ("armed", "a", 0.0, Due.WAIT),
        ("armed", "a", 99.9, Due.WAIT),
        ("armed", "a", 100.0, Due.TAKE_BACK),
        ("armed", "a", 1e9, Due.TAKE_BACK),
        ("armed", "b", 0.0, Due.TAKE_BACK),  # a boot is the end of it, however short it was
        ("confirmed", "a", 1e9, Due.NOTHING),
        ("confirmed", "b", 0.0, Due.NOTHING),
        ("returned", "b", 1e9, Due.NOTHING),
    ],
)
def test_what_is_due(status: Any, boot_id: str, now_s: float, due: Due) -> None:
    trial = Trial(**{name: getattr(ARMED, name) for name in ARMED.__struct_fields__} | {"status": status})
    assert decide(trial, boot_id, now_s) is due
    assert decide(None, boot_id, now_s) is Due.NOTHING


# ---- armed


def test_the_record_and_the_units_stand_before_the_first_write_of_the_change(host: Host) -> None:
    host.arm()
    journal = load(host.state)
    mine = [entry.path for seq, entry in journal.entries.items() if seq >= host.trial.mark]
    first = next(path for path in mine if not path.startswith("etc/systemd/system"))
    before = mine[: mine.index(first)]
    assert {f"etc/systemd/system/{name}" for name in UNITS} <= set(before)
    assert host.units() == list(UNITS)
    assert (host.trial.status, host.trial.kind, host.trial.boot_id) == ("armed", "runtime", host.boot_id)


def test_nothing_is_started_on_a_recorded_host_and_that_is_said(host: Host) -> None:
    assert "/usr/bin/systemctl start tunectl-deadline.service" in host.arm().applied.not_run


def test_a_host_without_systemd_is_refused_and_left_alone(host: Host) -> None:
    system = host.tree / "etc/systemd/system"
    system.rename(host.tree / "etc/systemd/elsewhere")
    before = picture(host.tree)
    with pytest.raises(TunectlError):
        host.arm()
    assert not differences(before, host.tree)


def test_a_full_state_directory_refuses_before_anything_is_written(host: Host) -> None:
    def tried() -> bool:
        with pytest.raises(TunectlError):
            host.arm()
        return True

    assert failing_at(1, on("open", "trial.json.new"), errno.ENOSPC, tried)
    assert host.files() == host.earlier
    assert read_trial(host.state, host.root) is None


def test_where_nothing_is_to_be_changed_nothing_waits(host: Host) -> None:
    host.apply(None)
    before = picture(host.tree)
    assert host.arm().applied.results == []
    assert not differences(before, host.tree)


def test_another_apply_is_refused_and_one_with_a_deadline_joins(host: Host) -> None:
    host.arm()
    first, made = host.trial, picture(host.tree)
    with pytest.raises(TunectlError):
        host.apply(None)
    assert not differences(made, host.tree)
    wish(host.tree, ONE_OF_EACH | {"mm.swappiness": "0"}, REST)
    host.arm(1200)
    assert (host.trial.id, host.trial.mark) == (first.id, first.mark)
    assert host.trial.deadline_s > first.deadline_s + 500
    assert (host.tree / "proc/sys/vm/swappiness").read_text() == "0\n"
    host.is_due()
    host.end()
    assert host.files() == host.earlier


def test_what_is_written_again_unattended_belongs_to_the_change_that_waits(host: Host) -> None:
    host.arm()
    deadline_s = host.trial.deadline_s
    (host.tree / "proc/sys/vm/swappiness").write_text("60\n")  # a driver was loaded again, say
    host.apply(None, joins=True)
    assert (host.tree / "proc/sys/vm/swappiness").read_text() == "1\n"
    assert host.trial.deadline_s == deadline_s
    confirmed = read_confirmed(host.state)
    assert confirmed is None or confirmed.texts != host.trial.set.texts


def test_a_look_at_the_host_says_until_when_it_stands(host: Host) -> None:
    assert unconfirmed_of(host.state, host.root, host.boot_id) is None
    host.arm()
    shown = unconfirmed_of(host.state, host.root, host.boot_id)
    assert shown
    assert (shown.id, shown.kind, bool(shown.back_at)) == (host.trial.id, "runtime", True)
    assert inspection_on(host.root).unconfirmed() == shown
    host.confirm()
    assert unconfirmed_of(host.state, host.root, host.boot_id) is None


@pytest.mark.parametrize(
    ("boots", "ago"), [pytest.param(0, lambda: 3600.0, id="its-time"), pytest.param(1, boot_time, id="this-boot")]
)
def test_what_is_overdue_was_due_when_it_was(host: Host, boots: int, ago: Callable[[], float]) -> None:
    host.arm()
    ago_s = ago()
    host.edit_trial(deadline_s=boot_time() - ago_s)
    for _ in range(boots):
        host.boot()
    shown = unconfirmed_of(host.state, host.root, read_identity(host.root).boot_id)
    assert shown
    due = datetime.datetime.fromisoformat(shown.back_at).timestamp()
    assert abs(time.time() - ago_s - due) < 600


# ---- confirmed


def test_confirmed_in_time_it_stays_and_no_unit_is_left(host: Host) -> None:
    host.arm()
    made = host.files()
    host.edit_trial(deadline_s=boot_time() + 60)  # in the last minute
    assert not host.confirm().was_confirmed
    assert host.units() == []
    assert {path for path in made if host.files().get(path) != made[path]} <= {
        "etc/systemd/system/sysinit.target.wants",
        "etc/systemd/system/sysinit.target.wants/tunectl-return.service",
        *(f"etc/systemd/system/{name}" for name in UNITS),
    }
    assert read_confirmed(host.state) == read_set(inspection_on(host.root).config)
    assert host.confirm(host.trial.id).was_confirmed
    host.is_due()
    host.boot()
    assert host.end() == Ended(host.trial, Due.NOTHING)
    assert host.units() == []


def test_after_its_time_it_cannot_be_confirmed(host: Host) -> None:
    host.arm()
    host.is_due()
    with pytest.raises(TunectlError):
        host.confirm()
    host.end()
    with pytest.raises(TunectlError):
        host.confirm()
    assert host.files() == host.earlier


def test_another_ones_id_confirms_nothing(host: Host) -> None:
    with pytest.raises(TunectlError):
        host.confirm()
    host.arm()
    with pytest.raises(TunectlError):
        host.confirm("00000000" if host.trial.id != "00000000" else "11111111")
    assert host.trial.status == "armed"


def test_a_record_that_is_not_ours_decides_nothing(host: Host) -> None:
    host.arm()
    before = host.files()
    (Path(host.state) / "trial.json").write_text('{"id": "x"}\n')
    for act in (host.confirm, host.arm):
        with pytest.raises(TunectlError):
            act()
    assert host.files() == before
    assert any("not known" in note for note in inspection_on(host.root).notes())
    assert restore(host.root).complete


# ---- taken back


def test_at_its_deadline_everything_goes_back_and_the_record_tells(host: Host) -> None:
    host.arm()
    assert host.end() == Ended(host.trial, Due.WAIT)
    host.is_due()
    ended = host.end()
    assert ended
    assert (ended.due, ended.complete, ended.trial.status) == (Due.TAKE_BACK, True, "returned")
    assert host.files() == host.earlier
    assert host.end() == Ended(host.trial, Due.NOTHING)


def test_a_boot_before_the_confirmation_brings_the_files_back(host: Host) -> None:
    host.arm()
    host.boot()
    ended = host.end()
    assert ended
    assert ended.complete
    assert host.lasting(host.files()) == host.lasting(host.earlier)
    assert host.units() == []


def test_a_restore_meanwhile_takes_all_of_it_and_nothing_is_due(host: Host) -> None:
    host.arm()
    assert restore(host.root).complete
    assert host.files() == host.before_all
    assert host.end() is None
    assert not Path(host.state).exists()


def test_a_restore_after_it_came_back_leaves_nothing(host: Host) -> None:
    host.arm()
    host.is_due()
    host.end()
    assert restore(host.root).complete
    assert host.files() == host.before_all
    assert not Path(host.state).exists()


def test_what_somebody_changed_meanwhile_is_left_and_named(host: Host) -> None:
    host.arm()
    (host.tree / THP).write_text("[always] madvise never\n")
    host.is_due()
    ended = host.end()
    assert ended
    assert ended.taken
    assert (ended.taken.left, ended.trial.status) == ((f"/{THP}",), "returned")
    assert (host.tree / THP).read_text() == "[always] madvise never\n"
    restore(host.root, force=True)
    assert host.files() == host.before_all


@pytest.mark.parametrize("ends", [Host.confirm, Host.end])
def test_a_unit_that_somebody_edited_is_left_and_named(host: Host, ends: Callable[[Host], Ended]) -> None:
    host.arm()
    unit = host.tree / "etc/systemd/system/tunectl-deadline.service"
    unit.write_text(unit.read_text() + "# mine\n")
    drop_in = host.tree / "etc/systemd/system/tunectl-return.service.d/mine.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\n")
    host.edit_trial(deadline_s=boot_time() + (60 if ends is Host.confirm else -1))
    ended = ends(host)
    assert ended.complete
    assert ended.edited == ("/etc/systemd/system/tunectl-deadline.service",)
    assert ended.drop_ins == ("/etc/systemd/system/tunectl-return.service.d/mine.conf",)
    assert host.units() == ["tunectl-deadline.service"]
    assert drop_in.exists()


def test_a_lost_journal_is_said_and_nothing_is_written(host: Host) -> None:
    host.arm()
    host.is_due()
    (Path(host.state) / "journal.jsonl").unlink()
    before = picture(host.tree)
    with pytest.raises(TunectlError):
        host.end()
    assert not differences(before, host.tree)


# ---- a record that is lost


def cut(record: Path) -> None:
    record.write_bytes(record.read_bytes()[:100])


def give_away(record: Path) -> None:
    os.chown(record, 65534, 65534)


LOSSES = [
    cut,
    lambda record: record.write_text(""),
    lambda record: record.write_text("no JSON\n"),
    lambda record: record.write_text('{"id": "x"}\n'),
    lambda record: record.chmod(0o666),
    Path.unlink,
    pytest.param(give_away, marks=pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")),
]
lost = pytest.mark.parametrize("lose", LOSSES, ids=["cut", "empty", "no JSON", "no record", "open", "gone", "foreign"])


@lost
def test_by_the_journal_a_change_goes_back_whose_record_is_lost(host: Host, lose: Callable[[Path], None]) -> None:
    confirmed = read_confirmed(host.state)
    host.arm()
    lose(Path(host.state) / "trial.json")
    host.boot()
    ended = host.end()
    assert ended
    assert (ended.complete, ended.trial.status) == (True, "returned")
    assert "trial.json" in ended.trial.why
    assert host.lasting(host.files()) == host.lasting(host.earlier)
    assert chosen(host) == confirmed
    assert inspection_on(host.root).returned()
    assert host.end() == Ended(host.trial, Due.NOTHING)
    assert restore(host.root).complete
    assert host.lasting(host.files()) == host.lasting(host.before_all)


@lost
def test_where_the_journal_is_damaged_too_nothing_goes_back_and_no_boot_tries_it_again(
    host: Host, lose: Callable[[Path], None]
) -> None:
    host.arm()
    lose(Path(host.state) / "trial.json")
    journal = Path(host.state) / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:5], b"?" + lines[5][1:], *lines[6:]]))
    host.boot()
    with pytest.raises(TunectlError, match=r"95-tunectl\.rules") as caught:
        host.end()
    assert "restore" in str(caught.value)
    assert caught.value.message.partition("it stands: ")[2].count(", /") > 3
    assert " more" not in caught.value.message
    assert not list((host.tree / "etc/systemd/system").rglob("tunectl-return.service"))
    assert not list((host.tree / "etc/systemd/system").rglob("tunectl-deadline.service"))
    assert (host.tree / "etc/udev/rules.d/95-tunectl.rules").exists()


# ---- what nobody watches puts in force


def chosen(host: Host) -> HostSet | None:
    return choose_set(host.root, host.state, read_identity(host.root).boot_id, host_set(host)).set


def host_set(host: Host) -> HostSet:
    return read_set(inspection_on(host.root).config)


def test_the_boot_after_it_came_back_has_the_confirmed_set_and_not_the_host_file(host: Host) -> None:
    earlier = read_confirmed(host.state)
    assert chosen(host) == host_set(host)
    host.arm()
    assert chosen(host) == host_set(host)
    host.boot()
    host.end()
    assert chosen(host) == earlier  # None where nothing was ever confirmed
    wish(host.tree, ONE_OF_EACH | {"mm.swappiness": "0"}, REST)
    assert chosen(host) == earlier  # it is another host file, which nobody has applied either
    host.apply(None)  # by somebody who means it
    assert chosen(host) == host_set(host)


def test_neither_of_two_host_files_that_came_back_together_is_put_in_force(host: Host) -> None:
    earlier = read_confirmed(host.state)
    host.arm()
    wish(host.tree, ONE_OF_EACH | {"mm.swappiness": "0"}, REST)
    host.arm()
    host.boot()
    host.end()
    wish(host.tree, ONE_OF_EACH, REST)
    assert chosen(host) == earlier


def test_a_change_whose_record_is_gone_is_named(host: Host) -> None:
    host.arm()
    (Path(host.state) / "trial.json").unlink()
    with pytest.raises(TunectlError, match=r"trial\.json is gone"):
        host.confirm()
    assert any("trial.json is gone" in note for note in inspection_on(host.root).notes())
    assert restore(host.root).complete
    assert host.end() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_record_of_somebody_else_is_not_believed(host: Host) -> None:
    host.arm()
    os.chown(Path(host.state) / "trial.json", 65534, 65534)
    with pytest.raises(TunectlError, match="not believed"):
        host.confirm()


def test_a_host_file_edited_while_it_waits_is_not_put_in_force(host: Host) -> None:
    host.arm()
    armed = host_set(host)
    wish(host.tree, ONE_OF_EACH | {"mm.swappiness": "0"}, REST)
    assert chosen(host) == armed


# ---- crashes


def rounds(host: Host, kill: Callable[[int], bool], stride: int, after: Callable[[Host], None] = Host.is_due) -> int:
    """Kills at each boundary, then what is `after`: the host is as the first apply left it. How many there are."""
    boundaries = 0
    for count in range(1, ENOUGH, stride):
        if not kill(count):
            break
        boundaries = count
        after(host)
        came_back(host, f"boundary {count}")
    return boundaries


@pytest.fixture
def armed(host: Host, tmp_path: Path) -> Callable[[], Host]:
    """The host as it was armed, again and again: for a walk that is about what comes after."""
    host.arm(36_000)
    lent = Lent(host.tree, tmp_path / "lent")
    return lambda: host.at(lent())


def came_back(host: Host, where: str) -> None:
    ended = host.end()
    assert ended is None or ended.complete, where
    assert host.files() == host.earlier, where
    assert host.units() == [], where


def everything_goes_back(host: Host) -> None:
    host.is_due()
    host.end()
    assert restore(host.root).complete
    assert host.lasting(host.files()) == host.lasting(host.before_all)


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("after", [Host.is_due, Host.reboot])
def test_apply_is_killed(host: Host, stride: int, after: Callable[[Host], None]) -> None:
    assert rounds(host, lambda count: killed_at(count, host.arm), thinned(stride, 2), after) > 20
    everything_goes_back(host)


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
def test_the_deadline_is_killed(armed: Callable[[], Host], stride: int) -> None:
    boundaries = 0
    for count in range(1, ENOUGH, stride):
        host = armed()
        host.is_due()
        if not killed_at(count, host.end):
            break
        boundaries = count
        host.is_due()
        came_back(host, f"boundary {count}")
    assert boundaries > 20
    everything_goes_back(host)


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
def test_confirm_is_killed_and_the_host_has_one_of_the_two(host: Host, armed: Callable[[], Host], stride: int) -> None:
    wanted, host = host_set(host), armed()
    host.confirm()
    confirmed = host.files()
    boundaries = 0
    for count in range(1, ENOUGH, max(1, stride // 4)):
        host = armed()
        if not killed_at(count, host.confirm):
            break
        boundaries = count
        host.is_due()
        host.end()
        stays = host.trial.status == "confirmed"
        assert host.units() == [], count
        assert host.files() == (confirmed if stays else host.earlier), count
        assert (read_confirmed(host.state) == wanted) is stays, count
    assert boundaries > 5


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
def test_a_call_that_writes_fails_at_the_deadline(armed: Callable[[], Host], stride: int, number: int) -> None:
    host = armed()

    def tried() -> bool:
        try:
            ended = host.end()
        except (TunectlError, OSError):
            return False
        return ended is not None and ended.complete

    host.is_due()
    calls = count_calls(changes, host.end)
    for place in range(1, calls + 1, thinned(stride, 2)):
        host = armed()
        host.is_due()
        failing_at(place, changes, number, tried, lasting=number == errno.ENOSPC)
        host.is_due()
        came_back(host, f"call {place}")


def test_what_not_everybody_may_read_stays_so(host: Host) -> None:
    (host.tree / "etc/tunectl/host.toml").chmod(0o640)
    host.arm()
    host.confirm()
    modes = [(Path(host.state) / name).stat().st_mode & 0o777 for name in ("trial.json", "confirmed.json")]
    assert modes == [0o600, 0o600]


# ---- reach

NOBODY = "nobody.invalid:22"


@pytest.mark.parametrize(
    ("reach", "links", "cut_off"),
    [
        ("", {"lo": "down"}, False),
        (NOBODY, {"lo": "down"}, True),  # a link is another than before the first write
        ("127.0.0.1:1", {"lo": "down"}, False),  # it refuses, and so is there
    ],
)
def test_cut_off_is_who_lost_a_link_and_his_peer(reach: str, links: dict[str, str], cut_off: bool) -> None:
    trial = Trial(**{name: getattr(ARMED, name) for name in ARMED.__struct_fields__} | {"reach": reach, "links": links})
    assert is_cut_off(WritableSysroot("/"), trial) is cut_off


def test_a_peer_that_went_down_by_itself_undoes_nothing() -> None:
    fields = {name: getattr(ARMED, name) for name in ARMED.__struct_fields__}
    links = read_links(WritableSysroot("/"))
    assert not is_cut_off(WritableSysroot("/"), Trial(**fields | {"reach": NOBODY, "links": links}))


def test_what_is_given_up_goes_back_at_once_and_the_record_says_why(host: Host) -> None:
    host.arm()
    give_up(host.root, host.state, "nobody answers", wait_s=0)
    ended = host.end()
    assert ended
    assert (ended.trial.status, ended.trial.why) == ("returned", "nobody answers")
    assert host.files() == host.earlier
