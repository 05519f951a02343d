"""What a session's end shows below a title of its own, whichever worker it came from."""

from __future__ import annotations

from collections import defaultdict

import pytest

MATRIX = "sabotage matrix"
PLATFORM = "platforms of the lab"
AGAIN = "played again: the emulator failed"


def show(reporter: pytest.TerminalReporter) -> None:
    """Each line that a test's report carries as a property with one of these titles."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)  # in order; a test's phases carry the same lines
    for reports in reporter.stats.values():
        for report in reports:
            for title, line in getattr(report, "user_properties", ()):
                found[title][line] = None
    for title in (PLATFORM, MATRIX, AGAIN):
        if title in found:
            reporter.section(title)
            for line in found[title]:
                reporter.write_line(line)
