"""Builds recorded hosts: `build(root, spec)` writes one, `build_named(root, "xeon2s")` one of the catalogue.

A pytest fixture for it is three lines (tests/conftest.py):

    @pytest.fixture(scope="session")
    def host_root(tmp_path_factory): return HostFactory(tmp_path_factory.mktemp("hosts"))

`host_root("lab4")` gives a shared tree, for reading only; `host_root.fresh("lab4", tmp_path)` one that may be written.
"""

import dataclasses
import tempfile
from pathlib import Path

from tests.hosts import catalogue
from tests.hosts.cpu_files import write_cpus
from tests.hosts.device_files import write_devices
from tests.hosts.kernel_files import write_kernel
from tests.hosts.spec import HostSpec
from tests.hosts.tree import Tree
from tests.hosts.user_files import write_user
from tunectl.cpulist import CpuSet

NAMES = tuple(catalogue.HOSTS)


def build(root: Path, spec: HostSpec) -> Path:
    """Writes the files of one host below `root`, which need not exist, and returns it."""
    root.mkdir(parents=True, exist_ok=True)
    tree = Tree(root)
    for write in (write_kernel, write_cpus, write_devices, write_user):
        write(tree, spec)
    return root


def named(name: str, *, tuned_boot: CpuSet = frozenset()) -> HostSpec:
    """A host of the catalogue by name; with `tuned_boot`, booted with these CPUs isolated."""
    return dataclasses.replace(catalogue.HOSTS[name](), tuned_boot=tuned_boot)


def generated(cpus: int = 256, irqs: int = 4096) -> HostSpec:
    """A large two-socket host, for measuring speed."""
    return catalogue.generated(cpus, irqs)


def bind_cooler(root: Path, zone: int, device: int, trip: int = 0) -> None:
    """A cooling device is bound to a trip of a zone, as the kernel shows it."""
    place = root / f"sys/class/thermal/thermal_zone{zone}"
    (place / "cdev0").symlink_to(f"../cooling_device{device}")
    (place / "cdev0_trip_point").write_text(f"{trip}\n")


def build_named(root: Path, name: str, *, tuned_boot: CpuSet = frozenset()) -> Path:
    """build() of named()."""
    return build(root, named(name, tuned_boot=tuned_boot))


class HostFactory:
    """What the `host_root` fixture hands out: trees by name, each built once."""

    def __init__(self, below: Path) -> None:
        self._below = below
        self._built: dict[tuple[str, CpuSet], Path] = {}

    def __call__(self, name: str, *, tuned_boot: CpuSet = frozenset()) -> Path:
        """A shared tree, for reading only."""
        key = (name, tuned_boot)
        if key not in self._built:
            self._built[key] = self.fresh(name, self._below, tuned_boot=tuned_boot)
        return self._built[key]

    def fresh(self, name: str, below: Path, *, tuned_boot: CpuSet = frozenset()) -> Path:
        """A tree of one's own, below `below`, that may be written."""
        place = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=below))
        place.chmod(0o755)
        return build_named(place, name, tuned_boot=tuned_boot)
