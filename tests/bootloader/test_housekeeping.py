"""What the kernel makes of the words that share its CPUs out, by its own source, on a machine with four CPUs."""

import pytest

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.housekeeping import Machine, value_of
from tunectl.cpulist import parse_cpulist, parse_isolcpus
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.bootargs import MATCHES

PRESENT = frozenset(range(4))
FOUR = Machine(PRESENT, 4)
GUEST = Machine(PRESENT, 32)  # of 32 possible CPUs four are present
WITHOUT = Machine(PRESENT, 4, tickless=False)
WANTED = frozenset({2, 3})


@pytest.mark.parametrize(
    ("line", "key", "machine", "value"),
    [
        ("isolcpus=nohz,domain,2-3", "nohz_full", FOUR, "2-3"),
        ("isolcpus=nohz,domain,2-3", "rcu_nocbs", FOUR, "2-3"),
        ("isolcpus=nohz,domain,2-3", "rcu_nocbs", WITHOUT, None),
        ("isolcpus=domain,2-3", "nohz_full", FOUR, None),
        ("nohz_full=2-3 rcu_nocbs=1", "rcu_nocbs", FOUR, "1-3"),
        ("nohz_full=0-3", "nohz_full", FOUR, "1-3"),  # the boot CPU keeps the time
        ("nohz_full=2-9", "nohz_full", FOUR, None),
        ("nohz_full=2-9 nohz_full=2-3", "nohz_full", FOUR, "2-3"),  # what was refused is no first one
        ("isolcpus=nohz,2-3 nohz_full=1-3", "nohz_full", FOUR, "2-3"),
        ("nohz_full=2-N", "nohz_full", GUEST, "2-3"),
        ("rcu_nocbs=0-15", "rcu_nocbs", FOUR, "0-3"),
        ("rcu_nocbs=junk", "rcu_nocbs", FOUR, "0-3"),
        ("rcu_nocbs=2-3 rcu_nocbs=1", "rcu_nocbs", FOUR, "1"),
        ("rcu_nocbs", "rcu_nocbs", FOUR, None),
        ("rcu_nocbs=all", "rcu_nocbs", GUEST, "0-3"),
        ("irqaffinity=0-1,9", "irqaffinity", FOUR, "0-1"),
        ("irqaffinity=9,0-1", "irqaffinity", FOUR, "0"),  # nothing stood before the fault: the boot CPU alone
        ("irqaffinity=0 irqaffinity=1", "irqaffinity", FOUR, "1"),
        ("-- nohz_full=2-3", "nohz_full", FOUR, None),
    ],
)
def test_a_list_comes_to(line: str, key: str, machine: Machine, value: str | None) -> None:
    assert value_of(parse_cmdline(line), key, machine, WANTED) == (value and parse_cpulist(value))


@pytest.mark.parametrize(
    ("line", "machine", "value"),
    [
        ("isolcpus=managed_irq,domain,2-N", GUEST, "managed_irq,domain,2-3"),
        ("isolcpus=managed_irq,domain,2-9", FOUR, None),
        ("isolcpus=2-9 isolcpus=managed_irq,domain,2-3", FOUR, "managed_irq,domain,2-3"),
        ("isolcpus=domain,2-3 isolcpus=managed_irq,1-3", FOUR, "managed_irq,domain,2-3"),  # a type that was not set yet
        ("isolcpus=domain,1-3 isolcpus=managed_irq,domain,2-3", FOUR, "domain,1-3"),  # refused as a whole
        ("nohz_full=1-3 isolcpus=nohz,domain,2-3", FOUR, None),
        ("isolcpus=domain,0-3", FOUR, "domain,1-3"),  # one present CPU is kept
        ("isolcpus=nohz,domain,2-3", WITHOUT, None),
    ],
)
def test_isolcpus_comes_to(line: str, machine: Machine, value: str | None) -> None:
    made = value_of(parse_cmdline(line), "isolcpus", machine, parse_isolcpus("managed_irq,domain,2-3"))
    assert made == (value and parse_isolcpus(value))


@pytest.mark.parametrize("key", list(MATCHES))
def test_a_text_is_compared_as_its_row_compares(key: str) -> None:
    assert KNOBS[f"boot.{key}"].match is MATCHES[key]
