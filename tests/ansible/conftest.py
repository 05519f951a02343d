"""Ansible over recorded hosts: a local connection, and TUNECTL_ROOT in the tasks' environment."""

import json
import os
import re
import subprocess
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ansible.units import COLLECTION
from tests.conftest import TUNECTL

# Another Ansible than the one beside this Python: TUNECTL_ANSIBLE=/path/to/venv/bin (docs/ansible.md).
BIN = Path(os.environ.get("TUNECTL_ANSIBLE") or sysconfig.get_path("scripts"))
ZIP_CACHE = Path(__file__).parent / "zipcache"
_RECAP = re.compile(r"^(\S+)\s+: (ok=\d+.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Played:
    """What a run of ansible-playbook did."""

    code: int
    out: str

    def counts(self, host: str) -> dict[str, int]:
        """The host's line of the recap: {"ok": 6, "changed": 1, ...}."""
        (line,) = [line for name, line in _RECAP.findall(self.out) if name == host]
        return {key: int(value) for key, value in (word.split("=") for word in line.split())}

    def said(self, host: str) -> str:
        """What was said of a host that failed, in one line."""
        start = f"fatal: [{host}]: FAILED! => "
        assert start in self.out, self.out
        found, _ = json.JSONDecoder().raw_decode(self.out.split(start, 1)[1])
        return " ".join([str(found.get("msg")), *map(str, found.get("argument_errors", []))])


Play = Callable[..., Played]
Module = Callable[..., dict[str, Any]]


def program(name: str) -> str:
    """A program of Ansible's. Skips, with the reason, where it is not installed."""
    if not (BIN / name).exists():
        pytest.skip(f"{name} is not installed beside {BIN}: pip install -e '.[test]'")
    return str(BIN / name)


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which Ansible finds this tree's collection."""
    place = tmp_path_factory.mktemp("collections")
    (place / "ansible_collections/tunectl").mkdir(parents=True)
    (place / "ansible_collections/tunectl/host").symlink_to(COLLECTION)
    return place


@pytest.fixture(scope="session")
def zip_cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """For the environment of whoever starts Python on zip archives: each is compiled once, for all test processes."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "zipcache"
    place.mkdir(exist_ok=True)
    return {"PYTHONPATH": str(ZIP_CACHE), "ZIP_CACHE": str(place)}


@pytest.fixture
def environment(collections: Path, tmp_path: Path, zip_cache: dict[str, str]) -> dict[str, str]:
    """For Ansible's programs: this tree's collection, and nothing of whoever runs the tests."""
    (tmp_path / "ansible.cfg").touch()
    dropped = ("TUNECTL_", "ANSIBLE_", "COLUMNS")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    own = {
        "PATH": f"{BIN}:{clean['PATH']}",
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_HOME": str(tmp_path / "ansible-home"),
    }
    return {**clean, **own, **zip_cache}


@pytest.fixture
def play(environment: dict[str, str], tmp_path: Path) -> Play:
    """Runs a playbook: `play("tunectl.host.drift", {"lab4": {"tunectl_environment": ...}}, "--check")`."""
    playbook = program("ansible-playbook")

    def run(name: str | Path, hosts: Mapping[str, Mapping[str, Any]], *words: str) -> Played:
        inventory = tmp_path / "inventory.json"
        everyone = {
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        inventory.write_text(json.dumps({"tunectl": {"hosts": hosts, "vars": everyone}}))
        done = subprocess.run(
            [playbook, "-i", str(inventory), str(name), *words],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )
        assert "Traceback" not in done.stdout, done.stdout
        return Played(done.returncode, done.stdout)

    return run


@pytest.fixture(scope="session")
def module(collections: Path) -> Module:
    """Starts the module as Ansible does on a target, without a play around it, and returns its result.

    `module({"command": "verify"}, root, check_mode=True)`, with TUNECTL_ROOT as `root`; `_raw` is what it printed.
    """
    python = program("ansible-playbook").replace("ansible-playbook", "python")

    def run(arguments: Mapping[str, Any], root: Path, check_mode: bool = False, **environment: str) -> dict[str, Any]:
        given = {**arguments, "_ansible_check_mode": check_mode, "_ansible_diff": True}
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("TUNECTL_", "ANSIBLE_"))}
        own = {"PYTHONPATH": str(collections), "TUNECTL_ROOT": str(root), "TUNECTL_PROGRAM": str(TUNECTL)}
        done = subprocess.run(
            [python, str(COLLECTION / "plugins/modules/tunectl.py")],
            env={**clean, **own, **environment},
            input=json.dumps({"ANSIBLE_MODULE_ARGS": given}),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return {**json.loads(done.stdout), "_raw": done.stdout}

    return run


def recorded(root: Path, **variables: Any) -> dict[str, Any]:
    """The inventory's variables of a recorded host."""
    return {"tunectl_environment": {"TUNECTL_ROOT": str(root), "TUNECTL_PROGRAM": str(TUNECTL)}, **variables}
