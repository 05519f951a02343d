"""Which boot loader starts this host, by evidence, and what an operator can do where tunectl writes no settings.

Source: FACTS 3: grub-mkconfig, kernel-install's 90-loaderentry, grubby(8), rpm-ostree, kernelstub; systemd's Boot
Loader Interface (LoaderInfo).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.settings import DIRECTORY, GRUB_CFG, MAIN
from tunectl.bootloader.shellvars import evaluate
from tunectl.host.sysroot import Sysroot

_LOADER_INFO = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_ENTRIES = ("boot/loader/entries", "boot/efi/loader/entries", "efi/loader/entries")
_LOADER_CONF = ("boot/loader/loader.conf", "boot/efi/loader/loader.conf", "efi/loader/loader.conf")
_PI_CMDLINE = ("boot/firmware/cmdline.txt", "boot/cmdline.txt")
_RED_HAT = frozenset({"rhel", "fedora", "centos", "almalinux", "rocky", "ol", "amzn"})
_DEBIAN = frozenset({"debian", "ubuntu"})

# What the operator can do himself; the caller appends the arguments.
_ADVICE = {
    "bls": "add with `grubby --update-kernel=ALL --args=...`, and to /etc/kernel/cmdline or GRUB_CMDLINE_LINUX for "
    "the kernels to come",
    "systemd-boot": "add to /etc/kernel/cmdline, then run `kernel-install add` for the kernel that will boot",
    "kernelstub": "add with `kernelstub --add-options ...`",
    "rpm-ostree": "add with `rpm-ostree kargs --append=...`, once for each",
    "raspberry-pi": "add to the one line of the firmware's cmdline.txt",
    "suse-grub": "add to GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, then run "
    "`grub2-mkconfig -o /boot/grub2/grub.cfg`",
    "grub": "add to GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, then run `grub-mkconfig -o /boot/grub/grub.cfg`",
    "none": "add where this machine's kernel command line is set: the hypervisor, the container's host or the "
    "network boot server",
    "ambiguous": "find out which one boots this host, remove what the other left, or add there yourself",
}


class Loader(NamedTuple):
    """Who boots this host, the files that say so, and where it is not supported the reason and the way by hand."""

    name: str
    supported: bool
    evidence: tuple[str, ...]
    refusal: str = ""


def detect(root: Sysroot) -> Loader:
    """The boot loader of a host. Never raises: `none` without evidence, `ambiguous` where it contradicts itself."""
    system = _system_ids(root)
    found: dict[str, list[str]] = {}
    for name, evidence in _evidence(root, system):
        found.setdefault(name, []).append(evidence)
    for decisive in ("rpm-ostree", "kernelstub"):  # either drives another loader, whose files are there as well
        if decisive in found:
            return _loader(root, decisive, found[decisive], system)
    names = list(found)
    if len(names) > 1:
        told = _told_by_running_system(root)
        names = [name for name in names if name in told] or names
    if len(names) == 1:
        return _loader(root, names[0], found[names[0]], system)
    name = "ambiguous" if names else "none"
    return _loader(root, name, [one for some in found.values() for one in some], system)


def _evidence(root: Sysroot, system: frozenset[str]) -> Iterator[tuple[str, str]]:
    present = _present(root)
    for path in present(("run/ostree-booted", "ostree/repo")):
        yield "rpm-ostree", path
    for path in present(("etc/kernelstub/configuration",)):
        yield "kernelstub", path
    entries = [path for path in _ENTRIES if any(name.endswith(".conf") for name in root.listdir(path))]
    settings = list(present((MAIN, GRUB_CFG)))
    if _enables_bls(root):
        yield "bls", f"/{MAIN} has GRUB_ENABLE_BLSCFG=true"
    elif system & _RED_HAT and (entries or settings):
        yield "bls", f"/{entries[0]}" if entries else settings[0]
    elif any("suse" in name for name in system) and settings:
        yield "suse-grub", settings[0]
    else:
        yield from (("grub", path) for path in settings)
        yield from (("systemd-boot", path) for path in present(_LOADER_CONF))
        yield from (("systemd-boot", f"/{path}") for path in entries)
    if not root.exists(GRUB_CFG):  # a Raspberry Pi that boots by UEFI and GRUB has one
        yield from (("raspberry-pi", path) for path in present(_PI_CMDLINE))


def _present(root: Sysroot) -> Callable[[tuple[str, ...]], Iterator[str]]:
    return lambda paths: (f"/{path}" for path in paths if root.exists(path))


def _told_by_running_system(root: Sysroot) -> tuple[str, ...]:
    """What the loader said of itself, or left in the command line: GRUB alone adds BOOT_IMAGE= to a kernel's line."""
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
    return evaluate([(MAIN, root.get_text(MAIN))]).text("GRUB_ENABLE_BLSCFG") == "true"


def _system_ids(root: Sysroot) -> frozenset[str]:
    """ID and ID_LIKE of os-release(5), which is a file of shell assignments."""
    text = root.get_text("etc/os-release") or root.get_text("usr/lib/os-release")
    variables = evaluate([("os-release", text)])
    ids = set(re.split(r"\s+", f"{variables.text('ID')} {variables.text('ID_LIKE')}".lower().strip()))
    if any(root.exists(f"etc/{name}-release") for name in ("redhat", "fedora")):
        ids.add("rhel")
    return frozenset(ids - {""})


def _loader(root: Sysroot, name: str, evidence: list[str], system: frozenset[str]) -> Loader:
    found = ", ".join(evidence)
    if name == "grub" and (not system or system & _DEBIAN or root.exists(DIRECTORY)):
        return Loader(name, True, tuple(evidence))
    if name == "none":
        why = "this host has no boot loader of its own (a container, or a machine whose kernel is loaded from outside)"
    elif name == "ambiguous":
        why = f"more than one boot loader may boot this host ({found})"
    elif name == "grub":
        why = f"this distribution's grub-mkconfig does not read /{DIRECTORY} ({found})"
    else:
        why = f"this host boots by {name} ({found}), whose settings tunectl does not write yet"
    return Loader(name, False, tuple(evidence), f"{why}: {_ADVICE[name]}")
