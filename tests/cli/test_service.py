"""tunectl service: units below a root, atomically, and never over what somebody else wrote."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

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


TIMER, AT = "tunectl-preflight.timer", "Mon..Fri 07:45 Europe/London"
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


@needs_systemd
def test_the_timer_keeps_its_time_when_it_is_installed_again(tunectl: Run, lab4: Path) -> None:
    assert tunectl("service", "install", "preflight", "--at", AT, "--root", lab4).code == 0
    timer = lab4 / SYSTEM / TIMER
    assert f"\nOnCalendar={AT}\n" in timer.read_text()
    timer.write_text(timer.read_text().replace("RandomizedDelaySec=300", "RandomizedDelaySec=30"))
    shown = tunectl("service", "show", "preflight", "--root", lab4, "--format", "json").json
    assert [unit["state"] for unit in shown["units"]] == ["outdated", "installed", "installed"]
    assert tunectl("service", "install", "preflight", "--root", lab4).code == 0
    assert f"\nOnCalendar={AT}\n" in timer.read_text()
    assert tunectl("service", "remove", "preflight", "--root", lab4).code == 0
    assert not timer.exists()


@needs_systemd
def test_a_time_that_systemd_does_not_read_installs_nothing(tunectl: Run, lab4: Path) -> None:
    line = complaint(tunectl("service", "install", "preflight", "--at", "Mon..Fry 07:45", "--root", lab4), 2)
    assert line.startswith("--at 'Mon..Fry 07:45': Failed to parse calendar specification")
    assert not (lab4 / SYSTEM / TIMER).exists()
    line = complaint(tunectl("service", "install", "monitor", "--at", "07:45", "--root", lab4), 2)
    assert line == "--at goes with preflight, and monitor has no time"


@needs_systemd
def test_a_preflight_keeps_its_document_and_says_what_was_missed(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "preflight.prom"
    with (lab4 / "etc/tunectl/host.toml").open("a") as host_file:
        host_file.write(f'[report]\nkeep = 2\ntextfile = "{metrics}"\n')
    tunectl("service", "install", "preflight", "--at", "hourly", "--root", lab4)
    place = lab4 / "var/lib/tunectl/preflight"
    first = tunectl("preflight", "--window", "0.01", "--keep", "--root", lab4, "--format", "json")
    (kept,) = place.iterdir()
    assert json.loads(kept.read_text())["host"] == first.json["host"]
    assert 'tunectl_verdict{report="preflight",verdict="unknown"}' in metrics.read_text()
    kept.rename(place / "20260102T030405Z.json")
    second = tunectl("preflight", "--window", "0.01", "--keep", "--root", lab4, "--format", "json").json
    assert any(note.startswith("missed runs of the timer: 49 or more") for note in second["notes"])
    assert len(list(place.iterdir())) == 2


def test_a_kept_document_is_delivered_once(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    folder.mkdir()
    assert tunectl("preflight", "--deliver", "--root", lab4).code == 0
    with (lab4 / "etc/tunectl/host.toml").open("a") as host_file:
        host_file.write(f'[report]\nfolder = "{folder}"\nmount = "/"\n')
    tunectl("preflight", "--window", "0.01", "--keep", "--root", lab4)
    (kept,) = (lab4 / "var/lib/tunectl/preflight").iterdir()
    assert kept.name.endswith(".waiting.json")
    document = kept.read_bytes()
    for _ in range(2):
        assert tunectl("preflight", "--deliver", "--root", lab4).code == 0
        ((day, _, files),) = [found for found in os.walk(folder) if found[2]]
        assert [Path(day, file).read_bytes() for file in files] == [document]
    assert tunectl("fleet", "report", day).code == 3
    assert not kept.exists()


def test_documents_that_wait_for_nobody_are_said(tunectl: Run, lab4: Path) -> None:
    place = lab4 / "var/lib/tunectl/preflight"
    place.mkdir(parents=True)
    for name in ("20261128T074512Z.waiting.json", "20261127T074512Z.waiting.json", "20261126T074512Z.json"):
        (place / name).write_text("{}")
    line = complaint(tunectl("preflight", "--deliver", "--root", lab4), 1)
    assert line.startswith("[report] of the host file names nobody who takes what waits in ")
    assert line.endswith("/preflight: 2 documents")


def test_a_document_that_cannot_be_kept_is_shown_all_the_same(tunectl: Run, lab4: Path) -> None:
    with (lab4 / "etc/tunectl/host.toml").open("a") as host_file:
        host_file.write('[report]\ntextfile = "/nowhere/x.prom"\n')
    done = tunectl("preflight", "--window", "0.01", "--keep", "--root", lab4, "--format", "json")
    assert (done.code, done.json["schema"]) == (1, "tunectl.preflight/1")
    assert done.err.startswith("tunectl: cannot write /nowhere/x.prom: No such file or directory")
    line = complaint(tunectl("preflight", "--keep", "--root", lab4, "--state", "/proc/x"), 1)
    assert line == "cannot keep documents in /proc/x/preflight: No such file or directory"
