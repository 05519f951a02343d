"""The shipped units, read back by their real reader: systemd-analyze."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tunectl.errors import UsageError
from tunectl.knobs.drivers.unitfile import render
from tunectl.units import SERVICES, ours, units_of, warnings

PROGRAM = ("/opt/tunectl/bin/tunectl",)
EXPOSURE = 2.0
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


def written(place: Path, invocation: tuple[str, ...] = PROGRAM) -> list[Path]:
    """Every unit of every service, in a directory, with a program that is there."""
    (place / "bin").mkdir(parents=True, exist_ok=True)
    program = place / "bin/tunectl"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    paths = []
    for name in SERVICES:
        for unit in units_of(name, (str(program), *invocation[1:])):
            path = place / Path(unit.path).name
            path.write_text(unit.text)
            paths.append(path)
    return paths


def key(text: str, name: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{name}=")]


@needs_systemd
def test_systemd_accepts_every_unit(tmp_path: Path) -> None:
    paths = written(tmp_path, (*PROGRAM, "--host", "/srv/a b/50%$x.toml"))
    command = ["systemd-analyze", "verify", "--man=no", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "tunectl" in line]
    assert (done.returncode, said) == (0, [])


@needs_systemd
def test_the_monitor_is_confined(tmp_path: Path) -> None:
    path = next(path for path in written(tmp_path) if path.name == "tunectl-monitor.service")
    command = [
        "systemd-analyze",
        "security",
        "--offline=true",
        f"--threshold={EXPOSURE * 10:.0f}",
        "--no-pager",
        str(path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env={"SYSTEMD_COLORS": "0", "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stdout[-400:] + done.stderr
    assert "Overall exposure level" in done.stdout


def test_the_monitor_sees_what_it_must() -> None:
    """What would blind it is not set: /proc/interrupts, others' affinity, the kernel's events, its own CPUs."""
    (unit,) = units_of("monitor", PROGRAM)
    assert "subset=pid" not in unit.text
    for name in ("ProcSubset", "ProtectProc", "PrivateNetwork", "IPAddressDeny"):
        assert key(unit.text, name) == []
    assert "AF_NETLINK" in key(unit.text, "RestrictAddressFamilies")[0]
    assert key(unit.text, "SystemCallFilter")[-1] == "sched_setaffinity"
    assert (key(unit.text, "Type"), key(unit.text, "NotifyAccess")) == (["notify"], ["main"])
    assert key(unit.text, "ExecStart") == ["/opt/tunectl/bin/tunectl monitor"]


def test_what_writes_the_host_may_write_it() -> None:
    for name in ("apply", "repair"):
        for unit in units_of(name, PROGRAM):
            assert "ProtectKernelTunables" not in unit.text


def test_apply_has_one_text() -> None:
    """The knob systemd.apply_at_boot and this command write the same file."""
    (unit,) = units_of("apply", PROGRAM)
    assert unit.text == render(PROGRAM)


def test_the_monitor_asks_where_the_path_unit_listens() -> None:
    from tunectl.monitor.repair import REQUEST

    path, service = units_of("repair", PROGRAM)
    (monitor,) = units_of("monitor", PROGRAM, ("--repair",))
    assert key(path.text, "PathChanged") == [f"/run/{key(monitor.text, 'RuntimeDirectory')[0]}/{REQUEST}"]
    assert key(monitor.text, "ExecStart") == ["/opt/tunectl/bin/tunectl monitor --repair"]
    assert key(service.text, "ExecStart") == ["/opt/tunectl/bin/tunectl apply --yes --runtime"]


def test_words_of_the_command_line_are_systemds() -> None:
    (unit,) = units_of("monitor", ("/opt/a b/tunectl", "--host", "/etc/50%/$x.toml"))
    assert key(unit.text, "ExecStart") == ['"/opt/a b/tunectl" --host /etc/50%%/$$x.toml monitor']


@pytest.mark.parametrize("program", ["/home/me/venv/bin/tunectl", "/tmp/venv/bin/tunectl", "/root/bin/tunectl"])
def test_a_place_the_unit_would_hide(program: str) -> None:
    (unit,) = units_of("monitor", (program,))
    hidden = {*key(unit.text, "ProtectHome"), *key(unit.text, "PrivateTmp")}
    assert hidden == ({"yes", "no"} if program.startswith("/tmp") else {"read-only", "yes"})
    assert "install tunectl below /opt or /usr" in warnings("monitor", (program,))[0]
    assert warnings("monitor", PROGRAM) == []


def test_ours_and_others() -> None:
    assert all(ours(unit.text) for name in SERVICES for unit in units_of(name, PROGRAM))
    assert not ours("[Unit]\nDescription=mine\n")
    with pytest.raises(UsageError, match="no service"):
        units_of("x", PROGRAM)
