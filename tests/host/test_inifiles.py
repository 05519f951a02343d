"""One reader of INI files: what systemd makes of sections, comments and lines that go on."""

import pytest

from tunectl.host.inifiles import parse_ini, values_of


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a=1\n", [("", "a", "1", 1)]),
        ("[S]\n a = 1 \n[T]\na=2\n", [("S", "a", "1", 2), ("T", "a", "2", 4)]),
        ("[S]\n#a=1\n;a=2\nnonsense\n", []),
        ("[S]\na=1 \\\n# not a part of it\n  2\nb=3\n", [("S", "a", "1  2", 2), ("S", "b", "3", 5)]),
        ("[S]\na=\n", [("S", "a", "", 2)]),
        ('[S]\na="x" # y\n', [("S", "a", '"x" # y', 2)]),
    ],
)
def test_options(text: str, options: list[tuple[str, str, str, int]]) -> None:
    assert [one[:4] for one in parse_ini(text)] == options


def test_the_last_line_of_an_option_and_of_a_file() -> None:
    assert [(one.value, one.line, one.last) for one in parse_ini("[S]\na=1 \\\n# no\n 2\nb=3 \\")] == [
        ("1  2", 2, 4),
        ("3", 5, 6),
    ]


def test_a_backslash_is_a_backslash_where_lines_do_not_go_on() -> None:
    assert [one.value for one in parse_ini("[S]\na=1\\\nb=2\n", continued=False)] == ["1\\", "2"]


def test_a_key_counts_in_its_section_only() -> None:
    text = "[A]\nk=1\n[B]\nk=2\n[A]\nk=3\n"
    assert values_of(text, "A", "k") == ["1", "3"]
    assert values_of(text, "", "k") == []
