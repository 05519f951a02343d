"""Words of ours in lines of others: merged by key, and taken out again."""

import subprocess

import pytest
from hypothesis import given as each
from hypothesis import strategies as st

from tunectl.bootloader.cmdline import RULES, Rule, parse_cmdline
from tunectl.bootloader.editor import LINE, OPTIONS, Form, variable
from tunectl.bootloader.kernelstub import KERNELSTUB
from tunectl.bootloader.raspberrypi import FIRST_LINE
from tunectl.bootloader.words import Desired, given, merge, swaps, take_out, written
from tunectl.errors import UsageError

VALUES = {"isolcpus": "managed_irq,domain,2-3", "nohz_full": "2-3", "rcu_nocbs": "2-3", "tsc": "reliable"}
DESIRED: list[Desired] = [
    *((key, value, RULES[key]) for key, value in VALUES.items()),
    ("nosoftlockup", None, Rule.LAST),
]


def same(key: str, one: str, other: str) -> bool:
    return one == other


@pytest.mark.parametrize(
    ("line", "merged"),
    [
        ("", "nohz_full=2-3 tsc=reliable"),
        ("ro quiet", "ro quiet nohz_full=2-3 tsc=reliable"),
        ("ro  quiet  ", "ro  quiet nohz_full=2-3 tsc=reliable  "),
        ("a nohz_full=4-7 b tsc=nowatchdog", "a nohz_full=2-3 b tsc=nowatchdog tsc=reliable"),
        ("nohz-full=4-7 nohz_full=2-3", "nohz_full=2-3 nohz_full=2-3 tsc=reliable"),
        ("tsc=reliable nohz_full=2-3 c", "tsc=reliable nohz_full=2-3 c"),
        ("a -- b", "a nohz_full=2-3 tsc=reliable -- b"),
        ('x="a nohz_full=1 b" c', 'x="a nohz_full=1 b" c nohz_full=2-3 tsc=reliable'),
        ("a $tuned_params", "a $tuned_params nohz_full=2-3 tsc=reliable"),
    ],
)
def test_merge(line: str, merged: str) -> None:
    desired = [want for want in DESIRED if want[0] in ("nohz_full", "tsc")]
    assert merge((line,), desired, same) == (merged,)


def test_the_last_of_several_is_the_one_in_force() -> None:
    assert merge(("irqaffinity=0 x irqaffinity=1",), [("irqaffinity", "0-1", Rule.LAST)], same) == (
        "irqaffinity=0 x irqaffinity=0-1",
    )


def test_a_value_that_would_need_quotes_is_refused() -> None:
    for bad in ("a b", 'a"b', "$x", "a;b", "a'b", "a\\b"):
        with pytest.raises(UsageError):
            written(("tsc", bad, Rule.EACH))


_WORDS = st.sampled_from(
    (
        *("ro", "quiet", "console=tty0", "isolcpus=4", "isolcpus=2-3", "nohz_full=2-3", "rcu_nocbs", "rcu_nocbs=1"),
        *('x="a b"', '"y=c  d"', "$kernelopts", "nosoftlockup", "root=UUID=5", "nohz-full=7", "tsc=reliable", "--"),
    )
)
_LINES = st.lists(st.lists(_WORDS, max_size=6).map(" ".join), min_size=1, max_size=3).map(tuple)


@each(_LINES)
def test_every_argument_comes_into_force_and_goes_without_a_trace(lines: tuple[str, ...]) -> None:
    merged = merge(lines, DESIRED, same)
    args = parse_cmdline(" ".join(merged))
    for want in DESIRED:
        # A later, different isolcpus= with the same list would add flags; then ours is still the first.
        assert given(args, want, same)
    assert merge(merged, DESIRED, same) == merged
    assert take_out(merged, swaps(lines, merged)) == lines


@pytest.mark.parametrize(
    ("form", "text", "line", "rewritten"),
    [
        (LINE, "ro quiet\n", "ro quiet", "NEW\n"),
        (LINE, "ro quiet", "ro quiet", "NEW\n"),
        (LINE, "", "", "NEW\n"),
        (FIRST_LINE, "ro quiet\nsecond\n", "ro quiet", "NEW\nsecond\n"),
        (OPTIONS, "title x\noptions\tro quiet\nlinux /l\n", "ro quiet", "title x\noptions\tNEW\nlinux /l\n"),
        (OPTIONS, "title x\nlinux /l\n", "", "title x\nlinux /l\noptions NEW\n"),
        (variable("A"), "A='ro quiet' # why\nB=1\n", "ro quiet", "A='NEW' # why\nB=1\n"),
        (variable("A"), 'A="old"\n export A="ro quiet"\nAB="x"', "ro quiet", 'A="old"\n export A="NEW"\nAB="x"'),
        (variable("A"), "B=1", "", 'B=1\nA="NEW"\n'),
        (variable("A"), "A=\n", "", 'A="NEW"\n'),
        (variable("A"), 'B="x"', "", 'B="x"\nA="NEW"\n'),
        (variable("A"), "if true; then\n  A='x'\nfi\n", "x", "if true; then\n  A='NEW'\nfi\n"),
    ],
)
def test_a_file_is_rewritten_around_its_line(form: Form, text: str, line: str, rewritten: str) -> None:
    assert form.lines(text) == (line,)
    assert form.render(text, ("NEW",)) == rewritten
    assert form.render(text, (line,)).rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize("text", ["A=quiet\n", 'A="a \\"b\\""\n', "A=`b`\n", "A='a'b\n", 'A="a\nb"\n', 'A+=" b"\n'])
def test_what_cannot_be_edited_safely_is_said(text: str) -> None:
    assert variable("A").lines(text) == "A is not one plain text in quotes"


def test_a_shell_reads_what_was_rewritten() -> None:
    text = 'X=1\nGRUB_CMDLINE_LINUX="$X ro"  # mine\n'
    rewritten = variable("GRUB_CMDLINE_LINUX").render(text, ("$X ro nohz_full=2-3",))
    done = subprocess.run(
        ["sh", "-c", rewritten + 'printf %s "$GRUB_CMDLINE_LINUX"'], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 ro nohz_full=2-3"


@pytest.mark.parametrize("text", ["", "[]", '{"user": {}}', '{"user": {"kernel_options": "quiet"}}'])
def test_a_strange_kernelstub_configuration_is_left_alone(text: str) -> None:
    assert "it is not what kernelstub writes" in str(KERNELSTUB.lines(text))


def test_several_options_lines_are_one_line_for_the_kernel() -> None:
    text = "options a nohz_full=1\noptions b\n"
    lines = OPTIONS.lines(text)
    assert lines == ("a nohz_full=1", "b")
    merged = merge(("a nohz_full=1", "b"), [("nohz_full", "2", Rule.FIRST), ("tsc", "reliable", Rule.EACH)], same)
    assert OPTIONS.render(text, merged) == "options a nohz_full=2\noptions b tsc=reliable\n"
