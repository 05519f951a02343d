"""The state directory of an earlier version's monitor: what waits is delivered once, in order; what fires stays."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.golden.adapters import delivered_from
from tests.monitor.process import Monitor, running
from tests.upgrade.unpacked import receivers, told_of, unpacked, waiting

(HOOK,) = [name for name in receivers() if name.startswith("hook-")]
(WEBHOOK,) = [name for name in receivers() if name.startswith("webhook-")]


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """The host under watch, and all that the earlier version's monitor left."""
    return unpacked("watched", tmp_path / "host")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Where the hook runs, which now takes alerts."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "taking").touch()
    return place


def watching(host: Path, work: Path) -> Any:
    """A monitor that runs in `work`, the hook too."""
    return running(host, work / "run", wrapped=["sh", "-c", 'cd "$0" && exec "$@"', str(work)])


def taken(work: Path) -> list[dict[str, Any]]:
    """The documents that the hook took, in order."""
    return list(_documents((work / "taken").read_text())) if (work / "taken").exists() else []


def _documents(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        try:
            found, end = decoder.raw_decode(text)
        except ValueError:  # the hook is writing it
            return
        yield found
        text = text[end:]


@pytest.mark.parametrize("receiver", [HOOK, WEBHOOK])
def test_what_waits_is_delivered_once_in_order(host: Path, receiver: str) -> None:
    state = host / "var/lib/tunectl"
    assert [told_of(alert) for alert in delivered_from(state, receiver)] == waiting(receiver)
    assert delivered_from(state, receiver) == []


@pytest.mark.slow
def test_a_monitor_delivers_what_waits_before_what_is_new(host: Path, work: Path) -> None:
    expected = waiting(HOOK)
    with watching(host, work) as monitor:
        assert isinstance(monitor, Monitor)
        monitor.wait_for(lambda: len(taken(work)) >= len(expected))
        assert monitor.end() == 0
    first = taken(work)
    assert [told_of(one) for one in first[: len(expected)]] == expected
    said = len(monitor.said())
    with watching(host, work) as monitor:
        monitor.wait_for(lambda: len(monitor.said()) > said)  # it runs: the first one may have told of the end, too
        monitor.wait_for(lambda: ("resolved", "FrequencyDrop[cpu3]") in monitor.transitions())
        assert monitor.end() == 0
    again = taken(work)
    assert again[: len(first)] == first
    assert len({one["id"] for one in again}) == len(again)  # nothing twice
    # For the receiver that nobody could reach, all of it waits still: the earlier version's first.
    kept = [told_of(alert) for alert in delivered_from(host / "var/lib/tunectl", WEBHOOK)]
    assert kept[: len(expected)] == expected
    assert [one for one in map(told_of, again) if one not in kept] == []


@pytest.mark.slow
def test_what_fired_goes_on_and_does_not_fire_again(host: Path, work: Path) -> None:
    """The knob is still wrong, and was told of: when it is right again its own event ends."""
    (begun,) = [one for one in waiting(HOOK) if one["subject"] == "mm.swappiness"]
    with watching(host, work) as monitor:
        monitor.wait_for(lambda: len(taken(work)) > len(waiting(HOOK)))
        (host / "proc/sys/vm/swappiness").write_text("1\n")
        monitor.wait_for(
            lambda: ("resolved", "mm.swappiness") in [(one["status"], one["subject"]) for one in taken(work)]
        )
        assert monitor.end() == 0
    mine = [told_of(one) for one in taken(work) if one["subject"] == "mm.swappiness"]
    assert [(one["status"], one["since"]) for one in mine] == [("firing", begun["since"]), ("resolved", begun["since"])]
