"""`tunectl compare` and `tunectl report` as installed: formats, exit codes, what is written and what is left alone."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import PROGRAM, environment
from tests.cli.test_commands import valid
from tests.compare.runs import cpu_of, document, simulated
from tests.compare.wakes import cell, wake_document
from tests.fleet.made import preflight
from tests.ran import JITTER, Ran

Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """before.json, after.json, wake.json and later.json."""
    place = tmp_path_factory.mktemp("results")
    quiet = simulated(3, 10.0, per_second=20.0, length=lambda rng: 400 + rng.random())
    after = document(cpu_of(quiet, 10.0), at="2026-11-21T10:00:00Z")
    (place / "before.json").write_text(json.dumps(document(cpu_of(simulated(1, 10.0), 10.0))))
    (place / "after.json").write_text(json.dumps(after))
    wake = wake_document(cell("tcp", "sleeping", 1), cell("tcp", "spinning", 1))
    (place / "wake.json").write_text(json.dumps(wake))
    (place / "later.json").write_text(json.dumps(wake | {"at": "2026-11-21T10:00:00Z"}))
    return place


@pytest.mark.parametrize("words", [["compare"], ["report", "--format", "html"]])
def test_a_small_host_reads_small_results(results: Path, words: list[str]) -> None:
    """A limit on a file's size is no reason to ask for as much memory."""
    argv = [*PROGRAM, *words, *(str(results / name) for name in ("before.json", "after.json"))]
    limit = (256 << 20, 256 << 20)
    done = subprocess.run(
        argv, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit)
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.alone
def test_real_results_are_compared_and_drawn(tunectl: Run, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    for name in ("a", "b"):
        words = ["--cpus", cpu, "--duration", "0.5", "--output", tmp_path / name]
        assert tunectl(*JITTER, *words).code == 0
    made = valid("compare", tunectl("compare", tmp_path / "a", tmp_path / "b", "--format", "json").out)
    assert made["before"]["cpus"] == str(cpu)
    assert tunectl("report", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "r.html").code == 0
    assert "Before and after" in (tmp_path / "r.html").read_text()


@pytest.mark.slow
@pytest.mark.alone
def test_runs_are_kept_together_and_compared_as_sets(tunectl: Run, tmp_path: Path) -> None:
    cpu, out = min(os.sched_getaffinity(0)), tmp_path / "set"
    words = ["--cpus", cpu, "--duration", "0.1", "--runs", "5", "--pause", "0", "--output", out]
    made = valid("probe.jitter.runs", tunectl(*JITTER, *words, "--format", "json").out)
    assert made["runs"] == json.loads(out.read_text())["runs"]
    for run in made["runs"]:
        valid("probe.jitter", json.dumps(run))
    assert "5 runs, 0 s apart" in tunectl(*JITTER, *words).out
    refused = tunectl("compare", out, out, "--format", "json")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"tunectl: nothing to compare: {out} and {out} hold the same runs")
    later = tmp_path / "later"
    assert tunectl(*JITTER, *words[:-1], later).code == 0
    both = valid("compare", tunectl("compare", out, later, "--format", "json").out)
    assert (both["judged"]["of"], both["before"]["runs"]) == ("sets", 5)


def test_report_writes_a_page_and_again(tunectl: Run, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    files = [results / "before.json", results / "after.json", results / "wake.json"]
    made = valid("report", tunectl("report", *files, "-o", out, "--format", "json").out)
    assert (made["written"], made["bytes"]) == (str(out), out.stat().st_size)
    assert out.stat().st_mode & 0o777 == 0o644
    first = out.read_text()
    assert tunectl("report", *files[:2], "-o", out).code == 0
    # Of three files nobody says which two are before and after.
    assert ("Before and after" in first, "Before and after" in out.read_text()) == (False, True)
    assert list(tmp_path.iterdir()) == [out]


def test_the_page_of_a_go_that_its_own_figures_contradict(tunectl: Run, tmp_path: Path) -> None:
    go = preflight(headline="ready")
    (tmp_path / "go.json").write_text(json.dumps(go))
    go["probe"]["budget"]["limits"] |= {"max_ns": 3_999}
    (tmp_path / "edited.json").write_text(json.dumps(go))
    assert "It says GO, and" not in tunectl("report", tmp_path / "go.json", "--format", "html").out
    drawn = tunectl("report", tmp_path / "edited.json", "--format", "html").out
    assert "It says GO, and the figures of its probe break a limit: CPU 15: the longest interruption is 4 µs" in drawn


def test_a_terminal_without_utf8(tunectl: Run, results: Path) -> None:
    files = results / "before.json", results / "after.json"
    done = tunectl("compare", *files, env={"PYTHONIOENCODING": "ascii"})
    assert (done.code, done.err) == (0, "")
    assert done.out.isascii()
    done = tunectl("compare", *files, "--format", "json", env={"PYTHONIOENCODING": "ascii"})
    valid("compare", done.out)


HEAVY = ("jinja2", "tunectl.compare", "tunectl.report.html", "tunectl.probe.document")
LOADED = """
import sys
sys.argv = ["tunectl", *{words!r}]
import os
os._exit = lambda code: None
from tunectl.cli.main import main
main()
print("LOADED", *[name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["verify", "--root", "ROOT"]])
def test_other_commands_do_not_pay_for_it(stock: Path, results: Path, words: list[str]) -> None:
    def loaded(*words: str) -> str:
        code = LOADED.format(words=[*words], heavy=HEAVY)
        return subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True).stderr

    assert loaded(*[str(stock) if word == "ROOT" else word for word in words]).strip() == "LOADED"
    both = loaded("report", str(results / "wake.json"), "--format", "html")
    assert both.split() == ["LOADED", *HEAVY]
