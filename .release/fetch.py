"""The one step that needs a network: every wheel that a package holds, and nFPM, pinned by their hashes."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from targets import ARCHITECTURES, HERE, SYSTEMS, ReleaseError, pip_options, run

NFPM = "github.com/goreleaser/nfpm/v2/cmd/nfpm"
# The line of its rpm writer that names a file in the payload.
_FROM_THE_ROOT, _FROM_HERE = "\t\tName:  f.Name,\n", '\t\tName:  "." + f.Name,\n'


def fetch(cache: Path) -> None:
    """Fills the cache; what is there already is left."""
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps"]
    locked = ["--require-hashes", "-r", str(HERE / "runtime.txt")]
    for system in SYSTEMS:
        for machine in ARCHITECTURES:
            print(f"fetch: wheels for {system.name}, {machine}", flush=True)
            run([*pip, *locked, *pip_options(system, machine), "-d", str(cache / "wheels")])
    print("fetch: nFPM", flush=True)
    _build_nfpm(cache)


def _build_nfpm(cache: Path) -> None:
    """nFPM, which then names a payload's files as rpm does: ./usr/..., not /usr/...

    By the name from the root on, `rpm2cpio | cpio -id`, and rpmlint with it, would write over the system of whoever
    unpacks the package (nFPM's issue 1122).
    """
    variables = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "CGO_ENABLED": "0"}
    go = str(Path(sys.executable).parent / "go")
    with tempfile.TemporaryDirectory(prefix="tunectl-nfpm-") as work:
        for lock in ("go.mod", "go.sum"):
            shutil.copy(HERE / lock, work)
        run([go, "mod", "vendor"], Path(work), variables)
        packer = Path(work, "vendor/github.com/google/rpmpack/rpm.go")
        before, found, after = packer.read_text().partition(_FROM_THE_ROOT)
        if not found:
            raise ReleaseError(f"rpmpack has no line {_FROM_THE_ROOT.strip()!r}: does it write ./ by itself now?")
        packer.write_text(before + _FROM_HERE + after)
        build = [go, "build", "-mod=vendor", "-trimpath", "-buildvcs=false", "-o", str(cache / "nfpm"), NFPM]
        run(build, Path(work), variables)
