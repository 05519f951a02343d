"""The evaluator of shell assignments agrees with real shells, or says that it needs one."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tunectl.bootloader.grubsettings import evaluate_settings as evaluate
from tunectl.host.shellvars import assignments, last_value

NAMES = ("GRUB_A", "GRUB_B", "GRUB_CMDLINE_LINUX")
SHELLS = [shell for shell in (("/bin/sh",), ("/bin/bash", "--posix")) if shutil.which(shell[0])]
PRINT = "".join(f'printf "%s\\0" "${{{name}}}"; ' for name in NAMES)


def ask_shell(shell: tuple[str, ...], texts: list[str], below: Path) -> list[str] | None:
    """The variables as a shell leaves them; None where it fails. Nothing can be found in its PATH."""
    paths = []
    for n, text in enumerate(texts):
        path = below / f"{n}.cfg"
        path.write_bytes(text.encode())
        paths.append(str(path))
    script = f'for file do . "$file" >&2; done; {PRINT}'
    done = subprocess.run(
        [*shell, "-c", script, "sh", *paths],
        env={"PATH": str(below / "none"), "LC_ALL": "C"},
        cwd=below,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return None if done.returncode else done.stdout.decode().split("\0")[:-1]


WORDS = st.lists(
    st.sampled_from(
        [
            "a", "b c", "=", "-", ",", ":", "1-3", "*", "{", "}", "#", " #", "!", "%", "\t", "\u00e9", "\r",
            "$GRUB_A", "${GRUB_B}", "${GRUB_A:-x y}", "${GRUB_B-z}", "${GRUB_A:+$GRUB_A }", "${GRUB_B+${GRUB_A}}",
            "$", "\\$", '\\"', "\\\\", "\\a", "\\\n", "'", '"', "\\'", "$GRUB_\\\nA", "~", ";", "\n",
            "$(a)", "`a`", "$1", "$$", "${GRUB_A%b}", "${GRUB_A#b}", "$'x'", "&", "|", "(", ")", "<",
        ]
    ),
    max_size=5,
).map("".join)  # fmt: skip
QUOTED = st.builds("{0}{1}{0}".format, st.sampled_from(['"', "'", ""]), WORDS) | st.builds("{}{}".format, WORDS, WORDS)
ASSIGNMENTS = st.builds("{}{}{}".format, st.sampled_from(NAMES), st.sampled_from(["=", "=", "+="]), QUOTED)
STATEMENTS = st.one_of(
    ASSIGNMENTS,
    ASSIGNMENTS.map("export {}".format),
    st.builds("{} {}".format, ASSIGNMENTS, ASSIGNMENTS),
    st.builds("{}; {}".format, ASSIGNMENTS, ASSIGNMENTS),
    st.builds("  {} # {}".format, ASSIGNMENTS, WORDS),
    st.builds("# {}".format, st.sampled_from(["GRUB_A=1", "it's", 'a "', "a \\"])),
    st.sampled_from(NAMES).map("unset {}".format),
    st.sampled_from(["", " ", ";", "export GRUB_A", "GRUB_A+=x", "if true; then", "fi", "GRUB_A=1 true", "GRUB_A =1"]),
    st.text("GRUB_A='\"$\\\n ;#~", max_size=12),
)
FILES = st.lists(st.lists(STATEMENTS, max_size=4).map("\n".join), min_size=1, max_size=3)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell[0]).name)
@given(texts=FILES)
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(texts=['GRUB_A=1 GRUB_B="$GRUB_A"'])
@example(texts=['GRUB_A="a\\\nb"', "GRUB_B=${GRUB_A:+$GRUB_A }x"])
@example(texts=["GRUB_A='it'\\''s'"])
@example(texts=["GRUB_A=a\\"])
@example(texts=["export GRUB_A='a b' GRUB_B=\"c\""])
@example(texts=["GRUB_A=\\~ GRUB_B=a:~"])
@pytest.mark.slow
def test_agrees_with_a_real_shell(shell: tuple[str, ...], texts: list[str], tmp_path: Path) -> None:
    found = evaluate([(f"{n}.cfg", text) for n, text in enumerate(texts)], Path(shell[0]).resolve().name)
    if found.problem is None and not any(map(found.unknown, NAMES)):
        assert ask_shell(shell, texts, tmp_path) == [found.text(name) for name in NAMES]


DEBIAN = """\
# If you change this file, run 'update-grub' afterwards to update
GRUB_DEFAULT=0
GRUB_DISTRIBUTOR=`( . /etc/os-release; echo ${NAME:-Debian} ) 2>/dev/null || echo Debian`
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX=""
"""


def test_bash_appends_where_another_shell_finds_no_command() -> None:
    files = [("/f", 'GRUB_A=a\nGRUB_A+=" b" GRUB_B+=c\nexport GRUB_A+=d\n')]
    found = evaluate(files, "bash")
    assert (found.problem, found.text("GRUB_A"), found.text("GRUB_B")) == (None, "a bd", "c")
    assert [piece.where for piece in found.values["GRUB_A"]] == ["/f:1", "/f:2", "/f:3"]
    assert evaluate(files, "dash").problem == "+= needs bash, and sh is dash: /f:2"
    assert evaluate(files).problem == "+= needs bash, and sh is not known: /f:2"


def test_debians_own_file_needs_no_shell() -> None:
    found = evaluate([("/etc/default/grub", DEBIAN)])
    assert found.problem is None
    assert found.text("GRUB_CMDLINE_LINUX_DEFAULT") == "quiet"
    assert found.unknown("GRUB_CMDLINE_LINUX_DEFAULT") is None
    assert found.unknown("GRUB_DISTRIBUTOR") == "/etc/default/grub:3"


def test_pieces_remember_their_lines() -> None:
    found = evaluate([("a", '\nGRUB_A="one\ntwo"\n'), ("b", "# x\nGRUB_A=\"$GRUB_A\"' three'\n")])
    assert [(piece.text, piece.where) for piece in found.values["GRUB_A"]] == [("one\ntwo", "a:3"), (" three", "b:2")]
    assert found.assigned == {"GRUB_A": "b:2"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("GRUB_A=1\nif true; then GRUB_A=2; fi\n", 2),
        ("GRUB_A=1\n\n. /etc/other\n", 3),
        ("GRUB_A =x\n", 1),
        ("GRUB_A=x touch y\n", 1),
        ("GRUB_A=x > y\n", 1),
        ("GRUB_A=x & GRUB_B=y\n", 1),
        ("GRUB_A=(x y)\n", 1),
        ('GRUB_A="never closed\n\n', 3),
        ("GRUB_A=~root\n", 1),
        ("GRUB_A=${GRUB_B%x}\n", 1),
        ("GRUB_A=$1\n", 1),
        ("export GRUB_A=$GRUB_B\n", 1),
        ("GRUB_A=$(case x in x) echo y;; esac)\n", 1),
        ("GRUB_A=$(echo x # )\n)\n", 1),
        ("GRUB_A=\0\n", 1),
        ("IFS=,\n", 1),
        ("readonly GRUB_A=1\n", 1),
    ],
)
def test_what_needs_a_shell_says_where(text: str, line: int) -> None:
    assert evaluate([("/f", text)]).problem == f"needs a shell: /f:{line}"


@pytest.mark.parametrize(
    "text", ["GRUB_A=$(a)", "GRUB_A=`a`", 'GRUB_A="x $(a "b" (c)) y"', "GRUB_A=$HOME", "GRUB_A=$GRUB_FS"]
)
def test_unknown_values_stay_unknown_where_they_are_used(text: str) -> None:
    found = evaluate([("/f", f"{text}\nGRUB_B=\"${{GRUB_A:-x}}\"\nGRUB_C='known'\n")])
    assert found.problem is None
    assert found.unknown("GRUB_B") is not None
    assert (found.text("GRUB_C"), found.unknown("GRUB_C")) == ("known", None)


def test_a_value_that_grows_without_bounds_is_given_up() -> None:
    doubling = "GRUB_A=xxxxxxxx\n" + "GRUB_A=$GRUB_A$GRUB_A\n" * 60
    assert evaluate([("/f", doubling)]).problem == "needs a shell: /f:14"
    wide = 'GRUB_A="' + "x'" * 3000 + '"\nGRUB_B=' + "$GRUB_A" * 100000 + "\n"
    assert evaluate([("/f", wide)]).problem == "needs a shell: /f:2"
    forked = "GRUB_B=${GRUB_A:-" + "$aaaaaaaa" * 200 + "\n"  # no closing brace: must not be tried in every way
    assert evaluate([("/f", forked)]).problem == "needs a shell: /f:1"
    nested = f"GRUB_A={'xy' * 100}\nGRUB_B=${{GRUB_C:-{'$GRUB_A' * 10000}}}\n"
    assert evaluate([("/f", nested)]).problem == "needs a shell: /f:2"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1\n", [("A", "1", 1)]),
        (" export A='a b' # why\n#B=2\nB=2\n", [("A", "a b", 1), ("B", "2", 3)]),
        ("if true; then\n  A=1\nfi\nA =2\n", [("A", "1", 2)]),
        ("A=b c\nA=\n", [("A", "b", 1), ("A", "", 2)]),
        ("A=$X\n", [("A", "$X", 1)]),
        ('A="$(cat /x)"\n', [("A", '"$(cat /x)"', 1)]),
        ('A="never closed\nB=1\n', [("A", '"never closed', 1), ("B", "1", 2)]),
    ],
)
def test_lines_that_assign_whatever_the_others_are(text: str, found: list[tuple[str, str, int]]) -> None:
    seen = list(assignments(text))
    assert [(one.name, one.value, one.line) for one in seen] == found
    assert all(text[: one.start].endswith(f"{one.name}=") and "\n" not in text[one.start : one.end] for one in seen)
    assert last_value(text, "A") == [value for name, value, _ in found if name == "A"][-1]
