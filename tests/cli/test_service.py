"""tunectl service: units below a root, atomically, and never over what somebody else wrote."""

import os
from collections.abc import Callable
from pathlib import Path

from tests.cli.places import complaint
from tests.ran import Ran

Run = Callable[..., Ran]
SYSTEM = "etc/systemd/system"


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
