"""The journal: what each file held before a write. The record is on disk before the write is made.

One record a line: a CRC-32 in hex, a space, a JSON object. Records: `start` (a run of apply begins),
`before` (the before-image of one file), `after` (what the host shows once it is written), `refused`
(the write did not happen), `told` (programs were notified), `held` (what is in force at the end of a run), `end` (with
the paths that the run wrote). Each but `before`, which has a number of its own, says which line of the file it is: so a
line that is lost leaves a gap.
Runtime values carry the boot id, because they end with the boot; files outlive it, and so does `held`, which has
names only: the last one counts. Bytes are kept as latin-1 text, which maps every byte to one character.
"""

import errno
import glob
import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tunectl import durable
from tunectl.durable import decode, line_of, read_regular
from tunectl.errors import TunectlError
from tunectl.model import Held
from tunectl.tuning import newest
from tunectl.tuning.newest import Newest
from tunectl.tuning.records import (
    OF_THE_BOOT,
    After,
    Entry,
    InForce,
    Refused,
    Start,
    Told,
    before_record,
    held_record,
    read_record,
)
from tunectl.wording import few

NAME = "journal.jsonl"
_MODE = 0o644  # what apply writes is no secret, and without root `verify` must know it
_PRIVATE = 0o600  # once it holds what a file was that not everybody may read
_LARGEST = 64 << 20  # bytes; apply on 4,096 interrupts writes 3 MiB
_BLOCK = 512  # no disk writes less at a time
_PATH = re.compile(rb'"path":"([\x20-\x21\x23-\x5b\x5d-\x7e]{1,255})"')


@dataclass
class Journal:
    """The journal of one state directory. Opened with `load`, written only by the holder of the lock."""

    directory: str
    entries: dict[int, Entry] = field(default_factory=dict)
    root: str = ""  # of the host it belongs to; "" in a new one
    created: tuple[str, ...] = ()  # directories made to hold it
    adopted: tuple[str, ...] = ()  # what an earlier apply had left when it began, taken for the original
    damaged: tuple[int, ...] = ()  # line numbers
    unusable: tuple[str, ...] = ()  # the damaged lines that are whole, and why nothing can be done with each
    lost: tuple[str, ...] = ()  # paths that are known to have been written, and of which there is no entry
    torn: bool = False  # the last line was cut off
    ended: bool = True  # the newest run came to its end, as far as is known
    unreadable: bool = False  # it belongs to root, and this process is not root
    held: Mapping[str, Held] | None = None  # None: no run of a version that notes it
    run: int = 0  # the number of its newest run; 0: of a version that numbers none
    newest: Newest = Newest()  # noqa: RUF009 - a tuple
    _good_size: int = 0
    _lines: int = 0
    _first: int = 0  # the number of this run's first entry
    _name_synced: bool = False  # the directory that holds it was synced
    _seq: int = 0

    @property
    def path(self) -> str:
        """The journal's file."""
        return os.path.join(self.directory, NAME)

    @property
    def damage(self) -> str:
        """Which lines are damaged; "" where none is."""
        if not self.damaged:
            return ""
        one = len(self.damaged) == 1
        return f"{self.path}: {'line' if one else 'lines'} {few(self.damaged)} {'is' if one else 'are'} damaged"

    def start(self, boot_id: str, root: str, created: tuple[str, ...], adopted: tuple[str, ...] = ()) -> None:
        """A run on the host below `root` begins; `created` are the directories made for the state.

        `adopted` is what an earlier apply left, and what `restore` shall leave as it is.
        """
        self.created = _united(self.created, created)
        self.adopted = _united(self.adopted, adopted)
        self.root = root
        self._first = self._seq + 1
        self.run = max(self.run, self.newest.run) + 1
        self._append(self._start(boot_id))

    def _start(self, boot_id: str) -> dict[str, Any]:
        more: dict[str, Any] = {"adopted": list(self.adopted)} if self.adopted else {}
        more |= {"run": self.run} if self.run else {}
        return {"type": "start", "boot_id": boot_id, "root": self.root, "created": list(self.created), **more}

    @property
    def is_new(self) -> bool:
        """Has no run of apply begun here, as far as anybody knows? A first line that was cut off had no write."""
        return not (self.root or self.entries or self.damaged or self.unreadable)

    @property
    def has_written(self) -> bool:
        """Has this run written anything, as far as it knows?"""
        return any(seq >= self._first and entry.errno is None for seq, entry in self.entries.items())

    @property
    def is_older(self) -> bool:
        """Is it known that a later run, or later entries of this one, are missing?"""
        last = max(self.entries, default=0)
        return bool(self.run) and (self.run, last) < (self.newest.run, self.newest.seq)

    def in_force(self) -> Mapping[str, Held]:
        """By knob what the last apply left in force; of an earlier version, what it wrote."""
        if self.held is not None:
            return self.held
        found: dict[str, Held] = {}
        for entry in self.entries.values():
            if entry.errno is None and entry.shown is not None and entry.kind in OF_THE_BOOT:
                for knob, instance in entry.targets:
                    held = found.get(knob) or Held(entry.after, "", "", frozenset(), ())
                    found[knob] = held.with_instances([instance])
        return found

    def hold(self, held: Mapping[str, Held]) -> None:
        """Notes what is in force now, where that is not what it was. The file does not grow with every run."""
        if held == self.held:
            return
        self._append(held_record(held), synced=False)
        self.held = held

    def prune(self, boot_id: str) -> None:
        """Forgets the runtime values of earlier boots, which ended with them: the file must not grow at each boot."""
        alive = [seq for seq, entry in self.entries.items() if entry.persistent or entry.boot_id == boot_id]
        if len(alive) < len(self.entries):
            self.held = self.in_force()
            self.keep(alive, boot_id, "nothing was changed")

    def keep(self, numbers: Iterable[int], boot_id: str, done: str) -> None:
        """Forgets every entry but these. TunectlError, with what was `done` before, where it cannot be written."""
        if self.newest.seq:  # what is forgotten makes it no older
            self.newest = self.newest._replace(seq=0)
            newest.note(self.directory, self.newest)
        self.entries = {seq: self.entries[seq] for seq in numbers}
        records = [{**self._start(boot_id), "kept": True}]
        for seq, entry in self.entries.items():
            records.append(before_record(entry))
            if entry.shown is not None:
                records.append({"type": "after", "seq": seq, "shown": entry.shown})
            if entry.errno is not None:
                records.append({"type": "refused", "seq": seq, "errno": entry.errno})
        records.append({"type": "told", "seqs": [seq for seq, entry in self.entries.items() if entry.notified]})
        if self.held is not None:
            records.append(held_record(self.held))
        data = b"".join(line_of(_numbered(record, line)) for line, record in enumerate(records, start=1))
        try:
            mode = _PRIVATE if any(map(_is_private, self.entries.values())) else _MODE
            durable.replace_file(self.path, data, mode=mode, beside=f"{self.path}.new")
        except OSError as error:
            raise TunectlError(f"cannot write the journal {self.path}: {error.strerror}; {done}") from error
        self._good_size, self._lines = len(data), len(records)

    def part(self, numbers: Iterable[int]) -> "Journal":
        """These entries alone: by them `restore` goes back to what stood before them, with our earlier words in it.

        Where somebody edited the file between two of them, the file as he made it, without any word of ours.
        """
        entries: dict[int, Entry] = {}
        last: dict[str, str] = {}
        for seq in sorted(numbers):
            entry = self.entries[seq]
            follows = last.get(entry.path, entry.before) == entry.before
            if entry.kind == "edit" and entry.before is not None and follows:
                entry = entry._replace(undo=entry.before)
            if entry.errno is None:
                last[entry.path] = entry.after
            entries[seq] = entry
        return Journal(self.directory, entries, root=self.root)

    @property
    def numbers_of_run(self) -> set[int]:
        """The entries of this run of apply."""
        return {seq for seq in self.entries if seq >= self._first}

    @property
    def next_number(self) -> int:
        """The number that the next entry will have."""
        return self._seq + 1

    def edits(self) -> dict[str, tuple[str | None, str]]:
        """Of each file that was edited: what it was without us, and what we wrote last."""
        found: dict[str, tuple[str | None, str]] = {}
        for _, entry in sorted(self.entries.items()):
            if entry.kind != "edit" or entry.errno is not None:
                continue
            before, after = found.get(entry.path, (None, ""))
            edited = entry.path in found and entry.before not in (after, before)
            first = before if entry.path in found and not edited else entry.original
            found[entry.path] = (first, entry.after)
        return found

    def before(self, entry: Entry) -> int:
        """On disk before it returns. The entry's number is given here."""
        entry = entry._replace(seq=self._seq + 1)
        self._append(before_record(entry), mode=_PRIVATE if _is_private(entry) else None)
        self._seq = entry.seq  # load() takes a missing number for damage
        self.entries[entry.seq] = entry
        return entry.seq

    def after(self, seq: int, shown: str) -> None:
        """The write was made, and this is how the host shows it."""
        self._append({"type": "after", "seq": seq, "shown": shown}, synced=False)  # decide_open_writes() can do without
        self.entries[seq] = self.entries[seq]._replace(shown=shown)

    def refused(self, seq: int, errno: int) -> None:
        """The write was not made."""
        self._append({"type": "refused", "seq": seq, "errno": errno})
        self.entries[seq] = self.entries[seq]._replace(errno=errno)

    def notified(self, numbers: Iterable[int]) -> None:
        """The programs that depend on these files have been run since they changed."""
        numbers = list(numbers)
        self._append({"type": "told", "seqs": numbers}, synced=False)
        for seq in numbers:
            self.entries[seq] = self.entries[seq]._replace(notified=True)

    def end(self, boot_id: str = "", words: tuple[str, ...] = ()) -> None:
        """The run is complete; `words` are our boot arguments, as they stand now."""
        wrote = [entry.path for seq, entry in self.entries.items() if seq >= self._first]
        self._append({"type": "end", "wrote": list(dict.fromkeys(wrote))})
        self.newest = Newest(self.run, max(self.entries, default=0), boot_id, words)
        newest.note(self.directory, self.newest, self._undoes("what was done"))

    def _undoes(self, what: str) -> str | None:
        """What takes back what stands already; None where this run wrote nothing."""
        return f"`sudo tunectl restore` undoes {what}" if self.has_written else None

    def _append(self, record: dict[str, Any], *, synced: bool = True, mode: int | None = None) -> None:
        line = line_of(_numbered(record, self._lines + 1))
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
            try:
                self._write(fd, line, synced, mode)
            finally:
                os.close(fd)
        except OSError as error:
            raise TunectlError(
                f"cannot write the journal {self.path}: {error.strerror}; nothing was changed after that",
                self._undoes("what was changed before"),
            ) from error
        self._good_size += len(line)
        self._lines += 1

    def _write(self, fd: int, line: bytes, synced: bool, mode: int | None) -> None:
        try:
            if mode or not self._good_size:  # a new file: anybody may read it, whatever the umask
                os.fchmod(fd, mode or _MODE)
            os.ftruncate(fd, self._good_size)  # a line that was cut off never had its write
            os.lseek(fd, 0, os.SEEK_END)
            durable.write_all(fd, line)
            if synced:
                os.fsync(fd)
            if not self._name_synced:  # the process that made the file may have been killed before
                durable.sync_directory(self.directory)
                self._name_synced = True
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, self._good_size)
            raise

    def remove(self) -> None:
        """Removes the journal, once everything was restored. TunectlError where it cannot."""
        try:
            self.settle()
            newest.remove(self.directory)
            for path in (f"{self.path}.new", self.path):
                with suppress(FileNotFoundError):
                    os.unlink(path)
            durable.sync_directory(self.directory)
        except OSError as error:
            raise TunectlError(
                f"everything was restored, but {error.filename or self.path} cannot be removed: {error.strerror}",
                "take it away, and run `sudo tunectl restore` again",
            ) from error
        self.entries.clear()

    def remove_directories(self, root: str) -> list[str]:
        """Removes the directories that were made for the journal, once the lock in them is released.

        One that holds other files stays. Where anything else keeps one, a line that says so is returned. `root` is the
        host's. The journal of a recorded host came from elsewhere: what it calls its own is believed only of the state
        directory and those above it, and below that root.
        """
        kept = []
        for directory in dict.fromkeys((self.directory, *reversed(self._made(root)))):
            try:
                durable.remove_directory(directory)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
                    kept.append(f"cannot remove the directory {directory}: {error.strerror}")
        return kept

    def _made(self, root: str) -> tuple[str, ...]:
        """The directories that were made, where they lie now: a recorded host may have been moved since."""
        moved = self.root not in ("", "/", root)
        made = [
            root + one.removeprefix(self.root) if moved and one.startswith(self.root + "/") else one
            for one in self.created
        ]
        inside = root.rstrip("/") + "/" if self.directory.startswith(root.rstrip("/") + "/") else "/"
        return tuple(one for one in made if f"{self.directory}/".startswith(f"{one}/") and one.startswith(inside))

    def lossy(self) -> tuple[str, ...]:
        """The journals that were set aside and had lost before-images: what those were of may still stand."""
        return tuple(path for path in self.kept("damaged") if _lost_any(path))

    def kept(self, word: str) -> list[str]:
        """The journals that were set aside as `damaged`, and those of them that are settled: `adopted`."""
        return sorted(glob.glob(f"{glob.escape(self.path)}.{word}.*"))

    def settle(self) -> None:
        """Renames the damaged journals that `--adopt` settled: they are kept, and count no more.

        After the record that says so: a kill between the two leaves names by which this is done later. OSError.
        """
        for path in self.kept("damaged"):
            if os.path.basename(path) in self.adopted:  # its name alone: a recorded host may have been moved
                durable.rename(path, self._free("adopted"))

    def _free(self, word: str) -> str:
        number = 1
        while os.path.lexists(path := f"{self.path}.{word}.{number}"):
            number += 1
        return path

    def set_aside(self) -> str:
        """A journal that does not tell all is kept under another name. Returns it.

        TunectlError where it cannot be renamed.
        """
        aside = self._free("damaged")
        try:
            durable.rename(self.path, aside)
        except OSError as error:
            raise TunectlError(f"cannot rename {self.path} to {aside}: {error.strerror}") from error
        return aside


class RecordLostError(TunectlError):
    """A record in the state directory is gone, or nobody can believe it; of a change its id, where that is legible."""

    trial_id = ""


def require_roots(path: str) -> None:
    """Root obeys what stands in a state directory: nobody else may have written it, nor a link to it. OSError.

    RecordLostError otherwise. Who is not root deceives himself alone.
    """
    status = os.lstat(path)
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
        why = f"{path} can be written by others than root: it is not believed, and nothing was touched"
        raise RecordLostError(why, "what stands there says what root writes")


def load(directory: str) -> Journal:
    """The journal as it stands; an empty one where there is none. Damage is noted, not raised."""
    journal = Journal(directory, newest=newest.read(directory))
    try:
        data = read_regular(journal.path, _LARGEST, follow=False)
        require_roots(journal.path)
    except (FileNotFoundError, NotADirectoryError):
        return journal
    except OSError as error:
        raise TunectlError(f"cannot read the journal {journal.path}: {error.strerror}") from error
    _replay_all(journal, data)
    return journal


def _lost_any(path: str) -> bool:
    """Are before-images known to be lost from this journal? So it counts where it cannot be read."""
    journal = Journal(os.path.dirname(path))
    try:
        _replay_all(journal, read_regular(path, _LARGEST))
    except OSError:
        return True
    return bool(journal.lost)


def _replay_all(journal: Journal, data: bytes) -> None:
    """What the bytes of a journal tell."""
    lines = data.split(b"\n")
    tail = lines.pop()
    records = [(number, decode(line)) for number, line in enumerate(lines, start=1)]
    if not tail and lines and records[-1][1] is None and _never_arrived(lines[-1]):
        tail = lines[-1] + b"\n"
        records.pop()
    elif tail and tail[-1:] != b"\0" and decode(tail[:-1]) is not None:  # all of a record, but its newline is another
        lines.append(tail)
        records.append((len(lines), None))
        tail = b""
    problems, orphans = {}, []
    for number, record in records:
        try:
            if not _replay(journal, record or {}):
                orphans.append(number)
        except (TunectlError, ValueError) as error:  # whole or not, no record that this version writes
            problems[number] = str(error)
    read = [record if record and number not in problems else {} for number, record in records]
    # A line that is damaged leaves a gap behind it, and records of an entry that is not known.
    journal.damaged = tuple(problems or sorted({*orphans, *_gaps(read)}) or _missing_lines(read))
    unusable = {number: record for number, record in records if record and number in problems}
    journal.unusable = tuple(_unusable(number, record, problems[number]) for number, record in unusable.items())
    journal.lost = _lost(journal, read, [_path_in(unusable.get(number), lines[number - 1]) for number in problems])
    journal.torn = bool(tail)
    starts = [record for record in read if record.get("type") == "start"]
    journal.ended = not starts or "kept" in starts[-1] or read[-1].get("type") == "end"
    journal._good_size, journal._lines = len(data) - len(tail), len(records)


def _unusable(number: int, record: dict[str, Any], why: str) -> str:
    """`line 5 (/proc/12/stat): undo: 'fifo' is no policy and priority`"""
    path = _path_in(record, b"")
    return f"line {number}{f' (/{path})' if path else ''}: {why}"


def _is_private(entry: Entry) -> bool:
    """Was it a file that not everybody may read? A value of the kernel's is no secret, whoever may read it."""
    is_file = entry.kind not in OF_THE_BOOT and entry.before is not None
    return is_file and entry.mode is not None and not entry.mode & stat.S_IROTH


def _numbered(record: dict[str, Any], line: int) -> dict[str, Any]:
    """Earlier versions take no further field of a `before`: its own number has to do."""
    return record if record["type"] == "before" else {**record, "line": line}


def _never_arrived(line: bytes) -> bool:
    """Is this a line of which a block never reached the disk, although the block with its newline did?

    Such a block reads as zeros: it begins the line, or is a whole one within. A byte that changed later is damage.
    """
    return line.startswith(b"\0") or bytes(_BLOCK) in line


def _missing_lines(records: list[dict[str, Any]]) -> list[int]:
    """The numbers of the lines that do not stand where they were written: before each, another is missing."""
    found, ahead = [], 0
    for line, record in enumerate(records, start=1):
        by = record.get("line", line + ahead) - line
        found += [line] if by != ahead else []
        ahead = by
    return found


def _lost(journal: Journal, records: list[dict[str, Any]], damaged: list[str]) -> tuple[str, ...]:
    """The paths of before-images that are lost: of damaged lines, and those of which only the end of a run tells."""
    lost = list(filter(None, damaged))
    announced: set[str] = set()
    for record in records:
        if record.get("type") == "before":
            announced.add(str(record.get("path")))
        elif record.get("type") == "end":
            lost += [path for path in record.get("wrote", ()) if path not in announced]
    return tuple(dict.fromkeys(lost)) if journal.damaged else ()


def _path_in(record: dict[str, Any] | None, line: bytes) -> str:
    """The path that a damaged line is about, as far as it can be read; "" where it cannot."""
    if record is None:
        match = _PATH.search(line)
        return match[1].decode() if match else ""
    path = record.get("path")
    return path if isinstance(path, str) else ""


def _gaps(records: list[dict[str, Any]]) -> list[int]:
    """The numbers of the lines before which an entry is missing.

    Entries are numbered one after the other, except in what keep() wrote (the lines up to the second `start`, of which
    none is an `end`), and in the first one after that: the newest may have been forgotten.
    """
    starts = [place for place, record in enumerate(records) if record["type"] == "start"]
    head = records[: starts[1]] if len(starts) > 1 else records
    whole = any(record["type"] == "end" for record in head)
    skipped = 0 if whole else 1 + sum(record["type"] == "before" for record in head)
    entries = [(line, record["seq"]) for line, record in enumerate(records, start=1) if record["type"] == "before"]
    follow = list(pairwise([(0, 0), *entries]))[skipped:]
    return [line for (_, earlier), (line, seq) in follow if seq != earlier + 1]


def peek(directory: str) -> Journal:
    """The journal, for reading only. Without permission to read it: an empty one that is marked `unreadable`."""
    try:
        return load(directory)
    except TunectlError as error:
        if isinstance(error.__cause__, PermissionError):
            return Journal(directory, unreadable=True)
        raise


def _united(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    """Each once, in order: of directories, each before what is in it."""
    return tuple(sorted({*one, *other}))


def _replay(journal: Journal, record: dict[str, Any]) -> bool:
    """Takes one record in. False where it is about an entry that no record announced.

    TunectlError or ValueError, which say why, where this version writes no such record.
    """
    match read_record(record):
        case Entry() as entry:
            if entry.seq in journal.entries:
                raise ValueError(f"seq: {entry.seq} is an earlier entry's")
            journal.entries[entry.seq] = entry
            journal._seq = max(journal._seq, entry.seq)
        case Start() as start:
            journal.run, journal.root = start.run, start.root
            journal.created = _united(journal.created, start.created)
            journal.adopted = _united(journal.adopted, start.adopted)
        case InForce() as in_force:
            journal.held = in_force.held()
        case After(seq=seq, shown=shown):
            return _became(journal, [seq], shown=shown)
        case Refused(seq=seq, errno=number):
            return _became(journal, [seq], errno=number)
        case Told(seqs=numbers):
            return _became(journal, numbers, notified=True)
    return True


def _became(journal: Journal, numbers: Iterable[int], **what: Any) -> bool:
    """Notes what became of entries. False where one of them is not known."""
    for seq in numbers:
        if seq not in journal.entries:
            return False
        journal.entries[seq] = journal.entries[seq]._replace(**what)
    return True


def is_first(journal: Journal, boot_id: str) -> bool:
    """Is this the first apply of this boot? Only the first one reads what interrupts an isolated CPU.

    Otherwise a firmware's energy bias would stay on the very CPUs for which it matters. A later apply, for example a
    repair in the middle of the day, finds this boot in the journal.
    """
    return all(entry.boot_id != boot_id for entry in journal.entries.values())
