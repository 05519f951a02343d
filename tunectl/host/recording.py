"""A host's files as one archive: a bug report, and a test's fixture. `tar xf` unpacks what --root accepts."""

from __future__ import annotations

import errno
import fnmatch
import gzip
import io
import json
import os
import posixpath
import re
import tarfile
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from tunectl import __version__
from tunectl.cpulist import CpuSet
from tunectl.durable import followed, replace_file
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.ethtool import paths_of
from tunectl.host.recorded_paths import DIRECTORIES, DISTURBING_ZONE, FILES, INTERRUPTS_ITS_CPU, MARK, PRESENCE
from tunectl.host.secrets import Taken, is_secret_file, without_secrets
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot
from tunectl.shapes import Count, Maybe, plain

_CPU_OF = re.compile(r"/(?:cpu|policy)(\d+)/")
_KERNELS_OWN = ("proc/", "sys/")  # nobody keeps a secret there, but on the kernel's command line


class Skipped(msgspec.Struct, frozen=True):
    """A file that was not recorded."""

    path: str
    reason: str


class Recorded(msgspec.Struct, frozen=True):
    """What `tunectl snapshot` recorded of a host."""

    file: str
    files: Count
    bytes: Count
    skipped: list[Skipped]
    left_out: Annotated[list[Taken], Meta(description="The secrets that were taken out of the files."), Maybe] = []


class _Member(NamedTuple):
    """One entry of the archive: a file's bytes, or a link's target, or (both None) a directory."""

    data: bytes | None
    target: str | None
    mode: int


class _Recorder:
    """Gathers members by their real path; a link on the way becomes a member of its own."""

    def __init__(self, root: Sysroot, quiet: CpuSet) -> None:
        self.members: dict[str, _Member] = {}
        self.skipped: dict[str, str] = {}
        self.left_out: dict[str, list[Taken]] = {}
        self._root = root
        self._quiet = quiet
        self._places: dict[str, str] = {"": ""}

    def place(self, path: str) -> str:
        """The real path of a directory or file, links recorded on the way. Links in cycles end as they are."""
        if path in self._places:
            return self._places[path]
        directory, _, name = path.rpartition("/")
        home = self.place(directory)
        here = posixpath.normpath(f"{home}/{name}").lstrip("/")
        seen = set()
        while (target := self._root.readlink(here)) and here not in seen:
            seen.add(here)
            parent = posixpath.dirname(here)
            inside = posixpath.normpath(f"/{parent}/{target}" if not target.startswith("/") else target)
            # On the recorded host an absolute link would leave the directory it is unpacked in.
            relative = posixpath.relpath(inside, f"/{parent}") if target.startswith("/") else target
            self.members[here] = _Member(None, relative, 0o777)
            here = inside.lstrip("/")
            here = f"{self.place(posixpath.dirname(here))}/{posixpath.basename(here)}".lstrip("/")
        self._places[path] = here
        return here

    def file(self, path: str) -> None:
        """One file by its logical path; what cannot be read is listed, what is not there is not."""
        place = self.place(path)
        reason = self._stays(path, place)
        if place in self.members:
            if self.members[place].target is not None:
                self.skipped[path] = "links in a circle"
            return
        if reason:
            self.skipped[path] = reason
            return
        try:
            data = self._root.read_bytes(place)
        except IsADirectoryError:
            return
        except OSError as error:
            # A link that is down has no speed: EINVAL (net/core/net-sysfs.c).
            if error.errno not in ABSENT_ERRNOS and not (
                error.errno == errno.EINVAL and path.startswith("sys/class/net")
            ):
                self.skipped[path] = error.strerror or str(error)
            return
        if place == "proc/cmdline" or not place.startswith(_KERNELS_OWN):
            data, self.left_out[place] = without_secrets(place, data)
        self.members[place] = _Member(data, None, self._root.mode(place) or 0o644)

    def _stays(self, path: str, place: str) -> str:
        """Why a file must not be read; "" for all others."""
        if not place.startswith(_KERNELS_OWN) and (is_secret_file(path) or is_secret_file(place)):
            return "its name says that it is a secret"
        name = path.rpartition("/")[2]
        if not self._root.live:
            return ""
        found = _CPU_OF.search(path)
        if found and name in INTERRUPTS_ITS_CPU and int(found[1]) in self._quiet:
            return f"reading it would interrupt CPU {found[1]}, which is isolated"
        if name == "temp" and self._root.get(f"{path[:-4]}type") == DISTURBING_ZONE and self._quiet:
            return "reading it interrupts a CPU of the package, which may be an isolated one"
        return ""

    def link(self, path: str) -> None:
        """A link whose target does not matter."""
        if self._root.readlink(path):
            self.place(path)

    def presence(self, path: str) -> None:
        """An empty file where there is one."""
        if self._root.exists(path):
            self.members[self.place(path)] = _Member(b"", None, 0o755)

    def directory(self, path: str) -> None:
        """A directory, even an empty one."""
        if self._root.exists(path):
            self.members.setdefault(self.place(path), _Member(None, None, 0o755))


def record(
    root: Sysroot,
    out_path: str,
    quiet: CpuSet = frozenset(),
    units: Iterable[str] = (),
    files: Iterable[str] = (),
) -> Recorded:
    """Writes the archive (.tar.gz).

    `quiet`: CPUs, besides those the kernel isolates, that must not be interrupted. `units`: those of programs that
    tune. `files`: shell patterns of what else must be in it (knobs.files_read()). The same files give the same
    archive, to the byte. Needs no privileges: what may not be read is in `skipped`. OSError where the archive cannot
    be written; then there is none.
    """
    facts = read_scope_facts(root)
    recorder = _Recorder(root, facts.quiet | quiet)
    for pattern in dict.fromkeys((*FILES, *files)):
        for path in expand(root, pattern):
            recorder.file(path)
    for nic in sorted(root.listdir("sys/class/net")):
        for path in paths_of(nic):  # asked of the kernel on a running host, files on a recorded one
            recorder.file(path)
    for path in PRESENCE:
        recorder.presence(path)
    for pattern in DIRECTORIES:
        for path in expand(root, pattern):
            recorder.directory(path)
    _record_units(root, recorder, units)
    if root.live and "proc/sys/kernel/arch" not in recorder.members:  # /proc has it since 6.1
        recorder.members["proc/sys/kernel/arch"] = _Member(f"{os.uname().machine}\n".encode(), None, 0o444)
    skipped = [Skipped("/" + path, reason) for path, reason in sorted(recorder.skipped.items())]
    left_out = [taken for path in sorted(recorder.left_out) for taken in recorder.left_out[path]]
    told = {"skipped": plain(skipped), "left_out": plain(left_out)}
    note = {"schema": "tunectl.recording/1", "tunectl_version": __version__, **told}
    recorder.members[MARK] = _Member((json.dumps(note, indent=1) + "\n").encode(), None, 0o644)
    _write(out_path, recorder.members)
    count = sum(member.data is not None for member in recorder.members.values())
    return Recorded(out_path, count, os.path.getsize(out_path), skipped, left_out)


def _record_units(root: Sysroot, recorder: _Recorder, units: Iterable[str]) -> None:
    """What says that another tuner runs, is enabled or installed."""
    for unit in units:
        for slice_ in ("sys/fs/cgroup", "sys/fs/cgroup/systemd", "sys/fs/cgroup/unified"):
            recorder.file(f"{slice_}/system.slice/{unit}/cgroup.procs")
        for where in ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"):
            for path in (*expand(root, f"{where}/*.wants/{unit}"), f"{where}/{unit}"):
                recorder.file(path) if root.readlink(path) != "/dev/null" else recorder.link(path)


def expand(root: Sysroot, pattern: str) -> Iterator[str]:
    """The paths that match a shell pattern, one directory at a time, in order; without wildcards it is itself."""
    head, *rest = pattern.split("/")
    paths = [head]
    for part in rest:
        if any(char in part for char in "*?["):
            paths = [f"{path}/{name}" for path in paths for name in fnmatch.filter(sorted(root.listdir(path)), part)]
        else:
            paths = [f"{path}/{part}" for path in paths]
    yield from paths


def _write(out_path: str, members: dict[str, _Member]) -> None:
    """The archive as one file, for its owner alone: a full disk leaves no half of one."""
    packed = io.BytesIO()
    # No name, no time: gzip would put both into its header.
    with (
        gzip.GzipFile("", "wb", 6, packed, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(members):
            _add(archive, path, members[path])
    replace_file(followed(out_path), packed.getvalue(), mode=0o600)


def _add(archive: tarfile.TarFile, path: str, member: _Member) -> None:
    entry = tarfile.TarInfo(path)
    entry.mode = member.mode | 0o400  # what only root could read must still unpack to something readable
    if member.target is not None:
        entry.type, entry.linkname = tarfile.SYMTYPE, member.target
    elif member.data is None:
        entry.type = tarfile.DIRTYPE
    else:
        entry.size = len(member.data)
    archive.addfile(entry, io.BytesIO(member.data) if member.data is not None else None)
