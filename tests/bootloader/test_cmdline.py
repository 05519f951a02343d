"""The kernel's reading of its command line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunectl.bootloader.cmdline import (
    MAX_LENGTH,
    RULES,
    Arg,
    Found,
    Rule,
    kernel_args,
    length_problem,
    lookup,
    parse_cmdline,
    same_key,
    split_isolcpus,
)
from tunectl.cpulist import parse_cpulist


def same_cpus(one: str, other: str) -> bool:
    return parse_cpulist(one) == parse_cpulist(other)


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("", ()),
        ("  \t\n", ()),
        ("quiet", (Arg("quiet"),)),
        ("a=1  b c=\n", (Arg("a", "1"), Arg("b"), Arg("c", ""))),
        ('root="a b" ro', (Arg("root", "a b"), Arg("ro"))),
        ('"root=a b" ro', (Arg("root", "a b"), Arg("ro"))),
        ('"alone with spaces" x', (Arg("alone with spaces"), Arg("x"))),
        ('a="b c"d e', (Arg("a", 'b c"d'), Arg("e"))),  # only a quote at the very end is taken off
        ('a=b"c d"', (Arg("a", 'b"c d"'),)),  # a quote in the middle joins, and stays
        ("=a", (Arg("=a"),)),
        ("=a=b", (Arg("=a", "b"),)),
        ("a==b", (Arg("a", "=b"),)),
        ('"', (Arg(""),)),
        ('a="', (Arg("a", ""),)),
        ('a="never closed b', (Arg("a", "never closed b"),)),
        (
            "BOOT_IMAGE=/vmlinuz root=UUID=5f-3c ro",
            (Arg("BOOT_IMAGE", "/vmlinuz"), Arg("root", "UUID=5f-3c"), Arg("ro")),
        ),
    ],
)
def test_parse_cmdline(text: str, args: tuple[Arg, ...]) -> None:
    assert parse_cmdline(text) == args


KEYS = st.text("abz_-.09", min_size=1, max_size=5).filter(lambda key: key != "--")
VALUES = st.none() | st.text("ab =,:/-_\t$'\\", max_size=8)


def written(arg: Arg) -> str:
    """One argument as an operator writes it: quoted where its value holds a space."""
    if arg.value is None:
        return arg.key
    return f'{arg.key}="{arg.value}"' if re.search(r"\s", arg.value) else f"{arg.key}={arg.value}"


@given(st.lists(st.builds(Arg, KEYS, VALUES), max_size=6))
def test_what_is_written_is_read(args: list[Arg]) -> None:
    assert parse_cmdline(" ".join(map(written, args))) == tuple(args)


def test_dashes_and_underscores_are_equal_in_names() -> None:
    assert same_key("rcu-nocbs", "rcu_nocbs")
    assert not same_key("rcu_nocbs", "rcunocbs")
    assert lookup(parse_cmdline("nohz-full=2-3"), "nohz_full", Rule.FIRST) == Found(Arg("nohz-full", "2-3"))


def test_first_wins() -> None:
    args = parse_cmdline("isolcpus nohz_full=4-7 nohz_full=2-3 nohz_full")
    found = lookup(args, "nohz_full", RULES["nohz_full"])
    assert found == Found(Arg("nohz_full", "4-7"), (Arg("nohz_full", "2-3"), Arg("nohz_full")))
    assert lookup(args, "isolcpus", RULES["isolcpus"]) is None  # __setup("isolcpus="): the bare word is not it


def test_last_wins() -> None:
    args = parse_cmdline("irqaffinity=0 skew_tick=1 irqaffinity=0-1 rcu_nocbs=2-3 rcu_nocbs nosoftlockup")
    found = {key: lookup(args, key, RULES[key]) for key in ("irqaffinity", "rcu_nocbs", "nosoftlockup", "tsc")}
    assert found == {
        "irqaffinity": Found(Arg("irqaffinity", "0-1"), (Arg("irqaffinity", "0"),)),
        "rcu_nocbs": Found(Arg("rcu_nocbs", "2-3"), (Arg("rcu_nocbs"),)),
        "nosoftlockup": Found(Arg("nosoftlockup")),
        "tsc": None,
    }


def test_each_counts() -> None:
    found = lookup(parse_cmdline("tsc=reliable tsc=nowatchdog"), "tsc", RULES["tsc"])
    assert found == Found(Arg("tsc", "nowatchdog"), (Arg("tsc", "reliable"),))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("isolcpus=2-3 isolcpus=managed_irq,domain,2-3", "domain,managed_irq,2-3"),
        ("isolcpus=2-3 isolcpus=managed_irq,domain,2,3", "domain,managed_irq,2-3"),
        ("isolcpus=managed_irq,2-3 isolcpus=2-3", "managed_irq,domain,2-3"),
        ("isolcpus=2-3 isolcpus=managed_irq,domain,2-5", "2-3"),
        ("isolcpus=2-3 isolcpus=2-3", "2-3"),
        ("isolcpus=nohz,2-3 isolcpus=nohz,2-3", "nohz,2-3"),
    ],
)
def test_a_second_isolcpus_with_the_same_list_adds_its_flags(line: str, value: str) -> None:
    found = lookup(parse_cmdline(line), "isolcpus", Rule.FIRST, same_cpus)
    assert found is not None
    assert found.value == value


def test_what_follows_two_dashes_is_for_init() -> None:
    args = parse_cmdline("quiet -- isolcpus=2-3")
    assert kernel_args(args) == (Arg("quiet"),)
    assert lookup(args, "isolcpus", Rule.FIRST) is None


def test_split_isolcpus() -> None:
    assert split_isolcpus("managed_irq,domain,2-5,8") == (("managed_irq", "domain"), "2-5,8")
    assert split_isolcpus("2-5") == ((), "2-5")
    assert split_isolcpus("nohz") == (("nohz",), "")


def test_length() -> None:
    assert MAX_LENGTH == 2047  # COMMAND_LINE_SIZE is 2048, with the NUL
    assert length_problem("x" * 2047) is None
    assert length_problem("x" * 2048) == (
        "the boot line would be 2048 bytes long: the kernel keeps 2047 and drops the rest unseen"
    )
    assert length_problem("\u00e9" * 1024) is not None
