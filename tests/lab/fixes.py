"""Every task of a fix that the product can print, and the row of the matrix that prints it and follows it.

The texts are those of tests/fixtexts.py, … for a value. `tests/test_fixes.py` proves that none is missing here, and the
long set that each row prints what stands beside it.
"""

import re

from .rows import ROUNDS
from .sabotage import Sabotage

# A task that is typed as it stands -> the rows of the matrix that print it.
FOLLOWED: dict[str, list[str]] = {}
for _row in (row for played in ROUNDS.values() for row in played.rows):
    for _text in _row.prints:
        FOLLOWED.setdefault(_text, []).append(_row.name)

# A task that cannot be typed before somebody has decided: it says what there is to decide.
DECISIONS: frozenset[str] = frozenset(
    {
        "boot without nosmt=force, and with SMT on in the firmware; or take CPU … out of `isolated` in the host file",
        "see why: dmesg | grep -i tsc (unstable, skew between sockets, firmware that writes it), and mend that",
        "see why: dmesg | grep -i clocksource",
        "have one program steer the clock: install chrony, or set up ptp4l with phc2sys",
        "stop all but one of them",
        "give that CPU all of its time (other threads off it; in a virtual machine, a core of its own from the host "
        "below), or waive check.tick_off",
        "see which of its sources answer: chronyc -n sources",
        "see in its log why … gives no answer (journalctl -t …), and start it again",
        "see whom ptp4l follows, and what vouches for that: pmc -u -b 0, GET PARENT_DATA_SET",
        "see which server answers: timedatectl timesync-status",
        "see who sets the kernel's TAI offset: phc2sys, or chronyd with leapsectz",
        "see who set it: the journal of the program that steers it at that time",
        "have it follow a nearer or better source, or set [clock] in the host file",
        "isolate CPUs among … for the threads that read from …, or use a NIC near the others",
        'ask for "net.queue_irqs" = "housekeeping" in the host file: it chooses CPUs that are near',
        "reseat the card and its riser, try another slot and other firmware: sudo dmesg | grep -i aer",
        "replace the module: the kernel's log and the BMC name it (sudo dmesg | grep -i edac)",
        "switch flow control off at both ends (ethtool -A), and see who is too slow: the switch, or this host",
        "find what in the firmware asks for them: BIOS (USB legacy support, power capping, patrol scrub, corrected "
        "errors by firmware first), BMC polling; then `tunectl probe jitter --attribute` says how long each lasts",
        "have its reader keep up and run in time, and make its ring longer (net.rx_ring); tunectl preflight says "
        "whether the host holds it up",
        "clean or replace cable and transceiver, try another port of the switch; its log says what it saw",
        "reseat the card and its riser, clean the contacts, try another slot; then the BIOS: a forced generation, "
        "bifurcation, a lane that it switched off",
        "start it, then check again",
        "find what keeps that CPU from them: an interrupt's thread, a real-time thread of the kernel",
        "have whoever starts it start it on CPUs …, or end that (a script, a service, a timer)",
        "for its next start, see `tunectl threads unit …`",
        "for its next start, have it, or what starts it, ask for its CPU and scheduling (sched_setaffinity(2), "
        "sched_setscheduler(2))",
        "find what changes it: its own code, or a tool that places threads",
        "have its unit live where that CPU is: Slice=isolated.slice (`tunectl threads unit`)",
        "for its next start, take its real-time scheduling from it where that is asked for: CPUSchedulingPolicy= of "
        "its unit, chrt(1), sched_setscheduler(2)",
        "for its next start, lift that limit where it is set (…)",
        "decide which one it is: …",
        "decide which one it is, and say whose: …",
        "decide which one it is, and name its unit instead of the command: …",
        "nothing in the host file can tell them apart: have the program give tid … another name "
        "(pthread_setname_np(3), prctl(2) PR_SET_NAME); or, if each is a trading thread, declare each of them in "
        "[[threads]] with the CPU it is pinned to",
        "have the reader of that queue run in time, or make the queue longer (SO_RCVBUF, net.core.rmem_max, "
        "net.core.netdev_max_backlog)",
        "check again while it runs",
        "let it go on, then check again",
        "find the call it waits in, outside a session (sudo perf trace -s -t …), and have it poll instead; or take "
        "spins = true out of its declaration",
        "touch all memory before the session: mlockall(MCL_CURRENT | MCL_FUTURE), MAP_POPULATE, a dummy array on each "
        "stack, mallopt(M_TRIM_THRESHOLD, M_MMAP_MAX); a JVM with -XX:+AlwaysPreTouch",
        "start process … on CPUs … (CPUAffinity=… in its unit), and have only its trading threads pin themselves to "
        "their CPUs (sched_setaffinity(2))",
        "give each socket that is busy-polled a declared thread and a CPU of its own, or poll fewer",
        "keep the other threads of … (pid …) from unmapping, freeing or protecting memory while it trades: allocate "
        "beforehand, mlockall, and mallopt(M_TRIM_THRESHOLD, M_MMAP_MAX); or put them into a process of their own",
        "find the sender: as root, tunectl check",
        "leave no POSIX CPU timer (setitimer, timer_create) and no perf event on CPU …",
        "leave one runnable thread on CPU …, no POSIX CPU timer (setitimer, timer_create) and no perf event",
        "leave one runnable thread on CPU …, no POSIX CPU timer (setitimer, timer_create) and no perf event; "
        "or see as root whether a fair server serves there: tunectl check",
        "check again while they come",
        "have the program ask for it, with its runtime and deadline: sched_setattr(2) of tid …",
        "check again as root while no thread is at work on an isolated CPU",
        "end what may send them one by one, and check again: a reader of a CPU's devices, a tracer, a profiler, a "
        "program that shares memory with a thread there",
        "see who starts …: process … has ended",
        "find who loaded them",
        "take … out, or have it name a target that `tunectl verify -v` shows",
        "take … out of the kernel's command line and boot again, "
        'or decide to do without it: "…" = "unmanaged" under [knobs] in the host file',
        "boot … again, or load what offers it in …, "
        'or decide to do without it: "…" = "unmanaged" under [knobs] in the host file',
        "load the one that this machine needs (…), "
        'or decide to do without it: "…" = "unmanaged" under [knobs] in the host file',
        "look for what took it away (the kernel's messages, its modules, the firmware's settings), "
        'or decide to do without it: "…" = "unmanaged" under [knobs] in the host file',
        "move them to …, or trading threads to other cores",
        "declare one of them for another isolated core, and move it there",
        "for its next start, give CPUAffinity= at … other CPUs",
        "mlockall(MCL_CURRENT | MCL_FUTURE) before the session, with LimitMEMLOCK=infinity in its unit",
        "NUMAPolicy=bind and NUMAMask=… in its unit, or numactl --membind=…",
        "move the interrupts (knob irq.affinity) and the threads that feed it to other CPUs",
        "run tunectl as root: this user may not read it all",
        "have it and every directory above it belong to root, with nobody else who may write there",
        "run as root on the host itself, outside of containers",
        "put … back from a backup; or decide to do without them: sudo tunectl restore",
        "add … to the kernel command line yourself, …",
        "have … go on with /…: grub-install writes such a file",
        "`grub2-mkconfig -o …`",
        "end it: …",
        "take the backslash out above /…:…",
        "… (dmesg names the cause)",
        "fix that (…)",
        "fix that (… is …, and the default)",
        "name another entry in GRUB_DEFAULT of /etc/default/grub, then …",
        "add … to the kernel's line of the entry at …",
        "choose an entry that boots Linux",
        "have … in … name an entry that has the arguments",
        "have … print nothing that chooses the default (it printed …), then …",
        "decide what … shall do instead: … starts by it, and may do more than this",
        "decide which unit belongs in isolated.slice: take Slice=isolated.slice out of the others",
        "look at it yourself: tunectl cannot tell what boots there",
        "nothing of ours goes where somebody else's threads run: check again when they spin, or do not run; "
        "`tunectl check --intrude` takes time from them",
        "decide about …: it holds for other units, too; drop-ins of those may say it instead",
        "boot again with isolcpus= for all of these CPUs, or without it: boot.isolcpus says what comes next",
        "take … out of the kernel command line, where your boot loader has it…",
        "have … give … to the entries that it makes again, then …",
        "have …:… hand ${args} on again, then …",
        "look at … and take out what sets it, or waive check.other_tuners[…]",
        "decide what … shall do without …: it does more than this, or other rules go by its place",
        "put a copy of … without … into /etc/udev/rules.d, which counts instead of … of the package",
        "find out who has the kernel's … run … on CPU …",
        '"kernel.fair_server_runtime_ns" = 0 under [knobs] in the host file',
        'isolation = "boot" in the host file isolates with boot arguments',
        "take these CPUs out of the AllowedCPUs= (cpuset.cpus) of …",
        "boot with isolcpus=managed_irq,domain,... (knob boot.isolcpus): then the kernel keeps it off; "
        "or use fewer queues",
        "ask for another value of … in the host file, or … = unmanaged",
        "look for a failed fan, dust, a power cap or a hot aisle; check the BMC's event log",
        "the firmware holds it down: look for a failed fan, dust, a power cap or a hot aisle; "
        "check the BMC's event log",
        "see who lowered it (thermald, a cooling device, a profile)",
        "see who moved it (irqbalance, a driver that was reset, a new device)",
        "report this to tunectl with `tunectl snapshot`; until then raise monitor.interval_s",
        "look for the cause at that time: tunectl probe jitter --attribute, then tunectl preflight",
        "what it watches is unknown now: tunectl monitor --once -v",
        "what it watches is unknown now; only the daemon sees it: its journal and /metrics say more",
        "see `tunectl show`; name a CPU in [monitor.sentinel], or set thermal.base_frequency_khz in the host file",
        "its interrupts and queues are new: tunectl verify",
    }
)

# A task for a host that the lab is not (a boot loader, a machine), and the test on a recorded host or in another
# scenario of the lab that prints it.
ELSEWHERE: dict[str, str] = {
    "echo … | sudo tee /sys/fs/cgroup…/cpuset.cpus": "tests/checks/test_threads_check.py",
    "sudo mount -t debugfs debugfs /sys/kernel/debug": "tests/knobs/test_fair_server.py",
    "sudo tunectl apply; by hand: IRQBALANCE_BANNED_CPULIST=… in its configuration, and restart it": (
        "tests/checks/test_tuners_check.py"
    ),
    "run `kernel-install add` for the kernel that will boot": "tests/bootloader/test_real_tools.py",
    "sudo kernel-install add … /…": "tests/bootloader/test_corners.py",
    "sudo chmod +x /etc/grub.d/10_linux && …": "tests/bootloader/test_grubmakers.py",
    "sudo tunectl confirm …": "tests/tuning/test_tryboot.py",
    "sudo systemctl daemon-reload": "tests/lab/test_runtime_isolation_lab.py",
    "reboot into the boot menu's default entry, unedited": "tests/tuning/test_plan.py",
    "isolate … together, or switch the sibling off: echo 0 | sudo tee /sys/devices/system/cpu/cpu…/online (until the "
    "next boot)": ("tests/checks/test_cores_check.py"),
    "bring it back: echo 1 | sudo tee /sys/devices/system/cpu/cpu…/online; then: tunectl verify": (
        "tests/monitor/rules/test_changes.py"
    ),
    "sudo systemctl disable --now …; or leave those knobs to it, or waive check.other_tuners[…]": (
        "tests/checks/test_tuners_check.py"
    ),
    "echo … | sudo tee /sys/devices/virtual/workqueue/cpumask; it holds until the next boot; "
    "the knob workqueue.cpumask in the host file does it at each": "tests/checks/test_threads_check.py",
    "echo 0 | sudo tee /proc/sys/kernel/numa_balancing; it holds until the next boot; "
    "the knob mm.numa_balancing in the host file does it at each": "tests/checks/test_ipis_check.py",
    "echo 0 | sudo tee /sys/kernel/mm/ksm/run; it holds until the next boot; "
    "the knob mm.ksm in the host file does it at each": "tests/checks/test_ipis_check.py",
    "echo … | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource; for the next boot, …": (
        "tests/checks/test_clock_check.py"
    ),
    "sudo mount -t tracefs tracefs /sys/kernel/tracing": "tests/checks/test_ipis_check.py",
    "leave one runnable thread on CPU …, no POSIX CPU timer (setitimer, timer_create) and no perf event; then: "
    "echo 0 | sudo tee /sys/kernel/debug/sched/fair_server/cpu…/runtime (until the next boot; the knob "
    "kernel.fair_server_runtime_ns in the host file does it at each)": "tests/checks/test_tick_check.py",
    "echo 0 | sudo tee …/function_profile_enabled": "tests/checks/test_residue_check.py",
    "have … (pid …) leave CPU … out, or end it: …": "tests/checks/test_ipis_check.py",
    "sudo … … unset … && …": "tests/bootloader/test_grub.py",
    "…; it writes the menu anew, without what somebody wrote into it at …": "tests/bootloader/test_choice.py",
    "sudo systemctl set-property … AllowedCPUs=…; for the next boot, say AllowedCPUs=… at …": (
        "tests/checks/test_threads_check.py"
    ),
    "sudo systemctl set-property --runtime … AllowedCPUs=…; it holds until the next boot; AllowedCPUs= in its unit "
    "does it at each; if these are the trading threads themselves, declare them: [[threads]] in the host file": (
        "tests/checks/test_threads_check.py"
    ),
    "sudo systemctl add-wants … …": "tests/knobs/test_unitboot.py",
    "sudo sed -i '…s/^/#/' … && sudo udevadm control --reload": "tests/knobs/test_unitfile.py",
    "sudo systemctl mask …": "tests/knobs/test_switched_off.py",
    "end the program that holds them: …": "tests/checks/test_residue_check.py",
    "sudo rm …; or end the program that pinned them": "tests/host/test_observers.py",
    "sudo modprobe …": "tests/tuning/test_loss.py",
    "sudo kill -CONT …": "tests/checks/test_trading_bounds_check.py",
    "echo THAWED | sudo tee /…": "tests/checks/test_trading_bounds_check.py",
    "echo 0 | sudo tee /…": "tests/checks/test_trading_bounds_check.py",
    "echo … | sudo tee /…": "tests/checks/test_trading_bounds_check.py",
    "sudo prlimit --pid … --…=unlimited:unlimited": "tests/checks/test_trading_bounds_check.py",
}


def unprinted(row: Sabotage, fixes: list[str]) -> list[str]:
    """The texts that a row should have printed, and that are in none of these fixes."""
    return [text for text in row.prints if not any(_holds(fix, text) for fix in fixes)]


def _holds(fix: str, text: str) -> bool:
    return bool(re.search(".*?".join(map(re.escape, text.split("…"))), fix, re.DOTALL))
