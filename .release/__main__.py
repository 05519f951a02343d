"""Makes a release: python .release fetch CACHE, then, without a network, python .release build CACHE OUT.

`.ci/release` does both, with the tools of .release/tools.txt.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import packages
import wheels
from fetch import fetch
from stage import Edition, package_version
from targets import ARCHITECTURES, ROOT, SYSTEMS, ReleaseError

import tunectl


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python .release", description=__doc__.partition("\n")[0])
    asked = parser.add_subparsers(dest="step", required=True)
    one = asked.add_parser("fetch", help="what needs a network")
    one.add_argument("cache", type=Path)
    one = asked.add_parser("wheels", help="only the source archive and the wheels; needs nothing fetched but the tools")
    one.add_argument("out", type=Path)
    one.add_argument("--machine", choices=list(ARCHITECTURES), help="only the wheel of this one")
    one = asked.add_parser("build", help="everything")
    one.add_argument("cache", type=Path)
    one.add_argument("out", type=Path)
    options = parser.parse_args()
    try:
        if options.step == "fetch":
            fetch(options.cache.absolute())
        else:
            building = options.step == "build"
            machines = [*ARCHITECTURES] if building or not options.machine else [options.machine]
            _release(options.out.absolute(), options.cache.absolute() if building else None, machines)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def _release(out: Path, cache: Path | None, machines: list[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise ReleaseError(f"{out} is not empty: name another folder, or remove it")
    epoch = _epoch()
    with tempfile.TemporaryDirectory(prefix="tunectl-release-") as work:
        _say("the source archive and the wheels")
        made = wheels.build(out, Path(work), tunectl.__version__, epoch, machines)
        if cache:
            _packages(out, Path(work), cache, made, epoch)
    _sums(out)


def _packages(out: Path, work: Path, cache: Path, made: dict[str, Path], epoch: int) -> None:
    version = package_version(tunectl.__version__)
    probe = wheels.probe(made, work)
    for system in SYSTEMS:
        for machine in ARCHITECTURES:
            _say(f"the .{system.packager} for {system.name}, {machine}")
            edition = Edition(system, machine, version, made[machine], cache / "wheels", probe, epoch)
            place = work / f"{system.name}-{machine}"
            place.mkdir()
            packages.build(out, place, cache / "nfpm", edition)


_BEGAN = time.monotonic()


def _say(text: str) -> None:
    print(f"release: {time.monotonic() - _BEGAN:5.0f} s  {text}", flush=True)


def _epoch() -> int:
    """The moment that every file of the release bears: $SOURCE_DATE_EPOCH, or the commit's."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    argv = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError("this tree is no git repository: set SOURCE_DATE_EPOCH to the moment of the release")
    return int(done.stdout)


def _sums(out: Path) -> None:
    """What `sha256sum --check SHA256SUMS` reads."""
    found = sorted(path for path in out.iterdir() if path.name not in ("SHA256SUMS", ".gitignore"))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in found]
    (out / "SHA256SUMS").write_text("".join(lines))
    _say(f"{len(lines)} artefacts in {out}")


if __name__ == "__main__":
    sys.exit(main())
