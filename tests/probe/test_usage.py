"""Wrong requests: one clear line, the right exit status, nothing measured."""

import subprocess
from pathlib import Path

import pytest

from .conftest import SHORT_S, Probe

pytestmark = pytest.mark.pins


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to do"),
        (["jiter"], "no command jiter"),
        (["jitter", "--bogus"], "--bogus"),
        (["jitter", "--cpus"], "--cpus needs a value"),
        (["jitter", "--cpus", "3-1"], "not a CPU list"),
        (["jitter", "--cpus", ""], "names no CPU"),
        (["jitter", "--cpus", "60000"], "CPU 60000 is not online"),
        (["jitter", "--cpus", "0", "--duration", "0"], "--duration 0"),
        (["jitter", "--cpus", "0", "--duration", "nan"], "--duration nan"),
        (["jitter", "--cpus", "0", "--duration", "1s"], "--duration 1s"),
        (["jitter", "--cpus", "0", "--threshold-ns", "0"], "--threshold-ns 0"),
        (["jitter", "--cpus", "0", "--threshold-ns", "-5"], "--threshold-ns -5"),
        (["jitter", "--cpus", "0", "--fifo", "100"], "--fifo 100"),
        (["jitter", "--cpus", "0", "--events", "99999999999999999999"], "--events"),
        (["jitter", "--cpus", "0", "more"], "more"),
        (["jitter", "--rounds", "3"], "--rounds"),
        (["jitter", "--attribute"], "--attribute"),
        (["selftest"], "no command selftest"),
        (["jitter", "--intrude", "--cpus", "0", "--inject", "storm,1,1,1"], "--inject storm,1,1,1"),
        (["jitter", "--intrude", "--cpus", "0", "--inject", "ipi,1,1"], "--inject ipi,1,1"),
    ],
)
def test_usage_errors(probe: Probe, arguments: list[str], said: str) -> None:
    done = probe(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("tunectl-probe: ")
    assert said in done.stderr


def recorded(root: Path, isolated: str = "", nohz_full: str = "") -> Path:
    cpu = root / "sys/devices/system/cpu"
    cpu.mkdir(parents=True)
    (cpu / "online").write_text("0-3\n")
    (cpu / "isolated").write_text(f"{isolated}\n")
    (cpu / "nohz_full").write_text(nohz_full or " " * 200 + "(null)\n")
    return root


def test_without_isolated_cpus_it_asks_for_some(probe: Probe, tmp_path: Path) -> None:
    done = probe("jitter", "--root", recorded(tmp_path))
    assert done.returncode == 2
    assert "--cpus" in done.stderr


def test_the_isolated_cpus_are_the_default_then_the_nohz_full_ones(probe: Probe, tmp_path: Path) -> None:
    # CPUs that are isolated but not online show which list was taken.
    done = probe("jitter", "--root", recorded(tmp_path / "a", isolated="6-7", nohz_full="9\n"))
    assert (done.returncode, done.stderr) == (2, "tunectl-probe: CPU 6 is not online on this host\n")
    done = probe("jitter", "--root", recorded(tmp_path / "b", nohz_full="9\n"))
    assert (done.returncode, done.stderr) == (2, "tunectl-probe: CPU 9 is not online on this host\n")


def test_a_full_disk_is_said(program: Path, cpu: int) -> None:
    asked = [str(program), "jitter", "--intrude", "--cpus", str(cpu), "--duration", str(SHORT_S)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(asked, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "tunectl-probe: cannot write standard output: No space left on device\n"


def test_help_and_version(probe: Probe) -> None:
    for arguments in (["--help"], ["jitter", "--help"], ["-h"]):
        done = probe(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert "--threshold-ns" in done.stdout
    assert probe("--version").stdout.startswith("tunectl-probe ")
