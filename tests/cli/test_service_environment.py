"""What a unit's command line takes from the environment: nothing but what systemd tells it.

The command line is the unit's own; what its UnsetEnvironment= names is taken away as systemd does it (systemd.exec(5)).
strace sees whatever is opened or started.
"""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import TUNECTL
from tunectl.cli.options import Options
from tunectl.units import units_of

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
APPLY, MONITOR = "tunectl-apply.service", "tunectl-monitor.service"
# These act when Python or a library of ours asks for them, so no unit has to take them away. (PYTHONEXECUTABLE counts
# even with -I: Modules/getpath.py.)
LATE = re.compile("_?TUNECTL_|PYTHON(?!EXECUTABLE)|OPENSSL_|SSL")
WEBHOOK = '\n[[monitor.webhooks]]\nurl = "https://127.0.0.1:9/"\n'  # has OpenSSL loaded


def unit_of(name: str) -> str:
    (unit,) = (one for one in units_of(name.split("-")[1].split(".")[0], Options().invocation) if name in one.path)
    return unit.text


def value(unit: str, key: str) -> str:
    (found,) = re.findall(rf"(?m)^{key}=(.*)$", unit)
    return str(found)


def command(unit: str, *options: object) -> list[str]:
    """ExecStart=, with options that keep it from this machine's files."""
    words = shlex.split(value(unit, "ExecStart"))
    place = words.index(str(TUNECTL)) + 1
    return [*words[:place], *map(str, options), *words[place:]]


def evil(place: Path) -> dict[str, str]:
    """Every variable that a unit takes away, each leading to a place of its own that does harm if it is used."""
    place.mkdir()
    names = value(unit_of(APPLY), "UnsetEnvironment").split()
    for name in names:
        (place / name).mkdir()
        for module in ("sitecustomize", "usercustomize"):
            (place / name / f"{module}.py").write_text(f"open({str(place / 'mark')!r}, 'w')\n")
    (place / "TUNECTL_PROBE").rename(place / "unused")
    (place / "TUNECTL_PROBE").write_text(f"#!/bin/sh\ntouch {place}/mark\n")
    (place / "TUNECTL_PROBE").chmod(0o755)
    (place / "OPENSSL_CONF").rename(place / "unused2")
    (place / "OPENSSL_CONF").write_text(
        f"openssl_conf = a\n[a]\nengines = b\n[b]\nc = d\n[d]\ndynamic_path={place}/x.so\n"
    )
    return {name: str(place / name) for name in names}


def traced(argv: list[str], env: dict[str, str], trace: Path) -> str:
    """Every call with a path in it that the program and those it starts make."""
    strace = ["strace", "-f", "-qq", "-s", "512", "-e", "trace=%file", "-o", str(trace)]
    subprocess.run([*strace, *argv], env=env, capture_output=True, timeout=300, cwd="/")
    text = trace.read_text(errors="replace")
    assert str(TUNECTL) in text
    return text.partition("\n")[2]  # without the execve that starts it


def used(text: str, place: Path) -> list[str]:
    return [line for line in text.splitlines() if f"{place}/" in line]


@pytest.mark.slow  # under strace
@pytest.mark.parametrize("name", [APPLY, MONITOR])
def test_no_variable_of_a_hostile_environment_is_followed(lab4: Path, tmp_path: Path, name: str) -> None:
    """As the unit runs; and where a drop-in takes UnsetEnvironment= back, all that acts once Python runs."""
    with (lab4 / "etc/tunectl/host.toml").open("a") as host_file:
        host_file.write(WEBHOOK)
    place, unit = tmp_path / "evil", unit_of(name)
    hostile = evil(place)
    argv = command(unit, "--root", lab4) + (["--duration", "1"] if name == MONITOR else [])
    unset = value(unit, "UnsetEnvironment").split()
    left = {key: path for key, path in hostile.items() if key not in unset}
    assert left == {}
    late = {key: path for key, path in hostile.items() if LATE.match(key)}
    assert {"TUNECTL_PROBE", "TUNECTL_ROOT", "PYTHONPATH", "OPENSSL_CONF", "SSL_CERT_FILE"} <= late.keys()
    for number, env in enumerate((left, late)):
        text = traced(argv, {"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", **env}, tmp_path / f"trace{number}")
        assert f"{lab4}/etc/tunectl/host.toml" in text, "it has not run"
        assert used(text, place) == []
    assert not (place / "mark").exists()


@pytest.mark.slow
def test_the_same_environment_bites_where_nothing_takes_it_away(lab4: Path, tmp_path: Path) -> None:
    """Else the test above would be true of anything."""
    with (lab4 / "etc/tunectl/host.toml").open("a") as host_file:
        host_file.write(WEBHOOK)
    place = tmp_path / "evil"
    hostile = evil(place)
    script = [*command(unit_of(MONITOR), "--root", lab4)[2:], "--duration", "1"]
    for name in ("PYTHONPATH", "OPENSSL_CONF", "PYTHONPYCACHEPREFIX"):
        env = {"PATH": "/usr/bin:/bin", name: hostile[name]}
        assert used(traced(script, env, tmp_path / name), place), name
    assert (place / "mark").exists()


@pytest.mark.slow
def test_another_probe_is_not_started(tmp_path: Path) -> None:
    place = tmp_path / "evil"
    env = {"TUNECTL_PROBE": evil(place)["TUNECTL_PROBE"]}
    service = [*command(unit_of(MONITOR))[:-1], "probe", "jitter", "--intrude", "--cpus", "0", "--duration", "0.01"]
    subprocess.run(service, env=env, capture_output=True, timeout=120)
    assert not (place / "mark").exists()
    subprocess.run(service[2:], env=env, capture_output=True, timeout=120)
    assert (place / "mark").exists()


@pytest.mark.slow
def test_users_own_runs_keep_their_variables(lab4: Path) -> None:
    """Only an interpreter that was told to ignore its environment has tunectl do so, too."""
    argv = [str(TUNECTL), "verify", "--format", "json"]
    env = {"TUNECTL_ROOT": str(lab4), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    assert str(lab4) in done.stdout
    done = subprocess.run([*command(unit_of(MONITOR))[:-1], *argv[1:]], env=env, capture_output=True, text=True)
    assert str(lab4) not in done.stdout + done.stderr


def test_what_systemd_tells_a_service_stays() -> None:
    """The list of what stays has all that the product asks for: its files, its socket, its watchdog, its language."""
    from tunectl.cli import start

    kept = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM", "STATE_DIRECTORY", "RUNTIME_DIRECTORY"}
    assert kept | {"CREDENTIALS_DIRECTORY", "INVOCATION_ID", "TZ", "LANG", "HOME"} <= start._KEPT
    assert not any(LATE.match(name) or name.startswith("LD_") for name in start._KEPT)
