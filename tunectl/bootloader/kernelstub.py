"""kernelstub (Pop!_OS): its configuration, from which it writes systemd-boot entries with every kernel.

Both are edited: the entries, so that the next boot has the arguments, and the configuration, so that the next kernel
has. kernelstub puts root= and the like in front by itself.
Source: kernelstub's README and configuration file (user.kernel_options); systemd-boot(7).
"""

from typing import Any

from tunectl.bootloader.editor import Form, Holder, Look, files_family, read
from tunectl.bootloader.entries import entry_files, entry_point, in_order, read_entries
from tunectl.bootloader.family import Family, Point, Upcoming, cannot_read
from tunectl.bootloader.systemdboot import default_entry
from tunectl.bootloader.words import Lines, split
from tunectl.command import as_data
from tunectl.host.sysroot import Sysroot

CONFIGURATION = "etc/kernelstub/configuration"


def _kernelstub(text: str) -> Lines | str:
    import json  # slow to import: only where there is a kernelstub

    try:
        options = _user_options(json.loads(text.encode("latin-1")))
    except (ValueError, KeyError, TypeError) as error:
        return f"it is not what kernelstub writes ({error!r})"
    return (" ".join(options),)


def _user_options(document: Any) -> list[str]:
    """kernelstub's own list; the operator's arguments and ours are in `user`, `default` is the installer's."""
    options = document["user"]["kernel_options"]
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise TypeError("kernel_options")
    return options


def _render_kernelstub(text: str, lines: Lines) -> str:
    import json

    document = json.loads(text.encode("latin-1"))  # the text is bytes, one a character: JSON is UTF-8
    if " ".join(_user_options(document)) == lines[0]:
        return text
    document["user"]["kernel_options"] = split(lines[0])
    return json.dumps(document, indent=2) + ("\n" if text.endswith("\n") else "")


KERNELSTUB = Form(_kernelstub, _render_kernelstub)


def look(root: Sysroot) -> Look:
    """The configuration, the entries made from it, and the one that is booted next."""
    try:
        entries = read_entries(root)
        text = read(root, CONFIGURATION) or ""
        default = default_entry(root, in_order(entries))
    except OSError as error:
        return Look((), cannot_read(error))
    if default is None:
        return Look((), Upcoming((), "there is no boot entry in loader/entries"))
    lines = KERNELSTUB.lines(text)
    source = Point(f"/{CONFIGURATION}", None if isinstance(lines, str) else lines[0])
    problem = f"{as_data(f'/{default.path}')} is a recovery entry, and the default" if default.rescue else ""
    if isinstance(lines, str):
        problem = f"/{CONFIGURATION}: {lines}"
    holders = (Holder(CONFIGURATION, KERNELSTUB), *(entry.holder for entry in entries if entry.ours))
    return Look(holders, Upcoming((entry_point(root, default), source), problem))


FAMILY: Family = files_family(look, (CONFIGURATION, *entry_files()))
