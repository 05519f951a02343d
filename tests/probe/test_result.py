from __future__ import annotations

from typing import Any

import pytest

from tunectl.errors import TunectlError
from tunectl.probe.result import read_result

from .samples import cpu_result, result, typed_result


def test_a_cpu_without_its_own_length_was_measured_as_long_as_the_run() -> None:
    cpu = cpu_result()
    assert typed_result(cpu, duration_s=5.0).worst("interruptions_per_s") == 5.0
    del cpu["duration_ns"]
    assert typed_result(cpu, duration_s=5.0).worst("interruptions_per_s") == 10.0
    assert typed_result(cpu, duration_s=0.0).worst("interruptions_per_s") is None


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([1], "expected a document of schema tunectl.probe.jitter/1, found none"),
        ({"schema": "tunectl.show/1"}, "found tunectl.show/1"),
        ({"schema": "tunectl.probe.jitter/1"}, "the document: Object missing required field `threshold_ns`"),
        (result({"cpu": 1}), "cpus[0]: Object missing required field `interruptions`"),
        (result(cpu_result(max_ns=None)), "cpus[0].max_ns: Expected `int`, got `null`"),
        (result(cpu_result(max_ns=True)), "cpus[0].max_ns: Expected `int`, got `bool`"),
        (result() | {"cpus": [3]}, "cpus[0]: Expected `object`, got `int`"),
    ],
)
def test_what_is_no_result_is_one_line(document: Any, said: str) -> None:
    with pytest.raises(TunectlError) as caught:
        read_result(document, "here")
    assert said in caught.value.message
    assert caught.value.message.startswith("here: ")
    assert "\n" not in caught.value.message
