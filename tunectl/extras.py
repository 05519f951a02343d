"""What only some commands need, and an installation may be without: the extras of pyproject.toml.

docs/dependencies.md says why each dependency is there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from tunectl.errors import TunectlError

# a distribution's module -> the extra that brings it
EXTRAS = {
    "jinja2": "report",
    "junitparser": "report",
    "markupsafe": "report",  # what jinja2 itself needs
    "prometheus_client": "prometheus",
}


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Within it, the import of what is not installed is a TunectlError that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            raise
        extra = EXTRAS[module]
        hint = f"it comes with the extra '{extra}': pip install {shlex.join(_requirements(extra))}"
        raise TunectlError(f"{what} needs {module}, which is not installed", hint) from None


def _requirements(extra: str) -> list[str]:
    """What an extra brings. Not by our own name: on PyPI that is another project's."""
    wanted = re.compile(rf"extra == ['\"]{extra}['\"]")
    return [one.partition(";")[0].strip() for one in metadata.requires("tunectl") or () if wanted.search(one)]


def broken(error: ModuleNotFoundError) -> str:
    """The sentence where a package is missing that no installation is without."""
    return f"the Python package {error.name} is not installed, and tunectl needs it: install tunectl again"
