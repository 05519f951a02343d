"""GRUB with Boot Loader Specification entries: RHEL 9 and later, Fedora, CentOS Stream, Rocky, Alma.

The arguments go where grubby puts them: into every entry but the rescue ones, and into what new entries are made from,
/etc/kernel/cmdline and GRUB_CMDLINE_LINUX. The latter two must agree: 20-grub.install rewrites /etc/kernel/cmdline
where /etc/default/grub is the newer file, so /etc/default/grub is written first. grub2-mkconfig is not run, because
from RHEL 9.3 on it leaves the entries alone; grubby is not run either (docs/boot-loaders.md says why).
An entry of ours is booted once by `next_entry`, as any entry of GRUB's menu.
Source: RHEL 9.3 release notes (boot loader); Fedora's 20-grub.install and blscfg.c (variables, order of the menu;
create_entry(): an entry's name is its id; grub_users).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile

from tunectl.bootloader import grubonce
from tunectl.bootloader.editor import Holder, Look, files_family, read, variable
from tunectl.bootloader.entries import (
    TUNED_WORD,
    Entry,
    entry_files,
    entry_point,
    own_line,
    parse_fields,
    read_entries,
    source_of_entries,
    tuned_adds,
    version_key,
    wrongly_chosen,
)
from tunectl.bootloader.family import Family, Point, Refusal, Upcoming, cannot_read
from tunectl.bootloader.grubcfg import MenuEntry, parse_grubenv
from tunectl.bootloader.grubchoice import take_back
from tunectl.bootloader.grubmenu import BootEntry, Listed, Script, Undecided, certain
from tunectl.bootloader.grubscript import expand_all, kernel_text, split_words
from tunectl.bootloader.grubsettings import GRUB2_CFG, GRUBENVS, LINUX, MAIN, evaluate_settings, read_sh
from tunectl.bootloader.grubstart import FILES as STARTS
from tunectl.bootloader.grubstart import starts_elsewhere
from tunectl.bootloader.onceentries import Entries, once_by_entries
from tunectl.bootloader.oneshot import without_our_choice
from tunectl.command import as_data, quoted
from tunectl.fix import NOTHING
from tunectl.host.sysroot import Sysroot

_CUSTOM = "boot/grub2/custom.cfg"
_RANK = {"~": -1, "+": 1}  # blscfg.c, vercmp(): any other separator only parts two segments


def look(root: Sysroot) -> Look:
    """The entries, the one that GRUB boots next, and the sources of entries to come."""
    return root.once("bls", lambda: _look(root))


def _look(root: Sysroot) -> Look:
    try:
        entries = listed(read_entries(root, ("boot",)))
        settings = read(root, MAIN)
        block = next((text for path in reversed(GRUBENVS) if (text := read(root, path))), "")
        environment = without_our_choice(parse_grubenv(block))
        menu, tell = Script(root, GRUB2_CFG, shown=tuple(_shown(entries))), NOTHING
        try:
            default = default_entry(root, entries, menu, environment)
        except Undecided as end:
            default, tell = f"which entry is the default cannot be told: {end.why}", take_back(root, end.at)
        kernel_cmdline, made_from = source_of_entries(root, own_line(entries, default))
    except OSError as error:
        return Look((), cannot_read(error))
    if default is None:
        return Look((), Upcoming((), "there is no boot entry in /boot/loader/entries"))
    if elsewhere := starts_elsewhere(root, GRUB2_CFG, entries=True):
        why = f"GRUB starts with /{elsewhere.path}, which does not lead to the entries in /boot/loader/entries"
        entry = elsewhere.entry
        boots = (Point(entry.at, entry.args),) if isinstance(entry, BootEntry) else ()
        return Look((), Upcoming(boots, why))
    expand = partial(expanded, environment={**environment, **menu.variables()})
    holders = [kernel_cmdline]
    holders += [entry.holder._replace(expand=expand) for entry in entries if entry.ours and entry.options]
    later = [made_from]
    if settings is not None:
        holders.insert(0, Holder(MAIN, variable(LINUX)))
        later.append(Point(f"{LINUX} in /{MAIN}", _assigned(root, settings), added=made_from.added))
    if isinstance(default, str):
        return Look(tuple(holders), Upcoming((), default, fix=tell))
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


def default_entry(
    root: Sysroot, entries: Sequence[Entry], menu: Script, environment: dict[str, str]
) -> Entry | str | None:
    """What GRUB boots; a text: why that is none of these entries. None for an empty menu. Undecided as grub.cfg has it.

    Without a grub.cfg that may be read it is taken to be as grub2-mkconfig leaves it: grubenv chooses.
    """
    path = GRUB2_CFG if root.get_text(GRUB2_CFG) else _CUSTOM
    if root.exists(path):
        menu.read(path)
    if {listed.at for listed in menu.entries} & {entry.path for entry in entries}:
        listed, (wanted, by) = menu.entries, menu.default()
    else:
        listed, by = list(_shown(entries)), None
        wanted = environment.get("next_entry") or environment.get("saved_entry") or "0"
    if not listed:
        return None
    entry = _picked(listed, wanted)
    who = f", and {f'{as_data(by.variable)} in ' if by.variable else ''}{as_data(by.where)} decides that" if by else ""
    named = f"{quoted(entry.entry.title)} ({as_data(entry.at)})"
    other = f"the default entry is {named}, none of /boot/loader/entries{who}"
    return next((one for one in entries if one.path == entry.at), other)


def _shown(entries: Sequence[Entry]) -> Iterator[Listed]:
    """What blscfg puts into the menu."""
    for entry in entries:
        yield Listed(MenuEntry(entry.title, entry.id.removesuffix(".conf")), entry.path)


def _picked(entries: Sequence[Listed], wanted: str) -> Listed:
    """The entry with this id, title or number, otherwise the first. Undecided where that may be another one.

    Upstream's GRUB takes a number first, also one with which a machine id begins; this one only all of `wanted`.
    Source: the changelog of grub2 in Fedora and RHEL, "Fix menu entry selection based on ID and title" (rhbz#1640979).
    """
    by_id = next((listed for listed in entries if listed.entry.id == wanted), None)
    if named := by_id or next((listed for listed in entries if listed.entry.title == wanted), None):
        return certain([named])
    place = int(wanted) if wanted.isdecimal() and int(wanted) < len(entries) else 0
    return certain(entries[: place + 1])


def expanded(line: str, environment: dict[str, str]) -> str:
    """An options line as GRUB hands it on: its variables ($tuned_params) come from grubenv."""
    words = takewhile(lambda word: not word.mark, split_words(line))  # a ";" or a brace ends GRUB's linux command
    return kernel_text(expand_all(words, environment))


def _assigned(root: Sysroot, settings: str) -> str | None:
    variables = evaluate_settings([("/" + MAIN, settings)], read_sh(root))
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


def _default(root: Sysroot) -> Entry | None:
    """The default entry, as the look found it."""
    places = [point.where for point in look(root).upcoming.points[:1]]
    found = (entry for entry in read_entries(root, ("boot",)) if [f"/{entry.path}"] == places and not entry.tried)
    return next(found, None)


def _once_refusals(root: Sysroot) -> tuple[Refusal, ...]:
    refusals = grubonce.refusals(root, GRUB2_CFG)
    default = _default(root)
    users = parse_fields(read(root, default.path) or "").get("grub_users", [""])[-1] if default else ""
    if users == "$grub_users":  # kernel-install writes the name of a variable there, which is mostly not set
        users = grubonce.environment(root, GRUB2_CFG).get("grub_users", "")
    return (*refusals, *grubonce.asks_for_a_password(root, GRUB2_CFG)) if users else refusals


FAMILY: Family = files_family(look, (*entry_files(("boot",)), MAIN, _CUSTOM, *GRUBENVS, *STARTS))._replace(
    once=once_by_entries(
        Entries(look, _default, "choose-grub-once", "unchoose-grub-once"),
        _once_refusals,
        partial(grubonce.armed, menu=GRUB2_CFG),
    )
)
