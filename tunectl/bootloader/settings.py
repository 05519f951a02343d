"""GRUB's settings as a value: which files hold them, the two variables, and every argument with its place.

Source: grub-mkconfig of Debian's grub-common (the drop-in directory is Debian's addition), 10_linux for the order.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from tunectl.bootloader.cmdline import Arg, parse_cmdline
from tunectl.bootloader.grub import DROPIN
from tunectl.bootloader.grubmenu import Menu, parse_grub_cfg, parse_grubenv
from tunectl.bootloader.grubscript import MAX_EXPANDED, Word, expand, kernel_text, split_words
from tunectl.bootloader.shellvars import Variables
from tunectl.bootloader.shellwords import Piece, Value
from tunectl.host.sysroot import Sysroot

MAIN = "etc/default/grub"
DIRECTORY = "etc/default/grub.d"
GRUB_CFG = "boot/grub/grub.cfg"
GRUB2_CFG = "boot/grub2/grub.cfg"  # SUSE's and Red Hat's name for it
LINUX = "GRUB_CMDLINE_LINUX"
DEFAULT = "GRUB_CMDLINE_LINUX_DEFAULT"


class Placed(NamedTuple):
    """An argument, and where it is written: `/etc/default/grub:6`."""

    arg: Arg
    where: str


class Configured(NamedTuple):
    """What the files give to every normal entry. With a `problem`, the two variables are not to be relied on."""

    linux: str = ""
    linux_default: str = ""
    files: tuple[str, ...] = ()
    problem: str | None = None
    placed: tuple[Placed, ...] = ()
    default_set_at: str = ""  # where GRUB_CMDLINE_LINUX_DEFAULT was assigned last

    @property
    def args(self) -> tuple[Arg, ...]:
        """The arguments as the kernel will split them, GRUB's own reading of the line included."""
        return tuple(placed.arg for placed in self.placed)

    @property
    def line(self) -> str:
        """`GRUB_CMDLINE_LINUX GRUB_CMDLINE_LINUX_DEFAULT`, in 10_linux's order."""
        return f"{self.linux} {self.linux_default}".strip()


def menu_path(root: Sysroot) -> str:
    """The grub.cfg of this host, by the name that its GRUB goes by."""
    return GRUB2_CFG if root.exists(GRUB2_CFG) and not root.exists(GRUB_CFG) else GRUB_CFG


def generator(root: Sysroot) -> str:
    """What makes grub.cfg of the settings, as an operator calls it."""
    return "grub2-mkconfig" if menu_path(root) == GRUB2_CFG else "update-grub"


def read_menu(root: Sysroot) -> Menu | OSError:
    """The menu of grub.cfg with the saved entry of the grubenv beside it; or why it cannot be read."""
    path = menu_path(root)
    try:
        text = root.read_text(path)
    except OSError as error:
        return error
    return parse_grub_cfg(text, parse_grubenv(root.get_text(path.replace("grub.cfg", "grubenv"))))


def settings_files(root: Sysroot, *, without_ours: bool = False) -> tuple[str, ...]:
    """The files grub-mkconfig sources, in its order (dash sorts a glob by bytes)."""
    names = sorted((n for n in root.listdir(DIRECTORY) if n.endswith(".cfg") and n[0] != "."), key=os.fsencode)
    paths = [MAIN, *(f"{DIRECTORY}/{name}" for name in names)]
    return tuple(path for path in paths if root.exists(path) and not (without_ours and path == DROPIN))


def settings_of(root: Sysroot, variables: Variables, files: tuple[str, ...], problem: str | None) -> Configured:
    """The two variables as a Configured, every argument with its place."""
    values = [variables.values.get(name, ()) for name in (LINUX, DEFAULT)]
    line: Value = (*values[0], Piece(" ", ""), *values[1])
    placed = () if problem else _placed(root, line)
    assigned = variables.assigned.get(DEFAULT, "")
    return Configured(variables.text(LINUX), variables.text(DEFAULT), files, problem, placed, assigned)


def _placed(root: Sysroot, line: Value) -> tuple[Placed, ...]:
    """The arguments with their places. 10_linux writes the line into grub.cfg as it is, so GRUB reads it once more."""
    text = "".join(piece.text or "" for piece in line)
    words: list[Word] = []
    for word in split_words(text):
        if word.mark:  # a ";" or a brace ends GRUB's linux command
            break
        words.append(word)
    menu = read_menu(root) if "$" in text else None  # TuneD's $tuned_params is set in grub.cfg
    variables = menu.variables if isinstance(menu, Menu) else {}
    result: list[Placed] = []
    room = MAX_EXPANDED
    for word in words:
        where = _where(line, word.at)
        names = [part.text for part in word.parts if part.variable]
        shown = f"${names[0]} of /{menu_path(root)}, from {where}" if names else where
        given = kernel_text(expand(word, variables))
        room -= len(given)
        if room < 0:
            break
        result += [Placed(arg, shown) for arg in parse_cmdline(given)]
    return tuple(result)


def _where(line: Value, at: int) -> str:
    for piece in line:
        at -= len(piece.text or "")
        if at < 0:
            return piece.where
    return ""
