"""A change that nobody has confirmed yet: its record beside the journal, and what has to become of it.

`trial.json` says which entries of the journal belong to it, until when it may stand, and which host file it came from;
`confirmed.json` has the host file that was in force before, so that a boot does not put in force what was taken back.
The time is counted on CLOCK_BOOTTIME: no step of the wall clock moves it, and a host that sleeps ages, too. Another
boot than the one in which it was armed is the end of it.
"""

import os
import re
import secrets
import stat
import time
from contextlib import suppress
from enum import Enum
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl import durable, kinds
from tunectl.bootloader.oneshot import ID, tried_id
from tunectl.errors import TunectlError
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.config import HostConfig
from tunectl.shapes import Came, Returned, Shape, TrialKind, Unconfirmed, now_utc
from tunectl.tuning.journal import NAME as JOURNAL
from tunectl.tuning.journal import RecordLostError, require_roots
from tunectl.tuning.records import InForce
from tunectl.units import DIRECTORY, RETURN
from tunectl.wording import awaits

NAME, CONFIRMED, WORSE = "trial.json", "confirmed.json", "worse.json"
_LARGEST = 4 << 20  # bytes: a host file and its profiles have at most one MiB each

Status = Literal["armed", "confirmed", "returned"]
Confirms = Literal["verify", "preflight"]
TriedBy = Literal["loader", "kexec"]  # what starts the kernel of a boot that is tried


class HostSet(msgspec.Struct, frozen=True):
    """What is put in force together: the host file and the site's own profiles, as they were read."""

    host_file: str
    text: str
    profiles: dict[str, str] = {}
    private: bool = False  # not everybody may read one of them: nor what holds their text

    @property
    def texts(self) -> dict[str, str]:
        """By path, as hostfile/ asks for them; two sets are the same where these are."""
        return {self.host_file: self.text, **self.profiles}


UNKNOWN = HostSet("", "")  # of a change whose record was lost


class Tries(msgspec.Struct, frozen=True):
    """Of a boot that is tried: what it boots with, and what has become of it."""

    line: str
    loads: dict[str, str]  # of the kernel, the initial RAM disks or the image: path and SHA-256
    disarm: str  # the name in tuning/commands.py of what takes back that the next boot takes it
    by: TriedBy = "loader"
    confirms: Confirms | None = None  # what confirms it, once it is proved; None for nobody but a person
    boot_id: str = ""  # of the tried boot, once it is there
    proved_at: str = ""  # UTC, once every setting was seen in force
    confirming: str = ""  # who confirmed it, before the first write that makes it permanent


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One change that waits for its confirmation, or what became of the last one."""

    id: Annotated[str, Meta(pattern=f"^{ID}$")]
    kind: TrialKind
    status: Status = "armed"
    boot_id: str  # of the boot in which it was armed
    deadline_s: float  # on CLOCK_BOOTTIME: of that boot; of a boot that is tried, on that one's
    mark: Annotated[int, Meta(ge=1)]  # the number of its first entry in the journal
    set: HostSet
    held: InForce | None  # what was in force before
    words: tuple[str, ...]  # our boot arguments before
    isolated: str  # the CPUs that who waits keeps off, as a list
    reach: str = ""  # HOST:PORT that has to answer; "" where nothing is watched
    links: dict[str, str] = {}  # as they were before the first write, where something is watched
    own: tuple[str, ...] = ()  # the files that are there for its sake alone, and go when it ends
    tries: Tries | None = None  # of the kind "boot"
    ended_at: str = ""  # UTC, for people
    why: str = ""  # what ended it
    confirmed_by: str = ""  # the user who did, as sudo(8) names him

    @property
    def is_over(self) -> bool:
        """Is nothing waited for any more?"""
        return self.status != "armed"


class Due(Enum):
    """What has to become of a trial now."""

    NOTHING = "nothing"
    WAIT = "wait"
    TAKE_BACK = "take back"
    TRIED = "tried"  # this is the boot that is tried, and nobody has noted it yet
    CUT_OFF = "cut off"  # an earlier boot was making it permanent: this one has the new line, or the old one
    REBOOT = "reboot"  # it did not prove itself in time


def decide(trial: Trial | None, boot_id: str, now_s: float, tried: str = "") -> Due:
    """What is due: in another boot than that of its arming, and from its deadline on, it is taken back. Pure.

    `tried` is the id on the line of this boot. A boot that is tried may stay as long as it likes, once it is proved.
    """
    if trial is None or trial.is_over:
        return Due.NOTHING
    tries = trial.tries
    if tries is None:
        return Due.WAIT if boot_id == trial.boot_id and now_s < trial.deadline_s else Due.TAKE_BACK
    if boot_id == trial.boot_id:  # that boot is still to come
        return Due.WAIT
    if not tries.boot_id and tried == trial.id:
        return Due.TRIED
    if tries.boot_id != boot_id:
        return Due.CUT_OFF if tries.confirming else Due.TAKE_BACK
    return Due.REBOOT if not tries.proved_at and now_s >= trial.deadline_s else Due.WAIT


def due_now(trial: Trial | None, root: Sysroot, boot_id: str) -> Due:
    """What is due on this host now."""
    return decide(trial, boot_id, boot_time(), tried_id(root.get_text("proc/cmdline")))


def boot_time() -> float:
    """Seconds since this machine booted, those asleep among them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def new_id() -> str:
    """A name that no other trial has had."""
    return secrets.token_hex(4)


def read_set(config: HostConfig) -> HostSet:
    """The files that a configuration was read from. TunectlError where one is gone."""
    host_file, *profiles = config.files
    try:
        texts = {path: durable.read_regular(path, _LARGEST).decode() for path in (host_file, *profiles)}
        private = not all(os.stat(path).st_mode & stat.S_IROTH for path in texts)
    except OSError as error:
        raise TunectlError(f"cannot read {error.filename}: {error.strerror}") from error
    return HostSet(host_file, texts.pop(host_file), texts, private)


def read_trial(state: str, root: Sysroot) -> Trial | None:
    """The trial of this state directory. RecordLostError for a file that is not as we write it, or another's."""
    trial = read_record(state, NAME, Trial)
    if trial is None and root.exists(f"{DIRECTORY}/{RETURN}") and os.path.exists(os.path.join(state, JOURNAL)):
        why = f"{os.path.join(state, NAME)} is gone: what a change wrote that nobody has confirmed is not known"
        raise RecordLostError(why, "sudo tunectl restore")
    return trial


def read_confirmed(state: str) -> HostSet | None:
    """The set that was in force without a trial, or was confirmed. TunectlError as read_trial()."""
    return read_record(state, CONFIRMED, HostSet)


def read_record(state: str, name: str, shape: type[Shape]) -> Shape | None:
    """A file beside the journal, None where it is not there. RecordLostError for one that others may write."""
    path = os.path.join(state, name)
    try:
        data = durable.read_regular(path, _LARGEST, follow=False)
        require_roots(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise TunectlError(f"cannot read {path}: {error.strerror}") from error
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.DecodeError as error:
        lost = RecordLostError(f"{path} is not as tunectl writes it ({error})", "sudo tunectl restore")
        legible = re.match(rb'{"id":"([0-9a-f]{8})"', data)
        lost.trial_id = legible[1].decode() if legible else ""
        raise lost from error


def write_trial(state: str, trial: Trial) -> None:
    """On disk before it returns. TunectlError."""
    write_record(state, NAME, trial, private=trial.set.private)


def write_confirmed(state: str, confirmed: HostSet) -> None:
    """On disk before it returns. TunectlError."""
    write_record(state, CONFIRMED, confirmed, private=confirmed.private)


def write_record(state: str, name: str, record: msgspec.Struct, *, private: bool = False) -> None:
    """On disk before it returns. TunectlError."""
    path = os.path.join(state, name)
    try:
        data, mode = msgspec.json.encode(record) + b"\n", 0o600 if private else 0o644
        durable.replace_file(path, data, mode=mode, beside=f"{path}.new")
    except OSError as error:
        raise TunectlError(f"cannot write {path}: {error.strerror}; nothing was changed after that") from error


def forget(state: str, *names: str) -> None:
    """These records are known no more. OSError."""
    for path in [os.path.join(state, file) for name in names for file in (f"{name}.new", name)]:
        with suppress(FileNotFoundError):
            durable.remove_file(path)


def unconfirmed_of(state: str, root: Sysroot, boot_id: str) -> Unconfirmed | None:
    """The change that waits for its confirmation, for a document; None where none does. TunectlError."""
    trial = read_trial(state, root)
    if trial is None or trial.is_over:
        return None
    if trial.tries:
        came: Came = "proved" if trial.tries.proved_at else "booted" if trial.tries.boot_id else "to-come"
        return Unconfirmed(trial.id, trial.kind, tried=came)
    due_s = trial.deadline_s if boot_id == trial.boot_id else 0.0  # a boot is the end of it: it was due at its start
    left_s = due_s - boot_time()
    return Unconfirmed(trial.id, trial.kind, now_utc(left_s), overdue=left_s < 0)


class Awaited(NamedTuple):
    """The change that waits for its confirmation, for a document, and the same as a sentence, with what ends it."""

    change: Unconfirmed | UnsetType = UNSET  # also where it is not known
    said: str = ""  # or why it is not known; "" where no change waits


def waiting(state: str, root: Sysroot, boot_id: str) -> Awaited:
    """What waits here, or why nobody knows."""
    try:
        change = unconfirmed_of(state, root, boot_id)
    except TunectlError as error:
        return Awaited(said=f"whether a change waits for its confirmation is not known: {error}")
    if change is None:
        return Awaited()
    until = f"unconfirmed, {awaits(change.back_at, change.overdue, change.tried)}"
    if change.overdue:
        return Awaited(change, f"{until}: `sudo tunectl deadline` takes it back")
    keeps = "" if change.tried in ("to-come", "booted") else f": `{kinds.confirm(change.id)}` keeps the change"
    return Awaited(change, f"{until}{keeps}")


def returned_of(state: str, root: Sysroot, config: HostConfig, journal: str) -> Returned | None:
    """The change that came back by itself, for a document; None once another set is wanted, or this one is kept.

    `journal` is the path that the document names. TunectlError.
    """
    trial = read_trial(state, root)
    if trial is None or trial.status != "returned" or not config.files:
        return None
    host, confirmed = read_set(config), read_confirmed(state)
    is_another = trial.set != UNKNOWN and host.texts != trial.set.texts
    if is_another or (confirmed and confirmed.texts == host.texts):
        return None
    return Returned(trial.id, trial.kind, trial.ended_at, trial.why, journal)
