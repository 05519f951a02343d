"""What the next boot of the default entry will have, from the settings and from grub.cfg, which is made from them.

On a live host grub.cfg is what boots, and the settings must have reached it. On a recorded host update-grub is never
run, so there the settings say what the entries made from them will have, and a grub.cfg that differs is a note. An
entry that is not made from them (recovery, custom.cfg) counts as it stands on both.
"""

from collections import Counter

from tunectl.bootloader.cmdline import length_problem, parse_cmdline, same_key
from tunectl.bootloader.family import Point, Upcoming
from tunectl.bootloader.grubchoice import decided_by, is_generated, mend, take_back
from tunectl.bootloader.grubmenu import BootEntry, NoEntry
from tunectl.bootloader.grubsettings import Configured, configured, generator, menu_path, read_menu
from tunectl.bootloader.grubstart import Elsewhere, starts_elsewhere
from tunectl.command import as_data, as_place, quoted
from tunectl.fix import NOTHING, to_decide
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

# What 10_linux itself puts before (and, of a btrfs root, into) the configured arguments.
_LOADERS_OWN = ("root", "ro", "rw", "rootflags")


def next_boot(root: Sysroot) -> Upcoming:
    """The line of the next boot, from the default entry of grub.cfg, and what the settings give to later entries.

    A problem means that the two do not agree on a live host, or that one of them cannot be worked out.
    """
    settings = configured(root)
    later = settings.point
    if elsewhere := starts_elsewhere(root, menu_path(root)):
        return _as_the_esp_has_it(root, settings, elsewhere, later)
    entry = _read_entry(root)
    if isinstance(entry, OSError):
        return _without_menu(root, later, entry)
    if isinstance(entry, NoEntry) and not entry.known:
        tell = take_back(root, entry.decided.where) if entry.decided else NOTHING
        point = Point(f"/{menu_path(root)}", None, entry.why, entry.errno, fix=tell)
        return Upcoming((point, later))
    if isinstance(entry, NoEntry):
        why, fix = _why(root, entry), mend(root, settings, entry)
        return Upcoming((Point(f"/{menu_path(root)}", ""), later), why, fix=fix, instead=why)
    if root.live or not is_generated(root, entry):
        return _as_the_menu_has_it(root, settings, entry, later)
    # On a recorded host update-grub is never run.
    notes = () if settings.problem else (_difference(root, settings, entry), _stale(root, settings, entry))
    return Upcoming((later,), settings.problem or "", "; ".join(filter(None, notes)))


def _as_the_esp_has_it(root: Sysroot, settings: Configured, elsewhere: Elsewhere, later: Point) -> Upcoming:
    """What the file in the ESP boots, which GRUB reads in the place of the menu."""
    path, entry = f"/{elsewhere.path}", elsewhere.entry
    fix = to_decide(f"have {as_data(path)} go on with /{menu_path(root)}: grub-install writes such a file")
    if not root.exists(menu_path(root)):  # as on RHEL 7: it is the one menu
        fix = to_decide(f"`grub2-mkconfig -o {as_data(path)}`")
    if isinstance(entry, NoEntry):
        return Upcoming((Point(path, None if not entry.known else "", entry.why, entry.errno), later), fix=fix)
    why = f"GRUB starts with {as_data(path)}, which is a menu itself and does not go on with /{menu_path(root)}"
    point = Point(f"{entry.at}, entry {quoted(entry.title)}", entry.args)
    return Upcoming((point, later), why if settings.lacking(entry.args) else "", fix=fix, instead=why)


def _without_menu(root: Sysroot, later: Point, error: OSError) -> Upcoming:
    path = menu_path(root)
    if error.errno not in ABSENT_ERRNOS:
        why = f"/{path} cannot be read ({error.strerror})"
        return Upcoming((Point(f"/{path}", None, why, error.errno), later))
    why = f"there is no /{path}: {generator(root)} has not run"
    return Upcoming((later,), why if root.live else "", "" if root.live else why)


def _as_the_menu_has_it(root: Sysroot, settings: Configured, entry: BootEntry, later: Point) -> Upcoming:
    """What the menu boots, and the settings must have reached it."""
    made = is_generated(root, entry)
    points = (
        Point(f"{entry.at.rpartition(':')[0] if made else entry.at}, entry {quoted(entry.title)}", entry.args),
        later,
    )
    if settings.problem:
        return Upcoming(points, settings.problem)
    stale = _stale(root, settings, entry)
    if made:
        return Upcoming(points, _difference(root, settings, entry), stale)
    why = _why(root, entry)
    lacks = settings.lacking(entry.args)
    fix = mend(root, settings, entry)
    again = fix if entry.decided and (lacks or entry.recovery) else NOTHING
    return Upcoming(points, why if lacks else "", stale, fix, instead=why, again=again)


def _why(root: Sysroot, entry: BootEntry | NoEntry) -> str:
    """Which entry is next, and who decided that."""
    by = decided_by(root, entry.decided)
    if isinstance(entry, NoEntry):
        return f"/{menu_path(root)}: {entry.why}, and {by}"
    kind = "a recovery entry" if entry.recovery else f"which {generator(root)} does not make from the settings"
    return f"the default entry is {quoted(entry.title)} ({as_data(entry.at)}), {kind}, and {by}"


def _read_entry(root: Sysroot) -> BootEntry | NoEntry | OSError:
    menu = read_menu(root)
    return menu if isinstance(menu, OSError) else menu.entry


def _difference(root: Sysroot, settings: Configured, entry: BootEntry) -> str:
    """What the settings have and grub.cfg lacks; "" for nothing."""
    lacking = settings.lacking(entry.args)
    if not lacking:
        return ""
    args = " ".join(as_data(arg) for arg in settings.args if arg in lacking)
    places = dict.fromkeys(as_place(placed.where) for placed in settings.placed if placed.arg in lacking)
    newer = _newer_files(root, settings)
    since = f"since {' and '.join(map(as_data, newer))} changed" if newer else "since it was configured"
    return f"{generator(root)} has not run {since}: /{menu_path(root)} lacks {args} ({', '.join(places)})"


def _stale(root: Sysroot, settings: Configured, entry: BootEntry) -> str:
    """What grub.cfg's default entry still has and the settings do not; "" for nothing."""
    extra = Counter(parse_cmdline(entry.args)) - Counter(settings.args)
    own = [arg for arg in extra if not any(same_key(arg.key, key) for key in _LOADERS_OWN)]
    if not own:
        return ""
    extra_args = " ".join(map(as_data, own))
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
