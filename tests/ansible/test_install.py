"""The role tunectl_install: from wheels on the controller to a program on the PATH, without a network."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.ansible import wheels
from tests.ansible.conftest import Play, recorded
from tests.ansible.units import COLLECTION
from tests.hosts.builder import HostFactory
from tests.trees import differences, picture

pytestmark = pytest.mark.slow
yaml = pytest.importorskip("yaml", reason="Ansible is not installed: pip install -e '.[test]'")

ROLE = COLLECTION / "roles/tunectl_install"
PLAYBOOK = """
- hosts: tunectl
  gather_facts: false
  tasks:
    - ansible.builtin.import_role:
        name: tunectl.host.tunectl_install
"""


@pytest.mark.parametrize("changes", [False, pytest.param(True, marks=pytest.mark.long)], ids=["once", "and-changed"])
def test_a_wheel_is_installed_once_and_again_when_it_changes(play: Play, tmp_path: Path, changes: bool) -> None:
    playbook = tmp_path / "install.yml"
    playbook.write_text(PLAYBOOK)
    link, prefix = tmp_path / "bin/tunectl", tmp_path / "opt/tunectl"
    for place in (link, prefix):
        place.parent.mkdir()
    settings: dict[str, Any] = {
        "tunectl_install_wheel": str(wheels.tunectl(tmp_path / "dist", "1.0")),
        "tunectl_install_wheelhouse": str(wheels.wheelhouse(tmp_path / "wheelhouse")),
        "tunectl_install_prefix": str(prefix),
        "tunectl_install_link": str(link),
    }
    hosts = {"one": settings}
    first = play(playbook, hosts)
    assert first.code == 0, first.out
    assert subprocess.run([link], capture_output=True, text=True, check=True).stdout == "tunectl 1.0 works\n"
    again = play(playbook, hosts)
    assert (again.code, again.counts("one")["changed"]) == (0, 0), again.out

    if not changes:
        return
    (prefix / "bin/tunectl-probe").write_text("#!/bin/sh\nexit 1\n")
    halved = play(playbook, hosts, "--check")
    assert (halved.code, halved.counts("one")["changed"] > 0) == (0, True), halved.out
    assert "would install tunectl_host-1.0-py3-none-any.whl" in halved.out
    assert play(playbook, hosts).counts("one")["changed"] > 0
    assert subprocess.run([prefix / "bin/tunectl-probe"], capture_output=True).returncode == 0

    (there,) = prefix.glob("lib/python*/site-packages/tunectl/__init__.py")
    there.write_text("# another project's\n")
    assert "is not the file that was installed" in play(playbook, hosts, "--check", "-v").out
    assert play(playbook, hosts).counts("one")["changed"] > 0
    assert "another" not in there.read_text()

    settings["tunectl_install_wheel"] = str(wheels.tunectl(tmp_path / "dist", "1.1"))
    upgraded = play(playbook, hosts)
    assert (upgraded.code, upgraded.counts("one")["changed"] > 0) == (0, True), upgraded.out
    assert subprocess.run([link], capture_output=True, text=True, check=True).stdout == "tunectl 1.1 works\n"
    assert [path.name for path in (tmp_path / "opt").iterdir()] == ["tunectl"]


def test_what_cannot_be_installed_is_refused_before_the_first_change(play: Play, tmp_path: Path) -> None:
    playbook = tmp_path / "install.yml"
    playbook.write_text(PLAYBOOK)
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\necho \'{"version": "3.9", "occupied": false, "marker": ""}\'\n')
    old.chmod(0o755)
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    good = {
        "tunectl_install_wheel": str(wheels.tunectl(tmp_path / "dist", "1.0")),
        "tunectl_install_wheelhouse": str(wheels.wheelhouse(tmp_path / "wheelhouse")),
        "tunectl_install_prefix": str(tmp_path / "opt"),
        "tunectl_install_link": "",
    }
    bad: dict[str, tuple[dict[str, Any], str]] = {
        "silent": ({}, "tunectl_install_wheel, or else tunectl_install_package, has to be a wheel"),
        "theirs": (
            {"tunectl_install_wheel": str(wheels.make(tmp_path / "pypi", "tunectl", "1.1.0", {}))},
            "has to be a wheel",
        ),
        "absent": (
            {"tunectl_install_wheel": "/none/tunectl_host-1.0.whl"},
            "/none/tunectl_host-1.0.whl has to be a wheel",
        ),
        "alone": ({"tunectl_install_wheelhouse": str(tmp_path / "dist")}, "and pip's own: pip wheel"),
        "old": ({"tunectl_install_python": str(old)}, "tunectl needs Python 3.11 or newer on the target"),
        "missing": ({"tunectl_install_python": "python9"}, "python9 is not to be had on the target"),
        "taken": ({"tunectl_install_prefix": str(occupied)}, "is there and no virtual environment"),
    }
    hosts = {name: {**good, **wrong} for name, (wrong, _) in bad.items()}
    del hosts["silent"]["tunectl_install_wheel"]
    done = play(playbook, hosts)
    assert done.code == 2
    for name, (_, said) in bad.items():
        assert done.counts(name) | {"changed": 0, "failed": 1} == done.counts(name), name
        assert said in done.said(name), name
    assert not (tmp_path / "opt").exists()
    assert not list(occupied.iterdir())


@pytest.mark.long
def test_a_program_that_does_not_start_is_not_called_installed(play: Play, tmp_path: Path) -> None:
    """The wheel brings no tunectl-probe: the role says neither changed nor ok, and would install it again."""
    playbook = tmp_path / "install.yml"
    playbook.write_text(PLAYBOOK)
    wheel = wheels.tunectl(tmp_path / "dist", "1.0", programs=("tunectl",))
    host = {
        "tunectl_install_wheel": str(wheel),
        "tunectl_install_wheelhouse": str(wheels.wheelhouse(tmp_path / "wheelhouse")),
        "tunectl_install_prefix": str(tmp_path / "opt"),
        "tunectl_install_link": "",
    }
    done = play(playbook, {"one": host})
    assert (done.code, done.counts("one")["failed"]) == (2, 1), done.out
    assert "tunectl-probe" in done.out.partition("and start each program once")[2]
    assert not (tmp_path / "opt/installed-by-ansible").exists()


@pytest.mark.long
def test_check_mode_on_a_bare_host_says_what_is_not_judged(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    host = recorded(
        root,
        tunectl_install_wheel=str(wheels.tunectl(tmp_path / "dist", "1.0")),
        tunectl_install_wheelhouse=str(wheels.wheelhouse(tmp_path / "wheelhouse")),
        tunectl_install_prefix=str(tmp_path / "opt"),
        tunectl_install_link=str(tmp_path / "tunectl"),
    )
    host["tunectl_environment"]["TUNECTL_PROGRAM"] = str(tmp_path / "opt/bin/tunectl")
    before = picture(root)
    done = play("tunectl.host.provision", {"one": host}, "--check", "--diff")
    assert (done.code, done.counts("one")["failed"]) == (0, 0), done.out
    assert "would install tunectl_host-1.0-py3-none-any.whl with the 2 wheels of " in done.out
    assert "not judged: the tunectl of this run is not there yet" in done.out
    assert f"not judged, whether a reboot would be pending: there is no {tmp_path}/opt/bin/tunectl" in done.out
    assert not differences(before, root)
    assert not (tmp_path / "opt").exists()


def a_package(folder: Path, version: str, programs: str = "tunectl tunectl-probe") -> Path:
    """A .deb whose programs only tell its version."""
    tree = folder / version
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "DEBIAN").mkdir()
    control = (
        f"Package: tunectl\nVersion: {version}\nArchitecture: amd64\nMaintainer: us <us@example>\nDescription: us\n"
    )
    (tree / "DEBIAN/control").write_text(control)
    for name in programs.split():
        (tree / "usr/bin" / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tree / "usr/bin" / name).chmod(0o755)
    package = folder / f"tunectl_{version}_amd64.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, package], check=True, capture_output=True)
    return package


@pytest.mark.skipif(not shutil.which("dpkg-deb") or os.geteuid() != 0, reason="needs root and dpkg")
def test_a_package_is_installed_by_the_hosts_own_manager(play: Play, tmp_path: Path) -> None:
    """dpkg itself, below a root of its own: installed, left alone, upgraded, and back; and what is refused."""
    playbook, root = tmp_path / "install.yml", tmp_path / "root"
    playbook.write_text(PLAYBOOK)
    (root / "var/lib/dpkg/updates").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    managers = yaml.safe_load((ROLE / "vars/main.yml").read_text())["tunectl_install_managers"]
    managers["deb"]["install"].insert(1, f"--root={root}")
    managers["deb"]["asks"].insert(1, f"--root={root}")
    here = {"tunectl_install_managers": managers, "tunectl_install_programs": str(root / "usr/bin")}
    words = ("-e", json.dumps(here))
    first, later = (a_package(tmp_path, version) for version in ("1.0.0~rc1-1+deb12", "1.0.0-1+deb12"))
    host = {"tunectl_install_package": str(first), "tunectl_install_prefix": str(tmp_path / "opt")}

    dry = play(playbook, {"one": host}, *words, "--check", "--diff")
    assert (dry.code, (root / "usr").exists()) == (0, False), dry.out
    assert f"would install {first.name}" in dry.out
    for package, changes in ((first, True), (first, False), (later, True), (first, True)):
        done = play(playbook, {"one": host | {"tunectl_install_package": str(package)}}, *words)
        assert (done.code, done.counts("one")["changed"] > 0) == (0, changes), done.out
        said = subprocess.run([root / "usr/bin/tunectl"], capture_output=True, text=True, check=True).stdout
        assert said == f"{package.name.split('_')[1]}\n"
    (root / "usr/bin/tunectl-probe").unlink()
    assert play(playbook, {"one": host}, *words).counts("one")["changed"] > 0

    (tmp_path / "venv").mkdir()
    (tmp_path / "venv/pyvenv.cfg").touch()
    bad = {
        "absent": {"tunectl_install_package": "/none/tunectl_1_amd64.deb"},
        "other": {"tunectl_install_package": str(tmp_path / "install.yml")},
        "both": {"tunectl_install_wheel": "tunectl_host-1.whl"},
        "shadowed": {"tunectl_install_prefix": str(tmp_path / "venv")},
    }
    done = play(playbook, {name: host | wrong for name, wrong in bad.items()}, *words)
    for name in bad:
        assert done.counts(name)["failed"] == 1, name
        assert "has to be a package of tunectl" in done.said(name)


@pytest.mark.skipif(not shutil.which("dpkg-deb") or os.geteuid() != 0, reason="needs root and dpkg")
def test_a_package_is_removed_by_the_hosts_own_manager(play: Play, tmp_path: Path, host_root: HostFactory) -> None:
    """With the host file, and only where nothing is left to restore; where no tunectl is, nothing is removed."""
    root, etc = tmp_path / "root", tmp_path / "etc/tunectl"
    for place in (root / "var/lib/dpkg/updates", etc, tmp_path / "opt"):
        place.mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    package = a_package(tmp_path, "1.0.0-1+deb12")
    subprocess.run(["dpkg", f"--root={root}", "-i", package], check=True, capture_output=True)
    managers = yaml.safe_load((ROLE.parent / "tunectl_restore/vars/main.yml").read_text())["tunectl_restore_managers"]
    for words in managers[0].values():
        words.insert(1, f"--root={root}")
    here = {"tunectl_restore_managers": managers, "tunectl_restore_hostfile": str(etc)}
    playbook = tmp_path / "uninstall.yml"
    playbook.write_text(PLAYBOOK.replace("tunectl_install", "tunectl_restore\n        tasks_from: uninstall"))
    one = recorded(host_root.fresh("lab4", tmp_path))
    one["tunectl_restore_prefix"] = str(tmp_path / "opt")

    dry = play(playbook, {"one": one}, "-e", json.dumps(here), "--check")
    assert (dry.code, (root / "usr/bin/tunectl").exists(), etc.exists()) == (0, True, True), dry.out
    done = play(playbook, {"one": one}, "-e", json.dumps(here))
    assert (done.code, (root / "usr/bin/tunectl").exists(), etc.exists()) == (0, False, False), done.out
    assert (tmp_path / "opt").exists(), "it is nobody's virtual environment"
    again = play(playbook, {"one": one}, "-e", json.dumps(here))
    assert "neither dpkg nor rpm has a package tunectl" in again.said("one")
