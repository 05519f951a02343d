"""The daemon as systemd runs it: ready, alive, reloaded, stopped, killed and started again."""

import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

import tunectl
from tests.cli.places import needs_mounts, this_host_file
from tests.conftest import write_host_file
from tests.hosts.builder import HostFactory
from tests.monitor.process import HOST_FILE, Monitor, Systemd, limit_of, notified, running
from tests.probe.running import threads

pytestmark = pytest.mark.slow

CAPPED = "FrequencyDrop[cpu2]"


@pytest.fixture
def host(host_root: HostFactory, tmp_path: Path) -> Path:
    """lab4 as it was booted to be watched: CPUs 2-3 isolated, irqbalance without a ban, in a tree of one's own."""
    root = host_root.fresh("lab4", tmp_path, tuned_boot=frozenset({2, 3}))
    (root / "etc/default").mkdir(parents=True, exist_ok=True)
    (root / "etc/default/irqbalance").write_text("IRQBALANCE_BANNED_CPULIST=\n")
    write_host_file(root, HOST_FILE)
    return root


def told(monitor: Monitor, alert: str) -> list[str]:
    """The states of one alert, in the order in which they were told."""
    return [state for state, identity in monitor.transitions() if identity == alert]


def test_a_file_that_changes_fires_the_right_alert_and_resolves_it(host: Path, tmp_path: Path) -> None:
    limit = limit_of(host, 2)
    before = limit.read_text()
    with running(host, tmp_path / "run") as monitor:
        monitor.wait_for(lambda: ("firing", "ManagerStarted[irqbalance]") in monitor.transitions())
        assert CAPPED not in {identity for _, identity in monitor.transitions()}
        limit.write_text("1200000\n")
        monitor.wait_for(lambda: ("firing", CAPPED) in monitor.transitions())
        limit.write_text(before)
        monitor.wait_for(lambda: ("resolved", CAPPED) in monitor.transitions())
        assert monitor.end() == 0
        assert told(monitor, CAPPED) == ["firing", "resolved"]


def test_nothing_it_says_moves_a_terminal(host: Path, tmp_path: Path) -> None:
    """A host file that says so is refused, and its words are shown escaped."""
    limit_of(host, 2).write_text("1200000\n")
    with running(host, tmp_path / "run", "--daemon") as monitor:
        monitor.wait_for(lambda: bool(monitor.transitions()))
        write_host_file(host, f'{HOST_FILE}[[monitor.hooks]]\ncommand = ["/bin/\\u001b[31mx\\n"]\n')
        monitor.process.send_signal(signal.SIGHUP)
        monitor.wait_for(lambda: any("the old settings stay in force" in line for line in monitor.said()))
        assert monitor.end() == 0
    assert any("monitor.hooks[0].command[0]: has the control character \\x1b" in line for line in monitor.said())
    assert "\x1b" not in monitor.err.read_text()


def test_no_line_that_is_logged_moves_a_terminal() -> None:
    text = "import logging; from tunectl.cli.daemon import settle; settle(); logging.warning('IRQ \\x1b[31m\\nb')"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stderr == "tunectl: IRQ \\x1b[31m b\n"


def test_as_systemd_runs_it(host: Path, tmp_path: Path) -> None:
    systemd = Systemd(tmp_path / "notify")
    with running(host, tmp_path / "run", env=notified(systemd, 0.4)) as monitor:
        monitor.wait_for(lambda: systemd.has("READY=1"))
        monitor.wait_for(lambda: systemd.has("WATCHDOG=1", 3))
        write_host_file(host, HOST_FILE.replace("0.1", "0.2"))
        monitor.process.send_signal(signal.SIGHUP)
        monitor.wait_for(lambda: systemd.has("READY=1", 2))
        assert systemd.has("RELOADING=1\nMONOTONIC_USEC=")
        write_host_file(host, HOST_FILE + "nonsense = 1\n")
        monitor.process.send_signal(signal.SIGHUP)
        monitor.wait_for(lambda: systemd.has("READY=1", 3))
        pings = sum(one.startswith("WATCHDOG=1") for one in systemd.read())
        monitor.wait_for(lambda: systemd.has("WATCHDOG=1", pings + 3))  # it lives on
        assert monitor.end(systemd=systemd) == 0
        assert systemd.read()[-1] == "STOPPING=1\nSTATUS=SIGTERM came"
        said = [line for line in monitor.said() if "reload" in line]
        assert said[0] == "tunectl: reload: the host file was read again"
        assert "nonsense" in said[1]
        assert said[1].endswith("the old settings stay in force")
        assert len(said) == 2


def is_acknowledged(path: Path) -> bool:
    """Is the alert remembered, and everybody told, in a transaction that has ended? Its journal begins with zeros."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        (waiting,) = database.execute("SELECT count(*) FROM delivery WHERE NOT done").fetchone()
        told = waiting == 0 and CAPPED[:13].encode() in database.execute("SELECT record FROM state").fetchone()[0]
        return told and not any(Path(f"{path}-journal").read_bytes()[:8])
    return False  # it is being written


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_neither_fires_again_nor_forgets(host: Path, tmp_path: Path, number: int) -> None:
    limit = limit_of(host, 2)
    before = limit.read_text()
    limit.write_text("1200000\n")
    with running(host, tmp_path / "run") as monitor:
        monitor.wait_for(lambda: ("firing", CAPPED) in monitor.transitions())
        # Killed before it has saved that it told, it tells again, as the same event (test_delivery_queue.py).
        monitor.wait_for(lambda: is_acknowledged(host / "var/lib/tunectl/monitor/monitor.sqlite3"))
        monitor.end(number)
    with running(host, tmp_path / "run") as monitor:  # the same place: its output is appended
        limit.write_text(before)
        monitor.wait_for(lambda: ("resolved", CAPPED) in monitor.transitions())
        assert monitor.end() == 0
        assert told(monitor, CAPPED) == ["firing", "resolved"]


def test_a_state_directory_that_was_removed_is_made_again_and_lets_no_second_monitor_in(
    host: Path, tmp_path: Path
) -> None:
    state = host / "var/lib/tunectl/monitor"
    slow = host / "slow.toml"
    slow.write_text(HOST_FILE.replace("0.1", "60"))
    with running(host, tmp_path / "one", "--daemon", "--host", str(slow)) as first:  # it looks again in a minute
        first.wait_for(lambda: bool(first.transitions()) and (state / "monitor.sqlite3").exists())
        state.parent.rename(tmp_path / "removed")  # at once, while it writes
        with running(host, tmp_path / "two") as second:
            assert second.process.wait(60) == 1
            (line,) = second.said()
            assert "another monitor is at work" in line
        write_host_file(host, HOST_FILE)
        slow.write_text(HOST_FILE)
        first.process.send_signal(signal.SIGHUP)
        first.wait_for((state / "monitor.sqlite3").exists)
        first.wait_for(lambda: any("alerts are saved again" in line and "removed" in line for line in first.said()))
        assert first.end() == 0


def test_a_host_file_that_was_removed_keeps_the_old_settings(host: Path, tmp_path: Path) -> None:
    place = host / "etc/tunectl/host.toml"
    with running(host, tmp_path / "run", "--daemon") as monitor:
        monitor.wait_for(lambda: bool(monitor.transitions()))
        place.unlink()
        monitor.process.send_signal(signal.SIGHUP)
        monitor.wait_for(lambda: any("reload" in line for line in monitor.said()))
        assert monitor.end() == 0
    (said,) = [line for line in monitor.said() if "reload" in line]
    assert f"there is no host file {place}" in said
    assert f"`{shlex.join(['sudo', 'tunectl', '--root', str(host), 'propose', '--output', str(place)])}`" in said
    assert said.endswith("the old settings stay in force")


def says(monitor: Monitor, text: str) -> bool:
    return any(text in line for line in monitor.said())


def test_without_a_host_file_a_reload_finds_one_and_keeps_it(host: Path, tmp_path: Path) -> None:
    place = host / "etc/tunectl/host.toml"
    place.unlink()
    with running(host, tmp_path / "run", "--daemon", "--interval", "0.1") as monitor:
        monitor.wait_for(lambda: any("no host file" in line for line in monitor.said()))
        for act, wanted in (
            (lambda: write_host_file(host, HOST_FILE), "reload: the host file was read again"),
            (place.unlink, f"there is no host file {place}"),
        ):
            act()
            monitor.process.send_signal(signal.SIGHUP)
            monitor.wait_for(partial(says, monitor, wanted))
        assert monitor.end() == 0


def test_a_monitor_in_the_foreground_ends_with_its_terminal(host: Path, tmp_path: Path) -> None:
    """Wherever the tests were started: below nohup(1), what they start would ignore the signal, too."""
    with running(host, tmp_path / "run", wrapped=("env", "--default-signal=HUP")) as monitor:
        monitor.wait_for(lambda: bool(monitor.transitions()))
        assert monitor.end(signal.SIGHUP) == 0
    assert not says(monitor, "reload")


def test_below_nohup_it_outlives_its_terminal(host: Path, tmp_path: Path) -> None:
    with running(host, tmp_path / "run", wrapped=("nohup",)) as monitor:
        monitor.wait_for(lambda: bool(monitor.transitions()))
        monitor.process.send_signal(signal.SIGHUP)
        limit_of(host, 2).write_text("1200000\n")
        monitor.wait_for(lambda: ("firing", CAPPED) in monitor.transitions())
        assert monitor.end() == 0
    assert not says(monitor, "reload")


def test_files_that_vanish_end_nothing(host: Path, tmp_path: Path) -> None:
    systemd = Systemd(tmp_path / "notify")
    with running(host, tmp_path / "run", env=notified(systemd, 0.4)) as monitor:
        monitor.wait_for(lambda: systemd.has("READY=1"))
        shutil.rmtree(host / "sys/devices/system/cpu/cpu3")
        (host / "sys/devices/system/cpu/online").write_text("0-2\n")
        pings = sum(one.startswith("WATCHDOG=1") for one in systemd.read())
        monitor.wait_for(lambda: systemd.has("WATCHDOG=1", pings + 5))
        shutil.rmtree(host / "sys")
        (host / "proc/interrupts").unlink()
        pings = sum(one.startswith("WATCHDOG=1") for one in systemd.read())
        monitor.wait_for(lambda: systemd.has("WATCHDOG=1", pings + 5))
        assert monitor.end() == 0


def test_a_dead_webhook_and_a_taken_port(host: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))  # ours, so that no other test listens there, and nobody does
        address, port = f"127.0.0.1:{taken.getsockname()[1]}", dead.getsockname()[1]
        webhook = f'[[monitor.webhooks]]\nurl = "http://127.0.0.1:{port}/"\n'
        write_host_file(host, HOST_FILE + webhook)
        with running(host, tmp_path / "run", "--daemon") as monitor:
            monitor.wait_for(lambda: bool(monitor.transitions()))
            write_host_file(host, HOST_FILE + f'[monitor.prometheus]\nlisten = "{address}"\n' + webhook)
            monitor.process.send_signal(signal.SIGHUP)
            monitor.wait_for(lambda: any("cannot listen" in line for line in monitor.said()))  # and tries again
            write_host_file(host, HOST_FILE + '[monitor.prometheus]\nlisten = "9750"\n')
            monitor.process.send_signal(signal.SIGHUP)
            monitor.wait_for(lambda: any("the old settings stay in force" in line for line in monitor.said()))
            assert monitor.end() == 0
        database = sqlite3.connect(host / "var/lib/tunectl/monitor/monitor.sqlite3")
        names = {name for (name,) in database.execute("SELECT receiver FROM delivery WHERE NOT done")}
        database.close()
        assert [name.rpartition("-")[0] for name in names - {"stdout"}] == ["webhook-127.0.0.1"]


def test_repair_is_asked_for_and_only_when_it_may_be(host: Path, tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    env = {"RUNTIME_DIRECTORY": str(runtime)}
    with running(host, tmp_path / "off", env=env) as monitor:
        monitor.wait_for(lambda: any(identity.startswith("KnobDrift") for _, identity in monitor.transitions()))
        assert monitor.end() == 0
    assert os.listdir(runtime) == []
    shutil.rmtree(host / "var/lib/tunectl/monitor")
    with running(host, tmp_path / "on", "--repair", env=env) as monitor:
        monitor.wait_for((runtime / "repair-request").exists)
        assert monitor.end() == 0
        assert any("repair: asked for apply" in line for line in monitor.said())
    with running(host, tmp_path / "nowhere", "--repair") as monitor:
        monitor.wait_for(lambda: any("no repair can be asked for" in line for line in monitor.said()))
        assert monitor.end() == 0


@needs_mounts
def test_a_full_disk(host: Path, tmp_path: Path) -> None:
    state = host / "var/lib/tunectl"
    state.mkdir(parents=True, exist_ok=True)
    # Emptied, it has room for all: file and journal of this host need 64 KiB, and one page more at another pace.
    script = f"mount -t tmpfs -o size=1m tmpfs {state}; mkdir {state}/monitor; : >{state}/monitor/lock; "
    script += f'dd if=/dev/zero of={state}/filler bs=4k 2>/dev/null || :; exec "$0" "$@"'
    limit = limit_of(host, 2)
    before = limit.read_text()
    with running(host, tmp_path / "run", wrapped=["unshare", "-m", "sh", "-c", script]) as monitor:
        monitor.wait_for(lambda: any("No space left on device" in line for line in monitor.said()))
        limit.write_text("1200000\n")
        monitor.wait_for(lambda: ("firing", CAPPED) in monitor.transitions())  # on it goes
        inside = Path(f"/proc/{monitor.process.pid}/root") / state.relative_to("/")
        (inside / "filler").unlink()
        limit.write_text(before)
        monitor.wait_for(lambda: ("resolved", CAPPED) in monitor.transitions())
        monitor.wait_for(lambda: any("alerts are saved again" in line for line in monitor.said()))
        monitor.wait_for(lambda: b"ManagerStarted" in (inside / "monitor/monitor.sqlite3").read_bytes())
        assert monitor.end() == 0
        assert sum("cannot save" in line for line in monitor.said()) == 1  # once, not in every cycle


SCRAPE = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9750/metrics', timeout=5).read().decode())"


@needs_mounts
@pytest.mark.skipif(not shutil.which("ip"), reason="needs ip(8), to plug in a device")
def test_a_device_event_is_looked_at_before_the_next_turn(tmp_path: Path) -> None:
    """On this machine, in a network name space of its own, with ten minutes between two looks."""
    monitor_text = '[monitor]\nlog = "none"\ninterval_s = 600\n[monitor.prometheus]\nlisten = "127.0.0.1:9750"\n'
    host_file, last = this_host_file(tmp_path, monitor_text), max(os.sched_getaffinity(0))
    words = ["--host", str(host_file), "--state", str(tmp_path / "state")]
    own_network = ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]
    with running(Path("/"), tmp_path / "run", *words, wrapped=own_network) as monitor:
        inside = ["nsenter", f"--net=/proc/{monitor.process.pid}/ns/net"]

        def cycles() -> int:
            """How often it has looked; 0 while its endpoint does not answer."""
            done = subprocess.run([*inside, sys.executable, "-c", SCRAPE], capture_output=True, text=True, check=False)
            found = re.search(r"^tunectl_monitor_cycles_total (\d+)", done.stdout, re.MULTILINE)
            return int(found[1]) if found else 0

        monitor.wait_for(lambda: cycles() > 0)
        if any("device events are not heard" in line for line in monitor.said()):
            pytest.skip("no udev here")
        used = {cpu for thread in threads(monitor.process.pid) for cpu in thread.allowed}
        assert used
        assert last not in used  # no thread of it may run there
        first = cycles()
        if subprocess.run([*inside, "ip", "link", "add", "d9", "type", "veth"], capture_output=True).returncode:
            pytest.skip("this kernel has no veth")
        monitor.wait_for(lambda: cycles() > first)
        assert monitor.end() == 0


def test_misses_just_before_a_reload_fire_and_the_path_stays(tmp_path: Path) -> None:
    """On this machine, looked at every two seconds: the reload comes before the look that would have seen them."""
    address = tmp_path / "latency"
    promised = f'[monitor.sla]\nwindow_s = 1\np99_9_ns = 20000\nsocket = "{address}"\n'
    host_file = this_host_file(tmp_path, f'[monitor]\nlog = "none"\ninterval_s = 2\n{promised}')
    words = ["--daemon", "--host", str(host_file), "--state", str(tmp_path / "state")]
    with (
        running(Path("/"), tmp_path / "run", *words) as monitor,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
    ):
        monitor.wait_for(address.exists)
        inode = address.stat().st_ino
        for _ in range(40):
            sender.sendto(b"700 " * 100, str(address))
            time.sleep(0.05)
        assert ("firing", "LatencySla[application]") not in monitor.transitions()
        sender.sendto(b"90000 " * 30, str(address))
        monitor.process.send_signal(signal.SIGHUP)
        monitor.wait_for(lambda: ("firing", "LatencySla[application]") in monitor.transitions())
        monitor.wait_for(partial(says, monitor, "reload: the host file was read again"))
        assert address.stat().st_ino == inode
        assert monitor.end() == 0
    assert not address.exists()


def test_no_wall_clock_times_anything() -> None:
    """A step of the wall clock neither stalls the loop nor ages a sample: only `at`, for people, is of that clock."""
    for path in (Path(tunectl.__file__).parent / "monitor").rglob("*.py"):
        assert "time.time(" not in path.read_text(), path
