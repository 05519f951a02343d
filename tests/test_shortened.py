"""What a program says may be megabytes; a person is shown how it began, how it ended, and how much is between."""

import pytest

from tunectl.errors import words_of
from tunectl.host.run import run


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("", ""),
        ("  one\n\n", "one"),
        ("one\ntwo\n", "one; two"),
        ("one\ntwo\nthree\nfour\n", "one ... (2 more lines) ... four"),
        ("x" * 301, "x" * 300 + "... (301 characters)"),
    ],
)
def test_first_and_last_lines_and_how_many_are_between(said: str, shown: str) -> None:
    assert words_of(said) == shown


@pytest.mark.parametrize("filter_", ["cat", "tr -d '\\n'"])
def test_megabytes_of_a_programs_words_are_a_line(filter_: str) -> None:
    done = run(("/bin/sh", "-c", f"yes update-grub: nothing works | head -c 3000000 | {filter_} >&2; exit 1"))
    assert len(done.stderr) > 2_000_000
    shown = words_of(done.stderr)
    assert shown.startswith("update-grub: nothing works")
    assert len(shown) < 700
