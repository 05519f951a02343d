"""What differs between two runs and means nothing: the time of the run, durations, the version, where things lie."""

import re
import sysconfig
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tunectl import __version__

_VERSION = re.escape(__version__)
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z?")
_PATTERNS = (
    (rf'(tunectl_version"?: "|User-Agent: tunectl/|version="|tunectl ){_VERSION}', r"\1VERSION"),
    (r'("(?:watched_s|cycle_s|cycle_ms|elapsed_s)": )[\d.e-]+', r"\1NUMBER"),
    (r"(timestamp_seconds\{[^}]*\} )[\d.e+]+", r"\1NUMBER"),
    (r"\b((?:[tT]he change|confirm)\s+)[0-9a-f]{8}\b", r"\1ID"),
    (r"(PLACE/\S+\.html: )[\d,]+( bytes)", r"\1MANY\2"),  # of a page, with its style sheet
    (r"(?m)^[0-9a-f]{8} (?=\{)", "CRC "),  # a line of the journal: what it sums up has been normalised
)


def normalised(text: str, place: Path) -> str:
    """`text` as it is in every run; what lies in `place` is at PLACE."""
    text = text.replace(str(place), "PLACE")
    scripts = sysconfig.get_path("scripts")
    text = text.replace(f"{scripts}/tunectl", "PROGRAM")
    text = re.sub(rf"{re.escape(scripts)}/python[0-9.]*", "PYTHON", text)
    # A unit whose program lies in /tmp may see /tmp.
    text = text.replace(" -/usr/lib/modules -/tmp", " -/usr/lib/modules").replace("PrivateTmp=no", "PrivateTmp=yes")
    text = _TIME.sub(_of_this_run, text)
    for pattern, instead in _PATTERNS:
        text = re.sub(pattern, instead, text)
    return text


def _of_this_run(found: re.Match[str]) -> str:
    """Times of documents that were made up stay: that they are handed on is part of the contract."""
    ago = datetime.now(UTC) - datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    return "TIME" if abs(ago) < timedelta(hours=2) else found[0]
