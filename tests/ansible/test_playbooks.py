"""The playbooks over recorded hosts: provision, again, sabotage, drift, mend, restore; and input that is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ansible.conftest import Play, recorded
from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import HostFactory
from tests.ran import Ran
from tests.trees import differences, picture

pytestmark = pytest.mark.slow

TUNE = ("--skip-tags", "install,monitor,timer")
SABOTAGED = "proc/sys/vm/swappiness"


def test_a_host_from_bare_to_tuned_and_back(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    """One play of each kind; that a second one changes nothing is the module's own test, too (test_module.py)."""
    root = host_root.fresh("lab4", tmp_path)
    hosts = {"lab4": recorded(root, tunectl_host_budget={"max_ns": 50000})}
    bare = picture(root)

    planned = play("tunectl.host.provision", hosts, *TUNE, "--check", "--diff")
    assert (planned.code, planned.counts("lab4")["changed"]) == (0, 1), planned.out
    assert "+max_ns = 50000" in planned.out
    assert "--- before: settings\n+++ after: settings\n" in planned.out
    assert "\n-mm.swappiness = 60\n" in planned.out
    assert not differences(bare, root)

    first = play("tunectl.host.provision", hosts, *TUNE)
    assert (first.code, first.counts("lab4")["changed"]) == (0, 1), first.out
    assert 'isolated = "2-3"' in (root / "etc/tunectl/host.toml").read_text()
    assert "a reboot is pending" in first.out

    (root / SABOTAGED).write_text("60\n")
    drift = play("tunectl.host.drift", hosts)
    assert (drift.code, drift.counts("lab4")["changed"]) == (2, 0)
    assert drift.said("lab4").startswith("drifted: ")
    assert "mm.swappiness is 60, should be " in drift.said("lab4")

    restored = play("tunectl.host.restore", hosts, "--skip-tags", "services")
    assert (restored.code, restored.counts("lab4")["changed"]) == (0, 1), restored.out
    (root / "etc/tunectl/host.toml").unlink()
    (root / "etc/tunectl").rmdir()
    assert not differences(bare, root)


def test_the_timer_comes_with_its_variable_and_goes_without(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    timer = root / "etc/systemd/system/tunectl-preflight.timer"
    for at, changed in (("Mon..Fri 07:45 Europe/London", 1), ("Mon..Fri 07:45 Europe/London", 0), ("", 1), ("", 0)):
        host = recorded(root, tunectl_preflight_at=at, tunectl_preflight_start=False)
        done = play("tunectl.host.provision", {"lab4": host}, "--tags", "timer")
        assert (done.code, done.counts("lab4")["changed"]) == (0, changed), done.out
        assert timer.exists() == bool(at)
        assert not at or f"OnCalendar={at}\n" in timer.read_text()


@pytest.mark.long
def test_a_second_run_changes_nothing_or_mends(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    hosts = {"lab4": recorded(root)}
    assert play("tunectl.host.provision", hosts, *TUNE).code == 0
    tuned = picture(root)
    again = play("tunectl.host.provision", hosts, *TUNE)
    assert (again.code, again.counts("lab4")["changed"]) == (0, 0), again.out
    assert "a reboot is pending" in again.out
    assert not differences(tuned, root)

    (root / SABOTAGED).write_text("60\n")
    mended = play("tunectl.host.provision", hosts, *TUNE)
    assert (mended.code, mended.counts("lab4")["changed"]) == (0, 1), mended.out
    assert (root / SABOTAGED).read_text() != "60\n"


# host -> (recorded host, variables, what is said)
BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "name": ("lab4", {"tunectl_host_isolatd": "2-3"}, "tunectl_host_isolatd: did you mean tunectl_host_isolated?"),
    "option": ("lab4", {"tunectl_tune_reboott": True}, "tunectl_tune_reboott: did you mean tunectl_tune_reboot?"),
    "type": ("lab4", {"tunectl_host_count": "many"}, "tunectl_host_count"),
    "table": ("lab4", {"tunectl_host_budget": {"max_n": 1}}, "max_n"),
    "number": ("lab4", {"tunectl_host_budget": {"max_ns": "fast"}}, "max_ns"),
    "waiver": ("lab4", {"tunectl_host_waivers": [{"knob": "mm.ksm", "until": "2027-01-01"}]}, "reason"),
    "day": (
        "lab4",
        {"tunectl_host_waivers": [{"knob": "mm.ksm", "reason": "x", "until": "soon"}]},
        "host.waivers.until: 'soon' is no date",
    ),
    "sink": ("lab4", {"tunectl_host_monitor": {"log": "mail"}}, "journal, syslog, none"),
    "cpus": ("lab4", {"tunectl_host_isolated": "2-9"}, "'2-9' is past the last CPU, 3"),
    "grammar": ("lab4", {"tunectl_host_isolated": "two"}, "not a CPU list"),
    "everything": ("lab4", {"tunectl_host_isolated": "0-3"}, "no housekeeping CPU is left"),
    "halves": ("xeon2s", {"tunectl_host_isolated": "2-3"}, "shares its core with CPU"),
    "profile": ("lab4", {"tunectl_host_profile": "fast"}, "there is no profile 'fast'"),
    "knob": ("lab4", {"tunectl_host_knobs": {"mm.swapiness": 1}}, "did you mean mm.swappiness?"),
    "nic": ("lab4", {"tunectl_host_nic": "eth9"}, "there is no network interface 'eth9'; this host has"),
}


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(
            ("name", "option", "table", "day", "cpus"), id="one-of-each-judge"
        ),  # names, types, the module, tunectl itself
        pytest.param(tuple(BAD), id="all", marks=pytest.mark.long),
    ],
)
def test_bad_input_is_refused_before_the_first_change(play: Play, host_root: HostFactory, bad: tuple[str, ...]) -> None:
    roots = {name: host_root(BAD[name][0]) for name in bad}
    before = {root: picture(root) for root in roots.values()}
    hosts = {name: recorded(roots[name], **BAD[name][1]) for name in bad}
    done = play("tunectl.host.provision", hosts, *TUNE, "--forks", "2")
    assert done.code == 2
    for name in bad:
        said = BAD[name][2]
        assert done.counts(name) | {"changed": 0, "failed": 1} == done.counts(name)
        assert said in done.said(name), name
    for root, was in before.items():
        assert not differences(was, root)


HOOK = """
- name: Leave a mark
  ansible.builtin.copy:
    content: ""
    dest: "{{ marks }}/{{ inventory_hostname }}"
    mode: "0644"
"""


@pytest.mark.parametrize("together", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_roll_ends_with_the_first_host_that_fails(
    play: Play, tunectl: Callable[..., Ran], host_root: HostFactory, tmp_path: Path, together: int
) -> None:
    """Ansible refuses to reboot the machine it runs on: to the roll, that is a host that could not be rebooted."""
    names = ("one", "two", "three")
    marks, drain = tmp_path / "marks", tmp_path / "drain.yml"
    marks.mkdir()
    drain.write_text(HOOK)
    hosts = {}
    for name in names:
        root = host_root.fresh("lab4", tmp_path)
        write_host_file(root, LOW_LATENCY)
        assert tunectl("apply", "--yes", "--root", root).code == 4
        hosts[name] = recorded(root, tunectl_tune_reboot=True, tunectl_tune_drain=str(drain), marks=str(marks))
    done = play("tunectl.host.reboot", hosts, "-e", f"tunectl_serial={together}")
    assert done.code == 2
    assert "would reboot the control node" in done.said("one")
    assert sorted(path.name for path in marks.iterdir()) == sorted(names[:together])


def test_an_upgrade_ends_with_the_first_host_that_refuses(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    roots = {name: host_root.fresh("lab4", tmp_path) for name in ("one", "two")}
    hosts = {"one": recorded(roots["one"], tunectl_host_isolated="2-9"), "two": recorded(roots["two"])}
    before = picture(roots["two"])
    done = play("tunectl.host.upgrade", hosts, *TUNE)
    assert done.code == 2
    assert "past the last CPU" in done.said("one")
    assert "[two]" not in done.out
    assert not differences(before, roots["two"])


@pytest.mark.long
def test_an_upgrade_proves_each_host_before_the_next(play: Play, host_root: HostFactory, tmp_path: Path) -> None:
    """The first host proves itself, the second one refuses its list: the third keeps what it has."""
    roots = {name: host_root.fresh("lab4", tmp_path) for name in ("one", "two", "three")}
    hosts = {name: recorded(root) for name, root in roots.items()}
    hosts["two"]["tunectl_host_isolated"] = "2-9"
    before = picture(roots["three"])
    done = play("tunectl.host.upgrade", hosts, *TUNE)
    assert done.code == 2
    assert done.counts("one")["changed"] == 1, done.out
    assert "past the last CPU" in done.said("two")
    assert "[three]" not in done.out
    assert not differences(before, roots["three"])
    del hosts["two"]["tunectl_host_isolated"]
    again = play("tunectl.host.upgrade", hosts, *TUNE)
    assert (again.code, again.counts("one")["changed"], again.counts("three")["changed"]) == (0, 0, 1), again.out
