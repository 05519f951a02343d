"""A probe that had to leave every CPU has measured nothing: who took them, in one line, and never GO."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.probe.samples import cpu_result, result
from tests.ran import JITTER, Ran

Run = Callable[..., Ran]
CPU = max(os.sched_getaffinity(0))
TAKEN = {"cpu": CPU, "reason": f"engine (tid 7) runs on CPU {CPU}"}
SAYS = f"nothing was measured: CPU {CPU}: engine (tid 7) runs on CPU {CPU}"
WHOLE = cpu_result(CPU + 1)


def answering(below: Path, *measured: dict[str, Any]) -> dict[str, str]:
    """The environment in which tunectl-probe answers that an engine has taken the CPU, and with these it measured."""
    program = below / "tunectl-probe"
    program.write_text(f"#!{sys.executable}\nprint({json.dumps(result(*measured, not_measured=[TAKEN]))!r})\n")
    program.chmod(0o755)
    return {"TUNECTL_PROBE": str(program)}


@pytest.mark.parametrize("words", [(), ("--format", "text"), ("--format", "json"), ("-q",)], ids=" ".join)
def test_it_is_one_line_and_no_document(tunectl: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    output = tmp_path / "result.json"
    ran = tunectl(*JITTER, "--cpus", CPU, "--output", output, *words, env=answering(tmp_path))
    assert (ran.code, ran.out) == (1, "")
    assert [line for line in ran.err.splitlines() if "measuring" not in line] == [ran.err.splitlines()[-1]]
    assert ran.err.splitlines()[-1].startswith(f"tunectl: {SAYS}")
    assert not output.exists()


@pytest.mark.parametrize(("more", "hint"), [((), "say --fifo 1: it takes"), (("--fifo", "1"), "(stop them)")])
def test_who_intruded_is_not_told_to(tunectl: Run, tmp_path: Path, more: tuple[str, ...], hint: str) -> None:
    assert "--intrude" in JITTER
    ran = tunectl(*JITTER, "--cpus", CPU, *more, env=answering(tmp_path))
    assert hint in ran.err
    assert "--intrude" not in ran.err


def test_a_run_that_measured_some_stays_a_result_that_can_be_read_again(tunectl: Run, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    words = ("--cpus", CPU, "--output", output, "--format", "json")
    ran = tunectl(*JITTER, *words, env=answering(tmp_path, WHOLE))
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["not_measured"] == [TAKEN]
    assert tunectl("report", output, "-o", tmp_path / "page.html").code == 0


def flown(tunectl: Run, tmp_path: Path, *measured: dict[str, Any], budget: str = "") -> Any:
    """preflight of this machine, with that probe."""
    host = tmp_path / "host.toml"
    text = f'profile = "low-latency"\nisolated = "{CPU}"\nallow_split_siblings = true\n'
    host.write_text(f"{text}[budget]\n{budget}\n" if budget else text)
    words = ("preflight", "--intrude", "--window", "0.1", "--duration", "0.1", "--host", host, "--format", "json")
    return tunectl(*words, env=answering(tmp_path, *measured)).json


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["", "max_ns = 60000000000"])
def test_preflight_gives_it_as_a_reason_with_and_without_a_budget(tunectl: Run, tmp_path: Path, budget: str) -> None:
    document = flown(tunectl, tmp_path, budget=budget)
    assert f"probe: {SAYS}; GO needs them stopped, or --intrude" in document["reasons"]
    assert document["verdict"] != "go"
    assert document["probe"] is None


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["", "max_ns = 60000000000"])
def test_preflight_gives_each_cpu_that_it_had_to_leave_as_a_reason(tunectl: Run, tmp_path: Path, budget: str) -> None:
    document = flown(tunectl, tmp_path, WHOLE, budget=budget)
    said = f"CPU {CPU} was not measured: {TAKEN['reason']}"
    assert [reason for reason in document["reasons"] if said in reason]
    assert document["probe"]["not_measured"] == [TAKEN]
