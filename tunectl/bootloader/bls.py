"""GRUB with Boot Loader Specification entries: RHEL 9 and later, Fedora, CentOS Stream, Rocky, Alma.

The arguments go where grubby puts them: into every entry but the rescue ones, and into what new entries are made from,
/etc/kernel/cmdline and GRUB_CMDLINE_LINUX. The latter two must agree: 20-grub.install rewrites /etc/kernel/cmdline
where /etc/default/grub is the newer file, so /etc/default/grub is written first. grub2-mkconfig is not run, because
from RHEL 9.3 on it leaves the entries alone; grubby is not run either (docs/boot-loaders.md says why).
Source: RHEL 9.3 release notes (boot loader); Fedora's 20-grub.install and blscfg.c (variables, order of the menu).
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial

from tunectl.bootloader.editor import Holder, Look, files_family, read, variable
from tunectl.bootloader.entries import (
    TUNED_WORD,
    Entry,
    entry_files,
    entry_point,
    own_line,
    read_entries,
    source_of_entries,
    tuned_adds,
    version_key,
    wrongly_chosen,
)
from tunectl.bootloader.family import Family, Point, Upcoming, cannot_read
from tunectl.bootloader.grubdisk import PREFIX, Disk
from tunectl.bootloader.grubmenu import BootEntry
from tunectl.bootloader.grubrun import IMPORTED, Halt, Script, parse_grubenv
from tunectl.bootloader.grubscript import expand_all, kernel_text, split_words
from tunectl.bootloader.grubsettings import GRUBENVS, LINUX, MAIN, evaluate_settings
from tunectl.bootloader.grubstart import FILES as STARTS
from tunectl.bootloader.grubstart import starts_elsewhere
from tunectl.bootloader.grubstate import Entry as Shown
from tunectl.bootloader.grubstate import State
from tunectl.bootloader.grubsyntax import Unfollowed
from tunectl.command import as_data, quoted
from tunectl.host.sysroot import Sysroot

_RANK = {"~": -1, "+": 1}  # blscfg.c, vercmp(): any other separator only parts two segments


def look(root: Sysroot) -> Look:
    """The entries, the one that GRUB boots next, and the sources of entries to come."""
    return root.once("bls", lambda: _look(root))


def _look(root: Sysroot) -> Look:
    try:
        entries = listed(read_entries(root, ("boot",)))
        settings = read(root, MAIN)
        environment = parse_grubenv(next((text for path in reversed(GRUBENVS) if (text := read(root, path))), ""))
        menu = _menu(root, entries, environment)
        default = default_entry(entries, menu)
        kernel_cmdline, made_from = source_of_entries(root, own_line(entries, default))
    except OSError as error:
        return Look((), cannot_read(error))
    if default is None:
        return Look((), Upcoming((), "there is no boot entry in /boot/loader/entries"))
    if elsewhere := starts_elsewhere(root, "boot/grub2/grub.cfg", entries=True):
        why = f"GRUB starts with /{elsewhere.path}, which does not lead to the entries in /boot/loader/entries"
        entry = elsewhere.entry
        boots = (Point(entry.at, entry.args),) if isinstance(entry, BootEntry) else ()
        return Look((), Upcoming(boots, why))
    expand = partial(expanded, environment=menu.values)
    holders = [kernel_cmdline]
    holders += [entry.holder._replace(expand=expand) for entry in entries if entry.ours and entry.options]
    later = [made_from]
    if settings is not None:
        holders.insert(0, Holder(MAIN, variable(LINUX)))
        later.append(Point(f"{LINUX} in /{MAIN}", _assigned(settings), added=made_from.added))
    if isinstance(default, str):
        return Look(tuple(holders), Upcoming((), default))
    if tuned_adds(root):
        later = [
            point if point.line is None else point._replace(line=expand(f"{point.line} {TUNED_WORD}"))
            for point in later
        ]
    points = (entry_point(root, default, expand(default.line)), *later)
    problem, again = wrongly_chosen(default)
    return Look(tuple(holders), Upcoming(points, problem, again=again), _refusal(root, default))


def listed(entries: Iterable[Entry]) -> list[Entry]:
    """As blscfg's menu has them: by the file's name alone, as rpm compares NAME-VERSION-RELEASE, the newest first."""

    def names(entry: Entry) -> list[tuple[tuple[int, int | str], ...]]:
        return [version_key(part, _RANK) for part in entry.id.removesuffix(".conf").rsplit("-", 2)]

    return sorted(entries, key=names, reverse=True)


def _menu(root: Sysroot, entries: Sequence[Entry], environment: dict[str, str]) -> State:
    """The state that grub.cfg comes to, with these entries in its menu.

    Where it cannot be followed to its end, it is taken to be as grub2-mkconfig leaves it: grubenv chooses.
    """
    shown = tuple(Shown(one.title, one.id.removesuffix(".conf"), False, (), (), one.path, one.path) for one in entries)
    script = Script(Disk(root, "boot/grub2"), imports=True)
    with suppress(Unfollowed, Halt):
        script.run_file(f"{PREFIX}/grub.cfg")
        at = next((n for n, entry in enumerate(script.state.entries) if entry.id == IMPORTED), None)
        if at is not None:
            before, place, after = script.state.entries[:at], script.state.entries[at], script.state.entries[at + 1 :]
            script.state.entries = (*before, *(one._replace(doubt=place.doubt) for one in shown), *after)
            return script.state
    wanted = environment.get("next_entry") or environment.get("saved_entry") or "0"
    state = State({**environment, "default": wanted}, entries=shown)
    if by := _decided_elsewhere(root):
        state.doubt("default", by)
    return state


def default_entry(entries: Sequence[Entry], menu: State) -> Entry | str | None:
    """What GRUB boots; a text: why that is none of these entries, or cannot be told. None where its menu is empty."""
    if not menu.entries:
        return None
    entry, doubt = _picked(menu.entries, menu.values.get("default", ""))
    if why := menu.doubts.get("default") or doubt:
        return f"which entry is the default cannot be told: {why}"
    by = menu.origins.get("default")
    who = f", and {f'{as_data(by.variable)} in ' if by.variable else ''}{as_data(by.where)} decides that" if by else ""
    other = f"the default entry is {quoted(entry.title)} ({as_data(entry.at)}), none of /boot/loader/entries{who}"
    return next((one for one in entries if one.path == entry.at), other)


def _picked(entries: Sequence[Shown], wanted: str) -> tuple[Shown, str]:
    """(the entry with this id, title or number, otherwise the first; why that may be another one).

    Upstream's GRUB takes a number first, also one with which a machine id begins; this one only all of `wanted`.
    Source: the changelog of grub2 in Fedora and RHEL, "Fix menu entry selection based on ID and title" (rhbz#1640979).
    """
    by_id = next((entry for entry in entries if entry.id == wanted), None)
    if named := by_id or next((entry for entry in entries if entry.title == wanted), None):
        return named, named.doubt
    place = int(wanted) if wanted.isdecimal() and int(wanted) < len(entries) else 0
    return entries[place], next((entry.doubt for entry in entries[: place + 1] if entry.doubt), "")


def expanded(line: str, environment: dict[str, str]) -> str:
    """An options line as GRUB hands it on: its variables ($tuned_params) come from grubenv."""
    words = []
    for word in split_words(line):
        if word.mark:  # a ";" or a brace ends GRUB's linux command
            break
        words.append(word)
    return kernel_text(expand_all(words, environment))


def _decided_elsewhere(root: Sysroot) -> str:
    """What in custom.cfg, which grub.cfg reads behind the entries, makes another entry the default; "" for nothing."""
    script = Script(Disk(root, "boot/grub2"))
    try:
        script.run_file(f"{PREFIX}/custom.cfg")
    except Unfollowed as hidden:
        return f"/boot/grub2/custom.cfg may name the default entry: {hidden.why}"
    except Halt as end:
        return f"{as_data(end.at)} boots at once"
    if "default" not in script.state.values.keys() | script.state.doubts.keys():
        return ""
    origin = script.state.origins.get("default")
    return f"{as_data(origin.where) if origin else '/boot/grub2/custom.cfg'} makes another entry the default"


def _assigned(settings: str) -> str | None:
    variables = evaluate_settings([("/" + MAIN, settings)])
    return None if variables.problem or variables.unknown(LINUX) else variables.text(LINUX)


def _refusal(root: Sysroot, default: Entry) -> str:
    if default.options != 1:
        # blscfg.c: of several lines GRUB takes one; without any, default_kernelopts, and root= with it.
        return (
            f"{as_data(f'/{default.path}')} has {default.options} lines of options, and GRUB goes by exactly one: "
            "make it one line, with all that the entry boots with"
        )
    if "$kernelopts" in default.line:
        return (
            "the entries take their line from kernelopts in grubenv, as on RHEL 8, and grubenv is too small a block to "
            "edit safely: add with `grubby --update-kernel=ALL --args=...`"
        )
    if root.exists("etc/zipl.conf"):
        return "zipl copies the entries when it runs: add with `grubby --update-kernel=ALL --args=...`, which runs it"
    return ""


FAMILY: Family = files_family(look, (*entry_files(("boot",)), MAIN, "boot/grub2/custom.cfg", *GRUBENVS, *STARTS))
