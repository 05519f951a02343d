"""Whose the kernel's command line is, where that is not a loader that tunectl writes for: one row each.

A row says what registers its owner on a host, which loaders it may be that started the boot, where words belong and
what carries them on from there. A register is what an owner keeps for itself; files that a package leaves behind, such
as /etc/default/grub, register nobody. `upcoming` is what the next boot will have as far as the owner's source tells: no
entry of his is read, so they are known to have the source's words only where this boot has them all.
"""

import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.editor import LINE, Form, variable
from tunectl.bootloader.entries import PLACES
from tunectl.bootloader.family import Point, Upcoming
from tunectl.bootloader.grubsettings import configured
from tunectl.bootloader.started import DIRECT, STUB
from tunectl.command import as_data
from tunectl.host.identity import read_os_ids
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot


class Owner(NamedTuple):
    """One owner of boot entries.

    `register` are shell patterns of files, `ID=` with an id of os-release, or `WORD=` with a word of this boot's line.
    """

    name: str
    register: tuple[str, ...]
    starts: tuple[str, ...]  # the loaders (started.py) that start what it makes; "" for every one
    source: str  # where the words belong, for people
    carry: str  # what carries them on; "" for nothing
    files: tuple[str, ...] = ()  # of the source, as shell patterns; with a `line` the register's where there are none
    line: str = ""  # what of their text is the line, as a pattern with a group; "" for all but comments
    read: Callable[[Sysroot], Point] | None = None  # in the place of both
    certain: bool = False  # what registers it is its own, and no package leaves it behind
    mark: str = ""  # what the registering file has to hold, as a pattern; "" for nothing
    form: Form | None = None  # how its one source is edited, beside the entries; None: not by tunectl

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that have the line."""
        return self.files or (self.register if self.line else ())

    @property
    def advice(self) -> str:
        """What an operator does to have words on the line."""
        return f"in {self.source}{f', then {self.carry}' if self.carry else ''}"


_CMDLINE = ("etc/kernel/cmdline",)
_QUOTED = r"""[\t ]*=[\t ]*(["'])(?P<line>.*?)\1"""
_LIMINE = ("limine.conf", "limine/limine.conf", "EFI/*/limine.conf", "limine.cfg")
_LIMINES = tuple(f"{place}/{name}" for place in PLACES for name in _LIMINE)
_APPEND = r"(?im)^[\t ]*append[\t ]+(?P<line>.*)$"
_EXTLINUX = tuple(f"boot/{name}" for name in ("extlinux/extlinux.conf", "extlinux.conf"))
_EXTLINUX += tuple(f"boot/syslinux/{name}" for name in ("syslinux.cfg", "extlinux.conf"))

# The first row that fits is it. Systems that are one image come first, since any loader's files may lie in the image.
OWNERS: tuple[Owner, ...] = (
    # nixpkgs: nixos/modules/system/boot/kernel.nix, and top-level.nix, which writes kernel-params into each generation.
    Owner(
        "nixos",
        ("etc/NIXOS", "ID=nixos"),
        ("",),
        "boot.kernelParams of /etc/nixos/configuration.nix",
        "`nixos-rebuild boot`",
        ("nix/var/nix/profiles/system/kernel-params",),
        certain=True,
    ),
    # GNU Guix manual, operating-system Reference (kernel-arguments).
    Owner(
        "guix",
        ("ID=guix",),
        ("",),
        "kernel-arguments of the operating-system declaration",
        "`guix system reconfigure`",
        certain=True,
    ),
    # Talos documentation, MachineConfig: machine.install.extraKernelArgs take effect with an upgrade.
    Owner(
        "talos",
        ("ID=talos",),
        ("",),
        "machine.install.extraKernelArgs of the machine's configuration",
        "`talosctl upgrade`",
        certain=True,
    ),
    # Flatcar documentation, "Adding custom kernel boot options": the image's grub.cfg sources it.
    Owner(
        "flatcar",
        ("ID=flatcar", "ID=coreos-container-linux"),
        ("",),
        "linux_append of /oem/grub.cfg",
        "",
        ("oem/grub.cfg", "usr/share/oem/grub.cfg"),
        r'(?m)^[\t ]*set[\t ]+linux_append="(?P<line>[^"\n]*)"',
        certain=True,
    ),
    # Bottlerocket documentation, settings.boot: written into a bootconfig, which the kernel reads.
    Owner(
        "bottlerocket",
        ("ID=bottlerocket",),
        ("",),
        "settings.boot.kernel-parameters",
        "`apiclient reboot`",
        certain=True,
    ),
    # Ubuntu Core documentation, system options: system.kernel.cmdline-append.
    Owner(
        "ubuntu-core", ("ID=ubuntu-core",), ("",), "`snap set system system.kernel.cmdline-append`", "", certain=True
    ),
    # openshift/machine-config-operator: kernelArguments of a MachineConfig; it takes back what it did not write.
    Owner(
        "machine-config-operator",
        ("etc/systemd/system/machine-config-daemon-firstboot.service",),
        ("",),
        "kernelArguments of a MachineConfig of the cluster",
        "`oc apply`",
        certain=True,
    ),
    # clr-boot-manager(1): kernel_cmdline of /etc/kernel, and every file of /etc/kernel/cmdline.d.
    Owner(
        "clr-boot-manager",
        ("ID=clear-linux-os", "ID=solus"),
        ("systemd-boot", "syslinux", STUB),
        "a file of /etc/kernel/cmdline.d",
        "`clr-boot-manager update`",
        ("etc/kernel/cmdline", "etc/kernel/cmdline.d/*.conf"),
        certain=True,
    ),
    # zfsbootmenu(7): it starts the kernel by kexec, with the property's words and spl_hostid=.
    Owner(
        "zfsbootmenu",
        ("WORD=spl_hostid",),
        ("",),
        "the property org.zfsbootmenu:commandline of the root file system",
        "",
        certain=True,
    ),
    # Proxmox VE Administration Guide, Host Bootloader: proxmox-boot-tool mounts the ESPs only while it copies to them.
    Owner(
        "proxmox-boot-tool",
        ("etc/kernel/proxmox-boot-uuids", "etc/kernel/pve-efiboot-uuids"),
        ("systemd-boot", STUB),
        "/etc/kernel/cmdline",
        "`proxmox-boot-tool refresh`",
        _CMDLINE,
        certain=True,
    ),
    # The same; its 000_proxmox_boot_header says that /boot/grub/grub.cfg is not used then.
    Owner(
        "proxmox-boot-tool",
        ("etc/kernel/proxmox-boot-uuids", "etc/kernel/pve-efiboot-uuids"),
        ("grub",),
        "/etc/default/grub",
        "`proxmox-boot-tool refresh`",
        read=lambda root: configured(root).point,
        certain=True,
    ),
    # limine-entry-tool's README (KERNEL_CMDLINE); Limine's CONFIG.md (cmdline, and CMDLINE up to version 7).
    Owner(
        "limine",
        ("etc/default/limine",),
        ("limine",),
        "KERNEL_CMDLINE of /etc/default/limine",
        "`limine-update`",
        line=rf"(?m)^[\t ]*KERNEL_CMDLINE\[[^\]]*\]\+?{_QUOTED}",
    ),
    Owner(
        "limine",
        _LIMINES,
        ("limine",),
        "the entry's cmdline in limine.conf",
        "",
        line=r"(?im)^[\t ]*(?:kernel_)?cmdline[\t ]*[:=][\t ]*(?P<line>.*)$",
    ),
    # rEFInd's documentation, "Methods of Booting Linux": the first line of refind_linux.conf is the default.
    Owner(
        "refind",
        (
            "boot/refind_linux.conf",
            "boot/efi/EFI/refind/refind.conf",
            "efi/EFI/refind/refind.conf",
            "boot/EFI/refind/refind.conf",
        ),
        ("refind",),
        "/boot/refind_linux.conf (or the entry's options in refind.conf)",
        "",
        ("boot/refind_linux.conf",),
        r'(?m)^[\t ]*"[^"\n]*"[\t ]+"(?P<line>[^"\n]*)"',
    ),
    # Alpine's update-extlinux(8).
    Owner(
        "update-extlinux",
        ("etc/update-extlinux.conf",),
        ("syslinux",),
        "default_kernel_opts of /etc/update-extlinux.conf",
        "`update-extlinux`",
        line=rf"(?m)^[\t ]*default_kernel_opts{_QUOTED}",
    ),
    # Debian's u-boot-menu, u-boot-update(8): it makes /boot/extlinux/extlinux.conf.
    Owner(
        "u-boot-menu",
        ("etc/default/u-boot", "usr/share/u-boot-menu/conf.d/*"),
        ("u-boot",),
        "U_BOOT_PARAMETERS of /etc/default/u-boot",
        "`u-boot-update`",
        ("etc/default/u-boot",),
        rf"(?m)^[\t ]*U_BOOT_PARAMETERS{_QUOTED}",
    ),
    # syslinux' doc/extlinux.txt and U-Boot's doc/develop/distro.rst: APPEND of the label; U-Boot adds nothing.
    Owner(
        "extlinux",
        _EXTLINUX,
        ("syslinux", "u-boot"),
        "the default label's APPEND in extlinux.conf (or syslinux.cfg)",
        "",
        line=_APPEND,
        mark=_APPEND,
    ),
    # Debian's flash-kernel: the line goes into the boot script (or the flash).
    Owner(
        "flash-kernel",
        ("etc/default/flash-kernel",),
        ("u-boot",),
        "LINUX_KERNEL_CMDLINE of /etc/default/flash-kernel",
        "`flash-kernel`",
        line=rf"(?m)^[\t ]*LINUX_KERNEL_CMDLINE{_QUOTED}",
    ),
    # Armbian's boot.cmd reads it.
    Owner(
        "armbian",
        ("boot/armbianEnv.txt",),
        ("u-boot",),
        "extraargs of /boot/armbianEnv.txt",
        "",
        line=r"(?m)^extraargs=(?P<line>.*)$",
    ),
    # Void's efibootmgr package: its kernel hook writes the line into the firmware's boot entries.
    Owner(
        "efibootmgr-kernel-hook",
        ("etc/default/efibootmgr-kernel-hook",),
        ("firmware",),
        "OPTIONS of /etc/default/efibootmgr-kernel-hook",
        "`xbps-reconfigure -f` of the kernel",
        line=rf"(?m)^[\t ]*OPTIONS{_QUOTED}",
        mark=r"(?m)^[\t ]*MODIFY_EFI_ENTRIES=[\"']?1",
    ),
    # Gentoo's uefi-mkconfig: the same, from its KERNEL_CONFIG.
    Owner(
        "uefi-mkconfig",
        ("etc/default/uefi-mkconfig",),
        ("firmware",),
        "KERNEL_CONFIG of /etc/default/uefi-mkconfig",
        "`uefi-mkconfig`",
    ),
    # s390-tools' zipl.conf(5).
    Owner(
        "zipl",
        ("etc/zipl.conf",),
        ("map",),
        "parameters of /etc/zipl.conf (or the entries, by `grubby --update-kernel=ALL --args=...`)",
        "`zipl`",
        line=rf"(?m)^[\t ]*parameters{_QUOTED}",
        mark=r"(?m)^[\t ]*parameters[\t ]*=",  # without it zipl reads the entries (family `bls`)
    ),
    # lilo.conf(5).
    Owner(
        "lilo",
        ("etc/lilo.conf",),
        ("map",),
        "append of /etc/lilo.conf",
        "`lilo`",
        line=rf"(?m)^[\t ]*append{_QUOTED}",
    ),
    # OpenPOWER's petitboot runs the host's grub.cfg itself, and starts the kernel by kexec.
    Owner("petitboot", ("proc/device-tree/ibm,opal/compatible",), ("petitboot",), "the entry that petitboot shows", ""),
)

# A loader that this boot names, and that keeps no register on the host: what to do about it.
_SOURCES = {
    DIRECT: "what starts this virtual machine (QEMU's -append, libvirt's <cmdline>)",
    STUB: "what the unified image is made of, or the firmware's boot entry (efibootmgr)",
    "syslinux": "the label's APPEND in its configuration, or on the network boot server",
    "map": "the loader's configuration, or on the network boot server",
    "limine": "the entry's cmdline in limine.conf",
    "refind": "refind_linux.conf beside the kernel",
    "other": "the configuration of the loader that LoaderInfo names",
}
NAMELESS = {loader: Owner(loader, (), (loader,), source, "") for loader, source in _SOURCES.items()}

# Who makes systemd-boot's entries, or its images, where that is not kernel-install.
ENTRY_MAKERS: tuple[Owner, ...] = (
    # sdboot-manage's README: `gen` writes every entry anew, from its hook at each kernel's update.
    Owner(
        "sdboot-manage",
        ("etc/sdboot-manage.conf",),
        ("systemd-boot",),
        "LINUX_OPTIONS of /etc/sdboot-manage.conf",
        "`sdboot-manage gen`",
        line=rf"(?m)^[\t ]*(?:export[\t ]+)?LINUX_OPTIONS{_QUOTED}",
        form=variable("LINUX_OPTIONS"),
    ),
    # openSUSE's sdbootutil(8): it makes the entries of each kernel and snapshot.
    Owner(
        "sdbootutil",
        ("etc/sysconfig/bootloader",),
        ("systemd-boot", "grub"),
        "/etc/kernel/cmdline",
        "`sdbootutil update-all-entries`",
        _CMDLINE,
        mark=r"(?m)^[\t ]*LOADER_TYPE=[\"']?(grub2-bls|systemd-boot)",
        form=LINE,
    ),
)
IMAGE_MAKERS: tuple[Owner, ...] = (
    # sbupdate's README.
    Owner(
        "sbupdate",
        ("etc/sbupdate.conf",),
        ("systemd-boot", STUB),
        "CMDLINE_DEFAULT of /etc/sbupdate.conf",
        "`sbupdate`",
        line=rf"(?m)^[\t ]*CMDLINE_DEFAULT{_QUOTED}",
    ),
    # Debian's sicherboot(8).
    Owner(
        "sicherboot",
        ("etc/sicherboot/sicherboot.conf",),
        ("systemd-boot", STUB),
        "/etc/kernel/cmdline",
        "`sicherboot install-kernel`",
        _CMDLINE,
    ),
    # mkinitcpio(8), --cmdline and PRESETS: /etc/kernel/cmdline, or else all of /etc/cmdline.d.
    Owner(
        "mkinitcpio",
        ("etc/mkinitcpio.d/*.preset",),
        ("systemd-boot", STUB),
        "/etc/kernel/cmdline (or a file of /etc/cmdline.d)",
        "`mkinitcpio -P`",
        ("etc/cmdline.d/*.conf", "etc/kernel/cmdline"),
        mark=r"(?m)^[\t ]*[A-Za-z0-9]+_(uki|efi_image)=",
    ),
    # dracut.conf(5), uefi= and kernel_cmdline=.
    Owner(
        "dracut",
        ("etc/dracut.conf.d/*.conf", "etc/dracut.conf"),
        ("systemd-boot", STUB),
        "kernel_cmdline of /etc/dracut.conf.d",
        "`dracut --force --regenerate-all`",
        line=rf"(?m)^[\t ]*kernel_cmdline\+?{_QUOTED}",
        mark=r"(?m)^[\t ]*uefi=[\"']?yes",
    ),
)

_ALL = (*OWNERS, *ENTRY_MAKERS, *IMAGE_MAKERS)
_SECRET = "etc/lilo.conf"  # it may hold a password
FILES = tuple(
    dict.fromkeys(
        path for owner in _ALL for path in (*owner.register, *owner.sources) if "=" not in path and path != _SECRET
    )
)


def registered(root: Sysroot, owner: Owner) -> str:
    """What registers an owner on this host, for people; "" where nothing does."""
    for mark in owner.register:
        kind, _, value = mark.partition("=")
        if kind == "ID" and value in root.once("os ids", lambda: read_os_ids(root)):
            return f"/etc/os-release has {mark}"
        if kind == "WORD" and any(arg.key == value for arg in parse_cmdline(root.get_text("proc/cmdline"))):
            return f"/proc/cmdline has {value}="
        for path in () if value else matching(root, (mark,)):
            if not owner.mark or re.search(owner.mark, root.get_text(path)):
                return f"/{path}"
    return ""


def maker(root: Sysroot, makers: tuple[Owner, ...]) -> Owner | None:
    """Who of these makes this host's entries or images; None where nobody is registered."""
    return next((owner for owner in makers if registered(root, owner)), None)


def matching(root: Sysroot, patterns: tuple[str, ...]) -> Iterator[str]:
    """The files that these shell patterns name, each pattern's in order."""
    for pattern in patterns:
        paths = [""]
        for part in pattern.split("/"):
            paths = [f"{path}/{name}".lstrip("/") for path in paths for name in _names(root, path, part)]
        yield from filter(root.exists, paths)


def _names(root: Sysroot, directory: str, part: str) -> list[str]:
    """What a part of a pattern stands for in a directory."""
    if not re.search(r"[*?\[]", part):
        return [part]
    return fnmatch.filter(sorted(root.listdir(directory)), part)


def source_of(root: Sysroot, owner: Owner) -> Point:
    """The line that an owner's source gives, as far as it can be read."""
    if owner.read:
        return owner.read(root)
    lines, where = [], []
    for path in matching(root, owner.sources):
        try:
            text = root.read_text(path)
        except OSError as error:
            if error.errno in ABSENT_ERRNOS:
                continue
            return Point(f"/{path}", None, f"cannot read {as_data(f'/{path}')}: {error.strerror}", error.errno)
        where.append(f"/{path}")
        if not owner.line:
            lines.append(" ".join(line for line in text.splitlines() if not line.lstrip().startswith("#")))
        elif match := re.search(owner.line, text):
            lines.append(match["line"])
            break
    if not lines:
        return Point(owner.source, None, f"{owner.source} is not read")
    return Point(", ".join(where), " ".join(" ".join(lines).split()))


def upcoming(root: Sysroot, owner: Owner) -> Upcoming:
    """What the next boot will have: what the source says, where this boot shows that the entries have it."""
    source = source_of(root, owner)
    if source.line is None:
        return Upcoming((source,))
    running = root.get_text("proc/cmdline")
    waiting = set(parse_cmdline(source.line)) - set(parse_cmdline(running))
    if not waiting:
        return Upcoming((Point("/proc/cmdline, which the entries gave", running.strip()), source))
    if not owner.carry:
        return Upcoming((source,))
    words = " ".join(map(as_data, waiting))
    why = f"{source.where} has {words}, which this boot had not; whether {owner.carry} has run since then is not known"
    return Upcoming((Point("the boot entries", None, why), source))
