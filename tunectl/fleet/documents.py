"""The files of a session, checked field by field: its list of hosts, and notes about hosts without a document. Pure."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from ipaddress import ip_address
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
_A_LIST = "a JSON list of names, or an object with each name's rack, or a name a line; # begins a comment"
_COMMENT = re.compile(r"(^|\s)#.*|^\s*;.*")
# What begins a group in an inventory that is an INI file.
_SECTION = re.compile(r"\s*\[\s*[^\s\]\[\"{},][^\]\[\"{},]*\]\s*(?:[#;].*)?$", re.MULTILINE)
_NAME = re.compile(r"[^\W_][\w.-]*")
_LONGEST_NAME = 253  # RFC 1035, 2.3.4, as text


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
    racks: Annotated[
        dict[_Text, _Text], Meta(description="Of hosts the rack, where the inventory says one."), Maybe
    ] = {}


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
    return Session(
        read.name, directory, read.at, read.selection, tuple(dict.fromkeys(read.hosts)), tuple(read.racks.items())
    )


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


def parse_hosts(data: bytes, where: str) -> dict[str, str]:
    """Names, as JSON or one a line, where # begins a comment, each with its rack; UsageError, naming `where`, for
    anything else.

    The names of JSON are an inventory's, and may hold anything; a line must be a host's name, or an address.
    """
    try:
        # PowerShell 5.1 and Notepad begin a file with a mark of its encoding, which is no part of a name.
        text = data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
        if text.lstrip().startswith(("[", "{")) and not _SECTION.match(text):
            read = msgspec.json.decode(text, type=list[_Text] | dict[_Text, _Text])
            return read if isinstance(read, dict) else dict.fromkeys(read, "")
    except (UnicodeDecodeError, msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{where}: {error or 'nested too deep'}", _A_LIST) from error
    lines = ((number, _COMMENT.sub("", line).strip()) for number, line in enumerate(text.splitlines(), 1))
    return dict.fromkeys((_host_of(line, f"{where}, line {number}") for number, line in lines if line), "")


def _host_of(line: str, where: str) -> str:
    """A name of DNS or of an inventory without spaces in it, or an address."""
    if _NAME.fullmatch(line) and len(line) <= _LONGEST_NAME:
        return line
    try:
        ip_address(line)
    except ValueError:
        what = "a section of an inventory" if _SECTION.match(line) else "no host's name"
        raise UsageError(f"{where}: {line[:_LONGEST_NAME]!r} is {what}", _A_LIST) from None
    return line


def absent_file(absent: Absent, name: str) -> AbsentFile:
    """The note about the host of that name."""
    kind: Literal["unreachable", "failed"] = "failed" if absent.kind is Answer.FAILED else "unreachable"
    return AbsentFile(schema=ABSENT, name=name, kind=kind, reason=absent.reason, at=absent.at)


def session_file(session: Session) -> SessionFile:
    """The list of a session."""
    return SessionFile(
        schema=SESSION, **{**session._asdict(), "hosts": list(session.hosts), "racks": dict(session.racks)}
    )


def _decoded(data: bytes, kind: type[_Kind], where: str) -> _Kind:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise TunectlError(f"{where}: {error or 'nested too deep'}") from error
