"""What this user may not read is not known: neither in force nor drifted, and never left out."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bootloader.hosts import wish
from tests.hosts.builder import build, named
from tests.nobody import as_nobody, close, needs_root, open_to_all
from tests.trees import write
from tests.tuned import apply
from tunectl.host.refusals import AS_ROOT

TUNERS = Path(__file__).parents[2] / "checks/test_tuners.py"
SYSTEM = "etc/systemd/system"
SERVICE = f"{SYSTEM}/tunectl-apply.service"
KNOBS = """\
"limits.memlock_logins" = "unlimited"
"limits.memlock_services" = "unlimited"
"cpuidle.dma_latency_us" = 10
"systemd.cpu_affinity" = "housekeeping"
"""


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host that has all it is asked for, and that everybody may read: to be copied."""
    below = tmp_path_factory.mktemp("tuned")
    tree = build(below / "host", named("lab4", tuned_boot=frozenset({2, 3})))
    write(tree, "etc/fstab", "UUID=1 / ext4 defaults 0 1\n")
    write(tree, "proc/swaps", "Filename Type Size Used Priority\n")
    write(tree, "etc/default/irqbalance", "")
    write(tree, "etc/grub.d/README", "")
    for directory in ("etc/security/limits.d", "etc/systemd/system.conf.d"):
        write(tree, f"{directory}/10-site.conf", "# nothing\n")
    write(tree, f"{SYSTEM}/tunectl-apply.service.d/10-site.conf", "[Unit]\n")
    wish(tree, knobs=KNOBS, whole=True)
    apply(tree)
    open_to_all(below)
    return tree


@pytest.fixture
def tree(tuned: Path, public: Path) -> Path:
    """Such a host of one's own."""
    subprocess.run(["cp", "-a", tuned, public / "host"], check=True)
    return public / "host"


def findings(tree: Path, *words: str) -> dict[str, Any]:
    """{target: finding} of a run as nobody."""
    return {one["target"]: one for one in as_nobody(tree, *words).json["findings"]}


def wrong(tree: Path) -> dict[str, Any]:
    """Of what verify finds, all that is not as it should be."""
    fine = ("compliant", "unsupported")
    return {target: one for target, one in findings(tree, "verify").items() if one["outcome"] not in fine}


@pytest.mark.slow
@needs_root
def test_a_host_that_everybody_may_read_has_nothing_unreadable(tree: Path) -> None:
    assert wrong(tree) == {}


@needs_root
@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("etc/fstab", {"mm.swap"}),
        (SYSTEM, {"systemd.apply_at_boot", "systemd.apply_on_hotplug"}),
        ("etc/systemd", {"systemd.apply_at_boot", "systemd.apply_on_hotplug"}),
        ("etc/grub.d", {"nextboot"}),
        (SERVICE, {"systemd.apply_at_boot"}),
        (f"{SYSTEM}/multi-user.target.wants", {"systemd.apply_at_boot"}),
        (f"{SYSTEM}/tunectl-apply.service.d", {"systemd.apply_at_boot"}),
        (f"{SYSTEM}/tunectl-apply.service.d/10-site.conf", {"systemd.apply_at_boot"}),
        (f"{SYSTEM}/tunectl-latency.service", {"cpuidle.dma_latency_us"}),
        ("etc/udev/rules.d", {"systemd.apply_on_hotplug"}),
        ("etc/udev/rules.d/95-tunectl.rules", {"systemd.apply_on_hotplug"}),
        ("etc/security/limits.d", {"limits.memlock_logins"}),
        ("etc/systemd/system.conf.d", {"limits.memlock_services", "systemd.cpu_affinity"}),
        ("etc/default/irqbalance", {"irqbalance.banned_cpus"}),
    ],
)
def test_what_may_not_be_read_is_unreadable_with_its_name(path: str, rows: set[str], tree: Path) -> None:
    close(tree / path)
    found = wrong(tree)
    assert rows <= set(found)
    for one in found.values():
        assert one["outcome"] == "unreadable"
        assert f"/{path}: Permission denied" in one["reason"]
        assert one["fix"] == str(AS_ROOT)


WRITES = "sysctl -w vm.swappiness=60"


def _cron(tree: Path) -> Path:
    write(tree, "usr/lib/systemd/system/cron.service", "[Service]\nExecStart=/usr/sbin/cron -f\n")
    write(tree, "etc/debian_version", "12.5\n")
    write(tree, "etc/cron.d/a", f"@daily root {WRITES}\n")
    return tree / "etc/cron.d/a"


def _cron_directory(tree: Path) -> Path:
    return _cron(tree).parent


def _spool(tree: Path) -> Path:
    _cron(tree).unlink()
    write(tree, "var/spool/cron/crontabs/root", f"@daily {WRITES}\n")
    return tree / "var/spool/cron/crontabs"


def _rc_local(tree: Path) -> Path:
    write(tree, "etc/rc.local", f"#!/bin/sh\n{WRITES}\n")
    (tree / "etc/rc.local").chmod(0o755)
    return tree / "etc/rc.local"


def _service(tree: Path) -> Path:
    unit = tree / SYSTEM / "late.service"
    write(tree, f"{SYSTEM}/late.service", f"[Service]\nExecStart=/sbin/{WRITES}\n")
    (tree / SYSTEM / "multi-user.target.wants/late.service").symlink_to(f"/{SYSTEM}/late.service")
    return unit


def _script(tree: Path) -> Path:
    unit = _service(tree)
    unit.write_text("[Service]\nExecStart=/opt/late\n")
    write(tree, "opt/late", f"#!/bin/sh\n{WRITES}\n")
    (tree / "opt/late").chmod(0o755)
    return tree / "opt/late"


def _tlp(tree: Path) -> Path:
    write(tree, f"{SYSTEM}/tlp.service", "[Service]\nExecStart=/usr/sbin/tlp init start\n")
    (tree / SYSTEM / "multi-user.target.wants/tlp.service").symlink_to(f"/{SYSTEM}/tlp.service")
    write(tree, "etc/tlp.conf", "CPU_SCALING_GOVERNOR_ON_AC=powersave\nCPU_SCALING_GOVERNOR_ON_BAT=powersave\n")
    return tree / "etc/tlp.conf"


def _sysctl(tree: Path) -> Path:
    write(tree, "etc/sysctl.d/a.conf", "vm.swappiness = 60\n")
    return tree / "etc/sysctl.d/a.conf"


@needs_root
@pytest.mark.parametrize(
    ("act", "row"),
    [
        (_cron, "cron"),
        (_cron_directory, "cron"),
        (_spool, "cron"),
        (_rc_local, "rc.local"),
        (_service, "services"),
        (_script, "services"),
        (_sysctl, "sysctl.d"),
        (_tlp, "tlp"),
    ],
)
def test_a_writer_that_may_not_be_read_is_unreadable_and_one_that_may_is_drift(
    act: Callable[[Path], Path], row: str, tree: Path
) -> None:
    place = act(tree)
    open_to_all(tree)
    target = f"check.other_tuners[{row}]"
    check = ("check", "--window", "0.1", str(TUNERS))
    assert findings(tree, *check)[target]["outcome"] == "drifted"
    close(place)
    found = findings(tree, *check)
    assert found[target]["outcome"] == "unreadable"
    assert f"/{place.relative_to(tree)}: Permission denied" in found[target]["reason"]
    assert found[target]["fix"] == str(AS_ROOT)
    others = {name for name in found if name.startswith("check.other_tuners") and name != target}
    assert not any(found[name]["outcome"] == "unreadable" for name in others)


@needs_root
def test_a_drift_that_is_known_anyway_names_what_could_not_be_read_besides(tree: Path) -> None:
    write(tree, "proc/swaps", "Filename Type Size Used Priority\n/swapfile file 8 0 -2\n")
    first, second = _cron(tree), tree / "etc/cron.d/b"
    write(tree, "etc/cron.d/b", f"@daily root {WRITES}\n")
    rule = tree / "etc/udev/rules.d/95-tunectl.rules"
    (tree / f"{SYSTEM}/tunectl-reapply@.service").write_text("[Service]\nExecStart=/bin/true\n")
    open_to_all(tree)
    assert "Permission denied" not in str(findings(tree, "verify"))
    for place in (tree / "etc/fstab", second, rule):
        close(place)
    found = findings(tree, "verify") | findings(tree, "check", "--window", "0.1")
    for target, path in (
        ("mm.swap", "etc/fstab"),
        ("systemd.apply_on_hotplug", "etc/udev/rules.d/95-tunectl.rules"),
        ("check.other_tuners[cron]", "etc/cron.d/b"),
    ):
        assert found[target]["outcome"] == "drifted", found[target]
        assert f"is not known: /{path}: Permission denied" in found[target]["reason"]
    assert f"/{first.relative_to(tree)}:1" in found["check.other_tuners[cron]"]["reason"]


BAN = "etc/default/irqbalance"
BALANCE = "check.other_tuners[irqbalance]"


def _balanced(below: Path, *, stray: bool) -> Path:
    """A host whose irqbalance leaves the isolated CPUs alone; `stray`: somebody started another by hand."""
    spec = replace(named("lab4", tuned_boot=frozenset({2, 3})), daemons=("irqbalance",))
    tree = build(below / "host", spec)
    write(tree, BAN, "IRQBALANCE_BANNED_CPULIST=2-3\n")
    wish(tree, whole=True)
    if stray:
        write(tree, "proc/50777/comm", "irqbalance\n")
        write(tree, "proc/50777/environ", "IRQBALANCE_BANNED_CPULIST=2-3\0")
        write(tree, "proc/50777/cgroup", "0::/user.slice/user-0.slice/session-1.scope\n")
    open_to_all(below)
    return tree


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize("stray", [False, True])
def test_a_ban_list_that_may_not_be_read_is_neither_a_blame_nor_compliant(public: Path, stray: bool) -> None:
    tree = _balanced(public, stray=stray)
    assert findings(tree, "check", "--window", "0.1")[BALANCE]["outcome"] == "compliant"
    close(tree / ("proc/50777/environ" if stray else BAN))
    found = findings(tree, "check", "--window", "0.1")[BALANCE]
    assert (found["outcome"], found["fix"]) == ("unreadable", str(AS_ROOT))
    assert ("only root may see with what list" if stray else f"/{BAN}: Permission denied") in found["reason"]
