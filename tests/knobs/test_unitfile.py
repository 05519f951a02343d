"""The units that apply writes, read by their real reader, and the rule that starts one of them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.knobs.test_table import verdict
from tests.tuned import apply, inspection_on
from tunectl.knobs.drivers import hotplug, latencyhold
from tunectl.knobs.drivers.unitfile import LINK, UNIT, render

needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed (Debian: systemd)"
)
WORDS = ("/bin/true", "--host", '/a "quoted" 100% $path.toml')


@needs_systemd
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tunectl-apply.service", render(WORDS)),
        ("tunectl-reapply@.service", hotplug.render(WORDS)),
        ("tunectl-latency.service", latencyhold.render(3)),
    ],
)
def test_systemd_accepts_the_unit(tmp_path: Path, name: str, text: str) -> None:
    unit = tmp_path / name
    unit.write_text(text)
    if "@" in name:  # a template is read as one of its instances
        unit = tmp_path / name.replace("@", "@sys-devices-pci0000:00-net-eth0")
        unit.symlink_to(name)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "tunectl-" in line]
    assert ours == []


def conditions(base: Path) -> list[str]:
    """The conditions of the hot-plug unit, for the files below `base`."""
    lines = [line for line in hotplug.render(WORDS).splitlines() if line.startswith("Condition")]
    return [line.replace("/etc/", f"{base}/etc/") for line in lines]


@needs_systemd
@pytest.mark.parametrize(
    ("there", "runs"),
    [((UNIT, LINK), True), ((UNIT,), False), ((), True)],
    ids=["enabled", "disabled by hand", "never asked for"],
)
def test_a_disabled_service_is_not_applied_by_hotplug_either(
    tmp_path: Path, there: tuple[str, ...], runs: bool
) -> None:
    """A boot announces every NIC: found in the lab, where a boot without the service was tuned all the same."""
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    done = subprocess.run(["systemd-analyze", "condition", *conditions(tmp_path)], capture_output=True, text=True)
    assert (done.returncode == 0) is runs, done.stderr


@pytest.mark.skipif(not shutil.which("udevadm"), reason="udevadm is not installed (Debian: udev)")
def test_udev_accepts_the_rule(tmp_path: Path) -> None:
    rule = tmp_path / "95-tunectl.rules"
    rule.write_text(hotplug._RULE)
    done = subprocess.run(["udevadm", "verify", "--no-style", str(rule)], capture_output=True, text=True)
    if "Unknown command" in done.stderr:  # udevadm verify came with systemd 254
        pytest.skip("this udevadm cannot verify rules")
    assert done.returncode == 0, done.stdout + done.stderr


def without(path: str, word: str) -> Callable[[Path], object]:
    """The file as an earlier version wrote it: without the lines that have the word."""

    def harm(root: Path) -> None:
        lines = (root / path).read_text().splitlines(keepends=True)
        (root / path).write_text("".join(line for line in lines if word not in line))

    return harm


@pytest.mark.parametrize(
    ("harm", "state"),
    [
        (lambda root: (root / hotplug.RULE).unlink(), "disabled"),
        (lambda root: (root / hotplug.UNIT).unlink(), "disabled"),
        (lambda root: (root / hotplug.RULE).write_text("# mine\n"), "outdated"),
        (lambda root: (root / hotplug.UNIT).write_text("[Service]\nExecStart=/bin/true\n"), "broken"),
        (lambda root: (root / hotplug.UNIT).write_text("[Service]\nExecStart=/a --host /b.toml apply\n"), "outdated"),
        (without(hotplug.UNIT, "Condition"), "outdated"),
    ],
)
def test_what_may_be_wrong_with_the_rule_and_its_unit(lab4: Path, harm: Callable[[Path], object], state: str) -> None:
    apply(lab4)
    harm(lab4)
    found = {one.target: one for one in inspection_on(lab4).assess().findings}["systemd.apply_on_hotplug"]
    assert (found.outcome, found.observed) == ("drifted", state)
    apply(lab4)
    assert verdict(lab4) != "drifted"


def test_a_service_of_an_earlier_version_is_written_anew(lab4: Path) -> None:
    apply(lab4)
    fresh = (lab4 / UNIT).read_text()
    without(UNIT, "Before=")(lab4)
    found = {one.target: one for one in inspection_on(lab4).assess().findings}["systemd.apply_at_boot"]
    assert (found.outcome, found.observed) == ("drifted", "outdated")
    apply(lab4)
    assert (lab4 / UNIT).read_text() == fresh
