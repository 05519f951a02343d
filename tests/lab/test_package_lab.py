"""The .deb where systemd runs: what runs goes on, what was tuned stands, and a purge leaves nothing.

What needs no running systemd is tried in bare systems (tests/release/test_packages.py).
"""

import re
from pathlib import Path

import pytest

import tunectl as product
from tests.release import releases
from tests.release.releases import OLDER, RESTORE, Released

from .alerts import MONITOR, edges, log, named, wait_for
from .lab import Lab
from .platforms import PLATFORMS
from .product import HOST_FILE, WRITTEN, back_to_tuned, findings, install_package, tunectl, verify
from .story import difference, restored, volatile

pytestmark = pytest.mark.long
SUITES = ("bookworm", "trixie")
on_each = pytest.mark.parametrize("lab", [PLATFORMS[suite] for suite in SUITES], ids=SUITES, indirect=True)
GOVERNOR = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"
JOURNAL = "/var/lib/tunectl/journal.jsonl"
STATE = "/var/lib/private/tunectl-monitor"
PORT = 9750
LISTENING = f'\n[monitor.prometheus]\nlisten = "127.0.0.1:{PORT}"\n'
ASK = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{PORT}/metrics').read().decode())"


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    """Two versions, of the same code."""
    return releases.both(tmp_path_factory)


@pytest.fixture(scope="session")
def before_all(lab: Lab) -> dict[str, str]:
    """The fingerprint of a host that has never had the package."""
    lab.up()
    return lab.fingerprint(*WRITTEN)


@pytest.fixture(scope="session")
def _watched(lab: Lab, released: Released, before_all: dict[str, str]) -> str:
    """The saved moment at which the older package is there, the host is tuned, and its monitor runs since the boot."""
    with lab.saving("watched") as missing:
        if missing:
            lab.up()
            install_package(lab, Path(released.older_deb(lab.platform.suite)))
            assert units(lab, "active") == [], "an installation starts nothing"
            assert tunectl(lab, "show --format json").code == 0
            lab.write("/etc/tunectl/host.toml", HOST_FILE + LISTENING)
            lab.run("echo '# the site' >> /etc/tunectl/host.toml.example")
            tunectl(lab, "apply --yes -q")
            lab.run(f"systemctl enable --now {MONITOR}", timeout=120)
            lab.reboot()
            lab.save("watched")
    return "watched"


@pytest.fixture
def watched(lab: Lab, _watched: str) -> Lab:
    back_to_tuned(lab, _watched)
    return lab


def units(lab: Lab, state: str) -> list[str]:
    """Our units in that state."""
    said = lab.run(f"systemctl list-units --all --plain --no-legend --state={state} 'tunectl-*'").out
    return sorted(line.split()[0] for line in said.splitlines())


def version_that_runs(lab: Lab) -> str:
    """As the monitor says it of itself, once it listens."""
    try:
        lab.wait_for(f'python3 -c "{ASK}" >/run/metrics', 120)
    except AssertionError as error:
        raise AssertionError(log(lab)) from error
    found = re.search(r'^tunectl_monitor_info\{version="(.+?)"', lab.read("/run/metrics"), re.MULTILINE)
    assert found, log(lab)
    return found[1]


def drifted(lab: Lab) -> set[str]:
    return set(findings(verify(lab), "drifted", "pending-reboot"))


@on_each
def test_an_upgrade_and_a_downgrade_go_on_with_what_ran(watched: Lab, released: Released) -> None:
    suite = watched.platform.suite
    now, before = Path(released.deb(suite)), Path(released.older_deb(suite))
    assert version_that_runs(watched) == OLDER
    watched.write(GOVERNOR, "powersave")
    wait_for(watched, named("KnobDrift[cpufreq.governor", "firing"), 60)
    for package, version in ((now, product.__version__), (before, OLDER)):
        said = install_package(watched, package)
        assert RESTORE not in said
        assert watched.run("tunectl --version").out.split()[-1] == version
        assert version_that_runs(watched) == version, "what ran was not started again"
        assert units(watched, "failed") == []
        assert watched.run("dpkg --verify tunectl", check=False).out.split()[-1:] == ["/etc/tunectl/host.toml.example"]
        assert drifted(watched) == {"cpufreq.governor[3]"}, "the other version's tuning is known, and stands"
    told = [edge.status for edge in edges(watched) if edge.name.startswith("KnobDrift[cpufreq.governor")]
    assert told == ["firing"], "an alert that stands is told once, whichever version finds it"
    assert watched.run("tail -n1 /etc/tunectl/host.toml.example").out == "# the site\n"
    watched.run(f"systemctl stop {MONITOR}")
    install_package(watched, now)
    assert MONITOR not in units(watched, "active"), "what was stopped stays so"
    assert watched.run(f"systemctl is-enabled {MONITOR}").out == "enabled\n"


@on_each
def test_what_is_removed_stops_and_the_way_back_stands(
    watched: Lab, released: Released, before_all: dict[str, str]
) -> None:
    for word in ("--remove", "--purge"):
        said = watched.run(f"dpkg {word} tunectl")
        assert (RESTORE in said.err) == (word == "--remove")
        assert units(watched, "active,failed") == ["tunectl-apply.service"], "of apply, which has done its work"
        assert watched.run(f"ls -d /usr/lib/tunectl {JOURNAL} /etc/tunectl/host.toml", check=False).out.split() == [
            "/etc/tunectl/host.toml",
            JOURNAL,
        ]
        assert watched.read(GOVERNOR) == "performance"
    install_package(watched, Path(released.deb(watched.platform.suite)))
    assert MONITOR not in units(watched, "active"), "an installation starts nothing"
    assert drifted(watched) == set()
    restored(watched)
    watched.reboot()
    assert "isolcpus" not in watched.read("/proc/cmdline")
    assert RESTORE not in watched.run("dpkg --purge tunectl").err
    assert units(watched, "active,failed") == []
    gone = f"/usr/lib/tunectl /usr/bin/tunectl /etc/tunectl /var/lib/tunectl {STATE} /var/lib/tunectl-monitor"
    assert watched.run(f"ls -d {gone}", check=False).out == ""
    left = difference(before_all, watched.fingerprint(*WRITTEN))
    assert {path for path in left if not volatile(path)} == set(), left
