"""The disk image: a Debian system that its boot loader boots, built once for each content of its recipe."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import foreign
from .machine import BOARDS
from .platforms import LOADERS, SUITES, Platform
from .shell import HERE, LabError, cache, digest, missing_programs, run

DEBIAN = HERE / "debian"
DISK_MIB = 4096
PARTITION_START = 1 << 20
ESP_MIB = 256  # the EFI system partition, which holds two unified images while one takes the other's place


@dataclass(frozen=True)
class Image:
    """A finished image: raw disk, and the key that opens it by ssh. Platforms that differ in nothing else share one."""

    folder: Path
    platform: Platform

    @property
    def disk(self) -> Path:
        return self.folder / "disk.raw"

    @property
    def key(self) -> Path:
        return self.folder / "id_ed25519"


Finish = Callable[[Image, str], None]


def packages(platform: Platform) -> list[str]:
    """What debootstrap installs."""
    asked = (platform.kernel, *SUITES[platform.suite].packages, *LOADERS[platform.loader].packages)
    return [*(DEBIAN / "packages.txt").read_text().split(), *asked]


def scripts(platform: Platform) -> list[Path]:
    """What the guest runs at its first boot, one after the other in one shell, to set up its boot loader."""
    names = [*(["esp"] if platform.uefi else []), platform.loader]
    return [DEBIAN / f"finish-{name}.sh" for name in names]


def recipe(platform: Platform) -> str:
    """The content hash that names the image: everything that goes into it, except the packages' versions."""
    others = set(DEBIAN.glob("finish-*")) - set(scripts(platform))
    files = sorted(path for path in DEBIAN.rglob("*") if path.is_file() and path not in others)
    files += [HERE / "image.py", HERE / "foreign.py"]
    named = ((str(path.relative_to(HERE)).encode(), path.read_bytes()) for path in files)
    asked = (platform.machine.architecture, platform.suite, platform.loader, *packages(platform))
    return digest([" ".join(asked).encode(), *(part for pair in named for part in pair)])


def build(platform: Platform, finish: Finish, log: Callable[[str], None]) -> Image:
    """The platform's image by today's recipe, built if the cache lacks it.

    finish(image, kernel_arguments) boots the half-made image from image.folder's vmlinuz and initrd and sets up its
    boot loader.
    """
    image = Image(cache() / "images" / recipe(platform), platform)
    with locked(cache() / "build.lock"):
        if image.folder.exists():
            return image
        _require_builder()
        work = image.folder.with_suffix(".part")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        half = Image(work, platform)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tunectl-lab", "-f", half.key])
        root = work / "root"
        log(f"installing Debian {platform.suite} with {platform.kernel}")
        bootstrap(root, platform.suite, platform.machine.architecture, packages(platform), cache() / "debs")
        _customise(root, half)
        log("making the disk")
        _make_disk(root, half)
        shutil.rmtree(root)
        log(f"first boot: {platform.loader}")
        finish(half, f"root=LABEL=lab console={platform.machine.board.console} quiet mitigations=off norandmaps")
        work.rename(image.folder)
    return image


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file: two test workers must not build the same thing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _require_builder() -> None:
    if missing := missing_programs():
        raise LabError(f"not installed: {', '.join(missing)}; see tests/lab/packages.txt")
    if os.geteuid() != 0:
        raise LabError("only root can build the image (debootstrap makes devices and changes roots)")


def mirror(suite: str) -> str:
    """The package mirror: $TUNECTL_LAB_MIRROR, or the one this machine's own apt uses: for that suite, or another."""
    if configured := os.environ.get("TUNECTL_LAB_MIRROR"):
        return configured
    fields = "$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)"
    known = {}
    for line in run(["apt-get", "indextargets", "--format", fields, "Identifier: Packages"]).splitlines():
        origin, codename, component, uri = line.split("|")
        if (origin, component) == ("Debian", "main"):
            known[codename] = uri
    for name in (suite, *SUITES):  # a mirror has all of them
        if name in known:
            return known[name]
    raise LabError(f"apt knows no mirror of Debian {suite}; name one in TUNECTL_LAB_MIRROR")


def bootstrap(root: Path, suite: str, architecture: str, asked: Sequence[str], archives: Path) -> None:
    """A Debian in a new folder; the packages that come from the mirror are kept in archives."""
    archives.mkdir(parents=True, exist_ok=True)
    native = foreign.is_native(architecture)
    words = ["--variant=minbase", f"--arch={BOARDS[architecture].debian}", f"--cache-dir={archives}"]
    words += [f"--include={','.join(asked)}", *([] if native else ["--foreign"])]
    run(["debootstrap", *words, suite, root, mirror(suite)], env={"INITRD": "No", "DEBIAN_FRONTEND": "noninteractive"})
    if not native:
        shorten_list(root)
        run(foreign.chroot(architecture, root, "/debootstrap/debootstrap", "--second-stage"), timeout=3600)


def shorten_list(root: Path) -> None:
    """Leave the chosen packages in the mirror's list.

    The second stage reads the list again for each package that others pre-depend on, with an emulated Perl: of all of
    Debian 13, that takes a minute or two each time.
    """
    chosen = {line.split()[0] for line in (root / "debootstrap/debpaths").read_text().splitlines()}
    for file in (root / "var/lib/apt/lists").glob("*_Packages"):
        entries = file.read_text().split("\n\n")
        named = ((entry.partition("\n")[0].removeprefix("Package: "), entry) for entry in entries)
        file.write_text("".join(f"{entry}\n\n" for name, entry in named if name in chosen))


def _customise(root: Path, image: Image) -> None:
    run(["cp", "-R", "--no-preserve=all", f"{DEBIAN}/root/.", root])
    shutil.copy(image.key.with_suffix(".pub"), root / "lab.pub")
    shutil.copy(DEBIAN / "customise.sh", root / "customise.sh")
    run(foreign.chroot(image.platform.machine.architecture, root, "/bin/sh", "/customise.sh"), timeout=3600)
    (root / "customise.sh").unlink()


def _make_disk(root: Path, image: Image) -> None:
    """One ext4 partition, filled without mounting anything.

    Before it there is the gap that GRUB's core image needs, or an EFI system partition, which the guest formats.
    """
    for name in ("vmlinuz", "initrd.img"):
        shutil.copy(next((root / "boot").glob(f"{name}-*")), image.folder / name)
    with image.disk.open("wb") as file:
        file.truncate(DISK_MIB << 20)
    start = PARTITION_START
    layout = f"label: dos\nstart={start // 512}, type=83, bootable\n"
    if image.platform.uefi:
        start += ESP_MIB << 20
        layout = (
            f"label: gpt\nstart={PARTITION_START // 512}, size={ESP_MIB}MiB, type=U\nstart={start // 512}, type=L\n"
        )
    (image.folder / "layout").write_text(layout)
    run(["sh", "-c", 'sfdisk -q "$0" <"$1"', image.disk, image.folder / "layout"])
    size = DISK_MIB - (start >> 20) - 1  # GPT ends with a copy of itself
    run(["mkfs.ext4", "-q", "-L", "lab", "-d", root, "-E", f"offset={start}", image.disk, f"{size}M"])
