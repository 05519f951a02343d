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


def menu_maker(view: View) -> str:
    """The command that makes the boot menu from the settings; "" where it is not made from them, or not all of it."""
    return making_menu(view.root) if boot_of(view).loader.name in _MAKE_MENUS else ""  # docs/boot-loaders.md, BLS


def removal_fix(word: str, place: str = "", maker: str = "", *, reboot: bool) -> str:
    """How a word goes from the line of the next boot, and from this boot's with a `reboot`."""
    file, _, line = place.rpartition(":")
    end = ", then reboot" if reboot else ""
    if maker and file and _PLAIN.fullmatch(word) and re.fullmatch(r"[\w./-]+", file) and line.isdecimal():
        pattern = re.sub(r"[./]", r"\\\g<0>", word)
        return f"sudo sed -i '{line}s/ *{pattern}//' {file} && {maker}{end}"
    return f"take {word} out of the kernel command line, where your boot loader has it{end}"
