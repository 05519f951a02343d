"""EnvironmentFile=, as systemd reads it: its own parser is asked, in its library, where that is installed."""

import ctypes
from pathlib import Path

import pytest

from tunectl.host.environmentfiles import Assignment, parse_environment_file

TEXTS = (
    "A=1\nB = 2 \n",
    "export A=1\nB=2\n",
    "9A=1\nA-B=2\nÄ=3\n=4\nA\nB=\n",
    "A=1 # no comment\n# a comment\n ; another\n\tB=2\n",
    "A='one two'\nB=\"three four\"\n",
    "A='a' 'b'  c \nB=\"a\"'b'\nC=x'y'\"z\"\n",
    "A=one\\\ntwo\nB=one \\\n  two\n",
    "A='one\ntwo' \nB=\"one\\\ntwo\nthree\"\nC=1\n",
    'A="\\$x \\`y \\"z \\\\ \\n \\q"\nB=\\a\\ \\\\\n',
    "A=b\\ \nB=b\\  \nC=  b  \n",
    "A=$B ${B} $(date) `date`\n",
    "A=1\r\nB=2\r\nC=\\\r\nD=4",
    "A=1\nA=2\nB=1\nB=\n",
    "A='never closed\nB=1\n",
    'A="never closed\nB=1\\',
    "A=1\\",
    "A=1\n\n\nB\n=\nC=3=4\n",
    "IRQBALANCE_BANNED_CPULIST=2-3\nIRQBALANCE_ARGS=\n",
)


def systemds(path: Path) -> list[str]:
    """What systemd would hand on to a process, by the functions of its own library."""
    libraries = sorted(Path("/usr/lib").glob("*/systemd/libsystemd-shared-*.so"))
    if not libraries:
        pytest.skip("needs systemd's own library")
    systemd, libc = ctypes.CDLL(str(libraries[-1])), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    libc.fclose.argtypes = [ctypes.c_void_p]
    systemd.load_env_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    systemd.env_assignment_is_valid.restype = ctypes.c_bool
    found = ctypes.POINTER(ctypes.c_char_p)()
    file = libc.fopen(bytes(path), b"re")
    assert systemd.load_env_file(file, bytes(path), ctypes.byref(found)) >= 0
    libc.fclose(file)
    items: list[bytes] = []
    while found and (item := found[len(items)]) is not None:
        items.append(item)
    return [item.decode() for item in items if systemd.env_assignment_is_valid(item)]


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_read_as_systemd_reads_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "environment"
    path.write_bytes(text.encode())
    ours = {one.name: one.value for one in parse_environment_file(text) if one.is_valid}
    assert ours == dict(item.split("=", 1) for item in systemds(path))


def test_lines_and_what_is_left_out() -> None:
    text = "# A=0\nexport A=1\n\nB='x\ny'\nC=2\n"
    assert list(parse_environment_file(text)) == [
        Assignment("export A", "1", 2, 2),
        Assignment("B", "x\ny", 4, 5),
        Assignment("C", "2", 6, 6),
    ]
    assert [one.is_valid for one in parse_environment_file(text)] == [False, True, True]


def test_below_a_comment_that_ends_in_a_backslash_versions_differ() -> None:
    found = list(parse_environment_file("# one \\\nA=1\n# two \\\n\nB=1\n# three \\\\\nC=1\n"))
    assert [(one.name, one.is_doubtful) for one in found] == [("A", True), ("B", False), ("C", False)]
