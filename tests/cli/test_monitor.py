"""tunectl monitor: the check, the live view, the words it refuses."""

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.places import as_nobody, complaint, on_terminal, started
from tests.cli.test_commands import valid
from tests.conftest import write_host_file
from tests.hosts.builder import NAMES, HostFactory
from tests.monitor.process import HOST_FILE, limit_of
from tests.ran import Ran
from tests.trees import differences, picture

pytestmark = pytest.mark.slow

Run = Callable[..., Ran]
KNOWN_BASE = """
profile = "balanced-latency"
isolated = "{}"
allow_split_siblings = true
[thermal]
base_frequency_khz = 100000
"""
ONCE = ("monitor", "--once", "--interval", "0.1")


@pytest.fixture
def watched(host_root: HostFactory, tmp_path: Path) -> Path:
    """lab4, booted with CPUs 2-3 isolated, and not applied: knobs have drifted, and irqbalance runs without a ban."""
    root = host_root.fresh("lab4", tmp_path, tuned_boot=frozenset({2, 3}))
    ban = root / "etc/default/irqbalance"
    ban.parent.mkdir(parents=True, exist_ok=True)
    ban.write_text("IRQBALANCE_BANNED_CPULIST=\n")
    write_host_file(root, HOST_FILE)
    return root


def test_once_in_every_format(tunectl: Run, watched: Path) -> None:
    before = picture(watched)
    done = tunectl(*ONCE, "--root", watched, "--format", "json")
    document = valid("monitor", done.out)
    assert (done.code, done.err, document["verdict"]) == (3, "", "warning")
    assert document["watched_s"] >= 0.1
    text = tunectl(*ONCE, "--root", watched, env={"COLUMNS": "80"})
    assert (text.code, max(map(len, text.out.splitlines())) <= 80) == (3, True)
    assert tunectl(*ONCE, "--root", watched, "--format", "nagios").code == 1
    assert not differences(before, watched)


@pytest.mark.pins
def test_a_clock_that_is_asked_for_is_measured(tunectl: Run, tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    host_file = write_host_file(tmp_path, KNOWN_BASE.format(cpu))
    done = tunectl(*ONCE, "--clock", cpu, "--format", "json", "--host", host_file)
    (row,) = [row for row in valid("monitor", done.out)["cpus"] if row["cpu"] == cpu]
    assert (row["frequency_from"], row["frequency_health"]) == ("measured", "fresh")
    assert 1e5 < row["frequency_khz"] < 1e7
    # A base that no core reaches: the same clock is now a drop.
    slow = KNOWN_BASE.format(cpu).replace("100000", "99000000")
    done = tunectl(*ONCE, "--clock", cpu, "--format", "json", "--host", write_host_file(tmp_path, slow))
    assert "FrequencyDrop[" in str(valid("monitor", done.out)["reasons"])


def test_what_the_daemon_has_alone_is_said_to_be_its(tunectl: Run, tmp_path: Path) -> None:
    """A look beside it neither denies the socket and the sentinel nor touches them."""
    cpu = max(os.sched_getaffinity(0))
    text = KNOWN_BASE.format(cpu) + f"[monitor.sentinel]\ncpu = {cpu}\n"
    text += f'[monitor.sla]\nmax_ns = 100000\nsocket = "{tmp_path}/latency"\n'
    host_file = write_host_file(tmp_path, text)
    document = valid("monitor", tunectl(*ONCE, "--format", "json", "--host", host_file).out)
    alone = "the daemon's alone, not seen here: its journal and /metrics have it"
    (sla,) = [one for one in document["findings"] if one["knob"] == "LatencySla"]
    assert (sla["outcome"], sla["reason"]) == ("unreadable", alone)
    reasons = {one["name"]: one["reasons"] for one in document["sources"]}
    assert (reasons["latency"], reasons["clock"]) == ([f"latency_max_ns: {alone}"], [f"core_khz: {alone}"])
    assert not [one for one in document["reasons"] if one.startswith("SourceLost[latency]")]
    assert not (tmp_path / "latency").exists()
    page = tunectl(*ONCE, "-v", "--host", host_file).out
    assert "no socket is named" not in page
    assert "its journal and /metrics have it" in " ".join(page.split())


def test_a_clock_is_not_asked_of_what_cannot_tell(tunectl: Run) -> None:
    assert "past the last CPU" in complaint(tunectl(*ONCE, "--clock", "99999"), 2)


def test_a_throttled_host_is_critical(tunectl: Run, watched: Path) -> None:
    for cpu in range(4):
        limit_of(watched, cpu).write_text("1200000\n")
    done = tunectl(*ONCE, "--root", watched, "--format", "json")
    assert (done.code, done.json["verdict"]) == (3, "critical")
    assert "FrequencyDrop[package0]" in {one["target"] for one in done.json["findings"] if one["outcome"] == "drifted"}
    assert tunectl(*ONCE, "--root", watched, "--format", "nagios").code == 2


@pytest.mark.parametrize("name", NAMES)
def test_once_on_every_kind_of_host(tunectl: Run, host_root: HostFactory, name: str) -> None:
    """Without a host file: nothing is wished for, and what cannot be told is not ok."""
    done = tunectl(*ONCE, "--root", host_root(name), "--format", "json")
    assert done.err == ""
    document = valid("monitor", done.out)
    assert done.code == {"ok": 0, "warning": 3, "critical": 3, "unknown": 1}[document["verdict"]]
    assert any(note.startswith("no host file: ") for note in document["notes"])
    assert "KnobDrift" not in {one["knob"] for one in document["findings"]}


def test_this_host_without_root(tmp_path: Path) -> None:
    done = as_nobody(*ONCE, "--format", "json")
    assert done.err == ""
    assert done.code == {"ok": 0, "warning": 3, "critical": 3, "unknown": 1}[valid("monitor", done.out)["verdict"]]


def test_the_live_view(watched: Path) -> None:
    """On a real terminal: the page at once, and after ^C the terminal as it was."""
    code, shown = on_terminal(
        *("monitor", "--watch", "--interval", "0.2", "--root", watched),
        at="isolated 2-3",
        answer="\x03",
        then=lambda: time.sleep(0.5),
        result_too=True,
        env={"TERM": "xterm-256color"},
        lines=60,  # the paths of a test are long, and so are its fixes
    )
    assert code == 0
    assert "isolated 2-3; housekeeping 0-1" in shown
    assert shown.count("\x1b[?1049h") == shown.count("\x1b[?1049l") == 1  # the alternate screen, and back
    assert "Traceback" not in shown


@pytest.mark.parametrize("kind", ["dumb", "unknown"])
def test_no_live_view_where_no_page_can_be_drawn_again(watched: Path, kind: str) -> None:
    words = ("monitor", "--watch", "--root", watched)
    code, shown = on_terminal(*words, result_too=True, env={"TERM": kind})
    assert (code, shown.count("\n")) == (2, 1)
    assert f"needs a terminal whose cursor can be moved, and TERM is {kind}" in shown
    assert f"`tunectl --root {watched} monitor --once` prints the same page once" in shown


def test_ctrl_c_ends_the_daemon_in_order(watched: Path) -> None:
    process = started("monitor", "--root", watched)
    try:
        assert process.stdout
        assert " firing: " in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 0
    assert "Traceback" not in err
    assert os.path.exists(watched / "var/lib/tunectl/monitor/monitor.sqlite3")


def test_duration_ends_it(tunectl: Run, watched: Path) -> None:
    done = tunectl("monitor", "--duration", "0.5", "--root", watched)
    assert done.code == 3  # something fired
    assert "ManagerStarted[irqbalance] firing: " in done.out
    said = [line.partition("; to do: ")[2] for line in done.out.splitlines()]
    assert any(f"sudo tunectl --root {watched} apply" in fix for fix in said)
    assert not any("tunectl apply" in fix for fix in said)  # that would apply this machine's host file
    assert tunectl("monitor", "--duration", "0.5", "--root", watched).code == 0  # and does not fire again


def test_with_a_duration_the_last_line_is_the_document_with_the_latencies(tmp_path: Path) -> None:
    """It owns the socket, so it alone can say how many misses a day that is."""
    address = tmp_path / "latency"
    text = KNOWN_BASE.format(max(os.sched_getaffinity(0))) + '[monitor]\nlog = "none"\ninterval_s = 0.2\n'
    text += f'[monitor.sla]\nwindow_s = 1\np99_9_ns = 20000\nsocket = "{address}"\n'
    host = write_host_file(tmp_path, text)
    for seconds in (4, 8, 16, 32):  # who stalls in its last second has sent little in it: not each time
        state = tmp_path / f"state{seconds}"
        process = started("monitor", "--duration", seconds, "--format", "json", "--host", host, "--state", state)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            while process.poll() is None:
                with suppress(OSError):
                    sender.sendto(b"90000 700 700 700", socket.MSG_DONTWAIT, str(address))
                time.sleep(0.02)
        assert process.stdout
        lines = process.stdout.read().splitlines()
        if process.returncode == 3 and json.loads(lines[-1])["latency"][0]["missed"] >= 10:
            break
    assert process.returncode == 3
    assert "LatencySla" in {json.loads(line)["rule"] for line in lines[:-1]}
    document = valid("monitor", lines[-1])
    (row,) = document["latency"]
    assert row["missed"] >= 10
    assert row["missed_per_day"] >= row["missed"] * 86_400 // 2
    assert document["watched_s"] >= 2
    assert "LatencySla[application]" in {one["identity"] for one in document["alerts"]}
