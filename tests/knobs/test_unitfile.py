"""The unit that apply writes, read by its real reader."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tunectl.knobs.drivers.unitfile import render


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed (Debian: systemd)")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "tunectl-apply.service"
    unit.write_text(render(("/bin/true", "--host", '/a "quoted" 100% $path.toml')))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "tunectl-apply" in line]
    assert ours == []
