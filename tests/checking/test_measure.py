"""The two ways to watch a host, on the running one."""

import os
import time
from pathlib import Path

import pytest

from tunectl.checking.measure import measure, measure_spinning, soon_on, timers_under_spinner
from tunectl.checking.outcomes import Settled
from tunectl.errors import TunectlError
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.host.timers import TICK, Armed
from tunectl.model import Outcome
from tunectl.probe.runner import find_program


@pytest.fixture
def last_cpu() -> int:
    online = read_scope_facts(Sysroot()).online
    if len(online) < 2:
        pytest.skip("one CPU")
    return max(online)


def test_the_running_host_moves() -> None:
    began = time.monotonic()
    window = measure(Sysroot(), 0.2)
    assert not window.still
    assert 0.2 <= window.seconds <= time.monotonic() - began
    assert window.before.clocksource == window.after.clocksource != ""
    assert window.runs


@pytest.mark.parametrize(
    ("text", "why"),
    [(b"\xff" * (2 << 20), "cannot be read: is no text"), (b"", "holds no interrupt"), (None, "No such")],
)
def test_a_table_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, text: bytes | None, why: str) -> None:
    if text is not None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/interrupts").write_bytes(text)
    with pytest.raises(Settled, match=f"proc/interrupts.*{why}") as settled:
        measure(Sysroot(str(tmp_path)), 0.1)
    assert settled.value.outcome == Outcome.UNREADABLE


@pytest.mark.slow
@pytest.mark.pins
def test_a_spinner_keeps_its_cpu_busy(last_cpu: int) -> None:
    try:
        find_program()
    except TunectlError as error:
        pytest.skip(error.message)
    # A thread that another test pins there must not end the spinner.
    spinning = measure_spinning(Sysroot(), frozenset({last_cpu}), 0.5, intrude=True)
    window = spinning.window
    (count,) = spinning.ticks.values()
    idle = window.idle_share(last_cpu)
    assert idle is not None
    assert count.cpu == last_cpu
    assert count.seconds >= 0.5
    assert count.spun.by == "tunectl-probe"
    assert count.ticks is not None
    if last_cpu not in read_scope_facts(Sysroot()).nohz_full:
        # An ordinary CPU ticks 100 to 1000 times a second under a spinner, and its list of timers shows it.
        assert count.ticks > count.allowed
        assert TICK & set(timers_under_spinner(Sysroot(), last_cpu)) or os.geteuid()


def test_without_the_probe_it_is_not_known(monkeypatch: pytest.MonkeyPatch, last_cpu: int) -> None:
    monkeypatch.setenv("TUNECTL_PROBE", "/bin/false")
    with pytest.raises(Settled, match=f"no spinner on CPU {last_cpu}") as settled:
        measure_spinning(Sysroot(), frozenset({last_cpu}), 0.1)
    assert settled.value.outcome == Outcome.UNREADABLE
    with pytest.raises(Settled, match="nowhere to spin"):
        measure_spinning(Sysroot(), frozenset(), 0.1)


@pytest.mark.parametrize(("in_ns", "soon"), [(100_000_000, ["tick"]), (100_000_001, [])])
def test_a_timer_is_named_that_may_come_ten_times_a_second(in_ns: int, soon: list[str]) -> None:
    """A tick of 10 a second is never further away than a tenth of a second; what expires later is no cause."""
    assert soon_on(2, [Armed(2, "tick", in_ns), Armed(3, "other", 1)]) == soon
