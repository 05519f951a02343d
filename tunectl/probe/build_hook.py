"""Builds tunectl-probe while the wheel is built, and puts it beside the `tunectl` script. Not part of the wheel.

The compiler is $CC, or cc; $LDFLAGS replaces what links the program statically, where it can be. $TUNECTL_SBOM names a
CycloneDX document for the wheel. The wheel's tag says what the program that was built runs on, by its own headers.
"""

import gzip
import os
import shlex
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
from typing import Any

from elftools.elf.elffile import ELFFile
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NATIVE = os.path.join("tunectl", "probe", "native")
_STATIC = "-static -s"
_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}
_OLDEST = (2, 17)  # PEP 600 knows no older glibc on aarch64


class ProbeBuildHook(BuildHookInterface[Any]):
    """`make`, a platform tag, and one program among the scripts; of a source archive, the links."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles in a directory of its own: nothing is left in the source tree."""
        if self.target_name != "wheel":
            return
        named = os.environ.get("CC") or "cc"
        compiler = shlex.split(named)
        if not shutil.which("make") or not shutil.which(compiler[0]):
            raise SystemExit(
                "tunectl needs a C compiler and make: apt install gcc make libc6-dev, or dnf install gcc make"
            )
        self._directory = tempfile.mkdtemp(prefix="tunectl-probe-")
        make = ["make", "-s", "-C", os.path.join(self.root, _NATIVE)]
        # The version is the package's own, so that the program and the documents it writes say the same.
        variables = [f"OUT={self._directory}", f"BUILD={self._directory}/build", f"VERSION={self.metadata.version}"]
        variables.append(f"CC={named}")  # an empty one of the environment is none
        if "LDFLAGS" not in os.environ and _links_statically(compiler, self._directory):
            variables.append(f"LDFLAGS={_STATIC}")
        subprocess.run([*make, *variables], check=True)
        program = os.path.join(self._directory, "tunectl-probe")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platforms(program)}"
        build_data["shared_scripts"][program] = "tunectl-probe"
        if sbom := os.environ.get("TUNECTL_SBOM"):
            build_data["sbom_files"].append(sbom)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The program is in the wheel now. Hatchling leaves links to directories out of a source archive."""
        if self.target_name == "wheel":
            shutil.rmtree(self._directory, ignore_errors=True)
        else:
            _add_links(artifact_path, self.root)


def platforms(program: str) -> str:
    """The platform tags (PEP 600, PEP 656) of the machines that run this program.

    A static program needs only a kernel. One that is linked against glibc needs the newest version that a symbol of it
    names: an older host's pip then refuses the wheel.
    """
    with open(program, "rb") as file:
        elf = ELFFile(file)
        machine = _MACHINES.get(elf["e_machine"])
        if machine is None:
            return sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if not any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments()):
            return f"manylinux2014_{machine}.manylinux_2_17_{machine}.musllinux_1_1_{machine}"
        wanted = _glibc(elf)
        return "manylinux_{}_{}_{}".format(*max(wanted, _OLDEST), machine) if wanted else f"linux_{machine}"


def _glibc(elf: ELFFile) -> tuple[int, ...]:
    """The newest glibc of which a symbol is wanted; () where it is linked against another C library."""
    section = elf.get_section_by_name(".gnu.version_r")
    names = [one.name for _, wanted in section.iter_versions() for one in wanted] if section else []
    versions = [name.removeprefix("GLIBC_").split(".")[:2] for name in names if name.startswith("GLIBC_2.")]
    return max((tuple(map(int, version)) for version in versions), default=())


def _links_statically(compiler: list[str], directory: str) -> bool:
    """Is there a static C library? RHEL has one only with glibc-static."""
    argv = [*compiler, "-static", "-pthread", "-x", "c", "-o", os.path.join(directory, "static"), "-"]
    text = b"int main(void) { return 0; }\n"
    return subprocess.run(argv, input=text, capture_output=True, check=False).returncode == 0


def _add_links(archive: str, root: str) -> None:
    """Write the archive again, with the root's links to directories; times and owners stay as hatchling sets them."""
    links = sorted(one.name for one in os.scandir(root) if one.is_symlink() and one.is_dir())
    beside = f"{archive}.new"
    with tarfile.open(archive) as old, open(beside, "wb") as file:
        first = old.getmembers()[0]
        with (
            gzip.GzipFile("", "wb", fileobj=file, mtime=first.mtime) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
        ):
            for member in old.getmembers():
                new.addfile(member, old.extractfile(member))
            for name in links:
                member = tarfile.TarInfo(f"{first.name.partition('/')[0]}/{name}")
                member.type, member.linkname = tarfile.SYMTYPE, os.readlink(os.path.join(root, name))
                member.mtime = first.mtime
                new.addfile(member)
    os.replace(beside, archive)
