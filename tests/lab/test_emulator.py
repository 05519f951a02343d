"""When a test may be played again: only where QEMU's fault is proved. Registers as QEMU 7.2 printed them in a hang."""

from collections.abc import Callable

import pytest

from . import emulator

HANDLER, SITE = 0xFFFFFFFF8A200BA0, 0xFFFFFFFF896C53B6  # asm_exc_int3; a tracepoint in process_one_work
ELSEWHERE = 0xFFFFFFFF8A04E8CB
IDT = 0xFFFFFE0000000000
# The gate of vector 3 to HANDLER, and the NOP that stands where the tracepoint is off.
GATE = "a0 0b 10 00 00 ee 20 8a ff ff ff ff"
NOP = "00 0f 1f 44 00 00"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "PAUSE_S", 0)


def monitor(rounds: list[list[int]], code: str = NOP, halts: int = 0) -> Callable[[str, int], str]:
    """QEMU's monitor; each round is where the CPUs are at one moment, and they repeat."""
    asked = iter(range(10**6))

    def answer(command: str, _cpu: int) -> str:
        if command.startswith("x/"):
            address = int(command.split()[1], 16)
            text = {IDT + 0x30: GATE, SITE - 1: code}.get(address, "")
            return f"{address:016x}: " + " ".join(f"0x{byte}" for byte in text.split())
        places = rounds[next(asked) % len(rounds)]
        return "\n".join(
            f"\nCPU#{cpu}\nRAX=0000000000000040 RBX=ff36df90c1b1b478\n"
            f"RIP={place:016x} RFL=00000286 [--S--P-] CPL=0 II=0 A20=1 SMM=0 HLT={halts}\n"
            f"IDT=     {IDT:016x} 00000fff"
            for cpu, place in enumerate(places)
        )

    return answer


HANG = [[HANDLER, SITE, HANDLER, SITE], [SITE, SITE, HANDLER, SITE], [SITE] * 4, [SITE] * 4]


def test_a_breakpoint_that_memory_does_not_hold_is_the_emulators() -> None:
    proof = emulator.stuck(monitor(HANG))
    assert f"CPU 0 runs a breakpoint at {SITE:x}, where memory holds 0f 1f 44 00 00" in proof


@pytest.mark.parametrize(
    ("rounds", "code", "halts"),
    [
        pytest.param(HANG, "cc 0f 1f 44 00 00", 0, id="memory holds it, and the CPU stands behind it"),
        pytest.param(HANG, "00 cc 1f 44 00 00", 0, id="memory holds it, and the CPU stands at it"),
        pytest.param([[SITE] * 4], NOP, 0, id="a loop of the kernel's own"),
        pytest.param([[SITE, HANDLER], [ELSEWHERE, ELSEWHERE]], NOP, 0, id="elsewhere half of the time"),
        pytest.param(HANG, NOP, 1, id="halted"),
        pytest.param(HANG, "", 0, id="memory that cannot be read"),
    ],
)
def test_whatever_else_hangs_is_not(rounds: list[list[int]], code: str, halts: int) -> None:
    assert emulator.stuck(monitor(rounds, code, halts)) == ""


def test_a_panic_over_a_breakpoint_is_the_emulators_and_no_other_is() -> None:
    oops = "[  173.457] int3: 0000 [#1] PREEMPT SMP NOPTI\n[  173.466] Kernel panic - not syncing: Fatal exception"
    assert emulator.panicked(oops)
    assert not emulator.panicked(oops.replace("int3", "general protection fault"))
