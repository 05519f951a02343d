"""GRUB itself, as the oracle: grub-emu runs a configuration, and echoes what its `linux` commands are given.

grub-emu has no `linux` and no `initrd`: functions of these names take their place. It draws on a terminal, which is a
pseudo-terminal here; a terminal of 80 columns breaks lines, so the words are kept short.
"""

import os
import pty
import re
import select
import shutil
import time
from pathlib import Path

PRESENT = shutil.which("grub-emu") is not None
_FUNCTIONS = """\
function linux { echo; echo "@@L"; for word in "$@"; do echo "@@W<$word>"; done; }
function initrd { echo "@@I"; }
set timeout=0; export timeout
"""
# GRUB has tried an entry, and waits for somebody at the keyboard.
_WAITS = (b"Failed to boot", b"Press any key", b"grub>", b"Minimal BASH-like", b"GNU GRUB  version")
_PATIENCE_S = 120.0


def run(directory: Path) -> list[str] | None:
    """The words of the last `linux` command of the first entry that has one; None where GRUB comes by no such command.

    `directory` holds grub.cfg; what it names beside it is read there, and grubenv is written there.
    """
    config = directory / "grub.cfg"
    text = config.read_text()
    config.write_text(_FUNCTIONS + text)
    try:
        shown = _screen(directory)
    finally:
        config.write_text(text)
    if any(word in shown for word in (b"Incorrect command", b"syntax error")):
        return ["syntax error"]
    for tried in re.split(rb"Falling back to|Failed to boot|Press any key", shown):
        if loads := tried.split(b"@@L")[1:]:
            return [word.decode() for word in re.findall(rb"@@W<(.*?)>\r*\n", loads[-1])]
    return None


def _screen(directory: Path) -> bytes:
    """Everything that grub-emu draws until it waits for a key."""
    pid, terminal = pty.fork()
    if not pid:  # pragma: no cover - the child
        os.environ["TERM"] = "dumb"
        os.execvp("grub-emu", ["grub-emu", "-d", str(directory), "-r", "host"])
    shown, deadline = b"", time.monotonic() + _PATIENCE_S
    try:
        while not any(mark in shown for mark in _WAITS):
            ready, _, _ = select.select([terminal], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"grub-emu neither boots nor waits: {shown[-400:]!r}"
            try:
                shown += os.read(terminal, 1 << 16)
            except OSError:  # it has ended
                break
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    return shown
