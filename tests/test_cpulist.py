"""cpulist.py against a second definition of the kernel's grammar, written character by character.

The reference below follows the description in Documentation/admin-guide/kernel-parameters.rst ("cpu-list") and
lib/bitmap-str.c's order of decisions: numbers are 32 bits, `N` is the last CPU, a group needs a range or `all`.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tunectl.cpulist import (
    Isolcpus,
    format_cpulist,
    format_cpumask,
    format_isolcpus,
    parse_cpulist,
    parse_cpumask,
    parse_isolcpus,
    parse_shown,
)
from tunectl.errors import UsageError


class RefusedError(Exception):
    """The reference refuses the text."""


class Reference:
    """Reads a list one character after the other. Stricter than the kernel in one thing: behind `:1/2` the region ends
    (bitmap_parse_region() goes on with what follows, so that `0-3:1/2all` is two regions)."""

    def __init__(self, text: str, nr_cpus: int) -> None:
        self.rest, self.last = text, nr_cpus - 1

    def here(self) -> str:
        return self.rest[:1] or "\n"

    def ends(self) -> bool:
        return self.here() in " \t\n\v\f\r,"

    def skip(self, count: int = 1) -> None:
        self.rest = self.rest[count:]

    def expect(self, char: str) -> None:
        if self.here() != char:
            raise RefusedError
        self.skip()

    def number(self) -> int:
        if self.here() == "N":
            self.skip()
            return self.last
        if self.here() not in "0123456789":
            raise RefusedError
        value = 0
        while self.here() in "0123456789":
            value = value * 10 + "0123456789".index(self.here())
            if value >= 2**32:
                raise RefusedError
            self.skip()
        return value

    def bounds(self) -> tuple[int, int, bool]:
        """First, last, and whether a group may follow."""
        if self.rest[:3].lower() == "all":
            self.skip(3)
            return 0, self.last, True
        first = self.number()
        if self.here() != "-":
            return first, first, False
        self.skip()
        return first, self.number(), True

    def group(self) -> tuple[int, int]:
        self.expect(":")
        used = self.number()
        self.expect("/")
        return used, self.number()

    def cpus(self) -> set[int]:
        found: set[int] = set()
        while self.rest:
            if self.ends():
                self.skip()
                continue
            first, last, may_group = self.bounds()
            used, group = self.group() if may_group and not self.ends() else (1, 1)
            if not self.ends() or first > last or group == 0 or used > group or last > self.last:
                raise RefusedError
            found |= {cpu for cpu in range(first, last + 1) if (cpu - first) % group < used}
        return found


NUMBERS = st.integers(0, 40).map(str) | st.sampled_from(["N", "007", "4294967295", "4294967296", "9" * 5000])
RANGES = st.builds("{}-{}".format, NUMBERS, NUMBERS)
GROUPS = st.builds("{}:{}/{}".format, RANGES | NUMBERS | st.just("all"), NUMBERS, NUMBERS)
REGIONS = NUMBERS | RANGES | GROUPS | st.sampled_from(["all", "ALL", "aLl", ""])
SEPARATORS = st.text(" ,\t\n", min_size=1, max_size=2)
LISTS = st.lists(st.tuples(REGIONS, SEPARATORS), max_size=5).map(lambda parts: "".join(a + b for a, b in parts))
NOISE = st.text("0123456789N-:/, allALL^~x\n", max_size=12)
CPU_SETS = st.frozensets(st.integers(0, 2100), max_size=40)


@given(LISTS | NOISE, st.integers(1, 64))
@example("3:1/2", 8)  # a group needs a range: one CPU has none
@example("0-3:1/4294967296", 8)
@example("9" * 5000, 8)
@example("0-7:0/3", 8)
def test_parse_cpulist_agrees_with_the_reference(text: str, nr_cpus: int) -> None:
    try:
        expected = Reference(text, nr_cpus).cpus()
    except RefusedError:
        with pytest.raises(UsageError):
            parse_cpulist(text, nr_cpus=nr_cpus)
    else:
        assert parse_cpulist(text, nr_cpus=nr_cpus) == expected


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", set()),
        (",, ,", set()),
        ("5", {5}),
        ("2-5,8", {2, 3, 4, 5, 8}),
        ("2-5 8\t9", {2, 3, 4, 5, 8, 9}),
        (",1,,3,", {1, 3}),
        ("5,1,3-4", {1, 3, 4, 5}),
        ("2-7:1/2", {2, 4, 6}),
        ("0-11:2/5", {0, 1, 5, 6, 10, 11}),
        ("0-3:3/3", {0, 1, 2, 3}),
        ("0-3:0/2", set()),
        ("N", {15}),
        ("12-N", {12, 13, 14, 15}),
        ("N-N", {15}),
        ("0-N:1/N", {0, 15}),
        ("all", set(range(16))),
        ("All:1/8", {0, 8}),
        ("0002-03", {2, 3}),
        ("3\n", {3}),
    ],
)
def test_lists_the_kernel_takes(text: str, cpus: set[int]) -> None:
    assert parse_cpulist(text, nr_cpus=16) == cpus


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3-1", "backwards"),
        ("0-3:1/0", "groups of 0"),
        ("0-3:3/2", "3 of every 2"),
        (":1/0", "':1/0'"),
        ("3:1/2", "'3:1/2'"),
        ("16", "past the last CPU, 15"),
        ("0-16", "past the last CPU, 15"),
        ("2-", "'2-'"),
        ("-2", "'-2'"),
        ("1-2-3", "'1-2-3'"),
        ("0-3:1", "'0-3:1'"),
        ("0-3:/2", "'0-3:/2'"),
        ("^3,2-5", "'^3'"),
        ("n", "'n'"),
        ("allx", "'allx'"),
        ("0x3", "'0x3'"),
        ("1.5", "'1.5'"),
        ("two", "'two'"),
        ("\u0663", "'\u0663'"),  # a digit, in Arabic
        ("managed_irq,domain,2-5", "'managed_irq'"),
    ],
)
def test_lists_the_kernel_refuses(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_cpulist(text, nr_cpus=16)
    assert reason in refused.value.message


def test_last_cpu_unknown() -> None:
    assert parse_cpulist("0-9") == frozenset(range(10))
    for text in ("N", "all", "0-N"):
        with pytest.raises(UsageError, match="N, all"):
            parse_cpulist(text)
    with pytest.raises(UsageError, match="past the last CPU"):
        parse_cpulist("0-4000000000")


@given(CPU_SETS)
def test_cpulist_round_trip(cpus: frozenset[int]) -> None:
    shown = format_cpulist(cpus)
    assert parse_cpulist(shown) == cpus
    assert parse_shown(shown + "\n") == cpus
    assert Reference(shown, 4096).cpus() == cpus


def test_format_cpulist_is_the_kernels_plain_output() -> None:
    assert format_cpulist([]) == ""
    assert format_cpulist([7, 4, 5, 6, 1, 5]) == "1,4-7"
    assert format_cpulist([0, 1]) == "0-1"


@pytest.mark.parametrize("text", ["", "\n", "   ", "(null)", "  (null)\n", " " * 300 + "(null)"])
def test_shown_empty_sets(text: str) -> None:
    assert parse_shown(text) == frozenset()


def test_shown_garbage_is_not_the_empty_set() -> None:
    for text in ("(nil)", "null", "(null) 3", "\x00"):
        with pytest.raises(UsageError):
            parse_shown(text)


@given(CPU_SETS, st.integers(1, 2101))
def test_cpumask_round_trip(cpus: frozenset[int], nr_cpus: int) -> None:
    mask = format_cpumask(cpus, nr_cpus=nr_cpus)
    groups = mask.split(",")
    assert parse_cpumask(mask) == cpus
    assert parse_cpumask(f" {mask}\n") == cpus
    assert len(groups) == (max([nr_cpus, *(cpu + 1 for cpu in cpus)]) + 31) // 32
    assert all(len(group) == 8 for group in groups[1:])
    assert cpus == {
        32 * word + bit for word, group in enumerate(reversed(groups)) for bit in range(32) if int(group, 16) >> bit & 1
    }


@given(CPU_SETS, st.integers(0, 3))
def test_cpumask_leading_zeros_do_not_matter(cpus: frozenset[int], zeros: int) -> None:
    mask = format_cpumask(cpus)
    first, _, rest = mask.partition(",")
    padded = ",".join(["00000000"] * zeros + [first.zfill(8)] + ([rest] if rest else []))
    assert parse_cpumask(padded) == parse_cpumask(mask) == cpus


@pytest.mark.parametrize(
    ("mask", "cpus"),
    [
        ("f0", {4, 5, 6, 7}),
        ("00000000,000000f0", {4, 5, 6, 7}),
        ("1,00000000", {32}),
        ("1,1", {0, 32}),  # a short group is padded on its own
        ("FF", set(range(8))),
        ("0", set()),
        ("80000000" + ",00000000" * 32, {1055}),
    ],
)
def test_masks(mask: str, cpus: set[int]) -> None:
    assert parse_cpumask(mask) == cpus


@pytest.mark.parametrize("mask", ["g", "1 f", "123456789", "f-f", "-1", "0x", "\uff11"])
def test_masks_refused(mask: str) -> None:
    with pytest.raises(UsageError, match="mask"):
        parse_cpumask(mask)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2-5", Isolcpus(frozenset({"domain"}), frozenset({2, 3, 4, 5}))),
        ("managed_irq,2-5", Isolcpus(frozenset({"managed_irq"}), frozenset({2, 3, 4, 5}))),
        ("managed_irq,domain,2-3", Isolcpus(frozenset({"managed_irq", "domain"}), frozenset({2, 3}))),
        ("domain,nohz,domain,7", Isolcpus(frozenset({"domain", "nohz"}), frozenset({7}))),
        ("quiet,2", Isolcpus(frozenset({"domain"}), frozenset({2}), ("quiet",))),
        ("some_flag,nohz,2", Isolcpus(frozenset({"nohz"}), frozenset({2}), ("some_flag",))),
        ("Domain,2", Isolcpus(frozenset({"domain"}), frozenset({2}), ("Domain",))),  # flags are case-sensitive
        ("nohz,0-N:1/2", Isolcpus(frozenset({"nohz"}), frozenset({0, 2, 4, 6}))),
        ("nohz", Isolcpus(frozenset({"domain"}), frozenset(), ("nohz",))),  # without its comma it is no flag
        ("all", Isolcpus(frozenset({"domain"}), frozenset(), ("all",))),  # a word of letters is taken for a flag
        ("2-3,,5", Isolcpus(frozenset({"domain"}), frozenset({2, 3, 5}))),
        ("", Isolcpus(frozenset({"domain"}), frozenset())),
    ],
)
def test_isolcpus(text: str, value: Isolcpus) -> None:
    assert parse_isolcpus(text, nr_cpus=8) == value


@pytest.mark.parametrize(
    "text", ["managed-irq,2", "d0main,2", "nohz full,2", "N-5", "all:1/2", "2-3,domain", "domain,5-2", "domain,9"]
)
def test_isolcpus_the_kernel_ignores_as_a_whole(text: str) -> None:
    with pytest.raises(UsageError):
        parse_isolcpus(text, nr_cpus=8)


@given(
    st.frozensets(st.sampled_from(["nohz", "domain", "managed_irq"]), min_size=1),
    st.frozensets(st.integers(0, 200), min_size=1, max_size=9),
)
def test_isolcpus_round_trip(flags: frozenset[str], cpus: frozenset[int]) -> None:
    value = Isolcpus(flags, cpus)
    assert parse_isolcpus(format_isolcpus(value)) == value
