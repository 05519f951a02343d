"""Calendar times, as systemd itself reads them."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tunectl.errors import TunectlError, UsageError
from tunectl.host import run
from tunectl.host.calendar import check_calendar, elapses

pytestmark = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


def test_a_time_zone_is_its_own() -> None:
    """New York leaves summer time on 1 November 2026: the open stays, its UTC moves."""
    friday = datetime(2026, 10, 30, 0, 0, tzinfo=UTC)
    found = elapses("Mon..Fri 07:45 America/New_York", friday, 2)
    assert [f"{each:%a %d %H:%M}" for each in found] == ["Fri 30 11:45", "Mon 02 12:45"]
    assert elapses("2020-01-01", friday, 3) == []
    with pytest.raises(TunectlError, match="Failed to parse"):
        elapses("noon", friday, 1)


@pytest.mark.parametrize(
    "bad", ["", "noon", "07:45\nExecStart=/bin/true", "07:45 %h", "25:00", "07:45 Mars/Base", "-h"]
)
def test_what_is_no_time_is_refused_in_one_line(bad: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_calendar(bad)
    assert str(caught.value).startswith("--at ")
    assert str(caught.value).isprintable()


def test_a_time_that_never_comes_again_is_refused() -> None:
    with pytest.raises(UsageError, match="never comes again"):
        check_calendar("2020-01-01")
    assert check_calendar("Mon..Fri 07:45 Europe/London") == "Mon..Fri 07:45 Europe/London"


def test_a_host_without_systemd_analyze_refuses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "PATH", str(tmp_path))
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(UsageError, match="cannot start systemd-analyze: No such file or directory"):
        check_calendar("07:45")
