from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tunectl.errors import TunectlError
from tunectl.probe.result import CpuSummary, check_result, load_result, summary_rows

from .samples import cpu_result, result


def test_rows() -> None:
    assert summary_rows(result(cpu_result(3))) == [CpuSummary(3, 50, 5.0, 100.0, 40_000, 8_000, 0, 0)]


def test_rows_of_a_cpu_without_its_own_length_use_the_runs() -> None:
    cpu = cpu_result()
    del cpu["duration_ns"]
    assert summary_rows(result(cpu, duration_s=5.0))[0].interruptions_per_s == 10.0
    assert summary_rows(result(cpu, duration_s=0.0))[0].interruptions_per_s == 0.0


def test_a_file_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result(cpu_result())))
    assert load_result(path) == result(cpu_result())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("[1]", "expected a document of schema tunectl.probe.jitter/1, found none"),
        ('{"schema": "tunectl.show/1"}', "found tunectl.show/1"),
        ('{"schema": "tunectl.probe.jitter/1"}', "threshold_ns is missing"),
        (json.dumps(result({"cpu": 1})), "cpus[0]: loops is missing"),
        (json.dumps(result(cpu_result(max_ns=None))), "cpus[0]: max_ns is missing or of the wrong type"),
        (json.dumps(result(cpu_result(max_ns=True))), "cpus[0]: max_ns is missing or of the wrong type"),
        (json.dumps(result() | {"cpus": [3]}), "cpus[0] is no object"),
        ("\ud800", "is not JSON"),
    ],
)
def test_what_is_no_result_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(TunectlError) as caught:
        load_result(path)
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TunectlError, match=r"cannot read .*: No such file"):
        load_result(tmp_path / "none.json")


def test_the_document_itself_is_returned() -> None:
    document: Any = result(cpu_result())
    assert check_result(document, "here") is document
