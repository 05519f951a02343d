"""What the next boot of the default entry will have, from the settings and from grub.cfg, which is made from them.

On a live host grub.cfg is what boots, and the settings must have reached it. On a recorded host update-grub is never
run, so there the settings say it, and a grub.cfg that differs is a note.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tunectl.bootloader.cmdline import Arg, length_problem, parse_cmdline, same_key
from tunectl.bootloader.family import Point, Upcoming
from tunectl.bootloader.grubmenu import BootEntry, default_entry
from tunectl.bootloader.grubsettings import Configured, configured, generator, menu_path, read_menu
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

# What 10_linux itself puts before (and, of a btrfs root, into) the configured arguments.
_LOADERS_OWN = ("root", "ro", "rw", "rootflags")


def next_boot(root: Sysroot) -> Upcoming:
    """The line of the next boot, from the settings and from the default entry of grub.cfg.

    A problem means that the two do not agree on a live host, or that one of them cannot be worked out.
    """
    settings = configured(root)
    from_settings = Point(", ".join(settings.files) or "/etc/default/grub", _as_grub_gives(settings))
    entry = _read_entry(root)
    if isinstance(entry, BootEntry) and root.live:
        return _as_the_menu_has_it(root, settings, entry)
    if settings.problem:
        note = "" if isinstance(entry, BootEntry) else entry.why
        return Upcoming((from_settings._replace(line=None),), settings.problem, note)
    if isinstance(entry, BootEntry):
        return Upcoming((from_settings,), "", _difference(root, settings, entry) or _stale(root, settings, entry))
    if root.live and entry.wrong:
        return Upcoming((from_settings,), entry.why)
    return Upcoming((from_settings,), "", entry.why)


def _as_the_menu_has_it(root: Sysroot, settings: Configured, entry: BootEntry) -> Upcoming:
    """On a live host grub.cfg is what boots, and the settings must have reached it."""
    point = Point(f"/{menu_path(root)}, entry '{entry.title}'", entry.args)
    if settings.problem:
        return Upcoming((point,), settings.problem)
    recovery = f"the default entry '{entry.title}' is a recovery entry" if entry.recovery else ""
    problem = recovery or _difference(root, settings, entry)
    return Upcoming((point,), problem, _stale(root, settings, entry))


def _as_grub_gives(settings: Configured) -> str:
    return " ".join(_text(arg) for arg in settings.args)


def _text(arg: Arg) -> str:
    shown = str(arg)
    return f'"{shown}"' if any(char.isspace() for char in shown) else shown


class _NoEntry(NamedTuple):
    why: str
    wrong: bool = True  # the host will not boot what the settings say; False: grub.cfg could not be read


def _read_entry(root: Sysroot) -> BootEntry | _NoEntry:
    menu, path = read_menu(root), menu_path(root)
    if isinstance(menu, OSError):
        if menu.errno in ABSENT_ERRNOS:
            return _NoEntry(f"there is no /{path}: {generator(root)} has not run")
        return _NoEntry(f"/{path} cannot be read ({menu.strerror}): not confirmed there", wrong=False)
    entry = default_entry(menu)
    return _NoEntry(f"/{path}: {entry}") if isinstance(entry, str) else entry


def _difference(root: Sysroot, settings: Configured, entry: BootEntry) -> str:
    """What the settings have and grub.cfg lacks; "" for nothing."""
    lacking = Counter(settings.args) - Counter(parse_cmdline(entry.args))
    if not lacking:
        return ""
    args = " ".join(str(arg) for arg in settings.args if arg in lacking)
    places = dict.fromkeys(placed.where for placed in settings.placed if placed.arg in lacking)
    newer = _newer_files(root, settings)
    since = f"since {' and '.join(newer)} changed" if newer else "since it was configured"
    return f"{generator(root)} has not run {since}: /{menu_path(root)} lacks {args} ({', '.join(places)})"


def _stale(root: Sysroot, settings: Configured, entry: BootEntry) -> str:
    """What grub.cfg's default entry still has and the settings do not; "" for nothing."""
    extra = Counter(parse_cmdline(entry.args)) - Counter(settings.args)
    own = [arg for arg in extra if not any(same_key(arg.key, key) for key in _LOADERS_OWN)]
    if not own:
        return ""
    extra_args = " ".join(map(str, own))
    return f"{generator(root)} has not run: /{menu_path(root)} still has {extra_args}, which the settings do not give"


def _newer_files(root: Sysroot, settings: Configured) -> list[str]:
    try:
        made = root.lstat(menu_path(root)).st_mtime_ns
        return [path for path in settings.files if root.lstat(path.lstrip("/")).st_mtime_ns > made]
    except OSError:
        return []


def final_line(root: Sysroot, line: str) -> str:
    """The whole line the kernel will be given once `line` is what the settings give: BOOT_IMAGE=, root= and it."""
    entry = _read_entry(root)
    if isinstance(entry, BootEntry):
        words = [f"BOOT_IMAGE={entry.image}", *entry.args.split(" ")]
    else:
        words = root.get_text("proc/cmdline").split()
    own = [word for word in words if word.partition("=")[0] in ("BOOT_IMAGE", *_LOADERS_OWN)]
    given = {arg.key for arg in parse_cmdline(line)}
    return " ".join([*(word for word in own if word.partition("=")[0] not in given), line])


def next_length_problem(root: Sysroot, line: str) -> str | None:
    """length_problem() of final_line()."""
    return length_problem(final_line(root, line))
