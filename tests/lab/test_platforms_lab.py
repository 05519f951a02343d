"""The tour, the same for each platform: from the released package to a proved host, and back to the byte.

What differs from one platform to the next is in its row (platforms.py), and nowhere here.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sections import MATRIX, PLATFORM

from .evidence import cpus
from .lab import Lab
from .platforms import PLATFORMS
from .playing import failing, line, play_round
from .product import WRITTEN, findings, install_package, tunectl, unpack_wheels, verify
from .rows import ROUNDS
from .story import difference, judged, loosened, restored, volatile

PLAYED = [
    pytest.param(platform, name, id=f"{platform.name}-{name}")
    for platform in PLATFORMS.values()
    for name in platform.rounds
]
pytestmark = pytest.mark.long
on_each = pytest.mark.parametrize("lab", PLATFORMS.values(), ids=PLATFORMS, indirect=True, scope="session")
Note = Callable[[str, str], None]


@pytest.fixture(scope="session")
def _installed(
    lab: Lab, package: Path | None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The saved moment with the package installed, or the wheel, and a host file as it was proposed, for CPUs 2 and 3.

    Which CPUs are proposed depends on the machine; the rows of the matrix break CPUs 2 and 3.
    """
    with lab.saving("installed") as missing:
        if missing:
            lab.up()
            if package:
                install_package(lab, package)
            else:
                place = tmp_path_factory.mktemp("unpacked")
                lab.install_tree(unpack_wheels(place, request.getfixturevalue("wheels"), lab.platform))
            lab.run("mkdir -p /etc/tunectl")
            host_file = tunectl(lab, "propose --count 2 --format toml").out
            lab.write("/etc/tunectl/host.toml", re.sub(r"^isolated = .*$", 'isolated = "2-3"', host_file, flags=re.M))
            lab.save("installed")
    return "installed"


@on_each
def test_what_is_installed_is_whole(installed: Lab, package: Path | None, record_property: Note) -> None:
    kernel, cpus_there = installed.run("uname -rv").out.strip(), installed.run("nproc").out.strip()
    brought = package.name if package else "the wheel"
    record_property(PLATFORM, f"{installed.platform.name}: {kernel}, {cpus_there} CPUs, {brought}")
    if package:
        assert installed.run("dpkg --verify tunectl").out == ""
    folder = installed.run("dirname $(readlink -f $(command -v tunectl))").out.strip()
    version = installed.run("tunectl --version").out.split()[-1]
    assert installed.run(f"{folder}/tunectl-probe --version").out == f"tunectl-probe {version}\n"


@on_each
def test_whole_cores_are_proposed(installed: Lab) -> None:
    """By the kernel's own list of siblings."""
    proposed = tomllib.loads(tunectl(installed, "propose --count 2 --format toml").out)
    isolated = cpus(proposed["isolated"])
    assert len(isolated) == 2
    topology = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    siblings = [cpus(installed.read(topology.format(cpu))) for cpu in isolated]
    assert set().union(*siblings) == isolated


@on_each
def test_what_apply_will_do_is_planned_and_a_fresh_host_is_no_go(installed: Lab) -> None:
    planned = tunectl(installed, "plan --format json").json
    assert {"boot.isolcpus", "irq.default_affinity"} <= {one["knob"] for one in planned["changes"]}
    ran = tunectl(installed, "preflight --duration 1 --format json")
    assert (ran.code, ran.json["verdict"]) == (3, "no-go")


@on_each
def test_after_apply_and_the_reboot_everything_is_in_force(tuned: Lab, record_property: Note) -> None:
    ran = tunectl(tuned, "verify --format json")
    record_property(PLATFORM, f"{tuned.platform.name}: {tunectl(tuned, 'verify').out.splitlines()[0]}")
    assert (ran.code, ran.json["verdict"]) == (0, "compliant"), findings(ran.json, "drifted", "pending-reboot")
    assert tuned.read("/sys/devices/system/cpu/isolated") == "2-3"
    assert [one for one in findings(ran.json, "refused").values() if one["harmful"]] == []
    assert tunectl(tuned, "plan --format json").json["changes"] == []


@on_each
def test_checks_are_silent(tuned: Lab) -> None:
    document = tunectl(tuned, "check --format json").json
    assert failing(document) == {}
    assert findings(document, "error") == {}


@on_each
def test_the_probe_measures_and_every_gap_has_a_cause(tuned: Lab) -> None:
    ran = tunectl(tuned, "probe jitter --attribute --cpus 2-3 --duration 5 --format json")
    assert ran.code in (0, 3), ran.err  # emulation keeps none of the profile's limits
    assert ran.json["attribution"]["method"] == "trace", ran.json["attribution"]
    for cpu in ran.json["cpus"]:
        assert cpu["loops"] > 0
        assert sum(row["count"] for row in cpu["causes"]) == cpu["interruptions"]


@on_each
def test_preflight_measures_and_judges(tuned: Lab) -> None:
    host_file = loosened(tuned.read("/etc/tunectl/host.toml"))
    tuned.write("/etc/tunectl/host.toml", host_file)
    ran, _ = judged(tuned, host_file)
    assert (ran.code, ran.json["verdict"]) == (0, "go"), ran.json["reasons"]
    assert {one["cpu"] for one in ran.json["probe"]["cpus"]} == {2, 3}
    assert ran.json["probe"]["budget"]["verdict"] == "within"


@pytest.mark.parametrize(("lab", "name"), PLAYED, indirect=["lab"], scope="session")
def test_sabotage_is_found_and_mended(lab: Lab, name: str, tuned: Lab, record_property: Note) -> None:
    outcomes = play_round(lab, ROUNDS[name])
    for outcome in outcomes:
        rows = [row for row in ROUNDS[name].rows if row.name in outcome.wanted]
        for row in rows:
            record_property(MATRIX, f"{lab.platform.name}: {line(outcome, row)}")
        assert not outcome.failed, outcome.failed
        assert [(row.name, outcome.unsaid(row)) for row in rows if not (outcome.lacks or outcome.met(row))] == []
        assert outcome.alarms() == {}


@on_each
def test_restore_brings_the_host_back_to_the_byte(pristine: dict[str, str], tuned: Lab, package: Path | None) -> None:
    restored(tuned)
    tuned.reboot()
    left: dict[str, Any] = difference(pristine, tuned.fingerprint(*WRITTEN))
    assert {path for path in left if not volatile(path)} == set(), left
    assert not re.search(r"isolcpus|nohz_full|rcu_nocbs|skew_tick", tuned.read("/proc/cmdline"))
    assert verify(tuned)["verdict"] == "drifted"
    if package:
        tuned.run("dpkg --purge tunectl")
        assert tuned.run("ls -d /usr/lib/tunectl", check=False).out == ""
