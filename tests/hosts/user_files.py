"""What the distribution and the running programs add: /etc, /boot, processes, control groups."""

from tests.hosts.boot_files import write_boot
from tests.hosts.spec import HostSpec
from tests.hosts.tree import Tree
from tunectl.cpulist import format_cpulist
from tunectl.host.procs import OF_NODES

_RELEASE = {
    "debian": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
    "ubuntu": 'PRETTY_NAME="Ubuntu 24.04 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n',
    "fedora": 'PRETTY_NAME="Fedora Linux 42 (IoT Edition)"\nNAME="Fedora Linux"\nVERSION_ID="42"\nID=fedora\n',
    "suse": 'PRETTY_NAME="openSUSE Leap 15.6"\nNAME="openSUSE Leap"\nVERSION_ID="15.6"\nID="opensuse-leap"\n'
    'ID_LIKE="suse opensuse"\n',
    "pop": 'PRETTY_NAME="Pop!_OS 22.04 LTS"\nNAME="Pop!_OS"\nVERSION_ID="22.04"\nID=pop\nID_LIKE="ubuntu debian"\n',
    "rhel": 'PRETTY_NAME="Red Hat Enterprise Linux 10.0"\nNAME="Red Hat"\nVERSION_ID="10.0"\nID="rhel"\n',
}
_KTHREADS = ("cpuhp/{}", "migration/{}", "ksoftirqd/{}", "kworker/{}:0-events")


def write_user(tree: Tree, spec: HostSpec) -> None:
    """Configuration files of the distribution, its boot loader, its daemons and processes."""
    tree.text("usr/lib/os-release", _RELEASE[spec.os])
    tree.link("etc/os-release", "../usr/lib/os-release")
    write_boot(tree, spec)
    _write_sysctl_d(tree)
    tree.directory("etc/udev/rules.d")
    tree.text("etc/security/limits.conf", "# <domain> <type> <item> <value>\n#*  soft  core  0\n")
    tree.text("etc/systemd/system.conf", "[Manager]\n#DefaultLimitMEMLOCK=8M\n")
    tree.directory("etc/systemd/system")
    _write_processes(tree, spec)
    for path, text in spec.files.items():
        tree.text(path, text)


def _write_sysctl_d(tree: Tree) -> None:
    tree.text("etc/sysctl.conf", "# System variables: see sysctl.d(5).\n#kernel.printk = 3 4 1 3\n")
    tree.link("etc/sysctl.d/99-sysctl.conf", "../sysctl.conf")
    tree.text("usr/lib/sysctl.d/50-pid-max.conf", "kernel.pid_max = 4194304\n")


def _write_processes(tree: Tree, spec: HostSpec) -> None:
    everywhere = format_cpulist(spec.all_possible)
    _process(tree, 1, "systemd", 0, format_cpulist(spec.housekeeping))
    _process(tree, 2, "kthreadd", 0, format_cpulist(spec.housekeeping), kernel=True)
    pid = 10
    for cpu in sorted(spec.online) if len(spec.online) <= 64 else ():
        names = [*_KTHREADS, *(["rcuop/{}", "rcuog/{}"] if cpu in spec.tuned_boot else [])]
        for name in names:
            movable = name.startswith("rcuo")
            where = format_cpulist(spec.housekeeping) if movable else str(cpu)
            _process(tree, pid, name.format(cpu)[:15], 2, where, kernel=True, bound=not movable)
            pid += 1
    for node in spec.nodes:
        own = frozenset(cpu.cpu for cpu in spec.cpus if cpu.node == node.node) or spec.all_possible
        for name in OF_NODES:
            where = format_cpulist(own & spec.housekeeping or spec.housekeeping)
            _process(tree, pid, f"{name}{node.node}", 2, where, kernel=True)
            pid += 1
    tree.value("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids")
    tree.value("sys/fs/cgroup/cgroup.subtree_control", "cpu io memory pids")
    tree.value("sys/fs/cgroup/cpuset.cpus.effective", format_cpulist(spec.online))
    for offset, unit in enumerate(spec.daemons):
        daemon = 50000 + offset
        name = unit.removesuffix(".service")
        _process(tree, daemon, name[:15], 1, everywhere, cgroup=f"/system.slice/{name}.service")
        tree.value(f"sys/fs/cgroup/system.slice/{name}.service/cgroup.procs", daemon)
        installed = f"usr/lib/systemd/system/{name}.service"
        tree.text(installed, f"[Unit]\nDescription={name}\n[Service]\nExecStart=/usr/sbin/{name}\n")
        tree.link(f"etc/systemd/system/multi-user.target.wants/{name}.service", f"/{installed}")


def write_irq_thread(tree: Tree, pid: int, comm: str, cpus: str, priority: int = 50) -> None:
    """The thread of an interrupt, as a kernel that was booted with threadirqs makes it."""
    _process(tree, pid, comm, 2, cpus, kernel=True, fifo=priority)


def _process(
    tree: Tree,
    pid: int,
    comm: str,
    parent: int,
    cpus: str,
    *,
    kernel: bool = False,
    bound: bool = False,
    fifo: int = 0,
    cgroup: str = "/",
) -> None:
    flags = (0x00200000 if kernel else 0) | (0x04000000 if bound else 0)  # PF_KTHREAD, PF_NO_SETAFFINITY
    rest = f"S {parent} 0 0 0 -1 {flags} 0 0 0 0 1 2 0 0 {-1 - fifo if fifo else 20} 0 1 0 100 0 0"
    processor = cpus.partition("-")[0].partition(",")[0] or "0"
    stat = f"{pid} ({comm}) {rest} " + " ".join(
        ["0"] * 13 + ["17", processor, str(fifo), str(int(fifo > 0))] + ["0"] * 11
    )
    directory = f"proc/{pid}"
    tree.value(f"{directory}/comm", comm)
    tree.value(f"{directory}/stat", stat)
    tree.text(f"{directory}/cmdline", "" if kernel else f"/usr/sbin/{comm}\0")
    tree.text(
        f"{directory}/status",
        f"Name:\t{comm}\nState:\tS (sleeping)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\nUid:\t0\t0\t0\t0\n"
        f"Gid:\t0\t0\t0\t0\nThreads:\t1\nCpus_allowed_list:\t{cpus}\nvoluntary_ctxt_switches:\t10\n"
        "nonvoluntary_ctxt_switches:\t1\n",
    )
    tree.value(f"{directory}/cgroup", f"0::{cgroup}")
    tree.value(f"{directory}/task/{pid}/comm", comm)
    tree.value(f"{directory}/task/{pid}/stat", stat)
