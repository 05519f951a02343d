"""The tried line by kexec, where the boot loader cannot boot an entry once: the running kernel starts the next one.

It proves the line and not the boot loader: neither it nor the firmware runs, and any later boot is the loader's own.
What is loaded is in memory alone, so that a power cut leaves nothing of it.
Source: kexec(8); Documentation/ABI/testing/sysfs-kernel-kexec-kdump (kexec_loaded); sysctl/kernel.rst
(kexec_load_disabled); kernel_lockdown(7); systemctl(1), kexec.
"""

from tunectl.bootloader.cmdline import length_problem
from tunectl.bootloader.entries import first_there, parse_fields, portable
from tunectl.bootloader.family import Default, Journaled, Once, OnceEntry, Refusal, Write
from tunectl.bootloader.oneshot import entry_name, is_our_entry
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot

_PROGRAMS = ("usr/sbin/kexec", "sbin/kexec")
_LOADED, _DISABLED = "sys/kernel/kexec_loaded", "proc/sys/kernel/kexec_load_disabled"
_LOCKDOWN = "sys/kernel/security/lockdown"
_PLACE = "run/tunectl-try"  # our entry is gone with the boot, as is what was loaded by it


def refusals(root: Sysroot) -> tuple[Refusal, ...]:
    """Why this boot's kernel cannot be started again with another line; () where it can."""
    told = []
    if not _program(root):
        told.append("there is no kexec program (kexec-tools)")
    if root.get(_DISABLED, "0") != "0" or not root.exists(_LOADED):
        told.append(f"this kernel loads no other one (/{_DISABLED}, /{_LOADED})")
    lockdown = root.get(_LOCKDOWN)
    if lockdown and "[none]" not in lockdown:
        told.append(f"kernel lockdown keeps kexec off (/{_LOCKDOWN} is {lockdown})")
    if len(_loads(root)) < 2:
        told.append("the kernel of this boot, or its initrd, is not in /boot")
    return tuple(map(Refusal, told))


def _program(root: Sysroot) -> str:
    return next((f"/{path}" for path in filter(root.exists, _PROGRAMS)), "")


def _loads(root: Sysroot) -> tuple[str, ...]:
    """This boot's kernel and initrd, as far as they are there."""
    release = root.get("proc/sys/kernel/osrelease")
    kernels = (f"boot/vmlinuz-{release}", f"usr/lib/modules/{release}/vmlinuz")
    initrds = (f"boot/initrd.img-{release}", f"boot/initramfs-{release}.img")
    return first_there(root, (kernels, initrds))


def default(root: Sysroot, journaled: Journaled) -> Default:
    """This boot's own kernel and line, without what its loader put there."""
    return Default(portable(" ".join(root.get_text("proc/cmdline").split())), _loads(root))


def entry(root: Sysroot, trial_id: str, line: str) -> OnceEntry:
    """What to load, as a file for the program that loads it. UsageError where the kernel would cut the line."""
    if too_long := length_problem(line):
        raise UsageError(too_long)
    kernel, initrd = _loads(root)
    text = f"linux /{kernel}\ninitrd /{initrd}\noptions {line}\n"
    if not text.isascii():
        raise UsageError("the line of this boot has more than ASCII in it")
    return OnceEntry((Write("file", f"{_PLACE}/{entry_name(trial_id)}.conf", text),), "load-kexec", "unload-kexec")


def armed(root: Sysroot) -> str:
    """What is loaded for `systemctl kexec`: our entry, or somebody's kernel; "" for nothing."""
    if root.get(_LOADED, "0") == "0":
        return ""
    return next(iter(_standing(root)), "a kernel that somebody loaded with kexec")


def _standing(root: Sysroot) -> list[str]:
    return [name for name in root.listdir(_PLACE) if is_our_entry(name)]


def loading(root: Sysroot) -> list[tuple[str, ...]]:
    """What loads our entry."""
    found: list[tuple[str, ...]] = []
    for name in _standing(root):
        fields = {key: values[-1] for key, values in parse_fields(root.get_text(f"{_PLACE}/{name}")).items()}
        words = (f"--initrd={fields['initrd']}", f"--command-line={fields['options']}")
        found.append((_program(root), "--load", *words, fields["linux"]))
    return found


def unloading(root: Sysroot) -> list[tuple[str, ...]]:
    """What unloads it, where it is ours."""
    return [(_program(root), "--unload")] if is_our_entry(armed(root)) else []


KEXEC = Once(refusals, default, entry, armed)
