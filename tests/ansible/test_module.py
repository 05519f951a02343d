"""The module on a recorded host, and with programs that are no tunectl: one playbook, a task a case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ansible.conftest import Play, recorded
from tests.conftest import TUNECTL
from tests.hosts.builder import HostFactory

pytestmark = pytest.mark.slow

CASES = """
- hosts: tunectl
  gather_facts: false
  environment: "{{ tunectl_environment }}"
  tasks:
    - {name: absent, register: absent, ignore_errors: true, tunectl.host.tunectl: {command: verify, program: /none}}
    - {name: old, register: old, ignore_errors: true,
       tunectl.host.tunectl: {command: verify, program: "{{ old_program }}"}}
    - {name: rubbish, register: rubbish, ignore_errors: true,
       tunectl.host.tunectl: {command: verify, program: "{{ rubbish_program }}"}}
    - {name: bare, register: bare, ignore_errors: true, tunectl.host.tunectl: {command: verify}}
    - {name: misplaced, register: misplaced, ignore_errors: true,
       tunectl.host.tunectl: {command: verify, host: {isolated: "2-3"}}}
    - {name: applied, register: applied, tunectl.host.tunectl: {command: apply, host: {isolated: "3"}}}
    - {name: kept, register: kept, tunectl.host.tunectl: {command: configure, host: {isolated: proposal}}}
    - {name: renewed, register: renewed, check_mode: true, diff: true,
       tunectl.host.tunectl: {command: apply, runtime: true, host: {isolated: proposal, renew: true, count: 2}}}
    - {name: verified, register: verified, tunectl.host.tunectl: {command: verify}}
    - {name: flight, register: flight, tunectl.host.tunectl: {command: preflight, duration_s: 1, window_s: 0.1}}
    - {name: back, register: back, check_mode: true, tunectl.host.tunectl: {command: restore}}
    - {name: write, ansible.builtin.copy: {dest: "{{ results }}", mode: "0644", content: "{{ all_of_it | to_json }}"}}
"""
NAMES = ("absent", "old", "rubbish", "bare", "misplaced", "applied", "kept", "renewed", "verified", "flight", "back")


def fake(path: Path, line: str) -> str:
    """A program that says one line and ends with 2."""
    path.write_text(f"#!/bin/sh\n{line}\nexit 2\n")
    path.chmod(0o755)
    return str(path)


def test_outcomes_are_data_and_failures_are_one_clear_line(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    playbook, results = tmp_path / "cases.yml", tmp_path / "results.json"
    playbook.write_text(CASES)
    host = recorded(
        root,
        old_program=fake(tmp_path / "old", "echo \"tunectl: No such option '--quiet'.\" >&2"),
        rubbish_program=fake(tmp_path / "rubbish", "echo hello; exit 0"),
        results=str(results),
        all_of_it={name: f"{{{{ {name} }}}}" for name in NAMES},
    )
    done = play(playbook, {"lab4": host})
    assert done.code == 0, done.out
    got = json.loads(results.read_text())

    assert {name for name in NAMES if got[name].get("failed")} == {"absent", "old", "rubbish", "bare", "misplaced"}
    assert got["absent"]["msg"] == "there is no /none on this host: the role tunectl.host.tunectl_install puts it there"
    assert "is too old for this collection: No such option" in got["old"]["msg"]
    assert got["rubbish"]["msg"].endswith("its output is no JSON: 'hello\\n'")
    assert got["bare"]["msg"].startswith(f"there is no host file {root}/etc/tunectl/host.toml")
    assert "host: has a meaning with plan, apply and configure only" in got["misplaced"]["msg"]

    applied = got["applied"]
    assert (applied["changed"], applied["verdict"], applied["reboot_required"]) == (True, "pending-reboot", True)
    assert applied["program"] == str(TUNECTL)
    assert applied["document"]["schema"] == "tunectl.apply/1"
    assert applied["outcomes"]["pending-reboot"] == len(applied["reasons"])
    assert (got["kept"]["isolated"], got["kept"]["changed"]) == ("3", False)
    assert (applied["host_file_changed"], got["kept"]["host_file_changed"]) == (True, False)

    renewed = got["renewed"]
    assert (renewed["isolated"], renewed["changed"]) == ("2-3", True)
    assert {one["lifetime"] for one in renewed["changes"]} == {"runtime"}
    first, *others = renewed["diff"]
    assert ('isolated = "3"' in first["before"], 'isolated = "2-3"' in first["after"]) == (True, True)
    assert [one["after_header"] for one in others] == [one["target"] for one in renewed["changes"]]
    assert 'isolated = "3"' in (root / "etc/tunectl/host.toml").read_text()

    assert (got["verified"]["changed"], got["verified"]["verdict"]) == (False, "pending-reboot")
    assert got["verified"]["boot_id"] == got["verified"]["document"]["host"]["boot_id"]
    assert got["flight"]["verdict"] == "unknown"
    assert "probe: a recorded host cannot be measured" in got["flight"]["reasons"]
    assert (got["back"]["changed"], got["back"]["reboot_required"]) == (True, True)
