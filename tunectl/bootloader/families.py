"""The boot loaders tunectl writes for, one row a family, and which of them starts this host.

detect() goes by evidence; where that contradicts itself, the host file says it.
Source: grub-mkconfig, kernel-install's 90-loaderentry, grubby(8), rpm-ostree, kernelstub (docs/kernel-facts.md);
systemd's Boot Loader Interface (LoaderInfo).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tunectl.bootloader import bls, grub, kernelstub, ostree, raspberrypi, systemdboot
from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.family import Family, Journaled, Write
from tunectl.bootloader.grubsettings import GRUB2_CFG, GRUB_CFG, MAIN, evaluate_settings
from tunectl.host.identity import RED_HAT, read_os_ids
from tunectl.host.sysroot import Sysroot

FAMILIES: dict[str, Family] = {
    "grub": grub.FAMILY,
    "suse-grub": grub.FAMILY,
    "bls": bls.FAMILY,
    "systemd-boot": systemdboot.FAMILY,
    "kernelstub": kernelstub.FAMILY,
    "rpm-ostree": ostree.FAMILY,
    "raspberry-pi": raspberrypi.FAMILY,
}


# What any of them reads, as shell patterns.
FILES = tuple(dict.fromkeys(path for family in FAMILIES.values() for path in family.files))
AMBIGUOUS = "ambiguous"  # more than one may boot the host
_LOADER_INFO = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_BOOT = ("boot", "boot/efi", "efi")
_ENTRIES = tuple(f"{place}/loader/entries" for place in _BOOT)
_IMAGES = tuple(f"{place}/EFI/Linux" for place in _BOOT)
_LOADER_CONF = tuple(f"{place}/loader/loader.conf" for place in _BOOT)

# What the operator can do himself; the caller appends the arguments.
_ADVICE = {
    "none": "add where this machine's kernel command line is set: the hypervisor, the container's host or the "
    "network boot server",
    AMBIGUOUS: 'find out which one boots this host and say it in the host file, bootloader = "..." '
    f"({', '.join(FAMILIES)}), or remove what the other left",
}


class Loader(NamedTuple):
    """Who boots this host, and the files that say so; for one that is not supported, why, and what to do by hand."""

    name: str
    supported: bool
    evidence: tuple[str, ...]
    refusal: str = ""
    errno: int | None = None  # of a directory that could not be looked into

    @property
    def advice(self) -> str:
        """What an operator can do about one that is not supported."""
        return _ADVICE.get(self.name, "")


def detect(root: Sysroot, chosen: str = "") -> Loader:
    """The boot loader of a host, or the `chosen` one. Never raises: `none` without evidence, `ambiguous` in doubt."""
    if chosen:
        return Loader(chosen, True, (f'bootloader = "{chosen}" in the host file',))
    return root.once("boot loader", lambda: _detect(root))


def _detect(root: Sysroot) -> Loader:
    found: dict[str, list[str]] = {}
    for name, evidence in _evidence(root):
        found.setdefault(name, []).append(evidence)
    for decisive in ("rpm-ostree", "kernelstub"):  # either drives another loader, whose files are there as well
        if decisive in found:
            return _loader(decisive, found[decisive])
    names = list(found)
    if len(names) > 1:
        told = _told_by_running_system(root)
        names = [name for name in names if name in told] or names
    if len(names) == 1:
        return _loader(names[0], found[names[0]])
    if not names and (hidden := _hidden(root)):
        why = f"which boot loader starts this host is not known: cannot read {hidden.filename}: {hidden.strerror}"
        return Loader(AMBIGUOUS, False, (), why, hidden.errno)
    return _loader(AMBIGUOUS if names else "none", [one for some in found.values() for one in some])


def _evidence(root: Sysroot) -> Iterator[tuple[str, str]]:
    system = read_os_ids(root)
    present = _present(root)
    for path in present(("run/ostree-booted", "ostree/repo")):
        yield "rpm-ostree", path
    for path in present((kernelstub.CONFIGURATION,)):
        yield "kernelstub", path
    entries = [path for path in _ENTRIES if any(name.endswith(".conf") for name in root.listdir(path))]
    settings = list(present((MAIN, GRUB_CFG, GRUB2_CFG)))
    own = list(present(_LOADER_CONF))
    kind = "suse-grub" if any("suse" in name for name in system) else "grub"
    bls = _enables_bls(root)
    if bls or (system & RED_HAT and (settings or (entries and not own))):
        yield (
            "bls",
            f"/{MAIN} has GRUB_ENABLE_BLSCFG=true" if bls else (settings or [f"/{path}" for path in entries])[0],
        )
    else:
        yield from ((kind, path) for path in settings)
        yield from (("systemd-boot", f"/{path}") for path in entries)
    yield from (("systemd-boot", path) for path in own)
    images = [path for path in _IMAGES if any(name.lower().endswith(".efi") for name in root.listdir(path))]
    yield from (("systemd-boot", f"/{path}") for path in images)
    if not (root.exists(GRUB_CFG) or root.exists(GRUB2_CFG)):  # a Raspberry Pi that boots by UEFI and GRUB has one
        lines = tuple(f"{place}/cmdline.txt" for place in raspberrypi.PLACES)
        yield from (("raspberry-pi", path) for path in present(lines))


def _present(root: Sysroot) -> Callable[[tuple[str, ...]], Iterator[str]]:
    return lambda paths: (f"/{path}" for path in paths if root.exists(path))


def _hidden(root: Sysroot) -> OSError | None:
    """A directory that may hold a boot loader's files, and that this user may not look into."""
    for path in dict.fromkeys((*_BOOT, *_ENTRIES, *_IMAGES)):
        try:
            root.names(path)
        except PermissionError as error:
            return error
        except OSError:
            continue
    return None


def _told_by_running_system(root: Sysroot) -> tuple[str, ...]:
    """The loaders that the running system points to: by LoaderInfo, or by BOOT_IMAGE=, which only GRUB adds."""
    try:
        said = root.read_bytes(_LOADER_INFO)[4:].decode("utf-16-le", "replace").lower()
    except OSError:
        said = ""
    if "systemd-boot" in said:
        return ("systemd-boot",)
    line = parse_cmdline(root.get_text("proc/cmdline"))
    image = "grub" in said or any(arg.key == "BOOT_IMAGE" for arg in line)
    return ("grub", "bls", "suse-grub") if image else ()


def _enables_bls(root: Sysroot) -> bool:
    return evaluate_settings([(MAIN, root.get_text(MAIN))]).text("GRUB_ENABLE_BLSCFG") == "true"


def _loader(name: str, evidence: list[str]) -> Loader:
    if name in FAMILIES:
        return Loader(name, True, tuple(evidence))
    if name == "none":
        why = "this host has no boot loader of its own (a container, or a machine whose kernel is loaded from outside)"
    else:
        why = f"more than one boot loader may boot this host ({', '.join(evidence)})"
    return Loader(name, False, tuple(evidence), f"{why}: {_ADVICE[name]}")


def stripped(root: Sysroot, journaled: Journaled) -> Iterator[Write]:
    """Files that hold our words even when the journaled ones are restored: entries made since, files edited since."""
    seen: set[str] = set()
    for family in dict.fromkeys(FAMILIES.values()) if journaled else ():
        for write in family.stripped(root, journaled):
            if write.path not in seen:
                seen.add(write.path)
                yield write
