"""Raspberry Pi: the firmware reads the kernel's line from cmdline.txt, its first line only.

Source: Raspberry Pi documentation, "The kernel command line" and config.txt (cmdline, os_prefix, conditional filters).
"""

from collections.abc import Iterator

from tunectl.bootloader.editor import Form, Holder, Look, files_family, read
from tunectl.bootloader.family import Family, Point, Upcoming, cannot_read
from tunectl.bootloader.words import Lines
from tunectl.command import quoted
from tunectl.host.sysroot import Sysroot

# Debian 12 and later mount the firmware's partition at the first.
PLACES = ("boot/firmware", "boot")
_REDIRECTS = ("cmdline", "os_prefix")
# Debian's own raspi-firmware rewrites cmdline.txt with every kernel.
_DEBIANS_HOOK = "etc/kernel/postinst.d/z50-raspi-firmware"


def _first_line(text: str) -> Lines | str:
    return (text.partition("\n")[0],)


def _render_first_line(text: str, lines: Lines) -> str:
    _, newline, rest = text.partition("\n")
    return lines[0] + (newline or "\n") + rest


FIRST_LINE = Form(_first_line, _render_first_line)


def look(root: Sysroot) -> Look:
    """The one line, and whether the firmware really reads it from there."""
    place = next((place for place in PLACES if root.exists(f"{place}/cmdline.txt")), PLACES[0])
    path = f"{place}/cmdline.txt"
    try:
        text = read(root, path)
        config = read(root, f"{place}/config.txt") or ""
    except OSError as error:
        return Look((), cannot_read(error))
    if text is None:
        return Look((), Upcoming((), f"there is no /{path}"))
    point = Point(f"/{path}", text.partition("\n")[0].strip())
    refusal = ""
    if setting := next(_redirects(config), ""):
        refusal = f"{quoted(setting)} in /{place}/config.txt may have the firmware read another file: edit that one"
    elif root.exists(_DEBIANS_HOOK):
        refusal = f"/{_DEBIANS_HOOK} rewrites /{path} with every kernel: add to /etc/default/raspi-extra-cmdline"
    return Look((Holder(path, FIRST_LINE),), Upcoming((point,)), refusal)


def _redirects(config: str) -> Iterator[str]:
    """Settings of config.txt that may name another file for the line; a filter above decides, so none is ignored."""
    for line in config.splitlines():
        key, equals, value = line.partition("#")[0].partition("=")
        elsewhere = equals and key.strip() in _REDIRECTS and value.strip() != "cmdline.txt"
        if elsewhere or key.strip().startswith("include "):
            yield line.strip()


FAMILY: Family = files_family(
    look, tuple(f"{place}/{name}" for place in PLACES for name in ("cmdline.txt", "config.txt"))
)
