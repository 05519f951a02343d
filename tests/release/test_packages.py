"""Each artefact is installed into bare Debian systems, as an operator would, and its probe is started there.

The .rpm goes into a Debian 12, whose Python is RHEL 9's python3.11 by version and path: there is no RHEL here.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

import tunectl
from tests.lab.machine import BOARDS
from tests.lab.platforms import SUITES
from tests.release.releases import OLDER, RESTORE, ROOT, Released, both, copy_of_the_tree, make
from tests.release.roots import Root, root
from tunectl.installed import STATE
from tunectl.tuning import journal

pytestmark = pytest.mark.long

JOURNAL = f"{STATE}/{journal.NAME}"
UNITS = "tunectl-monitor.service tunectl-repair.path tunectl-repair.service"


on_each_machine = pytest.mark.parametrize(
    ("suite", "architecture"),
    [pytest.param(suite, board, id=f"{suite}-{board}") for board in BOARDS for suite in SUITES],
)


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    """Both releases."""
    return both(tmp_path_factory)


@pytest.fixture(scope="session")
def inside(released: Released) -> Released:
    """The same files, as a bare system has them."""
    return released._replace(place=Path("/mnt"))


@pytest.fixture
def bare(released: Released, tmp_path: Path) -> Callable[..., Root]:
    """A new system of a suite, and of an architecture; what was released is in /mnt."""
    return lambda suite, architecture="x86_64": root(suite, tmp_path / suite, released.place, architecture)


def starts(system: Root, program: str = "tunectl", version: str = tunectl.__version__) -> None:
    """The program, its probe, which measures for a moment, and the checks that belong to it."""
    folder = system.run("sh", "-c", f"dirname $(readlink -f $(command -v {program}))").out.strip()
    assert system.run(program, "--version").out.split()[-1] == version
    beside = f"{folder}/tunectl-probe" if program.startswith("/") else "tunectl-probe"  # a package's is on PATH
    assert system.run(beside, "--version").out == f"tunectl-probe {version}\n"
    cpu = str(max(os.sched_getaffinity(0)))
    measures = ("jitter", "--intrude", "--cpus", cpu, "--duration", "0.1")  # its PID namespace hides whose the CPU is
    assert '"turns"' in system.run(f"{folder}/tunectl-probe", *measures).out
    assert (
        "check.movable_threads" in system.run(program, "check", "--window", "0.1", "--format", "json", check=False).out
    )


@on_each_machine
def test_a_wheel_installs_without_a_compiler(bare: Callable[..., Root], suite: str, architecture: str) -> None:
    system = bare(suite, architecture)
    assert system.run("sh", "-c", "command -v cc gcc clang", check=False).code != 0
    system.run("python3", "-m", "venv", "/opt/tunectl")
    pip = ("/opt/tunectl/bin/pip", "install", "--no-index", "--find-links", "/mnt/wheels", "--find-links", "/mnt/now")
    system.run(*pip, f"tunectl-host=={tunectl.__version__}")
    starts(system, "/opt/tunectl/bin/tunectl")


@on_each_machine
def test_a_deb_installs_and_what_it_brings_works(
    bare: Callable[..., Root], inside: Released, suite: str, architecture: str
) -> None:
    system = bare(suite, architecture)
    system.run("dpkg", "-i", inside.deb(suite, architecture))
    starts(system)
    verified = system.run(
        "systemd-analyze", "verify", "--man=no", *(f"/usr/lib/systemd/system/{one}" for one in UNITS.split())
    )
    assert verified.err + verified.out == ""
    assert system.run("dpkg", "--verify", "tunectl").out == ""
    for name in (
        "prometheus/tunectl.rules.yml",
        "grafana/tunectl.json",
        "grafana/tunectl-fleet.json",
        "alertmanager/alertmanager.yml",
        "clickhouse/tunectl.sql",
    ):
        shipped = (ROOT / "tunectl/shipped" / name).read_text()
        assert system.run("cat", f"/usr/share/tunectl/{name}").out == shipped
    assert "### TunectlFrequencyDrop" in system.run("cat", "/usr/share/doc/tunectl/alerts.md").out  # runbook_url


@pytest.mark.parametrize("suite", SUITES)
def test_a_deb_is_upgraded_downgraded_removed_and_purged(
    bare: Callable[..., Root], inside: Released, suite: str
) -> None:
    system = bare(suite)
    system.run("dpkg", "-i", inside.older_deb(suite))
    starts(system, version=OLDER)
    system.run("sh", "-c", "echo '# ours' >> /etc/tunectl/host.toml.example")
    for package, version in (
        (inside.deb(suite), tunectl.__version__),
        (inside.older_deb(suite), OLDER),
    ):
        said = system.run("dpkg", "--force-confdef", "-i", package)
        assert RESTORE not in said.err + said.out
        starts(system, version=version)
    assert system.run("tail", "-n1", "/etc/tunectl/host.toml.example").out == "# ours\n"
    system.run("touch", "/etc/tunectl/host.toml")
    said = system.run("dpkg", "-r", "tunectl")
    assert RESTORE not in said.err + said.out, "nothing is tuned"
    assert not system.has("/usr/lib/tunectl")
    assert not system.has("/usr/bin/tunectl")
    assert system.has("/etc/tunectl/host.toml")
    system.run("dpkg", "-P", "tunectl")
    assert not system.has("/etc/tunectl")


@pytest.mark.parametrize("suite", SUITES)
def test_removing_a_deb_says_that_the_tuning_stands(bare: Callable[..., Root], inside: Released, suite: str) -> None:
    system = bare(suite)
    system.run("dpkg", "-i", inside.deb(suite))
    system.run("sh", "-c", f"mkdir -p {STATE} && echo before > {JOURNAL} && echo > /etc/tunectl/host.toml")
    assert RESTORE in system.run("dpkg", "-r", "tunectl").err
    assert "they are the way back" in system.run("dpkg", "-P", "tunectl").err
    assert system.run("cat", JOURNAL).out == "before\n", "the way back was taken away"
    assert system.has("/etc/tunectl/host.toml")
    system.run("dpkg", "-i", inside.deb(suite))
    system.run("mv", JOURNAL, f"{JOURNAL}.damaged.1")  # as restore sets aside what does not tell all
    assert RESTORE in system.run("dpkg", "-r", "tunectl").err
    system.run("dpkg", "-P", "tunectl")
    assert system.run("cat", f"{JOURNAL}.damaged.1").out == "before\n"
    system.run("dpkg", "-i", inside.deb(suite))
    system.run("rm", f"{JOURNAL}.damaged.1")  # restore has taken everything back
    system.run("dpkg", "-P", "tunectl")
    assert not system.has(STATE)
    assert not system.has("/etc/tunectl")


def test_a_release_from_another_folder_has_the_same_bytes(released: Released, tmp_path: Path) -> None:
    """All of it, and nothing taken from what zig has compiled before."""
    tree = copy_of_the_tree(tmp_path / "elsewhere")
    make(tree, str(tmp_path / "out"), ZIG_GLOBAL_CACHE_DIR=str(tmp_path / "zig"))
    assert (tmp_path / "out/SHA256SUMS").read_text() == (released.place / "now/SHA256SUMS").read_text()


def test_a_deb_of_the_other_release_is_refused_and_replaces_nothing(
    bare: Callable[..., Root], inside: Released
) -> None:
    system = bare("bookworm")
    system.run("dpkg", "-i", inside.deb("bookworm"))
    refused = system.run("dpkg", "-i", inside.deb("trixie"), check=False)
    assert refused.code != 0
    assert "tunectl pre-depends on python3 (>= 3.13)" in refused.err
    starts(system)


def test_what_a_deb_says_of_what_it_bundles_is_true(released: Released, tmp_path: Path) -> None:
    """The bill of materials, the copyright file and the pages' links, against what was unpacked."""
    subprocess.run(["dpkg-deb", "-x", released.deb("bookworm"), tmp_path], check=True)
    below = tmp_path / "usr/lib/tunectl/lib/python3.11/site-packages"
    found = list(metadata.distributions(path=[str(below)]))
    there = {one.metadata["Name"].lower().replace("_", "-"): one.version for one in found}  # as PyPI has it
    (bill,) = (tmp_path / "usr/share/doc/tunectl").glob("*.cdx.json")
    document = json.loads(bill.read_text())
    purls = [one.get("purl", "") for one in (document["metadata"]["component"], *document["components"])]
    ours = f"pkg:generic/tunectl@{there.pop('tunectl-host')}"
    assert {ours, *(f"pkg:pypi/{name}@{version}" for name, version in there.items())} <= set(purls)
    pages = tmp_path / "usr/share/doc/tunectl"
    links = [
        (page, link) for page in pages.rglob("*.md") for link in re.findall(r"\]\(([^)#:]+)[)#]", page.read_text())
    ]
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []
    copyright_text = (tmp_path / "usr/share/doc/tunectl/copyright").read_text()
    named = re.findall(r"The text is in (\S+)\.$", copyright_text, re.MULTILINE)
    assert len(named) == len(there)
    assert [one for one in named if not list(tmp_path.glob(one))] == []


def test_an_rpm_is_installed_upgraded_downgraded_and_removed(bare: Callable[..., Root], released: Released) -> None:
    if shutil.which("rpm") is None:
        pytest.skip("no rpm here")
    system = bare("bookworm")
    now, before = released.rpm(), released.older_rpm()
    system.run("rpm", "-i", before)
    starts(system, version=OLDER)
    for words, version in ((("-U", now), tunectl.__version__), (("-U", "--oldpackage", before), OLDER)):
        assert RESTORE not in system.run("rpm", *words).err
        starts(system, version=version)
    system.run("sh", "-c", f"mkdir -p {STATE} && echo before > {JOURNAL} && echo > /etc/tunectl/host.toml")
    assert RESTORE in system.run("rpm", "-e", "tunectl").err
    assert not system.has("/usr/lib/tunectl")
    assert system.has(JOURNAL)
    assert system.has("/etc/tunectl/host.toml")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_an_rpm_is_unpacked_below_the_folder_where_one_is(released: Released, machine: str) -> None:
    """rpmbuild names a payload's files ./usr/...; by names from the root on, cpio writes over the system itself."""
    if missing := [name for name in ("rpm2cpio", "cpio") if shutil.which(name) is None]:
        pytest.skip(f"not here: {', '.join(missing)}")
    (package,) = released.place.glob(f"now/*.{machine}.rpm")
    # It ends with 1: in nFPM's header the payload is as long as its files (nFPM's issue 341). All of it is there.
    payload = subprocess.run(["rpm2cpio", package], capture_output=True, check=False).stdout
    listed = subprocess.run(["cpio", "--list", "--quiet"], input=payload, capture_output=True, check=True).stdout
    names = listed.decode().splitlines()
    assert [name for name in names if not name.startswith("./")] == []
    assert "./usr/lib/tunectl/bin/tunectl" in names


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_rpmlint_and_an_rpm_are_in_agreement(released: Released, machine: str) -> None:
    if shutil.which("rpmlint") is None:
        pytest.skip("no rpmlint here")
    (package,) = released.place.glob(f"now/*.{machine}.rpm")
    rules = ROOT / "tests/release/rpmlint.toml"
    done = subprocess.run(["rpmlint", "--config", rules, package], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " 0 errors, 0 warnings" in done.stdout, done.stdout


@pytest.mark.parametrize("suffix", ["deb12_amd64", "deb12_arm64", "deb13_amd64", "deb13_arm64"])
def test_lintian_and_a_deb_are_in_agreement(released: Released, suffix: str) -> None:
    """What it says of this package on purpose stands in .release/lintian-overrides, with the reason."""
    if shutil.which("lintian") is None:
        pytest.skip("no lintian here")
    (package,) = released.place.glob(f"now/*{suffix}.deb")
    done = subprocess.run(["lintian", "--allow-root", package], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_packages_for_aarch64_hold_what_runs_there(released: Released, tmp_path: Path) -> None:
    """No aarch64 system here: every program and library in them is read, and the probe is started under emulation."""
    for package in sorted(released.place.glob("now/*arm64.deb")):
        place = tmp_path / package.name
        subprocess.run(["dpkg-deb", "-x", package, place], check=True)
        objects = [path for path in place.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
        assert len(objects) >= 4
        for path in objects:
            machine = subprocess.run(["readelf", "-h", path], capture_output=True, text=True, check=True).stdout
            assert "AArch64" in machine, path
        if shutil.which("qemu-aarch64-static") is None:
            pytest.skip("no qemu-aarch64-static here (Debian: qemu-user-static)")
        probe = place / "usr/lib/tunectl/bin/tunectl-probe"
        subprocess.run(["qemu-aarch64-static", probe, "--version"], check=True)
