"""The one step that needs a network: every wheel that a package holds, and nFPM, pinned by their hashes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from targets import ARCHITECTURES, HERE, SYSTEMS, pip_options, run

NFPM = "github.com/goreleaser/nfpm/v2/cmd/nfpm"


def fetch(cache: Path) -> None:
    """Fills the cache; what is there already is left."""
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download", "--no-deps"]
    locked = ["--require-hashes", "-r", str(HERE / "runtime.txt")]
    for system in SYSTEMS:
        for machine in ARCHITECTURES:
            print(f"fetch: wheels for {system.name}, {machine}", flush=True)
            run([*pip, *locked, *pip_options(system, machine), "-d", str(cache / "wheels")])
    print("fetch: nFPM", flush=True)
    variables = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
    go = [str(Path(sys.executable).parent / "go"), "build", "-trimpath", "-buildvcs=false"]
    run([*go, "-o", str(cache / "nfpm"), NFPM], HERE, variables)
