from __future__ import annotations

from typing import Any

import pytest

from tunectl.errors import TunectlError
from tunectl.probe.result import CpuSummary, check_result, summary_rows

from .samples import cpu_result, result


def test_rows() -> None:
    assert summary_rows(result(cpu_result(3))) == [CpuSummary(3, 10.0, 50, 5.0, 100.0, 40_000, 8_000, 0, 0)]


def test_rows_of_a_cpu_without_its_own_length_use_the_runs() -> None:
    cpu = cpu_result()
    del cpu["duration_ns"]
    assert summary_rows(result(cpu, duration_s=5.0))[0].interruptions_per_s == 10.0
    assert summary_rows(result(cpu, duration_s=0.0))[0].interruptions_per_s == 0.0


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([1], "expected a document of schema tunectl.probe.jitter/1, found none"),
        ({"schema": "tunectl.show/1"}, "found tunectl.show/1"),
        ({"schema": "tunectl.probe.jitter/1"}, "threshold_ns is missing"),
        (result({"cpu": 1}), "cpus[0]: loops is missing"),
        (result(cpu_result(max_ns=None)), "cpus[0]: max_ns is missing or of the wrong type"),
        (result(cpu_result(max_ns=True)), "cpus[0]: max_ns is missing or of the wrong type"),
        (result() | {"cpus": [3]}, "cpus[0] is no object"),
    ],
)
def test_what_is_no_result_is_one_line(document: Any, said: str) -> None:
    with pytest.raises(TunectlError) as caught:
        check_result(document, "here")
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_the_document_itself_is_returned() -> None:
    document: Any = result(cpu_result())
    assert check_result(document, "here") is document
