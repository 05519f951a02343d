"""The role tunectl_tune confirms what it has applied once it has reached the host again; or the host comes back."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.ansible.conftest import Module, Play, Played, recorded
from tests.conftest import LOW_LATENCY, TUNECTL, write_host_file
from tests.hosts.builder import HostFactory
from tests.trees import differences, picture
from tunectl.units import DEADLINE, RETURN

pytestmark = pytest.mark.slow

TUNE = ("--skip-tags", "install,monitor")
# What happens to the host once it was tuned, and before anybody has confirmed it.
MEANWHILE = f"""#!/bin/sh
{TUNECTL} "$@"
code=$?
test "$1" = apply || exit $code
%s
exit $code
"""
# As the unit does at the deadline.
EXPIRES = f"""
sed -i 's/"deadline_s":[0-9.]*/"deadline_s":0/' "$TUNECTL_ROOT/var/lib/tunectl/trial.json"
{TUNECTL} deadline --quiet >&2
"""
DRIFTS = 'echo 60 > "$TUNECTL_ROOT/proc/sys/vm/swappiness"'


def trial(root: Path) -> Any:
    return json.loads((root / "var/lib/tunectl/trial.json").read_text())


def test_the_module_applies_and_confirms(module: Module, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, LOW_LATENCY)
    nothing = module({"command": "confirm"}, root)
    planned = module({"command": "apply", "confirm_within": "10m"}, root, check_mode=True)
    assert nothing["failed"]
    assert (planned["changed"], planned["confirm_refused"], "unconfirmed" in planned) == (True, "", False)
    assert not (root / "var/lib/tunectl").exists()

    applied = module({"command": "apply", "confirm_within": "10m"}, root)
    waits = applied["unconfirmed"]
    would = module({"command": "confirm", "id": waits["id"]}, root, check_mode=True)
    other = module({"command": "confirm", "id": "00000000"}, root)
    assert (waits["kind"], would["changed"], other["failed"], trial(root)["status"]) == ("runtime", True, True, "armed")
    made = [module({"command": "confirm", "id": waits["id"]}, root) for _ in range(2)]
    assert [(one["changed"], one["document"]["status"]) for one in made] == [(True, "confirmed"), (False, "confirmed")]
    assert "unconfirmed" not in module({"command": "verify"}, root)


def test_the_role_confirms_over_a_new_connection(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    root, bare = host_root.fresh("lab4", tmp_path), host_root.fresh("lab4", tmp_path)
    shutil.rmtree(bare / "etc/systemd/system")
    hosts = {"kept": recorded(root), "bare": recorded(bare)}
    done = play("tunectl.host.provision", hosts, *TUNE)
    assert (done.code, done.counts("kept")["changed"], done.counts("bare")["changed"]) == (0, 1, 1), done.out
    assert trial(root)["status"] == "confirmed"
    assert not [unit for unit in (RETURN, DEADLINE) if (root / "etc/systemd/system" / unit).exists()]
    assert not (bare / "var/lib/tunectl/trial.json").exists()
    (refused,) = [line for line in done.out.splitlines() if "without waiting for a confirmation" in line]
    assert "no systemd runs this host" in refused


def meets(play: Play, root: Path, folder: Path, meanwhile: str) -> Played:
    """The role tunes a host to which this happens."""
    program = folder / "tunectl"
    program.write_text(MEANWHILE % meanwhile)
    program.chmod(0o755)
    environment = {"TUNECTL_ROOT": str(root), "TUNECTL_PROGRAM": str(program)}
    host = {"tunectl_environment": environment, "tunectl_tune_settle_s": 0}
    return play("tunectl.host.provision", {"lab4": host}, *TUNE)


def test_a_host_that_came_back_by_itself_has_failed(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    before = picture(root)
    done = meets(play, root, tmp_path, EXPIRES)
    assert (done.code, done.counts("lab4")["failed"]) == (2, 1), done.out
    assert trial(root)["status"] == "returned"
    assert trial(root)["why"] in done.said("lab4")
    assert f"{root}/var/lib/tunectl/journal.jsonl" in done.said("lab4")
    left = {path for path in differences(before, root) if not path.startswith(("var", "etc/tunectl"))}
    assert not left


def test_what_is_not_in_force_is_not_confirmed(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    done = meets(play, root, tmp_path, DRIFTS)
    assert (done.code, done.counts("lab4")["failed"]) == (2, 1), done.out
    assert "mm.swappiness" in done.said("lab4")
    assert trial(root)["status"] == "armed"
