"""What this user may not read is not known: neither in force nor drifted, and never left out."""

import subprocess
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


CRON = {
    "usr/lib/systemd/system/cron.service": "[Service]\nExecStart=/usr/sbin/cron -f\n",
    "etc/debian_version": "12.5\n",
}
CRON_D = {**CRON, "etc/cron.d/a": f"@daily root {WRITES}\n"}
LATE = f"{SYSTEM}/late.service"
TLP = "CPU_SCALING_GOVERNOR_ON_AC=powersave\nCPU_SCALING_GOVERNOR_ON_BAT=powersave\n"


def put(tree: Path, files: dict[str, str]) -> None:
    """A script may be executed, and a service is wanted."""
    for path, text in files.items():
        write(tree, path, text)
        (tree / path).chmod(0o755 if text.startswith("#!") else 0o644)
    for unit in [path for path in files if path.startswith(SYSTEM)]:
        (tree / SYSTEM / "multi-user.target.wants" / Path(unit).name).symlink_to(f"/{unit}")


@needs_root
@pytest.mark.parametrize(
    ("row", "place", "files"),
    [
        ("cron", "etc/cron.d/a", CRON_D),
        ("cron", "etc/cron.d", CRON_D),
        ("cron", "var/spool/cron/crontabs", {**CRON, "var/spool/cron/crontabs/root": f"@daily {WRITES}\n"}),
        ("rc.local", "etc/rc.local", {"etc/rc.local": f"#!/bin/sh\n{WRITES}\n"}),
        ("services", LATE, {LATE: f"[Service]\nExecStart=/sbin/{WRITES}\n"}),
        ("services", "opt/late", {LATE: "[Service]\nExecStart=/opt/late\n", "opt/late": f"#!/bin/sh\n{WRITES}\n"}),
        ("sysctl.d", "etc/sysctl.d/a.conf", {"etc/sysctl.d/a.conf": "vm.swappiness = 60\n"}),
        (
            "tlp",
            "etc/tlp.conf",
            {f"{SYSTEM}/tlp.service": "[Service]\nExecStart=/usr/sbin/tlp init start\n", "etc/tlp.conf": TLP},
        ),
    ],
)
def test_a_writer_that_may_not_be_read_is_unreadable_and_one_that_may_is_drift(
    row: str, place: str, files: dict[str, str], tree: Path
) -> None:
    put(tree, files)
    open_to_all(tree)
    target = f"check.other_tuners[{row}]"
    check = ("check", "--window", "0.1", str(TUNERS))
    assert findings(tree, *check)[target]["outcome"] == "drifted"
    close(tree / place)
    found = findings(tree, *check)
    assert found[target]["outcome"] == "unreadable"
    assert f"/{place}: Permission denied" in found[target]["reason"]
    assert found[target]["fix"] == str(AS_ROOT)
    others = {name for name in found if name.startswith("check.other_tuners") and name != target}
    assert not any(found[name]["outcome"] == "unreadable" for name in others)


@pytest.mark.slow
@needs_root
def test_a_drift_that_is_known_anyway_names_what_could_not_be_read_besides(tree: Path) -> None:
    write(tree, "proc/swaps", "Filename Type Size Used Priority\n/swapfile file 8 0 -2\n")
    put(tree, {**CRON_D, "etc/cron.d/b": f"@daily root {WRITES}\n"})
    closed = {
        "mm.swap": "etc/fstab",
        "systemd.apply_on_hotplug": "etc/udev/rules.d/95-tunectl.rules",
        "check.other_tuners[cron]": "etc/cron.d/b",
    }
    (tree / f"{SYSTEM}/tunectl-reapply@.service").write_text("[Service]\nExecStart=/bin/true\n")
    open_to_all(tree)
    assert "Permission denied" not in str(findings(tree, "verify"))
    for path in closed.values():
        close(tree / path)
    found = findings(tree, "verify") | findings(tree, "check", "--window", "0.1")
    for target, path in closed.items():
        assert found[target]["outcome"] == "drifted", found[target]
        assert f"is not known: /{path}: Permission denied" in found[target]["reason"]
    assert "/etc/cron.d/a:1" in found["check.other_tuners[cron]"]["reason"]


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
