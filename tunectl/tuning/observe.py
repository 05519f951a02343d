"""host files -> observed. The only step between the disk and the pure plan."""

from __future__ import annotations

from collections.abc import Iterable

from tunectl.knobs import KNOBS
from tunectl.knobs.row import View
from tunectl.model import Reading, Setting


def observe(view: View, settings: Iterable[Setting]) -> list[Reading]:
    """Every target of every desired setting, as the host shows it now."""
    readings: list[Reading] = []
    for setting in settings:
        knob = KNOBS[setting.knob]
        readings.extend(knob.driver.observe(knob, view, setting.value))
    return readings
