"""tunectl service: units below a root, atomically, and never over what somebody else wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import complaint
from tests.cli.test_commands import valid
from tests.ran import Ran
from tests.trees import differences, picture

Run = Callable[..., Ran]
SYSTEM = "etc/systemd/system"
FILES = {
    "monitor": ["tunectl-monitor.service"],
    "apply": ["tunectl-apply.service"],
    "repair": ["tunectl-repair.path", "tunectl-repair.service"],
}


@pytest.mark.parametrize("name", FILES)
def test_install_and_remove_leave_nothing(tunectl: Run, lab4: Path, name: str) -> None:
    before = picture(lab4)
    shown = valid("service", tunectl("service", "show", name, "--root", lab4, "--format", "json").out)
    assert {unit["state"] for unit in shown["units"]} == {"absent"}
    assert not differences(before, lab4)
    made = valid("service", tunectl("service", "install", name, "--root", lab4, "--format", "json").out)
    assert [unit["path"] for unit in made["units"]] == [f"/{SYSTEM}/{file}" for file in FILES[name]]
    for unit in made["units"]:
        path = lab4 / unit["path"].lstrip("/")
        assert (path.read_text(), path.stat().st_mode & 0o777) == (unit["text"], 0o644)
    assert made["ran"] == []
    assert "not run on a recorded host: systemctl daemon-reload" in made["notes"]
    again = valid("service", tunectl("service", "install", name, "--root", lab4, "--format", "json").out)
    assert {unit["state"] for unit in again["units"]} == {"unchanged"}
    done = tunectl("service", "remove", name, "--root", lab4)
    assert (done.code, done.err) == (0, "")
    assert f"removed  /{SYSTEM}/{FILES[name][0]}" in done.out
    assert not differences(before, lab4)
    assert tunectl("service", "remove", name, "--root", lab4).code == 0  # nothing there: nothing to do


def test_another_units_file_stays(tunectl: Run, lab4: Path) -> None:
    path = lab4 / SYSTEM / "tunectl-monitor.service"
    path.write_text("[Service]\nExecStart=/bin/true\n")
    for action in ("install", "remove"):
        line = complaint(tunectl("service", action, "monitor", "--root", lab4), 1)
        assert line == f"{path} was not written by tunectl (move it away first)"
    assert path.read_text() == "[Service]\nExecStart=/bin/true\n"


def test_an_earlier_one_of_ours_is_replaced(tunectl: Run, lab4: Path) -> None:
    assert tunectl("service", "install", "monitor", "--root", lab4).code == 0
    assert tunectl("service", "install", "monitor", "--repair", "--root", lab4).out.startswith("written")
    text = (lab4 / SYSTEM / "tunectl-monitor.service").read_text()
    assert "\nExecStart=" in text
    assert " monitor --repair\n" in text


def test_what_apply_wrote_is_ours(tunectl: Run, lab4: Path) -> None:
    assert tunectl("apply", "--yes", "--root", lab4).code in (0, 4)
    made = tunectl("service", "install", "apply", "--root", lab4)
    assert made.out.startswith("unchanged"), made.out


def test_a_link_does_not_lead_out_of_the_root(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    os.symlink(outside, lab4 / SYSTEM / "tunectl-monitor.service")
    done = tunectl("service", "install", "monitor", "--root", lab4)
    assert done.code == 1
    assert list(outside.iterdir()) == []


def test_a_host_without_systemd(tunectl: Run, tmp_path: Path) -> None:
    line = complaint(tunectl("service", "install", "monitor", "--root", tmp_path), 1)
    assert line.endswith("no such directory (this host is not run by systemd)")
