"""Two hosts of the lab as Ansible sees a cage: an inventory, and playbooks over ssh as a user who may sudo."""

import json
import os
import subprocess
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.ansible.conftest import Played
from tests.ansible.units import COLLECTION
from tunectl.cli.main import COMMANDS

from . import fresh
from .lab import Lab

# Units of services, where this tunectl has them.
WITHOUT = () if "service" in COMMANDS else ("--skip-tags", "monitor,services")
_HOOK = """
- name: Write down who is {word}ed
  ansible.builtin.shell: echo {word} {{{{ inventory_hostname }}}} >> {log}
  delegate_to: localhost
  become: false
  changed_when: false
"""


@dataclass
class Cage:
    """The hosts by name, in the order in which a roll takes them, and the wheels to install."""

    hosts: dict[str, Lab]
    place: Path
    wheel: Path
    wheelhouse: Path
    variables: dict[str, Any] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """What the hooks wrote: "drain alpha", "undrain alpha", ..."""
        return self.place / "hooks.log"

    def play(self, playbook: str, *words: str, timeout: float = 3600, **extra: Any) -> Played:
        """Runs a playbook of the collection over all hosts; `extra` are extra variables."""
        self._prepare()
        for host in self.hosts.values():
            fresh.connect(host.vm).close()  # a kept connection does not survive a reboot that it does not know of
        done = subprocess.run(
            [
                str(Path(sysconfig.get_path("scripts")) / "ansible-playbook"),
                *("-i", str(self.place / "inventory.json"), f"tunectl.host.{playbook}", *words),
                *("-e", json.dumps(extra)),
            ],
            env=self._environment(),
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert "Traceback" not in done.stdout, done.stdout
        return Played(done.returncode, done.stdout)

    def boot_ids(self) -> dict[str, str]:
        """Each host's boot."""
        return {name: host.read("/proc/sys/kernel/random/boot_id") for name, host in self.hosts.items()}

    def _prepare(self) -> None:
        there = self.place / "collections/ansible_collections/tunectl/host"
        if not there.exists():
            there.parent.mkdir(parents=True)
            there.symlink_to(COLLECTION)
        for word in ("drain", "undrain"):
            (self.place / f"{word}.yml").write_text(_HOOK.format(word=word, log=self.log))
        hosts = {name: self._connection(host) for name, host in self.hosts.items()}
        everyone = {
            "ansible_user": "ops",
            "ansible_host": "127.0.0.1",
            "ansible_python_interpreter": "/usr/bin/python3",
            "tunectl_install_wheel": str(self.wheel),
            "tunectl_install_wheelhouse": str(self.wheelhouse),
            "tunectl_tune_drain": str(self.place / "drain.yml"),
            "tunectl_tune_undrain": str(self.place / "undrain.yml"),
            "tunectl_tune_settle_s": 300,  # emulation takes long to settle after a boot
            **self.variables,
        }
        (self.place / "inventory.json").write_text(json.dumps({"tunectl": {"hosts": hosts, "vars": everyone}}))

    def _connection(self, host: Lab) -> dict[str, Any]:
        # The host key is new with each image, and the way there is a loopback port of our own QEMU.
        options = "-F /dev/null -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        return {
            "ansible_port": host.vm.port,
            "ansible_ssh_private_key_file": str(host.vm.image.key),
            "ansible_ssh_common_args": options,
        }

    def _environment(self) -> dict[str, str]:
        (self.place / "ansible.cfg").touch()
        dropped = ("TUNECTL_", "ANSIBLE_", "COLUMNS")
        clean = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
        scripts = sysconfig.get_path("scripts")
        return {
            **clean,
            "PATH": f"{scripts}:{clean['PATH']}",
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_CONFIG": str(self.place / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.place / "collections"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_TIMEOUT": "60",  # a login takes seconds here
            "ANSIBLE_HOME": str(self.place / "home"),
            "XDG_STATE_HOME": str(self.place / "state"),
        }
