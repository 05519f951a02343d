"""The boot loaders tunectl writes for, one row a family, and which of them starts this host.

detect() asks this boot first (started.py), then the registers that owners keep (owners.py), and takes the files of a
boot loader as evidence only where neither speaks against it: packages leave such files behind. Where that contradicts
itself, the host file says it.
Source: grub-mkconfig, kernel-install's 90-loaderentry, grubby(8), rpm-ostree, kernelstub (docs/kernel-facts.md);
openSUSE's update-bootloader (LOADER_TYPE).
"""

from collections.abc import Iterator
from typing import NamedTuple

from tunectl.bootloader import (
    bls,
    grub,
    grubstart,
    kernelstub,
    ostree,
    owners,
    raspberrypi,
    started,
    systemdboot,
)
from tunectl.bootloader.entries import PLACES
from tunectl.bootloader.family import Family, Journaled, Point, Upcoming, Write
from tunectl.bootloader.grubsettings import GRUB2_CFG, GRUB_CFG, MAIN, evaluate_settings, read_sh
from tunectl.bootloader.owners import NAMELESS, OWNERS, Owner, matching, registered
from tunectl.bootloader.started import DIRECT, STUB, Start, read_start
from tunectl.bootloader.systemdboot import LOADER_CONF
from tunectl.command import as_data
from tunectl.host.identity import RED_HAT, read_os_ids
from tunectl.host.shellvars import last_value
from tunectl.host.sysroot import Sysroot

FAMILIES: dict[str, Family] = {
    "grub": grub.FAMILY,
    "suse-grub": grub.FAMILY,
    "bls": bls.FAMILY,
    "grub2-bls": systemdboot.SUSE_BLS,
    "systemd-boot": systemdboot.FAMILY,
    "kernelstub": kernelstub.FAMILY,
    "rpm-ostree": ostree.FAMILY,
    "raspberry-pi": raspberrypi.FAMILY,
}


# The loaders (started.py) that start what a family writes; GRUB where it is not here.
_STARTS = {
    "bls": ("grub", "map"),  # zipl reads the same entries
    "systemd-boot": ("systemd-boot", STUB),
    "kernelstub": ("systemd-boot", STUB),
    "rpm-ostree": ("",),
    "raspberry-pi": ("firmware",),
}
_REGISTER = "etc/sysconfig/bootloader"  # openSUSE's
_LOADER_TYPES = ("grub2-bls", "systemd-boot")  # each the name of a family, too

# What any of them reads, as shell patterns.
FILES = tuple(
    dict.fromkeys(
        (*(path for family in FAMILIES.values() for path in family.files), *started.FILES, *owners.FILES, _REGISTER)
    )
)
AMBIGUOUS = "ambiguous"  # more than one may boot the host
_ENTRIES = tuple(f"{place}/loader/entries" for place in PLACES)
_IMAGES = tuple(f"{place}/EFI/Linux" for place in PLACES)

# What the operator can do himself; the caller appends the arguments.
_ADVICE = {
    "none": "add where this machine's kernel command line is set: the hypervisor, the container's host or the "
    "network boot server",
    AMBIGUOUS: 'find out which one boots this host and say it in the host file, bootloader = "..." '
    f"({', '.join(FAMILIES)}), or remove what the other left",
}


class Loader(NamedTuple):
    """Who boots this host, and what says so; for one that is not supported, why, and what to do by hand."""

    name: str
    supported: bool
    evidence: tuple[str, ...]
    refusal: str = ""
    errno: int | None = None  # of a directory that could not be looked into
    owner: Owner | None = None  # of the line, where it is not a loader that tunectl writes for

    @property
    def advice(self) -> str:
        """What an operator can do about one that is not supported."""
        return f"add {self.owner.advice}" if self.owner else _ADVICE.get(self.name, "")


def detect(root: Sysroot, chosen: str = "") -> Loader:
    """The boot loader of a host, or the `chosen` one. Never raises: `none` without evidence, `ambiguous` in doubt."""
    if chosen:
        return Loader(chosen, True, (f'bootloader = "{chosen}" in the host file',))
    return root.once("boot loader", lambda: _detect(root))


def upcoming_of(root: Sysroot, loader: Loader) -> Upcoming | None:
    """What is known of the next boot; None where nothing is, because it is decided outside of this host."""
    if loader.supported:
        upcoming = FAMILIES[loader.name].upcoming(root)
        other = started.boots_next(root)
        return upcoming._replace(points=(Point("the next boot", None, other), *upcoming.points)) if other else upcoming
    return owners.upcoming(root, loader.owner) if loader.owner and loader.owner.name != DIRECT else None


def _detect(root: Sysroot) -> Loader:
    start = read_start(root)
    for owner in OWNERS:
        known = owner.certain or start.loader in owner.starts
        if known and start.may_be(*owner.starts) and (evidence := registered(root, owner)):
            return _owned(owner, evidence)
    files: dict[str, list[str]] = {}
    for name, evidence in _evidence(root):
        files.setdefault(name, []).append(evidence)
    found = {name: some for name, some in files.items() if start.may_be(*_STARTS.get(name, ("grub",)))}
    for decisive in ("rpm-ostree", "kernelstub", "grub2-bls"):  # each drives another, whose files are there
        if decisive in found:
            return _loader(decisive, found[decisive])
    others = {} if start.loader else _unnamed(root, start)
    if len(found) + len(others) == 1:
        return next((_loader(name, some) for name, some in found.items()), *(_owned(*item) for item in others.items()))
    if not found and not others and (hidden := _hidden(root)):
        why = f"which boot loader starts this host is not known: cannot read {hidden.filename}: {hidden.strerror}"
        return Loader(AMBIGUOUS, False, (), why, hidden.errno)
    if found or others:
        return _loader(AMBIGUOUS, [*(one for some in found.values() for one in some), *others.values()])
    return _without_files(start, [one for some in files.values() for one in some])


def _unnamed(root: Sysroot, start: Start) -> dict[Owner, str]:
    """The owners that may boot this host, and what registers each; this boot has not told."""
    found: dict[Owner, str] = {}
    for owner in OWNERS:
        above = any(set(owner.starts) & set(other.starts) for other in found)  # it makes what this one would be
        if not owner.certain and not above and start.may_be(*owner.starts) and (by := registered(root, owner)):
            found[owner] = by
    return found


def _without_files(start: Start, left: list[str]) -> Loader:
    """No file is that of the loader that started this boot; `left` are files of other ones."""
    if start.loader == "systemd-boot":
        return Loader("systemd-boot", True, (start.evidence,))
    owner = NAMELESS.get(start.loader)
    if owner and (left or start.loader != DIRECT):
        return _owned(owner, start.evidence)
    if not left:
        return _loader("none", [])
    by = f"this boot does not come from GRUB ({start.evidence})" if start.never else f"this boot has {start.evidence}"
    why = f"{by}, and {', '.join(left)} may be left over from an earlier loader: {_ADVICE[AMBIGUOUS]}"
    return Loader(AMBIGUOUS, False, tuple(left), why)


def _owned(owner: Owner, evidence: str) -> Loader:
    why = f"{owner.name} makes what this host boots ({as_data(evidence)}): the words belong {owner.advice}"
    return Loader(owner.name, False, (evidence,), why, owner=owner)


def _evidence(root: Sysroot) -> Iterator[tuple[str, str]]:
    system = read_os_ids(root)
    said = last_value(root.get_text(_REGISTER), "LOADER_TYPE")
    if said in _LOADER_TYPES:
        yield said, f"/{_REGISTER} has LOADER_TYPE={said}"
    for path in _present(root, "run/ostree-booted", "ostree/repo"):
        yield "rpm-ostree", path
    for path in _present(root, kernelstub.CONFIGURATION):
        yield "kernelstub", path
    entries = [path for path in _ENTRIES if any(name.endswith(".conf") for name in root.listdir(path))]
    settings = _present(root, MAIN, GRUB_CFG, GRUB2_CFG)
    own = _present(root, *LOADER_CONF)
    kind = "suse-grub" if any("suse" in name for name in system) else "grub"
    bls = evaluate_settings([(MAIN, root.get_text(MAIN))], read_sh(root)).text("GRUB_ENABLE_BLSCFG") == "true"
    red_hat = system & RED_HAT and (settings or (entries and not own))
    if (bls or red_hat) and not (_has_own_entries(root) and not entries):
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
        lines = (f"{place}/cmdline.txt" for place in raspberrypi.PLACES)
        yield from (("raspberry-pi", path) for path in _present(root, *lines))


def _present(root: Sysroot, *paths: str) -> list[str]:
    return [f"/{path}" for path in paths if root.exists(path)]


def _hidden(root: Sysroot) -> OSError | None:
    """A directory that may hold a boot loader's files, and that this user may not look into."""
    for path in dict.fromkeys((*PLACES, *_ENTRIES, *_IMAGES)):
        try:
            root.names(path)
        except PermissionError as error:
            return error
        except OSError:
            continue
    return None


def _has_own_entries(root: Sysroot) -> bool:
    """Does grub.cfg hold the entries itself, as on RHEL 7 and Amazon Linux 2 (there on UEFI in the ESP alone)?"""
    menus = (GRUB2_CFG,) if root.exists(GRUB2_CFG) else matching(root, grubstart.FILES)
    text = "".join(map(root.get_text, menus))
    return "menuentry" in text and "blscfg" not in text


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
