"""A page on a terminal that is too small for it: nothing is hidden without a word, and the keys reach every line."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from tests.cli.places import PROGRAM, environment
from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import HostFactory
from tunectl.cli.watch import KEYS, Window, asked, folded, places_of


@given(lines=st.integers(1, 300), height=st.integers(3, 60), top=st.integers(0, 400))
def test_each_line_is_shown_or_counted(lines: int, height: int, top: int) -> None:
    window = Window.over(lines, height, top)
    shown = len(range(lines - 1)[window.shown()])
    assert shown + window.hidden_above + window.hidden_below == lines - 1
    said = window.said([], 80, has_keys=True)
    assert bool(said) == bool(window.hidden_above or window.hidden_below)
    assert 1 + shown + bool(said) <= height


def test_a_page_that_just_fits_says_nothing_and_one_line_more_is_counted() -> None:
    assert Window.over(24, 24, 0).said([], 80, has_keys=True) == ""
    said = Window.over(25, 24, 0).said([], 80, has_keys=True)
    assert said == "2 lines below; ? shows the keys, q quits"


def test_alerts_that_are_hidden_are_counted() -> None:
    alerts = [range(2), range(2, 5), range(5, 8)]
    window = Window.over(9, 5, 2)
    assert window.said(alerts, 99, has_keys=False) == (
        "1 alert and 3 lines below, 1 alert and 2 lines above; a taller terminal shows them"
    )
    assert window.said(alerts, 40, has_keys=True) == "1 alert and 3 lines below, 2 lines above"
    assert window.said(alerts, 20, has_keys=True) == "1 alert below; ? q"


def test_an_alert_that_is_not_whole_on_the_screen_is_hidden() -> None:
    window = Window.over(9, 5, 2)  # lines 2 to 4
    for one, below, above in ((range(2, 5), 0, 0), (range(2, 6), 1, 0), (range(1, 5), 0, 1), (range(1, 6), 1, 0)):
        said = window.said([one], 99, has_keys=False)
        assert said.startswith(f"{'1 alert and ' * below}3 lines below, {'1 alert and ' * above}2 lines above"), said


def test_alerts_that_the_page_only_counts_are_where_it_does() -> None:
    fires = [{"severity": "critical", "identity": f"FrequencyDrop cpu{n}"} for n in range(5)]
    lines = ["Firing", "  critical  FrequencyDrop cpu0  since", "    slow", "    fix  cool it"]
    lines += ["  critical  FrequencyDrop cpu1  since", "    slow", "  and 3 more FrequencyDrop", "CPUs", "cpu0"]
    assert places_of(fires, lines) == [range(1, 4), range(4, 6), *[range(6, 7)] * 3]
    assert "5 alerts and 7 lines below" in Window.over(10, 4, 0).said(places_of(fires, lines), 40, has_keys=False)
    assert Window.over(10, 9, 0).said(places_of(fires, lines), 20, has_keys=False) == "2 lines below"
    assert places_of([], lines) == []


@pytest.mark.parametrize("key", [b"j", b"\x1b[B", b"\x1bOB", b" ", b"\x1b[6~"])
def test_keys_reach_the_end_and_come_back(key: bytes) -> None:
    window = Window.over(100, 24, 0)
    for _ in range(100):
        window = Window.over(100, 24, window.moved(asked(key).moves))
    assert window.hidden_below == 0
    back = {b"j": b"k", b"\x1b[B": b"\x1b[A", b"\x1bOB": b"\x1bOA", b" ": b"b", b"\x1b[6~": b"\x1b[5~"}[key]
    for _ in range(100):
        window = Window.over(100, 24, window.moved(asked(back).moves))
    assert window.hidden_above == 0


def test_a_question_mark_shows_the_keys_and_another_one_the_host_again() -> None:
    assert [asked(sent).helps for sent in (b"j", b"?", b"??", b"?j?k?")] == [False, True, False, True]
    assert asked(b"?j").moves == asked(b"j").moves
    named = " ".join(keys for keys, _ in KEYS)
    assert all(re.search(rf"(?<!\w){re.escape(key)}(?!\w)", named) for key in ("j", "k", "f", "b", "g", "G", "?", "q"))


def test_a_page_down_and_up_again_is_where_it_was() -> None:
    window = Window.over(200, 24, 50)
    down = Window.over(200, 24, window.moved(asked(b"\x1b[6~").moves))
    assert Window.over(200, 24, down.moved(asked(b"\x1b[5~").moves)) == window


@given(st.binary(max_size=40))
def test_any_bytes_are_keys_or_nothing(sent: bytes) -> None:
    found = asked(sent)
    assert found.quits or not set(sent) & {*b"qQ\x04"} or b"\x1b" in sent


@pytest.mark.slow
@pytest.mark.parametrize(
    "end",
    [b"q", pytest.param(signal.SIGHUP, marks=pytest.mark.long), pytest.param(signal.SIGQUIT, marks=pytest.mark.long)],
)
def test_the_terminal_is_as_it_was_whatever_ends_the_view(
    host_root: HostFactory, tmp_path: Path, end: bytes | signal.Signals
) -> None:
    root = host_root.fresh("lab4", tmp_path, tuned_boot=frozenset({2, 3}))
    write_host_file(root, LOW_LATENCY)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
    before = termios.tcgetattr(slave)
    process = subprocess.Popen(
        [*PROGRAM, "monitor", "--watch", "--interval", "5", "--root", str(root)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment({"TERM": "xterm", "LINES": "10", "COLUMNS": "40"}),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
    )
    try:
        assert "? q" in _shown(master, "? q")
        assert termios.tcgetattr(slave) != before
        os.write(master, b"?")
        assert "a screen down" in _shown(master, "a screen down")
        os.write(master, b"?j")
        assert "above" in _shown(master, "above")
        if isinstance(end, bytes):
            os.write(master, end)
        else:
            process.send_signal(end)
        assert "\x1b[?1049l" in _shown(master, "\x1b[?1049l")
        assert process.wait(timeout=60) == 0
        assert termios.tcgetattr(slave) == before
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def _shown(master: int, until: str) -> str:
    shown, deadline = "", time.monotonic() + 60
    while until not in shown and time.monotonic() < deadline:
        if select.select([master], [], [], 0.5)[0]:
            shown += os.read(master, 65536).decode("utf-8", "replace")
    return shown


@given(text=st.text(st.sampled_from("ab 日\u0301"), max_size=60), indent=st.integers(0, 12), width=st.integers(4, 30))
def test_what_is_too_wide_goes_on_in_the_next_line(text: str, indent: int, width: int) -> None:
    whole = " " * indent + "x" + text
    parts = folded(Text(whole, no_wrap=True, overflow="crop"), width)
    assert all(part.cell_len <= width for part in parts)
    assert "".join(part.plain for part in parts).replace(" ", "") == whole.replace(" ", "")
    assert len(parts) == 1 or cell_len(whole) > width


def test_a_command_that_is_too_wide_goes_on_at_a_space_and_a_path_at_a_slash() -> None:
    whole = "    fix  sudo /opt/desk/bin/tunectl --root /srv/recorded/hosts/of-the-desk/in-new-york/tx-04 apply"
    parts = [part.plain for part in folded(Text(whole, no_wrap=True, overflow="crop"), 40)]
    assert parts == [
        "    fix  sudo /opt/desk/bin/tunectl ",
        "    --root ",
        "    /srv/recorded/hosts/of-the-desk/",
        "    in-new-york/tx-04 apply",
    ]
