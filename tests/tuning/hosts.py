"""Small hosts for walks over every system call: one target of every kind of driver, and few files."""

import shutil
from dataclasses import replace
from pathlib import Path

from tests.conftest import write_host_file
from tests.hosts.builder import HostFactory, build, named
from tests.hosts.tree import Tree
from tests.hosts.user_files import write_irq_thread

# A knob of every kind of write: whole file, attribute, several files for one, choice, thread, unit and link, drop-in.
ONE_OF_EACH = {
    "net.rx_ring": "128",
    "irqbalance.banned_cpus": '"isolated"',
    "irq.default_affinity": '"housekeeping"',
    "irq.affinity": '"housekeeping"',
    "irq.thread_priority": "60",
    "mm.thp_enabled": '"never"',
    "mm.swappiness": "1",
    "cpuset.isolated": '"isolated"',
    "kthread.affinity": '"housekeeping"',
    "systemd.allowed_cpus": '"housekeeping"',
    "systemd.apply_at_boot": '"enabled"',
    "systemd.apply_on_hotplug": '"enabled"',
    "boot.isolcpus": '"isolated"',
    "boot.nohz_full": '"isolated"',
}


def small_host(host_root: HostFactory, tmp_path: Path) -> Path:
    """A host with one target of every kind of driver, so that the walk over all boundaries is short."""
    tree = host_root.fresh("vm2", tmp_path)
    keep = {"default_smp_affinity", *sorted(name.name for name in (tree / "proc/irq").iterdir() if name.is_dir())[:1]}
    for path in (tree / "proc/irq").iterdir():
        if path.name not in keep:
            shutil.rmtree(path)
    for number in keep - {"default_smp_affinity"}:
        (tree / f"proc/irq/{number}/effective_affinity_list").write_text("1\n")
        write_irq_thread(Tree(tree), 900, f"irq/{number}-virtio1-config", "0")
    grub = tree / "etc/default/grub"
    if not grub.exists():
        grub.parent.mkdir(parents=True, exist_ok=True)
        grub.write_text('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX=""\n')
    (tree / "etc/default/irqbalance").write_text("IRQBALANCE_ARGS=\n")
    (tree / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
    (tree / "var/lib").mkdir(parents=True, exist_ok=True)
    wish(tree, ONE_OF_EACH, 'isolated = "1"\n[network]\ninterfaces = ["ens3"]\n')
    return tree


def edited_host(_: HostFactory, tmp_path: Path) -> Path:
    """A host whose boot arguments are words in a file of the operator's own."""
    tree = build(tmp_path / "raspberry-pi", replace(named("lab4"), loader="raspberry-pi", os="debian"))
    wish(tree, {"boot.isolcpus": '"isolated"', "mm.swappiness": "1"}, 'isolated = "2-3"\n')
    return tree


def wish(tree: Path, knobs: dict[str, str], rest: str) -> None:
    """A host file, with a profile of its own that asks for these knobs."""
    write_host_file(tree, f'profile = "some.toml"\n{rest}')
    rows = (f'[knobs."{name}"]\nvalue = {value}\nreason = "one of each"\n' for name, value in knobs.items())
    (tree / "etc/tunectl/some.toml").write_text("".join(rows))
