"""The role tunectl_monitor: secrets that only root may read, and a check mode that says what it would start."""

import os
import stat
from pathlib import Path

import pytest

from tests.ansible.conftest import Module, Play, recorded
from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import HostFactory
from tests.tuned import apply

SECRET = "https://hooks.example/services/T0/pa7h-s3cret"
SECRETS = """
- hosts: tunectl
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: tunectl.host.tunectl_monitor
        tasks_from: secrets
"""
WHOLE = """
- hosts: tunectl
  gather_facts: false
  environment: "{{ tunectl_environment }}"
  tasks:
    - ansible.builtin.import_role:
        name: tunectl.host.tunectl_monitor
"""


def webhook(**keys: str) -> dict[str, object]:
    return {"isolated": "2-3", "monitor": {"webhooks": [keys]}}


@pytest.mark.slow
def test_an_address_with_a_secret_is_shown_nowhere(module: Module, host_root: HostFactory, tmp_path: Path) -> None:
    """Neither the new one nor the one that stands in the host file, and the operator is warned."""
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, f'{LOW_LATENCY}[[monitor.webhooks]]\nurl = "https://old.example/an-0ld-s3cret?x=1"\n')
    done = module({"command": "configure", "host": webhook(url=SECRET)}, root, check_mode=True)
    assert not done.get("failed")
    assert done["changed"]
    assert "pa7h-s3cret" not in done["_raw"]
    assert "0ld-s3cret" not in done["_raw"]
    assert 'url = "https://old.example/(hidden)"' in done["diff"][0]["before"]
    assert "monitor.webhooks[0].url: everybody on the host may read the host file" in str(done["warnings"])
    assert "url_file" in str(done["warnings"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [
        {"url_file": "/run/credentials/tunectl-monitor.service/desk"},
        {"url": "https://alerts.example:9093", "format": "alertmanager"},
        {"url": "https://alerts.example:9093/api/v2/alerts", "format": "alertmanager"},
    ],
)
def test_an_address_without_a_secret_is_no_reason_to_warn(
    module: Module, host_root: HostFactory, tmp_path: Path, keys: dict[str, str]
) -> None:
    root = host_root.fresh("lab4", tmp_path)
    done = module({"command": "plan", "host": webhook(**keys)}, root)
    assert not done.get("failed"), done["msg"]
    assert "warnings" not in done


@pytest.mark.long
def test_a_secret_stands_in_a_file_that_only_root_may_read(play: Play, tmp_path: Path) -> None:
    playbook = tmp_path / "secrets.yml"
    playbook.write_text(SECRETS)
    folder, dropin = tmp_path / "secrets", tmp_path / "unit.d/secrets.conf"
    places = ("-e", f"tunectl_monitor_folder={folder}", "-e", f"tunectl_monitor_dropin={dropin}")
    host = {"tunectl_monitor_secrets": {"desk": SECRET}, "tunectl_monitor_start": False}

    dry = play(playbook, {"one": host}, *places, "--check", "--diff", "-v")
    assert (dry.code, folder.exists()) == (0, False), dry.out
    first = play(playbook, {"one": host}, *places, "--diff", "-v")
    assert (first.code, first.counts("one")["changed"] > 0) == (0, True), first.out
    assert "s3cret" not in dry.out + first.out
    assert (folder / "desk").read_text() == f"{SECRET}\n"
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in (folder, folder / "desk")] == [0o700, 0o600]
    assert dropin.read_text() == f"[Service]\nLoadCredential=desk:{folder}/desk\n"
    again = play(playbook, {"one": host}, *places, "--diff")
    assert again.counts("one")["changed"] == 0, again.out

    other = play(playbook, {"one": host | {"tunectl_monitor_secrets": {"desk": "n3w-s3cret"}}}, *places, "--diff", "-v")
    assert other.counts("one")["changed"] > 0
    assert (folder / "desk").read_text() == "n3w-s3cret\n"
    assert "s3cret" not in other.out, "neither the new one nor the one that stood there"

    bad = play(playbook, {"one": {"tunectl_monitor_secrets": {"../desk": SECRET}}}, *places)
    assert bad.code == 2
    assert "letters, digits" in bad.said("one")
    gone = play(playbook, {"one": {"tunectl_monitor_start": False}}, *places)
    assert gone.code == 0
    assert not folder.exists()
    assert not dropin.exists()


@pytest.mark.long
def test_check_mode_says_what_it_would_start(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    """tunectl is there, the monitor's unit is not: there is nothing that could be started yet."""
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, LOW_LATENCY)
    apply(root)
    playbook = tmp_path / "monitor.yml"
    playbook.write_text(WHOLE)
    done = play(playbook, {"one": recorded(root)}, "--check", "--diff")
    assert (done.code, done.counts("one")["failed"]) == (0, 0), done.out
    assert "would start tunectl-monitor, now and at every boot" in done.out
