"""Who started this boot's kernel, by what that boot itself left behind: nothing that an installed package wrote.

Three things tell: the variables of the Boot Loader Interface, the number by which an x86 kernel knows its loader, and
what a loader adds to the kernel's line. A variable is read only where the line does not settle it: each is a call of
the firmware.
Source: systemd's BOOT_LOADER_INTERFACE (LoaderInfo, LoaderEntrySelected, StubInfo); Documentation/arch/x86/boot.rst,
type_of_loader; libstub/x86-stub.c, which is 0x21; GRUB's loader/*/linux.c (BOOT_IMAGE=, and no initrd=) and
20_linux_xen (`placeholder`); syslinux' doc/syslinux.txt (BOOT_IMAGE= and initrd=); LILO's and zipl's BOOT_IMAGE= is the
name or the number of an entry; kexec-tools drop it (--reuse-cmdline).
"""

from typing import NamedTuple

from tunectl.host.sysroot import Sysroot

_VARIABLE = "sys/firmware/efi/efivars/{}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_TYPE = "proc/sys/kernel/bootloader_type"
_SYSLINUX, _QEMU, _KEXEC = 0x3, 0xB, 0xD
# How the text of LoaderInfo begins, in lower case -> the loader.
_NAMED = {"systemd-boot": "systemd-boot", "gummiboot": "systemd-boot", "grub": "grub", "refind": "refind"}
_NAMED |= {"limine": "limine"}
STUB = "stub"  # a unified image that the firmware starts by itself
DIRECT = "direct"  # the virtual machine's host hands the kernel over
OTHER = "other"

# The firmware's own variables: two bytes behind the attributes, the number of a boot entry.
_GLOBAL = "sys/firmware/efi/efivars/{}-8be4df61-93ca-11d2-aa0d-00e098032b8c"

_READ = ("LoaderInfo", "LoaderEntrySelected", "StubInfo", "LoaderFeatures", "LoaderEntryOneShot")
FILES = (*map(_VARIABLE.format, _READ), *map(_GLOBAL.format, ("BootNext", "BootCurrent", "SecureBoot")), _TYPE)
_TAKES_ONE_SHOTS = 1 << 3  # EFI_LOADER_FEATURE_ENTRY_ONESHOT


class Start(NamedTuple):
    """Who started the kernel ("": this boot does not tell), and what says so.

    `never` is a loader that did not, where that is all that is known.
    """

    loader: str = ""
    evidence: str = ""
    never: str = ""

    def may_be(self, *loaders: str) -> bool:
        """Can one of these have been it? "" stands for every loader."""
        if self.loader:
            return "" in loaders or self.loader in loaders
        return not self.never or any(loader != self.never for loader in loaders)


def variable(root: Sysroot, name: str) -> str:
    """An EFI variable of the Boot Loader Interface: four bytes of attributes, then UTF-16 with a NUL at its end.

    Reading one calls the firmware, which may stop every CPU for that time. Asking for one that is not set does not.
    PermissionError where this user may not read it; "" for one that is not set.
    """
    path = _VARIABLE.format(name)
    try:
        return root.read_bytes(path)[4:].decode("utf-16-le", "replace").rstrip("\0")
    except PermissionError as error:
        error.filename = root.path(path)
        raise
    except OSError:
        return ""


def boots_next(root: Sysroot) -> str:
    """Why the firmware starts another loader than this boot's once (`efibootmgr --bootnext`); "" where it does not.

    UEFI specification, 3.3: BootNext is for one boot, and gone once it is taken; BootCurrent is this boot's.
    """
    chosen = _value(root, _GLOBAL.format("BootNext"))
    if len(chosen) != 2 or chosen == _value(root, _GLOBAL.format("BootCurrent")):
        return ""
    number = f"{int.from_bytes(chosen, 'little'):04X}"
    return f"BootNext has the firmware start its entry {number} next (`efibootmgr --delete-bootnext` takes it back)"


def takes_one_shots(root: Sysroot) -> bool:
    """Did this boot's loader say that it boots an entry once (LoaderEntryOneShot)?"""
    features = _value(root, _VARIABLE.format("LoaderFeatures"))[:8]
    return bool(int.from_bytes(features, "little") & _TAKES_ONE_SHOTS)


def is_secure_boot(root: Sysroot) -> bool:
    """Does the firmware start signed programs alone? UEFI specification, 3.3: SecureBoot is 1."""
    return _value(root, _GLOBAL.format("SecureBoot"))[:1] == b"\1"


def _value(root: Sysroot, path: str) -> bytes:
    """What an EFI variable holds behind its attributes; nothing where it is not set or not to be read."""
    try:
        return root.read_bytes(path)[4:]
    except OSError:
        return b""


def read_start(root: Sysroot) -> Start:
    """Who started this boot; worked out once. Never raises."""
    return root.once("who started this boot", lambda: _start(root))


def _start(root: Sysroot) -> Start:
    kind = root.get(_TYPE)  # an x86 kernel's type_of_loader: its upper four bits
    by_line = _by_line(
        root.get_text("proc/cmdline").split(),
        int(kind) >> 4 if kind.isdecimal() else None,
        stub=root.exists(_VARIABLE.format("StubInfo")),
    )
    if by_line.loader == "grub" and not _may_be_a_copy(root):
        return by_line
    said = _told(root, "LoaderInfo")
    named = next((loader for begin, loader in _NAMED.items() if said.lower().startswith(begin)), OTHER if said else "")
    if named and (by_line.loader != "grub" or _chose_an_entry(root)):
        return Start(named, f"LoaderInfo ({said})")
    return by_line


def _may_be_a_copy(root: Sysroot) -> bool:
    """Has somebody put GRUB's word into another loader's files, as a copy of /proc/cmdline has it?"""
    others = ("boot/loader/loader.conf", "boot/efi/loader/loader.conf", "efi/loader/loader.conf")
    copied = "BOOT_IMAGE=" in root.get_text("etc/kernel/cmdline")
    return copied or any(map(root.exists, (*others, _VARIABLE.format("LoaderEntrySelected"))))


def _by_line(words: list[str], kind: int | None, *, stub: bool) -> Start:
    """By the kernel's line and by the number of its loader."""
    image = next((word.partition("=")[2] for word in words if word.startswith("BOOT_IMAGE=")), None)
    initrds = [word for word in words if word.startswith("initrd=")]
    by_firmware = stub or any("\\" in word for word in initrds)  # a path as the firmware has it: BOOT_IMAGE= is a copy
    if kind == _QEMU:
        return Start(DIRECT, f"/{_TYPE}")
    if kind == _SYSLINUX or (image is not None and initrds and not by_firmware):
        return Start("syslinux", f"/{_TYPE}" if kind == _SYSLINUX else "BOOT_IMAGE= and initrd= on /proc/cmdline")
    if words[:1] == ["placeholder"]:
        return Start("grub", "`placeholder` on /proc/cmdline")
    if image is not None and not by_firmware:
        named = "/" in image
        return Start("grub" if named else "map", f"BOOT_IMAGE={'' if named else image} on /proc/cmdline")
    if stub:
        return Start(STUB, "StubInfo")
    if not words or kind == _KEXEC:
        return Start()
    return Start("", "no BOOT_IMAGE= on /proc/cmdline, which GRUB adds", never="grub")


def _chose_an_entry(root: Sysroot) -> bool:
    """Did systemd-boot start a kernel, and not another loader? Its entries are named *.conf, its images *.efi."""
    chosen = _told(root, "LoaderEntrySelected").lower()
    return not chosen or (chosen.endswith((".conf", ".efi")) and not chosen.startswith("auto-"))


def _told(root: Sysroot, name: str) -> str:
    try:
        return variable(root, name)
    except OSError:
        return ""
