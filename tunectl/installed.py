"""Where this installation lies: its programs and files are beside the package, where pip put that."""

from __future__ import annotations

import os
import site
import sys
import sysconfig

_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def scripts() -> str:
    """The directory of tunectl and tunectl-probe."""
    return _place("scripts", "bin")


def data() -> str:
    """The directory below which share/tunectl lies."""
    return _place("data", "")


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
    # With expand=True, sysconfig would read Python's whole build configuration to fill in what sys knows already.
    path = sysconfig.get_path(scheme_name, expand=False)
    return os.path.normpath(path.format(base=sys.prefix, platbase=sys.exec_prefix))
