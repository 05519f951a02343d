"""What a package installs, laid out below a directory as it stands below / later."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import bill
from targets import HERE, ROOT, ReleaseError, System, pip_options, run

from tunectl import __version__
from tunectl.installed import DISTRIBUTION
from tunectl.units import units_of

PREFIX = "usr/lib/tunectl"
DOCUMENTS = "usr/share/doc/tunectl"
MANUALS = "tunectl.cli.manuals"  # writes the man pages and completions, laid out as below /usr
_PROGRAMS = ("tunectl", "tunectl-probe")
_FOR_OTHERS = ("alertmanager", "clickhouse", "grafana", "prometheus")  # for other programs: usr/share/tunectl
_SERVICES = ("monitor", "repair")  # the unit of apply is apply's own to write, and restore's to remove
_UNIT_HEAD = "# Part of the package tunectl. Site settings belong in a drop-in: systemctl edit UNIT\n"
_MAINTAINER = "tunectl's maintainers <maintainers@tunectl.example>"


class Edition(NamedTuple):
    """One package: for which system and machine, of which version, made of which wheel, and when."""

    system: System
    machine: str
    version: str  # as the package managers compare it
    wheel: Path
    wheels: Path  # what the wheel needs
    probe: Path  # that runs on this machine: the manual pages have what it says of itself
    epoch: int


def maintainer() -> str:
    """Who answers for the packages: $TUNECTL_MAINTAINER, or a placeholder nobody can write to."""
    return os.environ.get("TUNECTL_MAINTAINER") or _MAINTAINER


def package_version(version: str) -> str:
    """1.0.0~rc1 for 1.0.0rc1: dpkg and rpm sort a tilde before the release itself, and two before one."""
    return re.sub(r"(?<=\d)(a|b|rc)(?=\d)", r"~\1", version).replace(".dev", "~~dev")


def lay_out(root: Path, edition: Edition) -> None:
    """Everything, below `root`."""
    _environment(root, edition)
    programs = root / "usr/bin"
    programs.mkdir(parents=True)
    for name in _PROGRAMS:
        (programs / name).symlink_to(f"../lib/tunectl/bin/{name}")
    _units(root / "usr/lib/systemd/system")
    _manuals(root / "usr", edition)
    _documents(root, edition)
    for name in _FOR_OTHERS:
        shutil.copytree(ROOT / "tunectl/shipped" / name, root / "usr/share/tunectl" / name)
    example = root / "etc/tunectl/host.toml.example"
    example.parent.mkdir(parents=True)
    shutil.copyfile(HERE / "host.toml.example", example)
    _settle(root / PREFIX, edition.system)
    _open_to_all(root)


def packages_in(root: Path, system: System) -> Path:
    """Where the virtual environment has its distributions."""
    return root / PREFIX / "lib" / f"python{system.python}" / "site-packages"


def _environment(root: Path, edition: Edition) -> None:
    """A virtual environment for a Python that may not be here: what pip unpacks, and the three files venv writes."""
    system, prefix = edition.system, root / PREFIX
    packages = packages_in(root, system)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-index", "--no-compile"]
    there = [*pip_options(system, edition.machine), "--target", str(packages)]
    found = ["--find-links", str(edition.wheels)]
    run([*pip, *there, *found, "--no-deps", "--require-hashes", "-r", str(HERE / "runtime.txt")])
    for name in ("bin", "share"):
        shutil.rmtree(packages / name, ignore_errors=True)  # of the others; only tunectl is called by name
    run([*pip, *there, "--no-deps", str(edition.wheel)])
    for name in ("bin", "share"):
        (packages / name).rename(prefix / name)
    (prefix / "bin/python3").symlink_to(f"../../..{system.program.removeprefix('/usr')}")
    _start_with(prefix / "bin/tunectl", f"#!/{PREFIX}/bin/python3\n")
    home = os.path.dirname(system.program)
    lines = (f"home = {home}", "include-system-site-packages = false", f"version = {system.python}")
    (prefix / "pyvenv.cfg").write_text("\n".join(lines) + "\n")


def _start_with(script: Path, first: str) -> None:
    script.write_text(first + script.read_text().partition("\n")[2])


def _units(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in _SERVICES:
        for unit in units_of(name, (f"/{PREFIX}/bin/python3", "-I", f"/{PREFIX}/bin/tunectl")):
            (folder / os.path.basename(unit.path)).write_text(_UNIT_HEAD + unit.text.partition("\n")[2])


def _manuals(usr: Path, edition: Edition) -> None:
    """What the product writes about itself; man pages are compressed as Debian's and RHEL's own."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "SOURCE_DATE_EPOCH": str(edition.epoch)}
    variables["TUNECTL_PROBE"] = str(edition.probe)
    run([sys.executable, "-m", MANUALS, str(usr)], variables=variables)
    pages = sorted((usr / "share/man").glob("man*/*.[1-9]"))
    if not pages:
        raise ReleaseError(f"{MANUALS} wrote no manual page")
    for page in pages:
        _compress(page)
    zsh = usr / "share/zsh/vendor-completions"
    if edition.system.packager == "rpm" and zsh.is_dir():
        zsh.rename(zsh.with_name("site-functions"))


def _compress(path: Path) -> None:
    packed = gzip.compress(path.read_bytes(), 9, mtime=0)
    path.with_name(f"{path.name}.gz").write_bytes(packed)
    path.unlink()


def _documents(root: Path, edition: Edition) -> None:
    folder = root / DOCUMENTS
    folder.mkdir(parents=True)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        # All pages lie in one directory here.
        text = page.read_text().replace("](docs/", "](").replace("](../README.md", "](README.md")
        (folder / page.name).write_text(text.replace("](CHANGELOG.md", "](changelog.gz"))
        for name in re.findall(r"\]\(([\w-]+\.(?:json|png|svg))\)", text):
            shutil.copyfile(ROOT / "docs" / name, folder / name)
    for name in ("schema", "reference"):
        shutil.copytree(ROOT / "docs" / name, folder / name)
    shutil.copyfile(ROOT / "CHANGELOG.md", folder / "changelog")
    _compress(folder / "changelog")
    packages = packages_in(root, edition.system)
    parts = [*bill.linked(), *bill.bundled(packages)]
    name = f"tunectl-{edition.system.name}-{edition.machine}.cdx.json"
    bill.write(folder / name, __version__, parts, edition.epoch)
    (folder / "copyright").write_text(_copyright(packages))
    if edition.system.packager == "deb":
        overrides = root / "usr/share/lintian/overrides/tunectl"
        overrides.parent.mkdir(parents=True)
        shutil.copyfile(HERE / "lintian-overrides", overrides)


def _copyright(packages: Path) -> str:
    """Debian's machine-readable form. Each bundled distribution keeps its own licence text beside it."""
    text = (HERE / "copyright").read_text()
    for one in sorted(metadata.distributions(path=[str(packages)]), key=lambda one: one.name.lower()):
        if one.name == DISTRIBUTION:
            continue
        top = sorted({path.parts[0] for path in one.files or () if path.parts[0] not in ("..", "bin")})
        (own,) = (name for name in top if name.endswith(".dist-info"))
        files = "\n ".join(f"{PREFIX}/lib/*/site-packages/{name}" for name in top)
        text += f"\nFiles: {files}\nCopyright: the authors of {one.name}\nLicense: {bill.license_of(one)}\n"
        text += f" The text is in {PREFIX}/lib/*/site-packages/{own}.\n"
    return text


def _settle(prefix: Path, system: System) -> None:
    """The package manager keeps the list of files; pip's own names this machine's paths."""
    for info in prefix.glob("lib/*/site-packages/*.dist-info"):
        for name in ("RECORD", "REQUESTED", "direct_url.json"):
            (info / name).unlink(missing_ok=True)
        (info / "INSTALLER").write_text(f"{system.packager}\n")


def _open_to_all(root: Path) -> None:
    """Everybody may read it, and only root write, whatever the umask here is."""
    for path in sorted(root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
