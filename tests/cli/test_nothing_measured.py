"""A probe that had to leave every CPU has measured nothing: who took them, in one line, and never GO."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.places import answering, this_host_file
from tests.experiments import feeds, wakes
from tests.probe.samples import cpu_result, result
from tests.ran import JITTER, Ran

Run = Callable[..., Ran]
pytestmark = pytest.mark.pins

CPU = max(os.sched_getaffinity(0))
TAKEN = {"cpu": CPU, "reason": f"engine (tid 7) runs on CPU {CPU}"}
SAYS = f"nothing was measured: CPU {CPU}: engine (tid 7) runs on CPU {CPU}"
WHOLE = cpu_result(CPU + 1)


def leaving(below: Path, *measured: dict[str, Any]) -> dict[str, str]:
    """The environment in which tunectl-probe answers that an engine has taken the CPU, and with these it measured."""
    return answering(below, result(*measured, not_measured=[TAKEN]))


@pytest.mark.parametrize("words", [(), ("--format", "text"), ("--format", "json"), ("-q",)], ids=" ".join)
def test_it_is_one_line_and_no_document(tunectl: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    output = tmp_path / "result.json"
    ran = tunectl(*JITTER, "--cpus", CPU, "--output", output, *words, env=leaving(tmp_path))
    assert (ran.code, ran.out) == (1, "")
    assert [line for line in ran.err.splitlines() if "measuring" not in line] == [ran.err.splitlines()[-1]]
    assert ran.err.splitlines()[-1].startswith(f"tunectl: {SAYS}")
    assert not output.exists()


@pytest.mark.parametrize(("more", "hint"), [((), "say --fifo 1: it takes"), (("--fifo", "1"), "(stop them)")])
def test_who_intruded_is_not_told_to(tunectl: Run, tmp_path: Path, more: tuple[str, ...], hint: str) -> None:
    assert "--intrude" in JITTER
    ran = tunectl(*JITTER, "--cpus", CPU, *more, env=leaving(tmp_path))
    assert hint in ran.err
    assert "--intrude" not in ran.err


def test_a_run_that_measured_some_stays_a_result_that_can_be_read_again(tunectl: Run, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    words = ("--cpus", CPU, "--output", output, "--format", "json")
    ran = tunectl(*JITTER, *words, env=leaving(tmp_path, WHOLE))
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["not_measured"] == [TAKEN]
    assert tunectl("report", output, "-o", tmp_path / "page.html").code == 0


def flown(tunectl: Run, tmp_path: Path, *measured: dict[str, Any], budget: str = "") -> Any:
    """preflight of this machine, with that probe."""
    host = this_host_file(tmp_path, f"[budget]\n{budget}\n")
    words = ("preflight", "--intrude", "--window", "0.1", "--duration", "0.1", "--host", host, "--format", "json")
    return tunectl(*words, env=leaving(tmp_path, *measured)).json


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


PAIR = f"{min(os.sched_getaffinity(0))},{CPU}"
FEED = ("probe", "feed", "--intrude", "--cpus", PAIR, "--stamps", "off", "--duration", "1")
WAKE = ("probe", "wake", "--intrude", "--mechanisms", "tcp", "--waiting", "minimal", "--idle-ms", "0,1")
VOID = "the spinner had CPU 3 for 0 % of the time"
two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="feed spins on two CPUs, and here is one")


def case_by_case(below: Path, *documents: dict[str, Any]) -> dict[str, str]:
    """The environment in which tunectl-probe answers with these documents in turn, a case each."""
    for number, document in enumerate(documents):
        (below / f"{number}.json").write_text(json.dumps(document))
    program = below / "tunectl-probe"
    program.write_text(
        f"#!{sys.executable}\nimport pathlib\nturn = pathlib.Path({str(below / 'turn')!r})\n"
        "done = turn.read_text() if turn.exists() else ''\nturn.write_text(done + 'x')\n"
        f"print((pathlib.Path({str(below)!r}) / f'{{len(done)}}.json').read_text())\n"
    )
    program.chmod(0o755)
    (below / "turn").unlink(missing_ok=True)
    return {"TUNECTL_PROBE": str(program)}


def fed(**changes: Any) -> dict[str, Any]:
    return feeds.raw_document(feeds.case(**changes))


def woken(**changes: Any) -> dict[str, Any]:
    return wakes.raw_document(wakes.minimal(reason="", **changes))


@pytest.mark.slow
@two_cpus
@pytest.mark.parametrize(
    ("words", "name", "made"),
    [((*FEED, "--symbols", "1,4"), "probe.feed", fed), (WAKE, "probe.wake", woken)],
    ids=["feed", "wake"],
)
def test_a_table_in_which_every_case_is_void_is_unknown(
    tunectl: Run, tmp_path: Path, words: tuple[str, ...], name: str, made: Callable[..., dict[str, Any]]
) -> None:
    """It was written all the same: the document has the reasons, and what was counted."""
    output = tmp_path / "result.json"
    for documents, code in (([made(receiver_ns=0)] * 2, 1), ([made(receiver_ns=0), made()], 0), ([made()] * 2, 0)):
        env = case_by_case(tmp_path, *documents)
        ran = tunectl(*words, "--format", "json", "--output", output, env=env)
        assert (ran.code, ran.err, ran.json["schema"]) == (code, "", f"tunectl.{name}/1")
        void = [not one["cells"][0]["receiver_ns"] for one in documents]
        assert [VOID in cell["reason"] for cell in ran.json["cells"]] == void
        assert json.loads(output.read_text())["cells"] == ran.json["cells"]
    for more, said in (((), "NO RESULT "), (("-v",), VOID)):
        env = case_by_case(tmp_path, *[made(receiver_ns=0)] * 2)
        page = tunectl(*words, *more, env=env)
        assert (page.code, said in " ".join(page.out.split())) == (1, True)


@two_cpus
@pytest.mark.parametrize(
    ("limit", "messages", "code", "verdict"),
    [
        (10_000, 10_000, 0, "within"),
        (9_999, 10_000, 3, "broken"),
        (10_000, 9_999, 1, "not-judged"),
        (None, 10_000, 0, "not-judged"),
    ],
)
def test_feed_is_judged_by_the_host_files_limit_as_the_probe_is(
    tunectl: Run, tmp_path: Path, limit: int | None, messages: int, code: int, verdict: str
) -> None:
    env = case_by_case(tmp_path, fed(messages=[feeds.message()] * messages))
    limits = {"due_to_book_p99_9_ns": limit} if limit else {}
    host = this_host_file(tmp_path, "".join(f"[budget.feed]\n{key} = {value}\n" for key, value in limits.items()))
    ran = tunectl(*FEED, "--host", host, "--format", "json", env=env)
    assert (ran.code, ran.json["budget"]["verdict"]) == (code, verdict)
    assert ran.json["budget"]["limits"] == limits


@two_cpus
def test_void_is_unknown_with_and_without_a_limit(tunectl: Run, tmp_path: Path) -> None:
    host = this_host_file(tmp_path, "[budget.feed]\ndue_to_book_p99_9_ns = 1\n")
    for words in ((), ("--host", host)):
        ran = tunectl(*FEED, *words, "--format", "json", env=case_by_case(tmp_path, fed(receiver_ns=0)))
        assert (ran.code, ran.json["budget"]["verdict"]) == (1, "not-judged")
    assert VOID in ran.json["budget"]["reason"]
