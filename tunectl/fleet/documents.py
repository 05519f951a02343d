"""The files of a session, checked field by field: its list of hosts, and notes about hosts without a document. Pure."""

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.records import Absent, Answer, Session
from tunectl.shapes import Maybe

SESSION: Literal["tunectl.fleet.session/1"] = "tunectl.fleet.session/1"
ABSENT: Literal["tunectl.fleet.absent/1"] = "tunectl.fleet.absent/1"
_Kind = TypeVar("_Kind")
_Text = Annotated[str, Meta(max_length=1 << 16)]


class _Schema(msgspec.Struct, frozen=True):
    schema: str


class SessionFile(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl fleet open` writes as session.json, and prints: one round of preflights."""

    schema: Literal["tunectl.fleet.session/1"]
    name: _Text
    directory: _Text = ""
    at: _Text
    selection: _Text = ""
    hosts: Annotated[list[_Text], Meta(description="Who is asked, by the inventory's names.")]


class AbsentFile(msgspec.Struct, frozen=True, kw_only=True):
    """Why a host left no document: lies in a session in the document's stead, written by who asked."""

    schema: Literal["tunectl.fleet.absent/1"]
    name: Annotated[_Text, Meta(description="As the inventory calls it; the file's name counts."), Maybe] = ""
    kind: Literal["unreachable", "failed"]
    reason: _Text
    at: Annotated[_Text, Maybe] = ""


def parse_session(data: bytes, directory: str, where: str) -> Session:
    """The session that a session.json describes. TunectlError, naming `where`, for anything else."""
    read = _decoded(data, SessionFile, where)
    return Session(read.name, directory, read.at, read.selection, tuple(dict.fromkeys(read.hosts)))


def is_absent(data: bytes) -> bool:
    """Does it say that it is a note why there is no document?"""
    try:
        return msgspec.json.decode(data, type=_Schema).schema == ABSENT
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False


def parse_absent(data: bytes, where: str) -> Absent | None:
    """The note; None for any other document or data. TunectlError for a broken note."""
    if not is_absent(data):
        return None
    read = _decoded(data, AbsentFile, where)
    return Absent(Answer(read.kind), read.reason, read.at)


def parse_hosts(text: str, where: str) -> tuple[str, ...]:
    """Names, as a JSON list or one a line; UsageError, naming `where`, for any other JSON."""
    if not text.lstrip().startswith(("[", "{")):
        return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    try:
        names = msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=list[_Text])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{where}: {error or 'nested too deep'}", "a JSON list of names, or a name a line") from error
    return tuple(dict.fromkeys(names))


def absent_file(absent: Absent, name: str) -> AbsentFile:
    """The note about the host of that name."""
    kind: Literal["unreachable", "failed"] = "failed" if absent.kind is Answer.FAILED else "unreachable"
    return AbsentFile(schema=ABSENT, name=name, kind=kind, reason=absent.reason, at=absent.at)


def session_file(session: Session) -> SessionFile:
    """The list of a session."""
    return SessionFile(schema=SESSION, **{**session._asdict(), "hosts": list(session.hosts)})


def _decoded(data: bytes, kind: type[_Kind], where: str) -> _Kind:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise TunectlError(f"{where}: {error or 'nested too deep'}") from error
