"""Sessions on the controller's disk: a directory for each, with a file for each host. The fleet's only module with I/O.

    STORE/SESSION/session.json       who was asked, and when
    STORE/SESSION/hosts/HOST.json    the host's own preflight document, or why there is none
    STORE/SESSION/report.{txt,json,html}, pages/HOST.html

A file appears whole or not at all, so a session can be read while it is being written.
"""

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from tunectl.command import quoted
from tunectl.durable import read_regular, replace_file
from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.documents import ABSENT, absent_file, is_absent, parse_absent, parse_session, session_file
from tunectl.fleet.names import file_name, host_name
from tunectl.fleet.records import Absent, Answer, Asked, Session, Shared, kept_once, summary_of
from tunectl.fleet.spread import spread
from tunectl.probe.document import preflight_of
from tunectl.shapes import Preflight, plain

SILENT = "it left no document, and no note says why"
LIST, HOSTS = "session.json", "hosts"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,99}")
_NOTE = ABSENT.partition("/")[0].encode()
_REASONS = 5  # of a host among many: the most urgent come first, its own document has all
_LARGEST_NOTE = 1 << 20  # bytes; a note that says why there is no document is never larger
LARGEST_LIST = 64 << 20
LARGEST_ANSWER = 64 << 20  # a preflight of 64 CPUs with full lists is a tenth of it; one host is not to take the memory
_NOT_REGULAR = (errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENXIO)  # a FIFO or device, a directory, a link, a socket


def default_store() -> Path:
    """Where sessions are kept: by the XDG rules, because the controller's user need not be root."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local/state") / "tunectl/fleet"


def open_session(store: Path, asked: Session, header: Mapping[str, Any]) -> Session:
    """A new session's directory, with its list below the `header` of a document. Without a name the session gets
    its time as its name. UsageError for a name that is taken or not allowed."""
    name, at = asked.name, asked.at
    if name:
        check_name(name)
    chosen = name or at.replace(":", "")
    try:
        store.mkdir(parents=True, exist_ok=True)
        directory = _made(store, chosen, named=bool(name))
        (directory / HOSTS).mkdir()
    except OSError as error:
        raise TunectlError(f"cannot make a session in {store}: {error.strerror}") from error
    session = asked._replace(name=directory.name, directory=str(directory.absolute()))
    write_file(directory / LIST, json.dumps({**header, **plain(session_file(session))}, indent=1).encode())
    return session


def check_name(name: str) -> None:
    """UsageError for a name that no session may have: it is a directory's, too."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"a session cannot be called {name!r}", "letters, digits and . _ : + -, at most 100")


def _made(store: Path, name: str, named: bool) -> Path:
    for number in range(1, 1000):
        directory = store / (name if number == 1 else f"{name}-{number}")
        try:
            directory.mkdir()
        except FileExistsError:
            if named:
                raise UsageError(
                    f"{directory}: there is such a session already", "its results stay; name another"
                ) from None
            continue
        return directory
    raise TunectlError(f"{store}: a thousand sessions are called {name}")


def record_document(session: Path, host: str, document: bytes) -> Path:
    """Writes what the host printed, unchanged. UsageError for a note, which only the caller writes."""
    if is_absent(document):
        hint = "--unreachable REASON or --failed REASON writes it"
        raise UsageError(f"{host}: printed {ABSENT}, which says why a host left no document: no host writes that", hint)
    return write_file(session / HOSTS / file_name(host), document)


def record_absent(session: Path, host: str, absent: Absent) -> Path:
    """Writes the note why there is no document of this host."""
    body = json.dumps(asdict(absent_file(absent, host)), indent=1)
    return write_file(session / HOSTS / file_name(host), body.encode("utf-8", "backslashreplace"))


def write_file(path: Path, data: bytes) -> Path:
    """Replaces the file, readable by all; its directory is made. TunectlError where it cannot."""
    try:
        path.parent.mkdir(exist_ok=True)
        replace_file(str(path), data)
    except OSError as error:
        raise TunectlError(f"cannot write {path}: {error.strerror}") from error
    return path


def session_directory(store: Path, session: str) -> Path:
    """Where a session is that is known by its name in the store, or by its directory. UsageError where both are."""
    if not session:  # a variable of a script that was never set: not the directory where it runs
        raise UsageError("SESSION is empty", "a session's name or directory")
    path = Path(session)
    if os.sep in session or not path.is_dir():
        return path if os.sep in session else store / session
    kept = store / session
    if kept.is_dir() and not kept.samefile(path):
        raise ambiguous(session, f"the session {kept}")
    return path


def ambiguous(session: str, kept: str) -> UsageError:
    """For a word that names a folder here and what was kept: neither may be judged in the other's place."""
    return UsageError(f"{session}: a folder here, and {kept}", f"./{session} is the folder; the other from elsewhere")


def read_session(directory: Path, hosts: Sequence[str] | None = None) -> Session:
    """A session by its directory. If it has no list of hosts, `hosts` is that list. A plain directory of documents
    is a session, too, of the hosts that have a document there."""
    directory = directory.absolute()
    try:
        data = read_regular(str(directory / LIST), LARGEST_LIST)
    except FileNotFoundError:
        if not directory.is_dir():
            raise TunectlError(f"{directory}: no such session") from None
        return Session(directory.name, str(directory), hosts=tuple(dict.fromkeys(hosts or ())))
    except OSError as error:
        raise TunectlError(f"cannot read {directory / LIST}: {error.strerror}") from error
    session = parse_session(data, str(directory), str(directory / LIST))
    return session._replace(hosts=tuple(dict.fromkeys([*session.hosts, *(hosts or ())])))


def sessions(store: Path) -> list[Session]:
    """Every session of the store, the oldest first; other directories are ignored."""
    found = []
    try:
        entries = [Path(entry.path) for entry in os.scandir(store) if entry.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TunectlError(f"cannot read {store}: {error.strerror}") from error
    for directory in entries:
        with suppress(TunectlError):
            if (directory / LIST).exists():
                found.append(read_session(directory))
    return sorted(found, key=lambda session: (session.at, session.name))


def ask(session: Session) -> Iterator[Asked]:
    """The answer of every host, one at a time: those of the list first, then others that have a document."""
    shared: Shared = {}
    for found in spread(answers(session), _answer):
        yield found._replace(document=kept_once(found.document, shared)) if found.document else found


def _answer(of: tuple[Path, str, bool]) -> Asked:
    path, name, expected = of
    return _read(path, name, _REASONS)._replace(expected=expected)


def answers(session: Session) -> list[tuple[Path, str, bool]]:
    """Where the answer of every host is, or would be; its name; is it on the list?"""
    directory = _documents(session)
    try:
        left = {entry.name for entry in os.scandir(directory) if entry.name.lower().endswith(".json")}
    except OSError as error:
        raise TunectlError(f"cannot read {directory}: {error.strerror}") from error
    asked = [(directory / file_name(name), name, True) for name in session.hosts]
    others = sorted(left - {file.name for file, _, _ in asked} - {LIST, "report.json"})
    named = [(directory / file, host_name(file), False) for file in others if not file.startswith(".")]
    return asked + [(path, path.name if host is None else host, expected) for path, host, expected in named]


def ask_one(session: Session, name: str) -> Asked:
    """The answer of one host."""
    return _read(_documents(session) / file_name(name), name)


def _documents(session: Session) -> Path:
    directory = Path(session.directory)
    return directory / HOSTS if (directory / HOSTS).is_dir() else directory


def _read(path: Path, name: str, most: int | None = None) -> Asked:
    data = read_answer(path, name)
    found = data if isinstance(data, Asked) else answer_in(data, path, name)
    return found if isinstance(found, Asked) else Asked(name, Answer.DOCUMENT, summary_of(found, most), "", str(path))


def read_answer(path: Path, name: str) -> bytes | Asked:
    """What a host answered; why there is nothing."""
    try:
        return read_regular(str(path), LARGEST_ANSWER, follow=False)
    except FileNotFoundError:
        return Asked(name, Answer.SILENT, problem=SILENT)
    except OSError as error:
        if error.errno in _NOT_REGULAR:
            return Asked(name, Answer.UNUSABLE, problem=f"{path.name} is not a regular file")
        return Asked(name, Answer.UNUSABLE, problem=f"its document cannot be read: {error.strerror}")


def answer_in(data: bytes, path: Path, name: str) -> Preflight | Asked:
    """The document in a host's answer; why it is none."""
    try:
        may_be_note = len(data) <= _LARGEST_NOTE and _NOTE in data
        note = parse_absent(data, path.name) if may_be_note else None
        if note:
            said = quoted(note.reason) if note.reason else "no reason is given"
            return Asked(name, note.kind, problem=f"{note.kind.value}: {said}")
        document = preflight_of(data, path)
    except TunectlError as error:
        return Asked(name, Answer.UNUSABLE, problem=f"its document cannot be used: {quoted(str(error))}")
    return document or Asked(name, Answer.UNUSABLE, problem="its document is a probe's result, not a preflight's")
