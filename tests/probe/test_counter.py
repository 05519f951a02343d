"""The rate of the counter as a processor states it, from its CPUID leaves as the native program wrote them."""

import json
import subprocess
from pathlib import Path

import pytest

from tunectl.probe.counter import shown_clock, stated_hz

NONE = [0, 0, 0, 0]
CRYSTAL = {0: [0x16, 0, 0, 0], 1: NONE, 0x15: [2, 176, 24_000_000, 0], 0x4000_0000: NONE, 0x4000_0010: NONE}
GUEST = CRYSTAL | {
    1: [0, 0, 1 << 31, 0],
    0x4000_0000: [0x4000_0010, 0, 0, 0],
    0x4000_0010: [2_596_138, 0, 0, 0],
}


@pytest.mark.parametrize(
    ("leaves", "hz"),
    [
        (CRYSTAL, 2_112_000_000.0),
        (CRYSTAL | {0: [0x14, 0, 0, 0]}, None),  # what stands in leaf 0x15 is another leaf's
        (CRYSTAL | {0x15: [2, 176, 0, 0]}, None),  # the crystal is not stated
        (CRYSTAL | {0x15: [0, 176, 24_000_000, 0]}, None),
        (GUEST, 2_596_138_000.0),
        (GUEST | {1: NONE}, 2_112_000_000.0),  # no hypervisor: these leaves are nobody's
        (GUEST | {0x4000_0000: [0x4000_0001, 0, 0, 0]}, 2_112_000_000.0),
        (GUEST | {0x4000_0010: NONE}, 2_112_000_000.0),
    ],
)
def test_who_states_a_rate_is_asked_in_turn(leaves: dict[int, list[int]], hz: float | None) -> None:
    assert stated_hz({"cpuid": [[leaf, *registers] for leaf, registers in leaves.items()]}) == hz


def test_arm64_has_a_register() -> None:
    assert stated_hz({"cntfrq": 25_000_000}) == 25_000_000.0
    assert stated_hz({"cntfrq": 0}) is None


def test_a_clock_is_shown_without_registers() -> None:
    assert shown_clock({"hz": 1.0, "cntfrq": 24}) == {"hz": 1.0, "stated_hz": 24.0}
    assert shown_clock({"source": "simulated", "hz": 1e9}) == {"source": "simulated", "hz": 1e9}


@pytest.mark.pins
def test_this_machine_states_a_rate_like_the_measured_one_or_none(program: Path, cpu: int) -> None:
    argv = [str(program), "jitter", "--cpus", str(cpu), "--duration", "0.1", "--intrude"]
    clock = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)["clock"]
    stated = stated_hz(clock)
    assert stated is None or abs(stated / clock["hz"] - 1) < 0.01
