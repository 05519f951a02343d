"""GRUB with Boot Loader Specification entries: RHEL 9 and later, Fedora, CentOS Stream, Rocky, Alma.

The arguments go where grubby puts them: into every entry but the rescue ones, and into what new entries are made from,
/etc/kernel/cmdline and GRUB_CMDLINE_LINUX. The latter two must agree: 20-grub.install rewrites /etc/kernel/cmdline
where /etc/default/grub is the newer file, so /etc/default/grub is written first. grub2-mkconfig is not run, because
from RHEL 9.3 on it leaves the entries alone; grubby is not run either (docs/boot-loaders.md says why).
Source: RHEL 9.3 release notes (boot loader); Fedora's 20-grub.install and blscfg.c (variables, order of the menu).
"""

from collections.abc import Iterable
from functools import partial

from tunectl.bootloader.editor import Holder, Look, files_family, read, variable
from tunectl.bootloader.entries import (
    Entry,
    entry_files,
    entry_point,
    own_line,
    read_entries,
    source_of_entries,
    version_key,
    wrongly_chosen,
)
from tunectl.bootloader.family import Family, Point, Upcoming, cannot_read
from tunectl.bootloader.grubdisk import PREFIX, Disk
from tunectl.bootloader.grubmenu import BootEntry
from tunectl.bootloader.grubrun import Halt, Script, parse_grubenv
from tunectl.bootloader.grubscript import expand_all, kernel_text, split_words
from tunectl.bootloader.grubsettings import GRUBENVS, LINUX, MAIN, evaluate_settings
from tunectl.bootloader.grubstart import FILES as STARTS
from tunectl.bootloader.grubstart import starts_elsewhere
from tunectl.bootloader.grubsyntax import Unfollowed
from tunectl.command import as_data
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
        default = default_entry(entries, environment)
        kernel_cmdline, made_from = source_of_entries(root, own_line(default, entries) if default else "")
    except OSError as error:
        return Look((), cannot_read(error))
    if default is None:
        return Look((), Upcoming((), "there is no boot entry in /boot/loader/entries"))
    if elsewhere := starts_elsewhere(root, "boot/grub2/grub.cfg", entries=True):
        why = f"GRUB starts with /{elsewhere.path}, which does not lead to the entries in /boot/loader/entries"
        entry = elsewhere.entry
        boots = (Point(entry.at, entry.args),) if isinstance(entry, BootEntry) else ()
        return Look((), Upcoming(boots, why))
    if by := _decided_elsewhere(root):
        return Look((), Upcoming((), f"{by}, and which entry that is cannot be told"))
    points = [entry_point(root, default, expanded(default.line, environment)), made_from]
    expand = partial(expanded, environment=environment)
    holders = [kernel_cmdline]
    holders += [entry.holder._replace(expand=expand) for entry in entries if entry.ours and entry.options]
    if settings is not None:
        holders.insert(0, Holder(MAIN, variable(LINUX)))
        points.append(Point(f"{LINUX} in /{MAIN}", _assigned(settings)))
    problem, again = wrongly_chosen(default)
    return Look(tuple(holders), Upcoming(tuple(points), problem, again=again), _refusal(root, default))


def listed(entries: Iterable[Entry]) -> list[Entry]:
    """As blscfg's menu has them: by the file's name alone, as rpm compares NAME-VERSION-RELEASE, the newest first."""

    def names(entry: Entry) -> list[tuple[tuple[int, int | str], ...]]:
        return [version_key(part, _RANK) for part in entry.id.removesuffix(".conf").rsplit("-", 2)]

    return sorted(entries, key=names, reverse=True)


def default_entry(entries: list[Entry], environment: dict[str, str]) -> Entry | None:
    """What GRUB boots: next_entry once, or saved_entry, by the entry's id, title or place; otherwise the first."""
    wanted = environment.get("next_entry") or environment.get("saved_entry") or "0"
    named = (entry for entry in entries if wanted in (entry.id.removesuffix(".conf"), entry.title))
    number = int(wanted) if wanted.isdecimal() and int(wanted) < len(entries) else 0
    return next(named, entries[number] if entries else None)


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
