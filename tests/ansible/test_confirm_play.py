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
from tests.tuned import inspection_on, state_of
from tests.tuning.test_tryboot_loaders import boot_it, entries_of, wanting
from tunectl.host.writable import WritableSysroot
from tunectl.tuning.confirming import end_when_due
from tunectl.tuning.tryboot import prove
from tunectl.units import DEADLINE, RETURN

pytestmark = pytest.mark.slow

TUNE = ("--skip-tags", "install,monitor,timer")
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


# ---- a boot that is tried


def phase(play: Play, tree: Path, folder: Path, name: str, **variables: object) -> Played:
    """One phase of the role, on a host that may be rebooted: Ansible itself never reboots the machine it runs on."""
    playbook = folder / f"{name}.yml"
    task = {"ansible.builtin.import_role": {"name": "tunectl.host.tunectl_tune", "tasks_from": name}}
    start = {"hosts": "all", "gather_facts": False, "environment": "{{ tunectl_environment }}"}
    playbook.write_text(json.dumps([{**start, "tasks": [task]}]))
    wanted = {"tunectl_host_isolated": "2-3", "tunectl_host_profile": "some.toml", "tunectl_tune_reboot": True}
    return play(playbook, {"lab4": recorded(tree, **{**wanted, "tunectl_tune_settle_s": 0, **variables})})


def test_a_boot_is_tried_and_kept_once_it_was_reached(play: Play, tmp_path: Path) -> None:
    tree = wanting("grub", tmp_path)
    permanent = picture(tree / "etc/default")
    armed = phase(play, tree, tmp_path, "apply")
    assert (armed.code, armed.counts("lab4")["changed"], trial(tree)["kind"]) == (0, 1, "boot"), armed.out
    assert (len(entries_of(tree)), picture(tree / "etc/default")) == (1, permanent)
    again = phase(play, tree, tmp_path, "apply")
    assert (again.code, again.counts("lab4")["changed"], trial(tree)["status"]) == (0, 0, "armed"), again.out

    boot_it(tree, "grub")
    early = phase(play, tree, tmp_path, "keep")
    assert (early.code, early.counts("lab4")["failed"], trial(tree)["status"]) == (2, 1, "armed"), early.out
    root = WritableSysroot(str(tree))
    assert prove(inspection_on(root), root, state_of(root), wait_s=0) == []
    kept = phase(play, tree, tmp_path, "keep")
    assert (kept.code, trial(tree)["status"], entries_of(tree)) == (0, "confirmed", []), kept.out


def test_a_host_that_boots_its_old_line_again_has_failed(play: Play, tmp_path: Path) -> None:
    tree = wanting("grub", tmp_path)
    line, other = (tree / "proc/cmdline").read_text(), "99999999-0000-4000-8000-000000000002"
    phase(play, tree, tmp_path, "apply")
    boot_it(tree, "grub")
    (tree / "proc/cmdline").write_text(line)
    (tree / "proc/sys/kernel/random/boot_id").write_text(f"{other}\n")
    root = WritableSysroot(str(tree))
    end_when_due(root, state_of(root), other, wait_s=0)
    for name in ("keep", "reboot"):
        done = phase(play, tree, tmp_path, name)
        assert (done.code, done.counts("lab4")["failed"]) == (2, 1), done.out
        assert trial(tree)["why"] in done.said("lab4")
        assert f"{tree}/var/lib/tunectl/journal.jsonl" in done.said("lab4")


def test_what_is_tried_is_neither_lost_nor_booted_away(play: Play, tmp_path: Path) -> None:
    tree = wanting("grub", tmp_path)
    phase(play, tree, tmp_path, "apply")
    before = picture(tree)
    others: tuple[dict[str, object], ...] = (
        {"tunectl_host_isolated": "1-3"},
        {"tunectl_tune_confirm": "never"},
        {"tunectl_tune_reboot": False, "tunectl_host_isolated": "1-3"},
        {"tunectl_tune_reach": "nonsense"},
    )
    for other in others:
        refused = phase(play, tree, tmp_path, "apply", **other)
        assert (refused.code, refused.counts("lab4")["changed"], picture(tree)) == (2, 0, before), refused.out

    boot_it(tree, "grub")  # somebody else did
    early = phase(play, tree, tmp_path, "reboot")
    assert "has not proved itself" in early.said("lab4")  # and Ansible was not asked for a reboot
    assert trial(tree)["status"] == "armed"


def test_where_no_boot_can_be_tried_every_boot_gets_the_line(play: Play, tmp_path: Path) -> None:
    tree = wanting("grub", tmp_path)
    (tree / "etc/crypttab").write_text("root UUID=1 none luks\n")
    done = phase(play, tree, tmp_path, "apply")
    assert (done.code, trial(tree)["kind"], trial(tree)["status"]) == (0, "runtime", "confirmed"), done.out
    (untried,) = [text for text in done.out.splitlines() if "untried" in text]
    assert "passphrase" in untried
