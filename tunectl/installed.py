"""This installation: where its programs and files lie (beside the package, where pip put that), and what it may lack.

Only some commands need the extras of pyproject.toml. docs/dependencies.md says why each dependency is there.

On PyPI `tunectl` is another project, which installs a package and a program of that name, too: where both were
installed, files of one lie among those of the other. `python -m tunectl.installed` says whether ours are as pip left
them, in one line and with exit code 1 where they are not; our units and the Ansible role ask it before they start us.
"""

import os
import re
import site
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tunectl.errors import TunectlError

# a distribution's module -> the extra that brings it
EXTRAS = {
    "jinja2": "report",
    "duckdb": "fleet",
    "junitparser": "report",
    "markupsafe": "report",  # what jinja2 itself needs
    "prometheus_client": "prometheus",
}
DISTRIBUTION = "tunectl-host"
HOST_FILE = "/etc/tunectl/host.toml"
STATE = "/var/lib/tunectl"  # journal and lock
_AGAIN = f"nothing is done: pip uninstall tunectl, then install {DISTRIBUTION} again (pip install --force-reinstall)"
_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def scripts() -> str:
    """The directory of tunectl and tunectl-probe."""
    return _place("scripts", "bin")


def data() -> str:
    """The directory below which share/tunectl lies."""
    return _place("data", "")


def read_shipped(name: str) -> str:
    """The text of a file for another program (a unit, completions), by its path below tunectl/shipped."""
    import pkgutil  # slow to import: few commands need a file

    data = pkgutil.get_data("tunectl", f"shipped/{name}")
    assert data is not None, name
    return data.decode()


def isolating() -> str:
    """The option of Python with which it takes nothing from the environment and the working directory, and finds us.

    -I looks into no user's own directory either, where `pip install --user` put us.
    """
    return "-EP" if _is_of_one_user() else "-I"


def _is_of_one_user() -> bool:
    return bool(site.ENABLE_USER_SITE) and site.getusersitepackages() == _PACKAGES


def _place(scheme_name: str, beside: str) -> str:
    """In a directory of sysconfig's scheme; `pip install --user` and `--target` have others."""
    if os.path.isfile(os.path.join(_PACKAGES, "bin", "tunectl-probe")):  # --target puts all side by side
        return os.path.normpath(os.path.join(_PACKAGES, beside))
    if _is_of_one_user():
        return os.path.normpath(os.path.join(site.getuserbase(), beside))
    import sysconfig  # slow to import: only who starts a program of ours needs its place

    # With expand=True, sysconfig would read Python's whole build configuration to fill in what sys knows already.
    path = sysconfig.get_path(scheme_name, expand=False)
    return os.path.normpath(path.format(base=sys.prefix, platbase=sys.exec_prefix))


def stranger() -> str:
    """The sentence where the other project's metadata stands beside our package; "" where it does not."""
    for name in os.listdir(_PACKAGES):
        if not (name.startswith("tunectl-") and name.endswith(".dist-info")):
            continue
        record = os.path.join(_PACKAGES, name, "RECORD")
        if os.path.exists(record):
            with open(record, encoding="utf-8") as stream:
                if "tunectl-probe," in stream.read():  # ours, of before its distribution had another name
                    continue
        other = name.removesuffix(".dist-info").replace("-", " ")
        return f"{other} of another project is installed among our files in {_PACKAGES}, and {_AGAIN}"
    return ""


def altered() -> str:
    """The sentence where a file of our package is not as pip left it, by its RECORD; "" where all are.

    A .deb or .rpm has no RECORD: what is installed is the package manager's to say (dpkg --verify, rpm -V).
    """
    import base64  # only for this, which no command asks
    import csv
    import hashlib
    from importlib import metadata

    try:
        ours = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return f"{sys.prefix} has no {DISTRIBUTION}, and {_AGAIN}"
    record = ours.read_text("RECORD")
    if record is None and (ours.read_text("INSTALLER") or "").strip() in ("deb", "rpm"):
        return ""
    for path, digest, *_ in csv.reader((record or "").splitlines()):
        if not path.startswith("tunectl/") or not digest:
            continue
        place = ours.locate_file(path)
        method, _, wanted = digest.partition("=")
        try:
            with open(str(place), "rb") as stream:
                found = hashlib.new(method, stream.read(), usedforsecurity=False).digest()
        except OSError as error:
            return f"{place}: {error.strerror}, and {_AGAIN}"
        if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != wanted:
            return f"{place} is not the file that was installed, and {_AGAIN}"
    return stranger()


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Within it, the import of what is not installed is a TunectlError that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        import shlex  # these are slow to import: only for the message
        from importlib import metadata

        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            raise
        # What the extra brings, not ourselves with the extra: pip would look for us on PyPI.
        wanted = re.compile(rf"extra == ['\"]{EXTRAS[module]}['\"]")
        needs = metadata.requires(DISTRIBUTION) or ()
        brings = [each.partition(";")[0].strip() for each in needs if wanted.search(each)]
        hint = f"it comes with the extra '{EXTRAS[module]}': pip install {shlex.join(brings)}"
        raise TunectlError(f"{what} needs {module}, which is not installed", hint) from None


def broken(error: ModuleNotFoundError) -> str:
    """The sentence where a package is missing that no installation is without."""
    return f"the Python package {error.name} is not installed, and tunectl needs it: install tunectl again"


if __name__ == "__main__":
    if wrong := altered():
        sys.exit(f"tunectl: {wrong}")
