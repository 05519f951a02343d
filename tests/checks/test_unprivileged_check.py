"""The checks of declared threads as a user who is not root, here: what cannot be seen is unknown, and told."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.places import as_nobody, wait_until_it_waits
from tests.host.test_busypoll import POLLED, running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("chrt"), reason="needs root, and chrt(1)"),
]

CPU = max(os.sched_getaffinity(0))
HOST_FILE = f"""profile = "low-latency"
isolated = "{CPU}"
[[threads]]
name = "rx"
command = "tt-hidden"
cpu = {CPU}
policy = "fifo"
priority = 1
spins = true
"""


@pytest.fixture(scope="module")
def findings() -> dict[str, dict[str, Any]]:
    """What nobody is told of a thread of root."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)  # pytest's own temporary directory is closed to others
        (Path(place) / "host.toml").write_text(HOST_FILE)
        named = f"{POLLED}\nopen('/proc/self/comm', 'w').write('tt-hidden')"
        with running(named, "chrt", "-f", "1") as child:
            wait_until_it_waits(child)  # what it touches for the first time before that would be its faults
            ran = as_nobody("check", "--host", f"{place}/host.toml", "--window", "1", "--format", "json")
    return {one["target"]: one for one in ran.json["findings"]}


@pytest.mark.parametrize("check", ["trading_fed", "trading_collector", "trading_polls"])
def test_what_cannot_be_seen_is_unknown(findings: dict[str, dict[str, Any]], check: str) -> None:
    found = findings[f"check.{check}[rx]"]
    assert found["outcome"] == "unreadable", found
    assert found["fix"] == "run tunectl as root: this user may not read it all"


@pytest.mark.parametrize(("check", "outcome"), [("trading_spins", "drifted"), ("trading_faults", "compliant")])
def test_what_everybody_may_see_is_judged(findings: dict[str, dict[str, Any]], check: str, outcome: str) -> None:
    """It waits for the test, and touches nothing new."""
    found = findings[f"check.{check}[rx]"]
    assert found["outcome"] == outcome, found
