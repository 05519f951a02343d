"""Unified kernel images, Boot Loader Specification Type #2: the command line inside a PE file.

To change that line, kernel-install builds a new image. That is allowed only for an image that kernel-install made: it
names them TOKEN-VERSION.efi, some with a boot counter. An image with another name has another builder (mkinitcpio,
dracut called by hand, a vendor), and kernel-install would put a second image beside it.
Source: Microsoft's PE Format (headers, section table); UAPI Group, Unified Kernel Image (sections .cmdline, .osrel,
.uname); systemd's boot.c, which names and sorts such an image by its os-release; 90-uki-copy.install
and 60-ukify.install; ukify(1), uki.conf; sbctl's 91-sbctl.install.
"""

import re
import struct
from collections.abc import Iterable

from tunectl.bootloader.entries import CMDLINE, Entry, names_below, uncounted
from tunectl.command import as_data
from tunectl.host.inifiles import values_of
from tunectl.host.shellvars import evaluate
from tunectl.host.sysroot import Sysroot

_MAX_SECTION = 1 << 16  # of text; no kernel takes a longer line
_HEAD = 4096  # bytes: the headers and the section table
_COUNTER = r"(?:\+[0-9]+(?:-[0-9]+)?)?"
_CONFIGURATIONS = ("etc/kernel/uki.conf", "run/kernel/uki.conf", "usr/lib/kernel/uki.conf")
_SBCTL = ("etc/kernel/install.d/91-sbctl.install", "usr/lib/kernel/install.d/91-sbctl.install")
_SIGNING_KEYS = ("SecureBootPrivateKey", "SecureBootCertificateName")
_WANTED = (".cmdline", ".osrel", ".uname", ".profile")


def read_images(root: Sysroot, places: Iterable[str]) -> list[Entry]:
    """The images in EFI/Linux below these mount points, each once. OSError where a directory cannot be read."""
    found: dict[str, Entry] = {}
    for place in places:
        directory = f"{place}/EFI/Linux"
        for name in names_below(root, directory):
            if not name.lower().endswith(".efi"):
                continue
            path = f"{directory}/{name}"
            sections = read_sections(root, path)
            if ".osrel" in sections:
                sections[".cmdline"] = " ".join([sections.get(".cmdline", ""), *_addons(root, place, path)])
                found.setdefault(root.resolve(path), _entry(path, sections, is_signed(root.read_bytes(path, _HEAD))))
    return list(found.values())


def _addons(root: Sysroot, place: str, path: str) -> list[str]:
    """The lines of addons, which the stub puts behind the image's: those of the system, then the image's own.

    Source: systemd-stub(7), *.addon.efi.
    """
    files = [
        f"{directory}/{name}"
        for directory in (f"{place}/loader/addons", f"{path}.extra.d")
        for name in sorted(root.listdir(directory))
        if name.lower().endswith(".addon.efi")
    ]
    return [read_sections(root, file).get(".cmdline", "") for file in files]


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


def is_of_kernel_install(image: Entry) -> bool:
    """Did kernel-install make this image, by its name?"""
    name = rf"-{re.escape(image.kernel)}{_COUNTER}\.efi\Z"
    return bool(image.kernel and re.search(name, image.path, re.IGNORECASE))


def kernel_of(root: Sysroot, image: Entry) -> str:
    """The path of the kernel that kernel-install made this image from; "" where it did not, or the kernel is gone."""
    if not is_of_kernel_install(image):
        return ""
    paths = (f"usr/lib/modules/{image.kernel}/vmlinuz", f"boot/vmlinuz-{image.kernel}")
    return next(filter(root.exists, paths), "")


def rebuild_refusal(root: Sysroot, image: Entry) -> str:
    """Why kernel-install must not rebuild the image that is booted next; "" where it may."""
    if not root.exists(CMDLINE):
        return (
            f"there is no /{CMDLINE}, so kernel-install would put this boot's own line into the image: write one "
            "first, with root= and everything else that the image's line has (`bootctl list` shows it)"
        )
    if not kernel_of(root, image):
        return (
            f"kernel-install did not make {as_data(f'/{image.path}')}, or its kernel is not there: "
            "add the arguments where its builder takes the line from, and build it again"
        )
    configurations = [root.get_text(path) for path in _CONFIGURATIONS]
    has_key = any(any(values_of(text, "UKI", key)) for text in configurations for key in _SIGNING_KEYS)
    if image.signed and not has_key and not any(map(root.exists, _SBCTL)):
        return (
            f"{as_data(f'/{image.path}')} is signed, and nothing says that kernel-install signs a new one "
            "(SecureBootPrivateKey= in /etc/kernel/uki.conf, or sbctl): unsigned it would not boot under Secure Boot"
        )
    return ""
