"""The knob table as data for people: what `tunectl knobs` and docs/knobs.md show."""

from __future__ import annotations

from typing import Any

from tunectl.hostfile.profile import load_profile, shipped
from tunectl.knobs import KNOBS


def catalogue() -> list[dict[str, Any]]:
    """Every knob with its meaning, and what each shipped profile asks of it."""
    profiles = {name: load_profile(name).knobs for name in shipped()}
    return [
        {
            "name": knob.name,
            "facility": knob.facility,
            "severity": knob.severity.value,
            "why": knob.why,
            "source": knob.source,
            "risk": knob.risk,
            "lifetime": str(knob.lifetime),
            "match": str(knob.match),
            "expects": knob.codec.expects,
            "after": list(knob.after),
            "paths": list(knob.driver.describe()),
            "profiles": {
                name: {"value": lines[knob.name].value, "reason": lines[knob.name].reason}
                for name, lines in profiles.items()
                if knob.name in lines
            },
        }
        for knob in KNOBS.values()
    ]
