"""/proc/interrupts and /proc/softirqs: real shapes, and properties over generated tables."""

from hypothesis import given
from hypothesis import strategies as st

from tests.hosts.builder import HostFactory
from tunectl.host.interrupts import Interrupts, Row, parse_interrupts
from tunectl.host.sysroot import Sysroot

TEXT = """\
           CPU2       CPU3       CPU8
 24:          1          0    4294967295  IO-APIC   5-edge      ACPI:Ged
 30:          0         12          0  PCI-MSIX-0000:00:01.0   2-edge      my dev: 1 2 3
LOC:         10         20         30   Local timer interrupts
ERR:          7
MIS:          0
"""


def test_columns_are_the_online_cpus() -> None:
    table = parse_interrupts(TEXT)
    assert table.cpus == (2, 3, 8)
    assert table.rows["24"] == Row((1, 0, 4294967295), "IO-APIC   5-edge      ACPI:Ged")
    assert table.rows["30"].description.endswith("my dev: 1 2 3")
    assert table.rows["ERR"] == Row((7,), "")
    assert (table.on("LOC", 8), table.on("LOC", 0), table.on("XXX", 2), table.on("ERR", 3)) == (30, 0, 0, 0)


def test_only_what_is_asked_for() -> None:
    table = parse_interrupts(TEXT, rows={"LOC", "24"}, cpus={8, 99})
    assert table == Interrupts(
        (8,), {"24": Row((4294967295,), "IO-APIC   5-edge      ACPI:Ged"), "LOC": Row((30,), "Local timer interrupts")}
    )


def test_nothing_is_an_empty_table() -> None:
    assert parse_interrupts("") == Interrupts((), {})
    assert parse_interrupts("garbage\nmore garbage") == Interrupts((), {})


def test_one_cpu() -> None:
    assert parse_interrupts("   CPU0\nERR: 1\n 5: 3 chip  name\n").rows == {
        "ERR": Row((1,), ""),
        "5": Row((3,), "chip  name"),
    }


def test_a_host_whose_cpus_have_gaps(host_root: HostFactory) -> None:
    root = Sysroot(str(host_root("sparse")))
    assert parse_interrupts(root.read_text("proc/interrupts")).cpus == (2, 3, 8, 9)


CPUS = st.lists(st.integers(0, 4095), min_size=1, max_size=12, unique=True).map(sorted)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=30)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], dict[str, tuple[list[int], str]]]:
    cpus = draw(CPUS)
    counts = st.lists(st.integers(0, 2**32 - 1), min_size=len(cpus), max_size=len(cpus))
    labels = st.one_of(st.integers(0, 9999).map(str), st.sampled_from(["LOC", "CAL", "NMI", "TLB"]))
    rows = draw(st.dictionaries(labels, st.tuples(counts, NAMES), max_size=5))
    return cpus, rows


def written(cpus: list[int], rows: dict[str, tuple[list[int], str]]) -> str:
    """As the kernel prints it: ten digits a column, the name after a letter-led chip."""
    lines = ["      " + "".join(f"{'CPU' + str(cpu):>10} " for cpu in cpus)]
    lines += [
        f"{label:>3}: " + "".join(f"{n:>10} " for n in counts) + f" chip {name}"
        for label, (counts, name) in rows.items()
    ]
    return "\n".join([*lines, "ERR:          3", ""])


@given(tables())
def test_what_was_written_is_read(table: tuple[list[int], dict[str, tuple[list[int], str]]]) -> None:
    cpus, rows = table
    found = parse_interrupts(written(cpus, rows))
    assert found.cpus == tuple(cpus)
    assert found.rows.keys() == rows.keys() | {"ERR"}
    for label, (counts, name) in rows.items():
        assert found.rows[label] == Row(tuple(counts), f"chip {name}".strip())


@given(tables(), st.data())
def test_asking_for_less_gives_a_part_of_the_whole(
    table: tuple[list[int], dict[str, tuple[list[int], str]]], data: st.DataObject
) -> None:
    cpus, rows = table
    text = written(cpus, rows)
    some = data.draw(st.sets(st.sampled_from(cpus)))
    whole, part = parse_interrupts(text), parse_interrupts(text, rows=rows.keys(), cpus=some)
    assert part.cpus == tuple(cpu for cpu in cpus if cpu in some)
    for label in rows:
        assert [part.on(label, cpu) for cpu in some] == [whole.on(label, cpu) for cpu in some]


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    parse_interrupts(text)
    parse_interrupts("CPU0 CPU1\n" + text, cpus={1})
