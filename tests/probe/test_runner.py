import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tunectl.errors import TunectlError, UsageError
from tunectl.probe.runner import find_program, pass_on, run_jitter
from tunectl.work import Work

from .running import ENDED_BY_TEST_S, until_child, until_measuring
from .samples import result

pytestmark = pytest.mark.pins


def script(path: Path, body: str) -> Path:
    """A program of the probe's name that does something else."""
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.slow
def test_measures(installed: Path, cpu: int) -> None:
    for asked_s in (1.05, 2.5, 10.5):  # who tells once a second may himself wait for a CPU
        said: list[Work] = []
        result = run_jitter([cpu], asked_s, threshold_ns=500, events=3, intrude=True, on_progress=said.append)
        if said[-1].left_s not in (None, asked_s):
            break
    assert (result.threshold_ns, result.duration_requested_s) == (500, asked_s)
    (measured,) = result.cpus
    assert measured.cpu == cpu
    assert len(measured.events) <= 3
    assert len(said) >= 2
    assert said[0] == (f"measuring CPU {cpu}", asked_s, "")
    assert said[-1].now == f"measuring CPU {cpu}"
    assert said[-1].left_s is not None
    assert said[-1].left_s < asked_s
    assert re.fullmatch(rf"(.* on CPU {cpu}( at \d+\.\d s)?)?", said[-1].longest)


def test_the_longest_gap_of_all_cpus_is_told_and_when_it_began() -> None:
    said: list[Work] = []
    pass_on(said.append, "2-3,5", 60.0, "progress 3.0 2:12345@1.234 3:0@-1.000 5:7e3@-1.000")
    pass_on(said.append, "2-3,5", 60.0, "progress 61.0 2:12345@1.234 3:0@-1.000 5:7e9@-1.000")
    pass_on(said.append, "2", 60.0, "progress 3.0 2:0@-1.000")
    pass_on(said.append, "2", 60.0, "tunectl-probe: something else")
    assert said == [
        ("measuring CPUs 2-3,5", 57.0, "12.3 µs on CPU 2 at 1.2 s"),
        ("measuring CPUs 2-3,5", 0.0, "7 s on CPU 5"),
        ("measuring CPU 2", 57.0, ""),
    ]


def test_a_refusal_is_a_usage_error(installed: Path) -> None:
    with pytest.raises(UsageError, match="tunectl-probe: CPU 60000 is not online on this host"):
        run_jitter([60000], 1)


def test_every_option_reaches_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = (
        f"import json, sys\ndocument = {result()!r}\ndocument['warnings'] = sys.argv[1:]\nprint(json.dumps(document))"
    )
    monkeypatch.setenv("TUNECTL_PROBE", str(script(tmp_path / "probe", body)))
    argv = run_jitter([3, 2, 5], 0.25, threshold_ns=7, fifo=1, events=0, attribute=True).warnings
    assert argv == [
        *("jitter", "--duration", "0.250000", "--cpus", "2-3,5"),
        *("--threshold-ns", "7", "--fifo", "1", "--events", "0", "--wait-for-go"),
    ]
    assert run_jitter([], 1).warnings == ["jitter", "--duration", "1.000000"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import sys; sys.exit('tunectl-probe: it broke')", "tunectl-probe: it broke"),
        ("raise SystemExit(7)", "tunectl-probe: it ended with status 7"),
        ("print('{')", "tunectl-probe wrote no JSON"),
        ("print('{}')", "expected a document of schema"),
    ],
)
def test_a_failing_program_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str) -> None:
    monkeypatch.setenv("TUNECTL_PROBE", str(script(tmp_path / "probe", body)))
    with pytest.raises(TunectlError) as caught:
        run_jitter([1], 0.1)
    assert not isinstance(caught.value, UsageError)
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_finds_it_beside_the_scripts_then_beside_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUNECTL_PROBE", raising=False)
    scripts, python = tmp_path / "scripts", tmp_path / "python"
    scripts.mkdir()
    python.mkdir()
    monkeypatch.setattr("tunectl.installed.scripts", lambda: str(scripts))
    monkeypatch.setattr("sys.executable", str(python / "python3"))
    with pytest.raises(TunectlError) as caught:
        find_program()
    assert str(scripts) in caught.value.message
    assert caught.value.hint
    script(python / "tunectl-probe", "")
    assert find_program() == python / "tunectl-probe"
    script(scripts / "tunectl-probe", "")
    assert find_program() == scripts / "tunectl-probe"


def test_a_wrong_override_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNECTL_PROBE", str(tmp_path / "none"))
    with pytest.raises(TunectlError, match="is not a program"):
        find_program()


@pytest.mark.slow
def test_ctrl_c_still_gives_the_result(installed: Path, cpu: int) -> None:
    call = f"run_jitter([{cpu}], {ENDED_BY_TEST_S}, intrude=True)"
    code = f"import msgspec; from tunectl.probe.runner import run_jitter; print(msgspec.json.encode({call}).decode())"
    root = Path(__file__).parents[2]
    child = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True)
    assert until_measuring(until_child(child.pid))
    child.send_signal(signal.SIGINT)
    document = json.loads(child.communicate(timeout=60)[0])
    assert document["interrupted"] is True


@pytest.mark.parametrize("how", ["KILL", "SEGV"])
def test_a_killed_program_is_said_to_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Not its last line, which says how far it was."""
    body = (
        f"import os, sys\nprint('progress 3.0', file=sys.stderr, flush=True)\nos.system(f'kill -{how} {{os.getpid()}}')"
    )
    monkeypatch.setenv("TUNECTL_PROBE", str(script(tmp_path / "probe", body)))
    with pytest.raises(TunectlError, match=f"^tunectl-probe: it was killed by SIG{how}$"):
        run_jitter([1], 1, intrude=True)
