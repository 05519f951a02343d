"""A cage of simulated hosts for Ansible: recorded roots, a local connection, an inventory, the playbook over them."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.hosts.builder import build_named

COLLECTION = Path(__file__).parents[2] / "ansible"
PLAYBOOK = COLLECTION / "playbooks/preflight.yml"
TUNECTL = Path(sysconfig.get_path("scripts")) / "tunectl"
# Another Ansible than the one beside this Python: docs/ansible.md.
PLAY = Path(os.environ.get("TUNECTL_ANSIBLE") or sysconfig.get_path("scripts")) / "ansible-playbook"
_CANNED = '#!/bin/sh\n# In tunectl\'s stead: what this host would have said.\nexec cat "$TUNECTL_ROOT/document.json"\n'


class Cage:
    """Hosts h000, h001, ... below `place`, each with a name and a boot of its own."""

    def __init__(self, place: Path, program: Path = TUNECTL, more: Mapping[str, str] | None = None) -> None:
        self.place = place
        self._more = more or {}  # of the environment
        self.program = program
        self.hosts: dict[str, dict[str, Any]] = {}
        (place / "collections/ansible_collections/tunectl").mkdir(parents=True)
        (place / "collections/ansible_collections/tunectl/host").symlink_to(COLLECTION)

    def recorded(self, count: int, kind: str = "lab4") -> None:
        """Recorded hosts of one kind. Their files are links to one tree's, but for what tells them apart."""
        base = build_named(self.place / "base", kind)
        kernel = "proc/sys/kernel"
        for number in range(count):
            root = self.place / f"h{number:03}"
            subprocess.run(["cp", "-al", base, root], check=True)
            for path, text in (("hostname", root.name), ("random/boot_id", f"00000000-0000-4000-8000-{number:012}")):
                (root / kernel / path).unlink()
                (root / kernel / path).write_text(f"{text}\n")
            self.hosts[root.name] = {}

    def canned(self, documents: Mapping[str, Mapping[str, Any]]) -> None:
        """Hosts whose preflight takes no time: each prints this document."""
        self.program = self.place / "canned"
        self.program.write_text(_CANNED)
        self.program.chmod(0o755)
        for name, document in documents.items():
            (self.place / name).mkdir()
            (self.place / name / "document.json").write_text(json.dumps(document))
            self.hosts[name] = {}

    def unreachable(self, name: str) -> None:
        """A host behind a port where nobody listens."""
        ssh = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
        self.hosts[name] = {**ssh, "ansible_ssh_common_args": "-F /dev/null"}

    def inventory(self, first: int | None = None) -> Path:
        """The first so many hosts; all without a number."""
        everybody = {
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": sys.executable,
            "tunectl_environment": {
                "TUNECTL_ROOT": f"{self.place}/{{{{ inventory_hostname }}}}",
                "TUNECTL_PROGRAM": str(self.program),
            },
            "tunectl_fleet_program": str(TUNECTL),
            "tunectl_fleet_store": str(self.place / "sessions"),
            "tunectl_preflight_window_s": 0.1,
            "tunectl_preflight_duration_s": 0.1,
        }
        chosen = dict(list(self.hosts.items())[:first])
        path = self.place / f"inventory-{len(chosen)}.json"
        path.write_text(json.dumps({"tunectl": {"vars": everybody, "hosts": chosen}}))
        return path

    def environment(self, forks: int = 50) -> dict[str, str]:
        """As ansible.cfg of the collection has it, and nothing of this machine's own settings."""
        dropped = ("ANSIBLE_", "TUNECTL_", "COLUMNS")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
        return {
            **kept,
            "ANSIBLE_CONFIG": str(COLLECTION / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.place / "collections"),
            "ANSIBLE_HOME": str(self.place / "home"),
            "ANSIBLE_LOCAL_TEMP": str(self.place / "home/tmp"),
            "ANSIBLE_REMOTE_TEMP": str(self.place / "home/tmp"),
            "ANSIBLE_FORKS": str(forks),
            "ANSIBLE_PIPELINING": "True",
            "ANSIBLE_NOCOLOR": "1",
            "LC_ALL": "C.UTF-8",
            **self._more,
        }

    def words(self, session: str, *more: str, first: int | None = None) -> list[str]:
        """The call of the playbook."""
        play = [str(PLAY), "-i", str(self.inventory(first)), str(PLAYBOOK)]
        return [*play, "-e", f"tunectl_session={session}", *more]

    def run(self, session: str, *more: str) -> subprocess.CompletedProcess[str]:
        """One round."""
        words = self.words(session, *more)
        return subprocess.run(
            words, env=self.environment(), cwd=self.place, capture_output=True, text=True, timeout=600
        )

    def report(self, session: str) -> Any:
        """What `tunectl fleet report --save` wrote."""
        return json.loads((self.place / "sessions" / session / "report.json").read_text())
