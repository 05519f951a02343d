"""Which host this is, which of its boots, which distribution (os-release(5)), and when one of its processes began."""

import os
import re
from contextlib import suppress

from tunectl.host.nics import read_driver
from tunectl.host.shellvars import last_value
from tunectl.host.sysroot import Sysroot
from tunectl.model import HostId
from tunectl.shapes import CardFirmware, Firmware

# The architecture at the end of a distribution's kernel release, where the kernel does not say it itself.
_RELEASE_ARCH = re.compile(r"[.-](x86_64|amd64|aarch64|arm64|ppc64le|s390x|riscv64)$")
RED_HAT = frozenset({"rhel", "fedora", "centos", "almalinux", "rocky", "ol", "amzn"})
DEBIAN = frozenset({"debian", "ubuntu"})
_DMI = "sys/class/dmi/id"
_CONFIG = 1 << 20  # bytes; a large one has a quarter of that
_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}


def read_identity(root: Sysroot) -> HostId:
    """Host name, kernel release, boot id and machine; "" for what a recorded host does not hold. Never raises."""
    kernel = "proc/sys/kernel"
    return HostId(
        hostname=root.get(f"{kernel}/hostname"),
        kernel=root.get(f"{kernel}/osrelease"),
        boot_id=root.get(f"{kernel}/random/boot_id"),
        machine=machine_of(root),
        microcode=root.get("sys/devices/system/cpu/cpu0/microcode/version"),
        bios=" ".join(filter(None, (root.get(f"{_DMI}/bios_version"), root.get(f"{_DMI}/bios_date")))),
    )


def read_firmware(root: Sysroot) -> Firmware:
    """The kernel's build and configuration, and the firmware of network cards. Never raises."""
    release, cards = root.get("proc/sys/kernel/osrelease"), []
    for nic in sorted(root.listdir("sys/class/net")):
        driver = read_driver(root, nic)
        if driver and (version := root.get(f"ethtool/{nic}/firmware").strip()):
            cards.append(CardFirmware(nic, driver, version))
    return Firmware(root.get("proc/sys/kernel/version"), _kernel_config(root, release), tuple(cards))


def _kernel_config(root: Sysroot, release: str) -> str:
    import hashlib  # few commands ask
    import zlib

    for path in ("proc/config.gz", f"boot/config-{release}", f"lib/modules/{release}/config"):
        with suppress(OSError, zlib.error):
            data = root.read_bytes(path, _CONFIG)
            if path.endswith(".gz"):
                data = zlib.decompressobj(31).decompress(data, _CONFIG)
            if data:
                return hashlib.sha256(data).hexdigest()[:12]
    return ""


def machine_of(root: Sysroot) -> str:
    """What `uname -m` says: /proc/sys/kernel/arch has it since 6.1, on a recorded host too."""
    if root.live:
        return os.uname().machine
    if arch := root.get("proc/sys/kernel/arch"):
        return arch
    if match := _RELEASE_ARCH.search(root.get("proc/sys/kernel/osrelease")):
        return _MACHINE.get(match[1], match[1])
    return parse_machine(root.get_text("proc/cpuinfo"))


def parse_machine(cpuinfo: str) -> str:
    """The architecture /proc/cpuinfo gives away: `lm` is long mode, `CPU implementer` is ARM's; "" when unsure."""
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    if flags:
        return "x86_64" if "lm" in flags[1].split() else "i686"
    return "aarch64" if re.search(r"^CPU implementer\s*:", cpuinfo, re.MULTILINE) else ""


def read_os_ids(root: Sysroot) -> frozenset[str]:
    """ID and ID_LIKE of os-release, in lower case; empty where no file tells. Never raises."""
    text = root.get_text("etc/os-release") or root.get_text("usr/lib/os-release")
    ids = set(f"{last_value(text, 'ID')} {last_value(text, 'ID_LIKE')}".lower().split())
    if any(root.exists(f"etc/{name}-release") for name in ("redhat", "fedora")):
        ids.add("rhel")
    return frozenset(ids)


def read_start(root: Sysroot, pid: int | str) -> str:
    """In clock ticks since boot, as it stands in /proc/PID/stat (field 22); "" once it has ended. Never raises."""
    fields = root.get(f"proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""
