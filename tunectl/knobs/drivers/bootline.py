"""The kernel's command line, of this boot and of the next, for rows that judge an operator's own words on it."""

from __future__ import annotations

import re
from typing import NamedTuple

from tunectl.bootloader.cmdline import Arg, parse_cmdline
from tunectl.bootloader.grubsettings import MAIN, configured, making_menu
from tunectl.knobs.drivers.bootargs import boot_of
from tunectl.knobs.row import View

_MAKE_MENUS = ("grub", "suse-grub")
# What `sed` and a shell in single quotes take as it is, once its dots and slashes are escaped.
_PLAIN = re.compile(r"[\w.@:-]+=[\w.@:/-]+")


class BootLines(NamedTuple):
    """The arguments that this boot had, and those that the next will have; None where that is not known."""

    this: tuple[Arg, ...]
    next: tuple[Arg, ...] | None


def boot_lines(view: View) -> BootLines:
    """Both lines. A line of this boot that cannot be read is empty."""
    upcoming = boot_of(view).next
    point = upcoming.points[0] if upcoming and upcoming.points else None
    after = None if point is None or point.line is None else parse_cmdline(point.line)
    return BootLines(parse_cmdline(view.root.get_text("proc/cmdline")), after)


def place_of(view: View, word: str) -> str:
    """Where a word of the next line stands, FILE:LINE with a leading slash; "" where no line is known."""
    if not view.root.exists(MAIN):
        return ""
    placed = configured(view.root).placed
    return next((where for arg, where in placed if str(arg) == word and where.startswith("/")), "")


def removal_fix(word: str, view: View | None = None, place: str = "", *, reboot: bool) -> str:
    """How a word goes from the line of the next boot, and from this boot's with a `reboot`. `place`: of place_of()."""
    end = ", then reboot" if reboot else ""
    # From other menus it goes in another way, or only from some of the entries (docs/boot-loaders.md, BLS).
    if view and boot_of(view).loader.name in _MAKE_MENUS and _sed_finds(view, word, place):
        file, _, line = place.rpartition(":")
        pattern = re.sub(r"[./]", r"\\\g<0>", word)
        return f"sudo sed -i '{line}s/ *{pattern}//' {file} && {making_menu(view.root)}{end}"
    return f"take {word} out of the kernel command line, where your boot loader has it{end}"


def _sed_finds(view: View, word: str, place: str) -> bool:
    """Would `sed` find this word, and no part of another one first, as of `rd.nohz=off`?"""
    file, _, line = place.rpartition(":")
    if not (_PLAIN.fullmatch(word) and re.fullmatch(r"[\w./-]+", file) and line.isdecimal()):
        return False
    text = view.root.get_text(file.lstrip("/")).split("\n")[int(line) - 1]
    whole = re.search(rf"(?<![\w.@:/,-]){re.escape(word)}(?![\w.@:/,=-])", text)
    return whole is not None and whole.start() == text.find(word)
