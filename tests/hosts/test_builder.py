"""The generated hosts have what real ones have: the files every knob reads, links that lead somewhere."""

import subprocess
from pathlib import Path

import pytest

from tests.hosts.builder import NAMES, HostFactory, named
from tunectl.cpulist import parse_cpumask
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.row import Knob

SMALL = [name for name in NAMES if name != "big"]
LIVE = Path("/sys/devices/system/cpu/cpu0")


@pytest.mark.parametrize("knob", KNOBS.values(), ids=lambda knob: knob.name)
def test_every_knob_has_a_host_to_be_read_on(host_root: HostFactory, knob: Knob) -> None:
    for path in knob.driver.describe():
        if path.startswith(("/proc", "/sys")):
            here = (
                path.lstrip("/")
                .partition(" ")[0]
                .replace("PID", "2")
                .replace("cpuN", "cpu8")
                .replace("stateM", "state1")
            )
            here = here.replace("net/N/", "net/ens2f0/").replace("x-M", "x-0")
            here = here.replace("nodeN", "node0").replace("uncore_frequency/N", "uncore_frequency/uncore00")
            here = here.replace("pci/devices/N", "pci/devices/0000:b1:00.0")
            if here.startswith("sys/fs/cgroup/"):  # a group's files are there once the controller is handed down to it
                here = "sys/fs/cgroup/cgroup.controllers"
            tried = [here, here.replace("irq/N", "irq/25"), here.replace("irq/N", "irq/50")]
            assert any((host_root(name) / one).exists() for name in SMALL for one in tried), path


@pytest.mark.parametrize("name", SMALL)
def test_links_lead_somewhere(host_root: HostFactory, name: str) -> None:
    root = Sysroot(str(host_root(name)))
    for path in root.walk("sys"):
        assert not root.readlink(path) or Path(root.resolve(path)).exists(), path


@pytest.mark.parametrize("below", ["topology", "cache/index0"])
def test_a_real_cpu_has_what_ours_have(host_root: HostFactory, below: str) -> None:
    ours = host_root("vm2") / "sys/devices/system/cpu/cpu0" / below
    if not (LIVE / below).is_dir():
        pytest.skip(f"this machine has no {LIVE / below}")
    real = {path.name for path in (LIVE / below).iterdir()}
    assert {path.name for path in ours.iterdir()} <= real


@pytest.mark.parametrize("name", SMALL)
def test_a_tuned_boot_is_consistent(host_root: HostFactory, name: str) -> None:
    spec = named(name)
    tuned = frozenset({max(spec.online)})
    root = Sysroot(str(host_root(name, tuned_boot=tuned)))
    cpu = str(max(spec.online))
    assert root.get("sys/devices/system/cpu/isolated") == cpu
    assert root.get("sys/devices/system/cpu/nohz_full") == cpu
    assert f"isolcpus=managed_irq,domain,{cpu} nohz_full={cpu} rcu_nocbs={cpu} irqaffinity=" in root.get("proc/cmdline")
    for mask in ("proc/irq/default_smp_affinity", "sys/devices/virtual/workqueue/cpumask"):
        assert parse_cpumask(root.get(mask)) == spec.all_possible - tuned


def test_the_grub_configuration_is_a_shell_script(host_root: HostFactory) -> None:
    tree = host_root("lab4", tuned_boot=frozenset({2, 3}))
    script = '. "$1"; printf %s "$GRUB_CMDLINE_LINUX_DEFAULT"'
    ran = subprocess.run(
        ["sh", "-c", script, "sh", tree / "etc/default/grub"], capture_output=True, text=True, check=True
    )
    assert ran.stdout.endswith(" skew_tick=1 nosoftlockup tsc=reliable")
    assert ran.stdout in (tree / "proc/cmdline").read_text()
