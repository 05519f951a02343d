"""The table by bytes says what the whole table, split into words, says; and it says so after every kind of change."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hosts.builder import HostFactory
from tests.monitor.watched import watch
from tunectl.host.interrupts import parse_interrupts
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.interrupt_table import CALLS, RESCHEDULES, THERMAL, TIMER, InterruptTable, Landed

Pair = tuple[str, str, set[int]]


def table_of(place: Path, isolated: set[int]) -> InterruptTable:
    table = InterruptTable(Sysroot(str(place)), frozenset(isolated))
    table.read()
    return table


def landed_by_words(text: str, isolated: set[int]) -> dict[int, int]:
    """The device interrupts that came to isolated CPUs, by the reader that splits every row."""
    rows = parse_interrupts(text, cpus=isolated).rows
    sums = {int(label): sum(row.counts) for label, row in rows.items() if label.isdigit()}
    return {irq: total for irq, total in sums.items() if total}


@pytest.mark.parametrize("name", ["lab4", "xeon2s", "epyc", "hybrid", "vm2", "sparse"])
def test_it_agrees_with_the_whole_table(host_root: HostFactory, name: str) -> None:
    place = host_root(name)
    text = (place / "proc/interrupts").read_text(errors="replace")
    whole = parse_interrupts(text)
    isolated = set(whole.cpus[1::2])
    table = table_of(place, isolated)
    assert table.error == ""
    assert {irq: sum(landed.counts.values()) for irq, landed in table.landed.items()} == landed_by_words(text, isolated)
    for row in (TIMER, CALLS, RESCHEDULES, THERMAL):
        assert dict(table.on(row)) == dict(zip(whole.cpus, whole.rows[row].counts, strict=True))


def test_arm_names_its_rows_otherwise(host_root: HostFactory) -> None:
    place = host_root("arm64")
    rows = parse_interrupts((place / "proc/interrupts").read_text()).rows
    table = table_of(place, {2, 3})
    assert list(table.on(RESCHEDULES).values()) == list(rows["IPI0"].counts)
    assert list(table.on(CALLS).values()) == list(rows["IPI1"].counts)


@pytest.mark.parametrize(
    ("description", "landed"),
    [
        ("GICv3  23 Level     arm-pmu", False),
        ("GICv3  31 Level     vgic", False),
        ("GICv3  32 Level     eth0", True),
        ("RISC-V INTC   5 Edge      riscv-timer", False),
        ("xen-percpu    -virq      timer0", False),
        ("xen-dyn    -event     eth0", True),
    ],
)
def test_what_belongs_to_a_cpu_is_no_device(tmp_path: Path, description: str, landed: bool) -> None:
    """Nobody moved it there, and nobody can move it away: as check.device_interrupts."""
    (tmp_path / "proc").mkdir()
    table = InterruptTable(Sysroot(str(tmp_path)), frozenset({1}))
    for count in (3, 9):
        table_text = f"           CPU0       CPU1\n  7:          0          {count}  {description}\n"
        (tmp_path / "proc/interrupts").write_text(table_text)
        table.read()
        assert bool(table.landed) is landed


def test_only_what_came_to_an_isolated_cpu_counts_and_says_where(tmp_path: Path) -> None:
    host = watch(tmp_path, "xeon2s", {2, 18})
    table = host.watched_host.table
    table.read()
    before = dict(table.landed)
    host.count("60", 9, 5)
    table.read()
    assert table.landed == before
    host.count("60", 18, 5)
    table.read()
    assert table.landed[60].counts == {18: 5}
    assert table.landed[60].name == "ens2f0-0"
    host.count("60", 2, 1)
    table.read()
    assert table.landed[60].counts == {2: 1, 18: 5}
    assert table.shapes == 1


def test_an_interrupt_or_a_cpu_that_comes_or_goes_is_another_shape(tmp_path: Path) -> None:
    host = watch(tmp_path, "xeon2s", {2, 18})
    host.count("60", 18, 5)
    table = host.watched_host.table
    table.read()
    path = host.root / "proc/interrupts"
    text = path.read_text()
    row = next(line for line in text.split("\n") if line.startswith(" 60:"))
    path.write_text(text.replace(row + "\n", "").replace("\nNMI:", f"\n{row.replace(' 60:', '160:')}\nNMI:"))
    table.read()
    assert 60 not in table.landed
    assert table.landed[160].counts == {18: 5}
    assert table.shapes == 2
    path.write_text("\n".join(line[:-4] for line in text.split("\n")))
    table.read()
    assert table.shapes == 3
    header, rest = text.split("\n", 1)
    path.write_text(header.replace("CPU18", "CPU99") + "\n" + rest)
    table.read()
    assert 18 not in table.on(TIMER)
    assert 60 not in table.landed


def test_a_row_that_does_not_fit_the_columns_is_split(tmp_path: Path) -> None:
    place = tmp_path / "proc"
    place.mkdir()
    rows = ["           CPU0       CPU1       CPU3", "  5: 1 2 12345678901234  chip  edge      eth0", "ERR:          4"]
    (place / "interrupts").write_text("\n".join([*rows, ""]))
    table = table_of(tmp_path, {1, 3})
    assert table.landed[5] == Landed({1: 2, 3: 12345678901234}, "eth0")
    (place / "interrupts").write_text("\n".join([*rows, ""]).replace(" 2 ", " 3 "))
    table.read()
    assert table.landed[5].counts == {1: 3, 3: 12345678901234}


def test_a_table_that_is_absent_empty_or_rubbish_has_no_counts_and_comes_back(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    path = host.root / "proc/interrupts"
    text = path.read_text()
    table = host.watched_host.table
    table.read()
    path.unlink()
    table.read()
    assert "No such file" in table.error
    path.write_text("")
    table.read()
    assert table.error == "/proc/interrupts is empty"
    path.write_bytes(os.urandom(4096))
    table.read()
    assert table.landed == {}
    path.write_text(text)
    table.read()
    assert table.error == ""
    assert table.on(TIMER)


@st.composite
def tables(draw: st.DrawFn) -> Pair:
    """Two readings of one host, and the isolated CPUs: rows of the kernel's width, and some that are not."""
    cpus = sorted(draw(st.sets(st.integers(0, 30), min_size=1, max_size=6)))
    labels = [*draw(st.sets(st.integers(0, 500).map(str), max_size=8)), TIMER, CALLS, "ERR"]
    width = draw(st.sampled_from([10, 10, 10, 12]))

    def text() -> str:
        lines = ["     " + "".join(f"CPU{cpu:<8}" for cpu in cpus)]
        for label in labels:
            cells = draw(st.lists(st.integers(0, 3) | st.just(4294967295), min_size=len(cpus), max_size=len(cpus)))
            lines.append(f"{label:>3}:" + "".join(f" {cell:>{width}}" for cell in cells) + "  chip  1-edge      dev")
        return "\n".join([*lines, ""])

    return text(), text(), draw(st.sets(st.sampled_from(cpus)))


@pytest.mark.slow
@settings(max_examples=60)
@given(tables())
def test_any_two_readings_agree_with_the_whole_table(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> None:
    first, second, isolated = pair
    place = tmp_path_factory.mktemp("table")
    (place / "proc").mkdir()
    path = place / "proc/interrupts"
    path.write_text(first)
    table = table_of(place, isolated)
    for text in (first, second, first):
        path.write_text(text)
        table.read()
        totals = {irq: sum(landed.counts.values()) for irq, landed in table.landed.items()}
        landed = {irq: total for irq, total in totals.items() if total}  # a freed one may begin again
        assert landed == landed_by_words(text, isolated)
        for row in (TIMER, CALLS):
            assert tuple(table.on(row).values()) == parse_interrupts(text).rows[row].counts
