"""Boot Loader Specification entries, Type #1: the files in loader/entries, and which of them is first.

The entries of new kernels are made from /etc/kernel/cmdline, or from what stands in for it. Without either file
kernel-install takes the running line: the arguments of a kernel that was upgraded before the reboot would be lost, or
those of an old test would stay.
A loader shows every entry of its directory, whoever's machine id it bears: an image keeps the builder's, and the host
that was made of it has one of its own. So each counts for what boots next, and those that boot another root file system
under another machine id are another system's: they are never edited.
Source: UAPI Group, Boot Loader Specification (fields, sorting) and Version Format Specification; systemd's
90-loaderentry.install, Fedora's 20-grub.install.
"""

import errno
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tunectl.bootloader.cmdline import Arg, parse_cmdline
from tunectl.bootloader.editor import LINE, OPTIONS, Holder, read
from tunectl.bootloader.family import Point
from tunectl.bootloader.oneshot import KEY, is_our_entry
from tunectl.command import as_data
from tunectl.fix import NOTHING, Fix, to_decide
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

CMDLINE = "etc/kernel/cmdline"
_VENDORS = "usr/lib/kernel/cmdline"
# What kernel-install runs for each new kernel: of two files with one name the first is it.
_PLUGINS, _VENDORS_PLUGINS = "etc/kernel/install.d", "usr/lib/kernel/install.d"
_TUNED, TUNED_WORD = "92-tuned.install", "$tuned_params"
_TUNEDS = (f"{_PLUGINS}/{_TUNED}", f"{_VENDORS_PLUGINS}/{_TUNED}")
# Each entry gets these again by itself: from the loader and from kernel-install.
_ADDED = ("BOOT_IMAGE", "initrd", "systemd.machine_id", KEY)
# $BOOT is the EFI system partition or a partition of its own; distributions mount either at one of these.
PLACES = ("boot", "efi", "boot/efi")
_COUNTER = re.compile(r"\+[0-9]+(-[0-9]+)?$")  # boot counting: tries left, tries done
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")
# The kernel of a rescue or recovery entry has to boot where an isolated one does not.
_RESCUE = re.compile(r"rescue|recovery", re.IGNORECASE)
_VERSION = re.compile(r"[0-9]+|[A-Za-z]+|[~^.+-]")
_RANK = {"~": -1, "-": 1, "^": 2, ".": 3}
_ROOT = ("root", "rootflags")
_END, _LETTERS, _DIGITS = (0, ""), 4, 5


class Entry(NamedTuple):
    """One boot entry, as its file or image shows it."""

    id: str  # the file's name without its boot counter
    path: str
    line: str
    title: str = ""
    version: str = ""
    sort_key: str = ""
    machine_id: str = ""
    exhausted: bool = False  # its boot counter says that every try failed
    options: int = 1  # how many lines of options its file has
    lead: str = ""  # what the loader puts in front of the line
    kernel: str = ""  # an image's: `uname -r`
    signed: bool = False  # an image
    loads: tuple[str, ...] = ()  # the kernel and the initrds that its file names
    foreign: bool = False  # another system's on this disk
    tried: bool = False  # tunectl's own, which one boot takes (oneshot.py)

    @property
    def rescue(self) -> bool:
        """Is it for repairs? Such an entry stays as it is."""
        return bool(_RESCUE.search(f"{self.id} {self.title} {self.version}"))

    @property
    def ours(self) -> bool:
        """Is it one of this system, neither for repairs nor for one boot? Only such a one is edited."""
        return not (self.rescue or self.foreign or self.tried)

    @property
    def holder(self) -> Holder:
        """Its file, as one to be edited."""
        return Holder(self.path, OPTIONS, lead=self.lead)


def entry_files(places: Iterable[str] = PLACES) -> tuple[str, ...]:
    """What read_entries() and source_of_entries() read, as shell patterns; not /etc/machine-id, which is private."""
    return (*(f"{place}/loader/entries/*.conf" for place in places), CMDLINE, _VENDORS, *_TUNEDS)


def version_key(version: str, rank: Mapping[str, int] = _RANK) -> tuple[tuple[int, int | str], ...]:
    """Sorts versions as systemd's strverscmp_improved() does: 6.10 after 6.9, 6.1~rc1 before 6.1.

    `rank` is what a separator counts for beside an end (0); one that has no rank only parts two others.
    """
    parts: list[tuple[int, int | str]] = []
    for part in _VERSION.findall(version):
        if part in rank:
            parts.append((rank[part], ""))
        elif part.isalnum():
            parts.append((_DIGITS, int(part)) if part.isdecimal() else (_LETTERS, part))
    return (*parts, _END)


def uncounted(name: str) -> tuple[str, bool]:
    """(an entry's name without its boot counter, has every try failed): `a+2-1` is `a`, with two tries left."""
    counter = _COUNTER.search(name)
    return _COUNTER.sub("", name), bool(counter and re.match(r"\+0+(?![0-9])", counter[0]))


def parse_fields(text: str) -> dict[str, list[str]]:
    """The `key value` lines of an entry or of loader.conf: each key's values, in their order."""
    fields: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.replace("\t", " ").strip().partition(" ")
        if key and not key.startswith("#"):
            fields.setdefault(key, []).append(value.strip())
    return fields


def parse_entry(path: str, text: str) -> Entry | None:
    """An entry that boots a Linux kernel; None for another one (a program, a device tree, an empty file)."""
    fields = parse_fields(text)
    tried = is_our_entry(path.rpartition("/")[2])
    if not fields.keys() & ({"linux", "uki", "efi"} if tried else {"linux", "uki"}):
        return None
    name, exhausted = uncounted(path.rpartition("/")[2].removesuffix(".conf"))

    def last(key: str) -> str:
        return fields.get(key, [""])[-1]

    # GRUB puts the image's name in front of the line, systemd-boot the initrds' names; the longer one has to fit.
    leads = (f"BOOT_IMAGE=(hd0,gpt2){last('linux')}", " ".join(f"initrd={one}" for one in fields.get("initrd", [])))
    return Entry(
        f"{name}.conf",
        path,
        " ".join(fields.get("options", [])),
        last("title"),
        last("version"),
        last("sort-key"),
        last("machine-id"),
        exhausted,
        sum(1 for one in fields.get("options", []) if one),
        max(leads, key=len),
        loads=(*fields.get("linux", fields.get("efi", []))[-1:], *fields.get("initrd", [])),
        tried=tried,
    )


def made_by_kernel_install(entry: Entry) -> bool:
    """By its name, TOKEN-VERSION.conf of 90-loaderentry.install. Any other has somebody else who made it."""
    return bool(entry.version) and entry.id.endswith(f"-{entry.version}.conf")


def entry_point(root: Sysroot, entry: Entry, line: str | None = None) -> Point:
    """The line of the entry that is booted next (`line`, where the loader has made another of it)."""
    if lack := unloadable(root, entry):
        return Point(f"/{entry.path}", None, lack)
    return Point(f"/{entry.path}", entry.line if line is None else line)


def unloadable(root: Sysroot, entry: Entry) -> str:
    """What an entry loads that is not there or empty; "" where all is, and where a recording does not tell.

    A recorded host has no kernels: there only a file that is missing among others of its kind is missed.
    """
    place = place_of(entry)
    for name in (word for names in entry.loads for word in names.split() if "$" not in word):
        path = name.replace("\\", "/").lstrip("/")
        places = tuple(dict.fromkeys((f"{place}/{path}", path)))
        if is_missing(root, places) or (root.live and all(_is_lacking(root, place) for place in places)):
            return f"{as_data(f'/{entry.path}')} loads {as_data(name)}, which is not there or empty"
    return ""


def loaded_files(root: Sysroot, entry: Entry) -> tuple[str, ...]:
    """The kernel and the initrds that an entry loads, as paths on the host, as far as they are there; or its image."""
    place = place_of(entry)
    paths = [word.replace("\\", "/").lstrip("/") for names in entry.loads for word in names.split()]
    return first_there(root, ((f"{place}/{path}", path) for path in paths)) if entry.loads else (entry.path,)


def first_there(root: Sysroot, files: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Of each file the first of the places where it may be, as far as it is there."""
    return tuple(filter(None, (next(filter(root.exists, places), "") for places in files)))


def place_of(entry: Entry) -> str:
    """Where its partition is mounted."""
    return re.split("/loader/entries/|/EFI/Linux/", entry.path)[0]


def is_missing(root: Sysroot, places: Iterable[str]) -> bool:
    """Is a kernel or an initrd at none of these places, although another one lies beside it?"""
    return all(_is_lacking(root, place) for place in places) and any(_has_others(root, place) for place in places)


def _is_lacking(root: Sysroot, path: str) -> bool:
    """Is a file certainly not there, or empty? A recording has no contents of kernels."""
    try:
        return root.checked_mode(path) is None or (root.live and not root.lstat(root.resolve(path)).st_size)
    except OSError as error:
        return error.errno in ABSENT_ERRNOS


def _has_others(root: Sysroot, path: str) -> bool:
    """Is there another kernel, or another initrd, in its directory?"""
    directory, _, name = path.rpartition("/")
    kind = next((kind for kind in ("vmlinuz", "linux", "initr") if name.startswith(kind)), None)
    return kind is not None and any(other.startswith(kind) for other in root.listdir(directory))


def wrongly_chosen(default: Entry) -> tuple[str, Fix]:
    """(what is wrong with a default entry that is not ours, what to do): the entry itself stays as it is."""
    if default.ours or default.tried:
        return "", NOTHING
    whose = "a rescue entry" if default.rescue else "another system's, by its machine-id and its root="
    problem = f"{as_data(f'/{default.path}')} is {whose}, and the default"
    return problem, to_decide(f"fix that ({problem})", before_boot=True)


def read_entries(root: Sysroot, places: Iterable[str] = PLACES) -> list[Entry]:
    """The entries below these mount points, each file once. OSError where a directory cannot be read."""
    found: dict[str, Entry] = {}
    mine, booted = root.get("etc/machine-id"), _root_of(root.get_text("proc/cmdline"))
    for place in places:
        directory = f"{place}/loader/entries"
        for name in names_below(root, directory):
            if not name.endswith(".conf") or name.startswith("."):
                continue
            if entry := parse_entry(f"{directory}/{name}", read(root, f"{directory}/{name}") or ""):
                entry = entry._replace(foreign=_is_foreign(entry, mine, booted))
                found.setdefault(root.resolve(entry.path), entry)
    return list(found.values())


def names_below(root: Sysroot, directory: str) -> list[str]:
    """The names in a directory, in order; none where it is not there. OSError where it cannot be read."""
    try:
        return sorted(root.names(directory))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return []
        raise


def _is_foreign(entry: Entry, machine_id: str, booted: frozenset[Arg]) -> bool:
    """Does an entry name another machine id, and boot what is certainly another root file system?

    The id of an image stays in the entries, and the host gets its own. A variable may hold the words that name the
    root file system (RHEL 8's $kernelopts).
    """
    named = entry.machine_id or (_MACHINE_ID.match(entry.id) or [""])[0]
    if not (machine_id and named and named != machine_id):
        return False
    root = _root_of(entry.line)
    return root != booted and bool(root or "$" not in entry.line)


def _root_of(line: str) -> frozenset[Arg]:
    """The words that say which file system a line boots."""
    return frozenset(arg for arg in parse_cmdline(line) if arg.key in _ROOT)


def own_line(entries: Sequence[Entry], default: object = None) -> str:
    """The line that the entries of this system's later kernels would take over, where nothing else says theirs."""
    own = [entry for entry in entries if not (entry.foreign or entry.tried)]
    return next((entry.line for entry in own if entry == default), own[0].line if own else "")


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """As a boot menu of the specification lists them, the default first: newest version of the first sort-key."""
    newest = sorted(entries, key=lambda entry: version_key(entry.id), reverse=True)
    newest.sort(key=lambda entry: version_key(entry.version) if entry.sort_key else (), reverse=True)
    return sorted(
        newest,
        key=lambda entry: (entry.exhausted, not entry.sort_key, entry.sort_key, entry.sort_key and entry.machine_id),
    )


def source_of_entries(root: Sysroot, default_line: str) -> tuple[Holder, Point]:
    """(/etc/kernel/cmdline, its line). Where there is no such file, the vendor's or the default entry's line."""
    text = read(root, CMDLINE)
    vendors = read(root, _VENDORS)
    # Needed for a file that exists, too: it may be the one that we made from this line.
    new = " ".join((vendors or portable(default_line)).split())
    if text is not None:
        return Holder(CMDLINE, LINE, new), Point(f"/{CMDLINE}", " ".join(text.split()), added=_added(root))
    where = f"/{_VENDORS}" if vendors else f"/{CMDLINE}, which is not there"
    return Holder(CMDLINE, LINE, new), Point(where, new if vendors else "", added=_added(root))


def tuned_adds(root: Sysroot) -> bool:
    """Does TuneD's plugin put its word into each new entry of this host? Another file of its name would be run instead.

    Source: TuneD's 92-tuned.install; kernel-install(8), FILES.
    """
    return root.exists(_TUNEDS[1]) and _TUNED not in root.listdir(_PLUGINS)


def _added(root: Sysroot) -> str:
    """Why new entries may have other words than their source: the operator's plugins are programs, and not followed."""
    names = sorted(name for name in root.listdir(_PLUGINS) if name.endswith(".install"))
    run = [f"/{_PLUGINS}/{name}" for name in names if (root.mode(f"{_PLUGINS}/{name}") or 0) & 0o111]
    return f"what {as_data(run[0])} does to the entries of later kernels is not followed" if run else ""


def portable(line: str) -> str:
    """A line without what belongs to its entry, or to its boot, alone."""
    words = line.split()
    if '"' in line:  # a quoted value may hold spaces: every word of it stays
        return line
    return " ".join(word for word in words if "$" not in word and parse_cmdline(word)[0].key not in _ADDED)
