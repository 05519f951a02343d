"""What an entry for one boot needs of a recorded host, and such an entry written and taken back through the journal."""

from pathlib import Path

from tests.bootloader.trees import write
from tests.tuned import state_of
from tunectl.bootloader.family import Family, OnceEntry, Write
from tunectl.bootloader.oneshot import refusals
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.tuning import apply
from tunectl.tuning.journal import load
from tunectl.tuning.lock import make_directory
from tunectl.tuning.records import Entry

ID = "1a2b3c4d"
NAME = f"A-tunectl-try-{ID}"
MOUNTS = "proc/self/mountinfo"
_VARIABLES = "sys/firmware/efi/efivars"
_LOADER = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_FIRMWARE = "8be4df61-93ca-11d2-aa0d-00e098032b8c"


def mounted(kind: str = "ext4", options: str = "rw") -> str:
    """/proc/self/mountinfo of a host with one file system, on device 8:2."""
    return f"22 1 8:2 / / {options},relatime shared:1 - {kind} /dev/root {options}\n"


def block(**variables: str) -> str:
    """An environment block of GRUB."""
    text = "# GRUB Environment Block\n" + "".join(f"{name}={value}\n" for name, value in variables.items())
    return text.ljust(1024, "#")


def set_variable(root: Sysroot, name: str, value: bytes, *, of_firmware: bool = False) -> None:
    """An EFI variable: four bytes of attributes, then its value."""
    place = Path(root.path(f"{_VARIABLES}/{name}-{_FIRMWARE if of_firmware else _LOADER}"))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(bytes([7, 0, 0, 0]) + value)


def by_systemd_boot(root: Sysroot, features: int = 0x7F) -> None:
    """This boot came from systemd-boot, which takes entries for one boot."""
    write(Path(root.root), {"usr/bin/bootctl": "", "proc/cmdline": "root=/dev/sda2 ro quiet\n"})
    set_variable(root, "LoaderInfo", "systemd-boot 252\0".encode("utf-16-le"))
    set_variable(root, "LoaderFeatures", features.to_bytes(8, "little"))


def attended(root: Sysroot, family: Family) -> list[bool]:
    """Of each refusal, in its order: does somebody at the console help it?"""
    return [refusal.attended for refusal in refusals(root, family.once, "the loader")]


def tried(root: Sysroot, family: Family, words: str = "isolcpus=2-3") -> OnceEntry:
    """The entry for the default line with more words."""
    assert family.once
    assert refusals(root, family.once, "the loader") == ()
    default = family.once.default(root, {})
    assert default
    return family.once.entry(root, ID, f"{default.line} {words}")


def missing(root: Sysroot, path: str) -> list[str]:
    """The directories above a file that are not there, the uppermost first."""
    above = [str(place) for place in Path(path).parents][:-1]
    return [place for place in reversed(above) if not root.exists(place)]


def enter(tree: Path, entry: OnceEntry) -> None:
    """Writes it as apply does: each file journaled before it is written."""
    root, state = WritableSysroot(str(tree)), state_of(Sysroot(str(tree)))
    boot_id = read_identity(root).boot_id
    created = make_directory(state)
    journal = load(state)
    journal.start(boot_id, root.root, created)
    directories = [Write("directory", path, "") for write in entry.writes for path in missing(root, write.path)]
    for kind, path, content, pristine in (*directories, *entry.writes):
        before = apply.current(root, kind, path)
        undo = pristine or "" if kind == "edit" else before or ""
        mode = root.checked_mode(path)
        seq = journal.before(Entry(0, boot_id, kind, path, before, undo, content, mode, (), ()))
        apply.write(root, kind, path, content)
        journal.after(seq, apply.current(root, kind, path) or "")
    journal.end(boot_id)
