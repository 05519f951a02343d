"""One host on which every name that anybody can choose is hostile at once, and a kernel that runs while it is asked."""

import dataclasses
import json
from pathlib import Path

from tests.checking.fake_kernel import FakeKernel, Process
from tests.conftest import write_host_file
from tests.hosts.builder import build, named
from tests.hosts.spec import Irq
from tests.trees import write

MARK = "PWNED"  # in every hostile name, and the file that a shell makes where it follows one
NIC, QUIET_NIC = "a;id>PWNED", "'`id>PWNED`"  # any bytes but / and blanks, 15 of them
UNIT = "$(>PWNED)"
GROUP = f"b;>{MARK};' $(touch {MARK})"
SWAP_UNIT = "a\\x3bPWNED.swap"
SWAP_FILE = f"/s$(touch {MARK});' x"
MOUNT = f"/m;touch {MARK};'\x1b[31m"
INSTANCE = f"t;touch {MARK};'\x1b[31m"
DROP_IN = f"z;touch {MARK};' \"$(touch {MARK})"
USER = f"u;touch {MARK}"
PLACE = f"$(touch {MARK})'`touch {MARK}` \";touch {MARK}"  # of the files that options name; a newline there is refused
COMMS = ("$(>PWNED)", "';>PWNED;'", "\n>PWNED\n", "\x1b[31m;>PWNED", "`>PWNED`")
ACTIONS = ("$(touch PWNED)", "';touch PWNED;'", "\x1b[31m`>PWNED`")
TITLE = "x`touch PWNED`; touch PWNED \x1b[31m"
HOST_FILE = f"""\
profile = "low-latency"
isolated = "2-3"

[network]
interfaces = [{json.dumps(NIC)}]

[[threads]]
name = {json.dumps(f"';touch {MARK}")}
command = {json.dumps(COMMS[1])}
cpu = 2

[[threads]]
command = {json.dumps(COMMS[0])}
thread = {json.dumps(COMMS[4])}
cpu = 3
"""
PROCESSES = [
    Process(700, COMMS[0], cpu=2, allowed="2", busy=0.9, files={"cgroup": f"0::/{GROUP}\n"}),
    Process(701, COMMS[1], cpu=3, allowed="0-3", busy=0.9, files={"cgroup": f"0::/system.slice/{UNIT}.service\n"}),
    Process(702, COMMS[2], cpu=3, allowed="3", busy=0.4, files={"cgroup": f"0::/{GROUP}.service\n"}),
    Process(703, COMMS[3], cpu=2, allowed="2-3", busy=0.4, policy=1, rt_priority=50),
    Process(704, COMMS[4], cpu=2, allowed="0-3", busy=0.4, of=700),
]
RUNNING = "from tests.cli.hostile_host import running; running()"


def running() -> None:
    """In the process that becomes the product: its kernel, whose time passes while the product waits."""
    import sys

    FakeKernel(Path(sys.argv[sys.argv.index("--root") + 1]), range(4), processes=PROCESSES).__enter__()


def build_hostile(root: Path) -> Path:
    """The host, booted with CPUs 2-3 isolated."""
    spec = named("lab4", tuned_boot=frozenset({2, 3}))
    (nic,) = spec.nics
    irqs = [irq for irq in spec.irqs if irq.irq < 30]
    hostile = [Irq(30 + n, action, 2, "PCI-MSIX-0000:00:04.0", n, count=500) for n, action in enumerate(ACTIONS)]
    quiet = dataclasses.replace(nic, name=QUIET_NIC, bus="0000:00:05.0", irqs=())
    build(root, dataclasses.replace(spec, irqs=(*irqs, *hostile), nics=(dataclasses.replace(nic, name=NIC), quiet)))
    for irq in hostile:
        write(root, f"proc/irq/{irq.irq}/smp_affinity_list", "0-3\n")
        write(root, f"proc/irq/{irq.irq}/smp_affinity", "f\n")
        write(root, f"proc/irq/{irq.irq}/effective_affinity_list", "2\n")
    _write_groups(root)
    _write_swap_and_mounts(root)
    _write_writers(root)
    _write_grub(root)
    write(root, "etc/hostname", f"$(touch {MARK})\n")
    write(root, "proc/sys/kernel/hostname", f"$(touch {MARK})\n")
    write_host_file(root, HOST_FILE)
    return root


def _write_groups(root: Path) -> None:
    for group in (GROUP, f"{GROUP}.service", f"system.slice/{UNIT}.service"):
        write(root, f"sys/fs/cgroup/{group}/cpuset.cpus", "2\n")
        write(root, f"sys/fs/cgroup/{group}/cpuset.cpus.effective", "2\n")
        write(root, f"sys/fs/cgroup/{group}/cpuset.cpus.partition", "isolated\n")
    for name, text in {"current_tracer": "nop\n", "set_event": "", "tracing_on": "1\n", "kprobe_events": ""}.items():
        write(root, f"sys/kernel/tracing/{name}", text)
        write(root, f"sys/kernel/tracing/instances/{INSTANCE}/{name}", text)
    write(root, f"sys/kernel/tracing/instances/{INSTANCE}/set_event", "sched:sched_switch\n")


def _write_swap_and_mounts(root: Path) -> None:
    octal = "".join(f"\\{ord(char):03o}" if char in " \n\t\\" else char for char in SWAP_FILE)
    write(root, "proc/swaps", f"Filename\tType\tSize\tUsed\tPriority\n{octal} file 1000 0 -2\n")
    write(root, "etc/fstab", f"{octal} none swap sw 0 0\n")
    write(root, f"etc/systemd/system/{SWAP_UNIT}", f"[Swap]\nWhat={SWAP_FILE}\n")
    write(root, f"etc/systemd/system/swap.target.wants/{SWAP_UNIT}", "")
    mount = f"a{MOUNT}".replace(" ", "\\040")
    write(root, "proc/mounts", f"{mount} {mount} cgroup rw,cpuset 0 0\n{mount} {mount} hugetlbfs rw 0 0\n")
    write(root, "proc/self/mountinfo", f"30 1 0:26 / {mount} rw - cgroup {mount} rw,cpuset\n")


def _write_writers(root: Path) -> None:
    """Everything that writes our settings later, in files with such names."""
    write(root, f"etc/systemd/system/irqbalance.service.d/{DROP_IN}.conf", "[Service]\nEnvironment=IRQBALANCE_ARGS=\n")
    write(root, f"etc/sysctl.d/{DROP_IN}.conf", "vm.swappiness = 60\nkernel.timer_migration = 1\n")
    write(root, f"etc/sysctl.d/a{DROP_IN}.conf", f"vm.stat_interval = `touch {MARK}`;'\x1b[31m\n")
    write(root, f"etc/udev/rules.d/{DROP_IN}.rules", f'ACTION=="add", ATTR{{queue/scheduler}}="$(touch {MARK})"\n')
    write(root, f"etc/modprobe.d/{DROP_IN}.conf", f"options kvm halt_poll_ns=$(touch {MARK})\n")
    write(root, f"etc/tmpfiles.d/{DROP_IN}.conf", "w /proc/sys/vm/swappiness - - - - 60\n")
    write(root, "etc/passwd", f"root:x:0:0::/root:/bin/sh\n{USER.split()[0]}:x:0:0::/:/bin/sh\n")
    write(root, "usr/sbin/cron", "")
    write(root, "etc/crontab", f"* * * * * root echo 60 >/proc/sys/vm/swappiness;: touch {MARK}\n")
    write(root, f"etc/cron.d/z{MARK}", "* * * * * root sysctl vm.swappiness=50\n")
    write(root, f"var/spool/cron/crontabs/{USER}", "* * * * * echo 60 >/proc/sys/vm/swappiness\n")
    write(root, f"etc/cron.daily/{MARK}", f"#!/bin/sh\nsysctl vm.stat_interval='$(touch {MARK})'\n")
    (root / f"etc/cron.daily/{MARK}").chmod(0o755)
    unit = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo 60 >/proc/sys/vm/swappiness'\n"
    for name in (f"{UNIT}.service", f"x-{DROP_IN}.service"):
        write(root, f"etc/systemd/system/{name}", unit)
        (root / f"etc/systemd/system/multi-user.target.wants/{name}").symlink_to(f"/etc/systemd/system/{name}")


def _write_grub(root: Path) -> None:
    """Settings that win against ours, and an entry that is not made from them."""
    write(
        root,
        f"etc/default/grub.d/99-z{DROP_IN}.cfg",
        f"GRUB_CMDLINE_LINUX=\"isolcpus=1,'touch:{MARK}' nohz_full=1;touch:{MARK}\"\n"
        f"GRUB_CMDLINE_LINUX_DEFAULT='quiet skew_tick=`touch:{MARK}`'\n",
    )
    menu = (root / "boot/grub/grub.cfg").read_text()
    write(root, "boot/grub/grub.cfg", f"{menu}set default='{TITLE}'\nmenuentry '{TITLE}' {{\n\tlinux /x root=1\n}}\n")
