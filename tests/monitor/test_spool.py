"""The spool: what was promised is there after a crash, damage costs a line and no more, and it does not grow."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.monitor.receivers.samples import fired, over
from tunectl.monitor.model import Alert, Severity, Status
from tunectl.monitor.spool import Spool


def spool_at(path: Path) -> tuple[Spool, list[Alert], int]:
    spool = Spool(str(path))
    found = spool.open()
    return spool, [alert for _, alert in found.waiting], found.damaged


def test_what_waits_survives_and_what_is_done_does_not(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "x.spool"
    spool, found, damaged = spool_at(path)
    assert (found, damaged) == ([], 0)
    alerts = [fired(0), over(fired(0)), fired(1, observed="µ\n\udc80", cpus="")]
    offsets = spool.append(alerts)
    spool.done(offsets[:1])
    spool.close()
    spool, found, damaged = spool_at(path)
    assert (found, damaged) == (alerts[1:], 0)
    assert isinstance(found[0].status, Status)
    assert isinstance(found[0].severity, Severity)
    spool.done(offsets[1:])
    assert path.read_bytes() == b""


def test_only_one_monitor_has_it(tmp_path: Path) -> None:
    spool, _, _ = spool_at(tmp_path / "x.spool")
    with pytest.raises(BlockingIOError):
        Spool(str(tmp_path / "x.spool")).open()
    spool.close()
    spool_at(tmp_path / "x.spool")


def test_a_file_is_private(tmp_path: Path) -> None:
    spool_at(tmp_path / "spool" / "x.spool")
    assert (tmp_path / "spool" / "x.spool").stat().st_mode & 0o007 == 0


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "x.spool").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        Spool(str(tmp_path / "x.spool")).open()
    assert not (tmp_path / "elsewhere").exists()


def whole(path: Path, count: int = 5) -> bytes:
    spool, _, _ = spool_at(path)
    spool.done(spool.append([fired(number) for number in range(count)])[:2])
    spool.close()
    return path.read_bytes()


def test_cut_off_anywhere(tmp_path: Path) -> None:
    """A crash in the middle of a write: every whole line is there, the torn one is nobody's, and it goes on."""
    path = tmp_path / "x.spool"
    data = whole(path)
    for length in range(0, len(data) + 1, 7):
        path.write_bytes(data[:length])
        spool, found, damaged = spool_at(path)
        assert damaged == 0
        assert found == [fired(number) for number in range(2, 5)][: max(0, data[:length].count(b"\n") - 2)]
        spool.append([fired(99)])
        spool.close()
        spool, again, damaged = spool_at(path)
        assert (again, damaged) == ([*found, fired(99)], 0)
        spool.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.integers(0, 4), st.integers(0, 80), st.binary(min_size=1, max_size=9))
def test_damage_costs_the_line_and_no_other(tmp_path: Path, line: int, column: int, noise: bytes) -> None:
    path = tmp_path / "x.spool"
    path.unlink(missing_ok=True)
    lines = whole(path).splitlines(keepends=True)
    noise = noise.replace(b"\n", b"?")
    hurt = lines[line][:column] + noise + lines[line][column + len(noise) :]
    path.write_bytes(b"".join([*lines[:line], hurt, *lines[line + 1 :]]))
    spool, found, damaged = spool_at(path)
    others = [fired(number) for number in range(2, 5) if number != line]
    assert [alert for alert in found if alert in others] == others
    assert len(found) <= 4, "a done line whose mark was damaged into the other may come back, nothing else"
    assert damaged <= 1
    spool.close()


def test_rewriting_forgets_what_is_done(tmp_path: Path) -> None:
    path = tmp_path / "x.spool"
    spool, _, _ = spool_at(path)
    offsets = spool.append([fired(number) for number in range(6000)])
    assert not spool.untidy
    spool.done(offsets[:5990])
    assert spool.untidy
    moved = spool.rewrite()
    assert not spool.untidy
    assert path.stat().st_size < 10_000
    spool.done([moved[offsets[5990]]])
    spool.append([fired(1)])
    spool.close()
    assert spool_at(path)[1] == [*(fired(number) for number in range(5991, 6000)), fired(1)]


def test_another_versions_alert_is_damage_and_not_the_end(tmp_path: Path) -> None:
    path = tmp_path / "x.spool"
    whole(path)
    from tunectl.tuning.records import line_of

    path.write_bytes(b"+ " + line_of({"rule": "New", "colour": "red"}) + b"+ " + line_of(fired()._asdict()))
    assert spool_at(path)[1:] == ([fired()], 1)
