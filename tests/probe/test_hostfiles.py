"""What the kernel's files say of a machine, and what it counted between two readings of them."""

import pytest

from tunectl.probe.hostfiles import Counted, Files, machine_of

INTERRUPTS = """            CPU0       CPU2       CPU3
   8:          0          1          2  IR-IO-APIC    8-edge      rtc0
 133:    4294967290         22         33  IR-PCI-MSIX-0000:00:1f.0    0-edge      nvme0q"1\\
 LOC:        100        200        300   Local timer interrupts
 ERR:          7
IPI0:          4          5          6       Rescheduling interrupts

garbage
 bad:          1          x          3   Not a count
"""


def counted(before: str, after: str, path: str = "/proc/interrupts") -> Counted:
    return Counted({path: before}, {path: after}, 100)


def test_columns_are_found_by_name_and_rows_that_are_not_per_cpu_left_out() -> None:
    found = counted("CPU0 CPU2 CPU3\n", INTERRUPTS)
    assert found.has_interrupts
    assert found.moved("irq", 2) == {"8": 1, "133": 22, "LOC": 200, "IPI0": 5}
    assert found.moved("irq", 1) == {}  # offline: it has no column
    assert found.descriptions([0]) == {
        "133": 'IR-PCI-MSIX-0000:00:1f.0    0-edge      nvme0q"1\\',
        "LOC": "Local timer interrupts",
        "IPI0": "Rescheduling interrupts",
    }


def test_a_counter_wraps_and_an_interrupt_that_was_requested_again_begins_anew() -> None:
    before = " CPU0\n 5: 4294967290 x\n 6: 10 y\n 8: 1 z\n 9: 100 z\n"
    after = " CPU0\n 5: 4 x\n 6: 12 y\n 7: 3 new\n 8: 1 z\n 9: 2 z\n"
    assert counted(before, after).moved("irq", 0) == {"5": 10, "6": 2, "7": 3, "9": 2}


def test_what_a_cpu_counted_while_it_was_off_or_before_it_was_looked_at_is_unknown() -> None:
    """A CPU that comes back shows all that it counted since boot."""
    assert counted(" CPU0\n 5: 7 x\n", " CPU0 CPU1\n 5: 9 4000 x\n").moved("irq", 1) == {}
    assert counted("", INTERRUPTS).moved("irq", 2) == {}


@pytest.mark.parametrize("text", ["", "\n", "no header\n 1: 2\n", "CPU\n"])
def test_what_has_no_header_counts_nothing(text: str) -> None:
    assert counted(text, text).moved("irq", 0) == {}


def test_softirqs_are_a_table_of_their_own() -> None:
    found = counted("CPU0 CPU1\nTIMER: 1 2\n", "CPU0 CPU1\nTIMER: 1 5\n", "/proc/softirqs")
    assert (found.moved("softirq", 1), found.moved("irq", 1)) == ({"TIMER": 3}, {})


def test_times_of_a_cpu_and_of_an_old_kernel_that_has_fewer() -> None:
    before = "cpu  1 1 1 1\ncpu1 0 0 0 9 0 0 0 0 0 0\ncpu11 1 0 0 5\ncpu12 1 1 1 1\nintr 5 1 2 3\n"
    after = "cpu  9 9 9 9\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu11 11 0 0 5\nintr 5 1 2 3\n"
    found = counted(before, after, "/proc/stat").times
    assert found == {1: (10 * (1 + 2 + 3 + 6 + 7 + 8), 0, 80), 11: (100, 0, 0)}


@pytest.mark.parametrize(
    ("files", "is_virtual", "has_stable_tsc"),
    [
        ({}, False, True),
        ({"/proc/cpuinfo": "processor : 0\nflags\t\t: tsc constant_tsc nonstop_tsc\n"}, False, True),
        ({"/proc/cpuinfo": "processor : 0\nflags\t\t: constant_tsc nonstop_tsc_not hypervisor\n"}, True, False),
        ({"/proc/cpuinfo": "Features : fp asimd\n", "/sys/class/dmi/id/sys_vendor": "QEMU\n"}, True, True),
        ({"/proc/cpuinfo": "Features : fp asimd\n", "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n"}, False, True),
        ({"/sys/hypervisor/type": "xen\n"}, True, True),
    ],
)
def test_a_guest_and_a_counter_that_is_no_unit_of_time(files: Files, is_virtual: bool, has_stable_tsc: bool) -> None:
    machine = machine_of(files)
    assert (machine.is_virtual, machine.has_stable_tsc) == (is_virtual, has_stable_tsc)
    assert (machine.rt_runtime_us, machine.rt_period_us) == (-1, 1_000_000)
