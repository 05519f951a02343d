"""The published JSON Schema of the host file is what tunectl reads."""

import json
import tomllib
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from tests.hostfile.test_config import INTERFACE_EXAMPLE
from tunectl.hostfile.schema import schema
from tunectl.hostfile.shape import HostFile

LEAST = {"profile": "low-latency", "isolated": "2-3"}


def problems(host: dict[str, Any]) -> list[str]:
    plain = json.loads(json.dumps(host, default=str))
    return [error.message for error in Draft202012Validator(schema()).iter_errors(plain)]


def test_the_example_satisfies_it() -> None:
    assert problems(tomllib.loads(INTERFACE_EXAMPLE)) == []
    assert problems(LEAST) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"isolatd": "2-3"},
        {"isolation": "never"},
        {"bootloader": "lilo"},
        {"budget": {"max_ns": "50"}},
        {"budget": {"stolen_ppm": 0}},
        {"budget": {"stolen_ppm": 1e6}},
        {"clock": {"max_error_ns": 0}},
        {"clock": {"max_error_ns": 86_400e9}},
        {"knobs": {"mm.no_such_knob": 1}},
        {"threads": [{"policy": "fifo"}]},
        {"monitor": {"log": "paper"}},
        {"monitor": {"webhooks": [{"url": "https://a.example", "timeout_s": 0}]}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_tunectl_refuses_by_its_type_the_schema_refuses(wrong: dict[str, Any]) -> None:
    assert problems({**LEAST, **wrong})


def test_both_know_the_same_required_keys() -> None:
    assert problems({})
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({}, HostFile)
