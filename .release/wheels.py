"""The source archive, and from what it holds a wheel for each architecture, whose tag auditwheel confirms."""

from __future__ import annotations

import json
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import bill
from targets import ROOT, ReleaseError, run

_BUILD = [sys.executable, "-m", "build", "--no-isolation"]


def build(out: Path, work: Path, version: str, epoch: int, machines: list[str]) -> dict[str, Path]:
    """The wheel of each of these machines, in `out`; the source archive is beside them."""
    run([*_BUILD, "--sdist", "--outdir", str(out), str(ROOT)], variables=_environment(epoch))
    (archive,) = out.glob("tunectl_host-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(work, filter="data")
    source = work / archive.name.removesuffix(".tar.gz")
    document = work / "tunectl.cdx.json"
    bill.write(document, version, bill.linked(), epoch)
    return {machine: _wheel(source, out, machine, document, epoch) for machine in machines}


def probe(made: dict[str, Path], work: Path) -> Path:
    """The probe that runs on this machine, out of its wheel."""
    machine = os.uname().machine
    if machine not in made:
        raise ReleaseError(f"a release is made on one of {', '.join(made)}, and this is {machine}")
    with zipfile.ZipFile(made[machine]) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/scripts/tunectl-probe"))
        program = Path(archive.extract(name, work / "probe"))
    program.chmod(0o755)
    return program


def _environment(epoch: int) -> dict[str, str]:
    """What decides a build, and nothing of the caller's that would."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CFLAGS", "LDFLAGS", "PYTHONPATH")}
    return {**kept, "SOURCE_DATE_EPOCH": str(epoch)}


def _wheel(source: Path, out: Path, machine: str, document: Path, epoch: int) -> Path:
    compiler = {"CC": f"{sys.executable} -m ziglang cc -target {machine}-linux-musl", "TUNECTL_SBOM": str(document)}
    run([*_BUILD, "--wheel", "--outdir", str(out), str(source)], source, {**_environment(epoch), **compiler})
    (wheel,) = out.glob(f"tunectl_host-*_{machine}.whl")
    _audit(wheel)
    return wheel


def _audit(wheel: Path) -> None:
    """The wheel says that it runs everywhere; auditwheel has to find nothing in it that would not."""
    said = json.loads(run([sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)]))
    if wanted := {**said["versioned_symbols"], **said["external_libs"]}:
        raise ReleaseError(f"{wheel.name} says that it runs everywhere, and needs {wanted}")
