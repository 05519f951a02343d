"""Unified kernel images, Boot Loader Specification Type #2: the command line inside a PE file.

Source: Microsoft's PE Format (headers, section table); UAPI Group, Unified Kernel Image (sections .cmdline, .osrel,
.uname); systemd's boot.c, which names and sorts such an image by its os-release.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable

from tunectl.bootloader.entries import Entry, uncounted
from tunectl.bootloader.shellvars import evaluate
from tunectl.host.sysroot import Sysroot

_MAX_SECTION = 1 << 16  # of text; no kernel takes a longer line
_HEAD = 4096  # bytes: the headers and the section table
_WANTED = (".cmdline", ".osrel", ".uname", ".profile")


def read_images(root: Sysroot, places: Iterable[str]) -> list[Entry]:
    """The images in EFI/Linux below these mount points, each once. OSError where a directory cannot be read."""
    found: dict[str, Entry] = {}
    for place in places:
        directory = f"{place}/EFI/Linux"
        try:
            names = sorted(name for name in root.names(directory) if name.lower().endswith(".efi"))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                continue
            raise
        for name in names:
            path = f"{directory}/{name}"
            sections = read_sections(root, path)
            if ".osrel" in sections:
                found.setdefault(root.resolve(path), _entry(path, sections, is_signed(root.read_bytes(path, _HEAD))))
    return list(found.values())


def _entry(path: str, sections: dict[str, str], signed: bool) -> Entry:
    release = evaluate([(path, sections[".osrel"])])
    version = release.text("IMAGE_VERSION") or sections.get(".uname", "").strip() or release.text("VERSION_ID")
    sort_key = release.text("IMAGE_ID") or release.text("ID")
    line = " ".join(sections.get(".cmdline", "").split())
    kernel = sections.get(".uname", "").strip()
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    name, exhausted = uncounted(stem)
    title = release.text("PRETTY_NAME")
    return Entry(
        name + dot + suffix, path, line, title, version, sort_key, "", exhausted, 0, kernel=kernel, signed=signed
    )


def is_signed(head: bytes) -> bool:
    """Has a PE file a certificate table? Its place is the fifth of the optional header's data directories."""
    try:
        start = struct.unpack_from("<I", head, 0x3C)[0] + 24
        directories = start + {0x10B: 96, 0x20B: 112}[struct.unpack_from("<H", head, start)[0]]
        number: int = struct.unpack_from("<I", head, directories - 4)[0]
        size: int = struct.unpack_from("<I", head, directories + 4 * 8 + 4)[0]
    except (struct.error, KeyError):
        return False
    return number > 4 and size > 0


def read_sections(root: Sysroot, path: str) -> dict[str, str]:
    """The text sections of a PE file's first profile; none where it is no PE file. OSError where it cannot be read."""
    head = root.read_bytes(path, _HEAD)
    found: dict[str, str] = {}
    try:
        start = struct.unpack_from("<I", head, 0x3C)[0]
        if head[:2] != b"MZ" or head[start : start + 4] != b"PE\0\0":
            return {}
        count, optional = struct.unpack_from("<H12xH", head, start + 6)
        for number in range(count):
            at = start + 24 + optional + 40 * number
            raw, size, _, stored, offset = struct.unpack_from("<8sIIII", head, at)
            name = raw.rstrip(b"\0").decode("ascii", "replace")
            if name == ".profile":  # what follows belongs to another entry of the same image
                break
            if name in _WANTED:
                data = root.read_bytes(path, min(size, stored, _MAX_SECTION), offset)
                found[name] = data.split(b"\0")[0].decode("utf-8", "replace")
    except struct.error:
        return {}
    return found
