"""The knob table as data for people: what `tunectl knobs` and docs/knobs.md show."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from tunectl.hostfile.profile import Line, load_profile, shipped
from tunectl.hostfile.shape import Value
from tunectl.knobs import KNOBS
from tunectl.knobs.row import Knob
from tunectl.model import Lifetime, Match, Severity


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
