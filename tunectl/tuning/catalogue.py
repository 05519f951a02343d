"""The knob table as data for people: what `tunectl knobs` and docs/knobs.md show."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated

import msgspec
from msgspec import Meta

from tunectl.hostfile.profile import Line, load_profile, shipped
from tunectl.hostfile.shape import Value
from tunectl.knobs import KNOBS
from tunectl.knobs.row import Knob
from tunectl.model import Lifetime, Match, Severity

_NUMBER = re.compile(r"(?:PID|[NM])(?=/|$)")  # what stands for one in a path


class Asked(msgspec.Struct, frozen=True):
    """What a shipped profile asks of a knob."""

    value: Value
    reason: str


class Row(msgspec.Struct, frozen=True):
    """A knob of the catalogue."""

    name: Annotated[str, Meta(pattern=r"^[^.]+\.[^.]", description="facility.name")]
    facility: str
    severity: Annotated[Severity, Meta(description="What it costs while it is not so; only for the order.")]
    why: Annotated[str, Meta(description="The mechanism.")]
    source: str
    risk: str
    lifetime: Lifetime
    match: Match
    expects: Annotated[str, Meta(description="The values that it takes, in words.")]
    after: Annotated[list[str], Meta(description="Knobs that are written before it.")]
    paths: list[str]
    profiles: Annotated[dict[str, Asked], Meta(description="By shipped profile, where it asks for this knob.")]


class Catalogue(msgspec.Struct, frozen=True):
    """What `tunectl knobs` tells of all knobs, or of those that were named."""

    knobs: list[Row]


def catalogue() -> Catalogue:
    """Every knob with its meaning, and what each shipped profile asks of it."""
    profiles = {name: load_profile(name).knobs for name in shipped()}
    return Catalogue([_row(knob, profiles) for knob in KNOBS.values()])


def found(rows: Sequence[Row], word: str) -> list[Row]:
    """The knob of that name or the facility; else those of which it is a part of the name, an argument or a file. Pure.

    A file may be that of one CPU, and a setting of sysctl(8) is one, too.
    """
    exact = [row for row in rows if word in (row.name, row.facility)]
    key = word.partition("=")[0]
    return exact or [row for row in rows if key and (key in row.name or any(_is_of(path, key) for path in row.paths))]


def _is_of(path: str, key: str) -> bool:
    """Does a path of the catalogue, with N for a number, name this file?"""
    if "/" in key:
        return key in path or re.fullmatch(_NUMBER.sub("[^/]+", re.escape(path)), key) is not None
    return key in _parts(path) or key in path.rpartition("/")[2] or path.endswith(f"/{key.replace('.', '/')}")


def _parts(path: str) -> list[str]:
    """The names in it: `transparent_hugepage` is a folder of the kernel's, which people take for the setting."""
    return [part.rstrip("=") for part in path.split("/") if part]


def nearest(rows: Sequence[Row], word: str) -> str:
    """The first knob that is meant where the word, or a part of a file's path, was misspelt; "" for none."""
    import difflib  # only for the message: it is slow to import

    names: dict[str, str] = {}
    for row in rows:
        for alias in (*chain(*map(_parts, row.paths)), row.name.partition(".")[2], row.name):
            names.setdefault(alias, row.name)
    return next((names[close] for close in difflib.get_close_matches(word, names, n=1, cutoff=0.8)), "")


def _row(knob: Knob, profiles: Mapping[str, Mapping[str, Line]]) -> Row:
    asked = {name: lines[knob.name] for name, lines in profiles.items() if knob.name in lines}
    return Row(
        name=knob.name,
        facility=knob.facility,
        severity=knob.severity,
        why=knob.why,
        source=knob.source,
        risk=knob.risk,
        lifetime=knob.lifetime,
        match=knob.match,
        expects=knob.codec.expects,
        after=list(knob.after),
        paths=list(knob.driver.describe()),
        profiles={name: Asked(line.value, line.reason) for name, line in asked.items()},
    )
