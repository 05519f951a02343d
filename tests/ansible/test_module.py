"""The module on a recorded host, and with programs that are no tunectl, started as Ansible starts it on a target."""

from pathlib import Path

import pytest

from tests.ansible.conftest import Module
from tests.conftest import TUNECTL
from tests.hosts.builder import HostFactory

pytestmark = pytest.mark.slow


def fake(path: Path, line: str) -> str:
    """A program that says one line and ends with 2."""
    path.write_text(f"#!/bin/sh\n{line}\nexit 2\n")
    path.chmod(0o755)
    return str(path)


def test_outcomes_are_data_and_failures_are_one_clear_line(
    module: Module, host_root: HostFactory, tmp_path: Path
) -> None:
    root = host_root.fresh("lab4", tmp_path)
    old = fake(tmp_path / "old", "echo \"tunectl: No such option '--quiet'.\" >&2")
    rubbish = fake(tmp_path / "rubbish", "echo hello; exit 0")
    renew = {"isolated": "proposal", "renew": True, "count": 2}
    got = {
        "absent": module({"command": "verify", "program": "/none"}, root),
        "old": module({"command": "verify", "program": old}, root),
        "rubbish": module({"command": "verify", "program": rubbish}, root),
        "bare": module({"command": "plan"}, root),
        "proposed": module({"command": "verify"}, root),
        "misplaced": module({"command": "verify", "host": {"isolated": "2-3"}}, root),
        "applied": module({"command": "apply", "host": {"isolated": "3"}}, root),
        "kept": module({"command": "configure", "host": {"isolated": "proposal"}}, root),
        "renewed": module({"command": "apply", "runtime": True, "host": renew}, root, check_mode=True),
        "again": module({"command": "apply", "host": {"isolated": "3"}}, root),
        "verified": module({"command": "verify"}, root),
        "whole": module({"command": "verify", "document": True}, root),
        "flight": module({"command": "preflight", "duration_s": 1, "window_s": 0.1}, root),
        "back": module({"command": "restore"}, root, check_mode=True),
    }

    bad = {name for name, one in got.items() if one.get("failed")}
    assert bad == {"absent", "old", "rubbish", "bare", "misplaced"}
    assert got["absent"]["msg"] == "there is no /none on this host: the role tunectl.host.tunectl_install puts it there"
    assert "is too old for this collection: No such option" in got["old"]["msg"]
    assert got["rubbish"]["msg"].endswith("its output is no JSON: 'hello\\n'")
    assert got["bare"]["msg"].startswith(f"there is no host file {root}/etc/tunectl/host.toml")
    assert got["proposed"]["verdict"] == "drifted"
    assert "host: has a meaning with plan, apply and configure only" in got["misplaced"]["msg"]

    applied = got["applied"]
    assert (applied["changed"], applied["verdict"], applied["reboot_required"]) == (True, "pending-reboot", True)
    assert applied["program"] == str(TUNECTL)
    assert "document" not in applied
    assert applied["outcomes"]["pending-reboot"] == len(applied["reasons"])
    assert (got["kept"]["isolated"], got["kept"]["changed"]) == ("3", False)
    assert (applied["host_file_changed"], got["kept"]["host_file_changed"]) == (True, False)
    assert (got["again"]["changed"], got["again"]["changes"]) == (False, [])

    renewed = got["renewed"]
    assert (renewed["isolated"], renewed["changed"]) == ("2-3", True)
    assert {one["lifetime"] for one in renewed["changes"]} == {"runtime"}
    first, *others = renewed["diff"]
    assert ('isolated = "3"' in first["before"], 'isolated = "2-3"' in first["after"]) == (True, True)
    assert [one["after_header"] for one in others] == ["settings"]
    assert "irq.affinity[0-1,4,8-9,24,28,30-32] = 0-1\n" in others[0]["after"]
    assert len(others[0]["after"].splitlines()) < len(renewed["changes"])
    assert 'isolated = "3"' in (root / "etc/tunectl/host.toml").read_text()

    assert got["whole"]["document"]["schema"] == "tunectl.verify/1"
    assert (got["verified"]["changed"], got["verified"]["verdict"]) == (False, "pending-reboot")
    assert got["verified"]["boot_id"] == applied["boot_id"]
    assert got["flight"]["verdict"] == "unknown"
    assert "probe: a recorded host cannot be measured" in got["flight"]["reasons"]
    assert got["back"]["document"]["schema"] == "tunectl.restore/1"
    for one in got.values():
        assert one["_raw"].index('"msg"') < (400 if one.get("failed") else 5)  # Ansible puts it behind what is short
        assert len(one["msg"]) < 400
    assert all(one["_raw"].index("invocation") < 2000 for one in got.values() if one.get("failed"))
    assert (got["back"]["changed"], got["back"]["reboot_required"]) == (True, False)  # it never booted them
