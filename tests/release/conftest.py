"""The artefacts: the wheels of this tree, made by its own tools, and for the long set a whole release."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import artefacts
from tests.lab.image import locked
from tests.release.releases import EPOCH, ROOT


def release(tree: Path, *words: str) -> Path:
    """`python .release WORDS` in a tree. The last word is the folder it fills."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "ZIG_LIB_DIR": str(artefacts.zig_library())}
    done = subprocess.run(
        [sys.executable, ".release", *words], cwd=tree, env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(words[-1])


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this tree's source archive and its wheel for x86-64: made once, whichever worker asks first."""
    pytest.importorskip("ziglang", reason="zig makes the static probe, and is not installed: .[test] has it")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with locked(shared / "wheels.lock"):
        if not (shared / "wheels").exists():
            release(ROOT, "wheels", "--machine", "x86_64", str(shared / "wheels.part"))
            (shared / "wheels.part").rename(shared / "wheels")
    return shared / "wheels"
