"""Builds tunectl-probe while the wheel is built, and puts it beside the `tunectl` script. Not part of the wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NATIVE = os.path.join("tunectl", "probe", "native")


class ProbeBuildHook(BuildHookInterface[Any]):
    """`make`, a platform tag, and one program among the scripts."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles in a directory of its own: nothing is left in the source tree."""
        if self.target_name != "wheel":
            return
        if not shutil.which("make") or not shutil.which(os.environ.get("CC", "cc")):
            raise SystemExit(
                "tunectl needs a C compiler and make: apt install gcc make libc6-dev, or dnf install gcc make"
            )
        self._directory = tempfile.mkdtemp(prefix="tunectl-probe-")
        make = ["make", "-s", "-C", os.path.join(self.root, _NATIVE)]
        # The version is the package's own, so that the program and the documents it writes say the same.
        variables = [f"OUT={self._directory}", f"BUILD={self._directory}/build", f"VERSION={self.metadata.version}"]
        subprocess.run([*make, *variables], check=True)
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["shared_scripts"][os.path.join(self._directory, "tunectl-probe")] = "tunectl-probe"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The program is in the wheel now."""
        if self.target_name == "wheel":
            shutil.rmtree(self._directory, ignore_errors=True)
