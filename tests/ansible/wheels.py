"""Wheels that are quick to make: a tunectl that only tells its version, what it needs, and the pip of this Python."""

import base64
import hashlib
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import tunectl as tunectl_package

_OURS = Path(tunectl_package.__file__).parent
_MAIN = """import sys
from tunectl_needs import WORD
def main():
    print("tunectl", "{version}", WORD)
"""


def make(folder: Path, name: str, version: str, files: dict[str, str], needs: str = "") -> Path:
    """A wheel of pure Python. https://packaging.python.org/specifications/binary-distribution-format"""
    info = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in contents.items():
            archive.writestr(inner, text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def tunectl(folder: Path, version: str, programs: Sequence[str] = ("tunectl", "tunectl-probe")) -> Path:
    """A tunectl that needs another wheel."""
    entry = f"tunectl_host-{version}.dist-info/entry_points.txt"
    ours = {f"tunectl/{name}.py": (_OURS / f"{name}.py").read_text() for name in ("__init__", "errors", "installed")}
    files = {
        **ours,
        "tunectl_dummy.py": _MAIN.format(version=version),
        entry: "[console_scripts]\n" + "".join(f"{name} = tunectl_dummy:main\n" for name in programs),
    }
    return make(folder, "tunectl_host", version, files, "tunectl-needs")


def wheelhouse(folder: Path) -> Path:
    """What it needs, and pip. Skips where this Python does not bring a pip along."""
    make(folder, "tunectl_needs", "1.0", {"tunectl_needs.py": "WORD = 'works'\n"})
    places = [Path("/usr/share/python-wheels")]  # Debian takes them out of ensurepip
    try:
        import ensurepip
    except ImportError:
        pass
    else:
        places.append(Path(ensurepip.__file__).parent / "_bundled")
    found = [wheel for place in places for wheel in place.glob("pip-*.whl")]
    if not found:
        pytest.skip("this Python brings no pip wheel (Debian: python3-venv)")
    shutil.copy(found[0], folder)
    return folder
