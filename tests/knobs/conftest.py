"""Hosts on which every row of the table is asked for and applied."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import HostFactory
from tests.hosts.tree import Tree
from tests.hosts.user_files import write_irq_thread
from tests.trees import Lent, Picture, picture
from tests.tuned import apply, inspection_on
from tunectl.cpulist import parse_cpulist
from tunectl.verdict import verdict_of

ISOLATED = {"lab4": "2-3", "xeon2s": "4-7,20-23", "epyc": "12-15,28-31", "sites": "2-3", "runtime": "2-3"}
# Arguments that no profile asks for: on a host whose boot had them.
SITES_WORDS = {
    "mitigations": "mitigations=auto",
    "intel_pstate": "intel_pstate=passive",
    "amd_pstate": "amd_pstate=active",
    "pcie_aspm": "pcie_aspm=off",
    "threadirqs": "threadirqs",
}


def word_value(word: str) -> str:
    """What a host file says of it: the value, or true where it has none."""
    _, equals, value = word.partition("=")
    return f'"{value}"' if equals else "true"


OWN = {  # what no profile asks for
    "lab4": '"cpufreq.min_khz" = "hardware-max"\n',
    "xeon2s": '"smt.control" = "on"\n"cpufreq.boost" = true\n"cpufreq.min_khz" = "hardware-max"\n'
    '"cpufreq.energy_performance_preference" = "performance"\n"cpufreq.intel_pstate" = "active"\n'
    '"cpufreq.min_perf_pct" = 100\n"cpufreq.hwp_dynamic_boost" = false\n"clocksource.current" = "tsc"\n'
    '"mm.hugepages_2mib" = 512\n"mm.hugepages_1gib" = "1:4"\n"kernel.soft_watchdog" = false\n'
    '"cpuidle.dma_latency_us" = 3\n"limits.memlock_logins" = "unlimited"\n"limits.memlock_services" = "unlimited"\n'
    '"net.combined_channels" = 8\n"net.rx_channels" = 2\n"net.tx_channels" = "hardware-max"\n"net.rx_ring" = 512\n'
    '"net.tx_ring" = "hardware-max"\n"net.rx_frames" = 1\n"net.tx_usecs" = 4\n"net.tx_frames" = 16\n'
    '"net.ntuple" = true\n"net.gro" = false\n"net.gro_flush_timeout_ns" = 20000\n"net.napi_defer_hard_irqs" = 2\n'
    '"net.rps_flow_cnt" = 0\n"net.xps_cpus" = "isolated"\n"net.queue_irqs" = "housekeeping"\n',
    "epyc": '"cpufreq.amd_pstate" = "active"\n"cpufreq.policy_boost" = true\n',
    "sites": "".join(f'"boot.{key}" = {word_value(word)}\n' for key, word in SITES_WORDS.items())
    + '"irq.thread_priority" = 60\n',
}
WAYS = {"lab4": "both", "runtime": "runtime"}
NICS = {"lab4": "eth0", "sites": "eth0", "xeon2s": 'ens2f0", "eno1'}


@pytest.fixture(scope="session")
def untouched() -> dict[str, Picture]:
    """The hosts of `applied`, before anything was."""
    return {}


@pytest.fixture(scope="session")
def applied(
    host_root: HostFactory, tmp_path_factory: pytest.TempPathFactory, untouched: dict[str, Picture]
) -> dict[str, Path]:
    """The hosts, booted as asked and applied: to be copied."""
    trees = {}
    for name, cpus in ISOLATED.items():
        booted = frozenset() if name == "runtime" else parse_cpulist(cpus)
        host = host_root("lab4" if name in ("sites", "runtime") else name, tuned_boot=booted)
        trees[name] = tmp_path_factory.mktemp("applied") / name
        subprocess.run(["cp", "-a", host, trees[name]], check=True)
        line = (trees[name] / "proc/cmdline").read_text().rstrip()
        extra = SITES_WORDS.values() if name == "sites" else ()
        (trees[name] / "proc/cmdline").write_text(" ".join([line, *extra]) + "\n")
        if name == "sites":
            for irq in (30, 31, 32):
                write_irq_thread(Tree(trees[name]), 900 + irq, f"irq/{irq}-virtio0", "0")
        own = f'profile = "low-latency"\nisolated = "{ISOLATED[name]}"\n'
        own += f'isolation = "{WAYS[name]}"\n' if name in WAYS else ""
        own += f'[network]\ninterfaces = ["{NICS[name]}"]\n' if name in NICS else ""
        own += f"[knobs]\n{OWN.get(name, '')}"
        write_host_file(trees[name], own)
        untouched[name] = picture(trees[name])
        apply(trees[name])
        assert verdict_of(inspection_on(trees[name]).assess().findings) == "compliant"
    return trees


@pytest.fixture(scope="module")
def host(applied: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A tuned host that verify has nothing to say about, for one test at a time."""
    below = tmp_path_factory.mktemp("lent")
    lent = {name: Lent(root, below / name) for name, root in applied.items()}
    return lambda name: lent[name]()


@pytest.fixture(scope="session")
def _applied_lab4(host_root: HostFactory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = host_root.fresh("lab4", tmp_path_factory.mktemp("applied"))
    write_host_file(root, LOW_LATENCY)
    apply(root)
    return root


@pytest.fixture
def applied4(_applied_lab4: Path, tmp_path: Path) -> Path:
    """A host of one's own as `lab4` is, on which `apply` has run in this boot."""
    subprocess.run(["cp", "-a", _applied_lab4, tmp_path / "applied4"], check=True)
    return tmp_path / "applied4"
