"""The shell commands that rows of the sabotage matrix name: `«put¦/etc/cron.d/power¦@reboot root …»`."""

import json
import re
import shlex
from collections.abc import Callable

from tunectl.durable import line_of

_GRUB = "/etc/default/grub"
_UPDATE = "update-grub 2>/dev/null"
_RELOAD = "systemctl daemon-reload"
_JOURNAL = "/var/lib/tunectl/journal.jsonl"
_ENTRY = "/boot/grub/custom.cfg"
NIC_IRQ = "$(grep virtio0-input /proc/interrupts | head -1 | cut -d: -f1 | tr -d ' ')"
TEXTS = {
    "nic_irq": NIC_IRQ,
    "engine_tid": "$(grep -lx engine /proc/$(pgrep -x twin)/task/*/comm | cut -d/ -f5)",
    # on a usual PC that of ACPI: a card's follows its interrupt wherever that is put
    "acpi_thread": "$(pgrep '^irq/' | head -1)",
    # the path of the recovery entry that update-grub made of the running kernel
    "grub_recovery": (
        "$(sed -n \"s/.*menuentry_id_option '\\(gnulinux-advanced-[^']*\\)'.*/\\1/p\" /boot/grub/grub.cfg)"
        ">$(sed -n \"s/.*menuentry_id_option '\\(gnulinux-[^']*-recovery-[^']*\\)'.*/\\1/p\" /boot/grub/grub.cfg"
        " | head -1)"
    ),
    # the first entry of grub.cfg once more, under another name
    "grub_other_menu": (
        f"sed -n '/^menuentry/,/^}}/p' /boot/grub/grub.cfg | sed '/^}}/q; s/.gnulinux-simple[^ ]*/other/' > {_ENTRY}"
    ),
}
# Lines of the Python programs that `agent` starts; `@NAME:TEXT` has TEXT in place of WHAT.
PROGRAMS = {
    "msr": (
        "import os, time",
        "file = os.open('/dev/cpu/WHAT/msr', os.O_RDONLY)",
        "while True:",
        "    os.pread(file, 8, 16)",
        "    time.sleep(0.005)",
    ),
    # The file is open for a moment only. (cpuinfo_cur_freq is in no lab: acpi-cpufreq by ports cannot ask for a clock.)
    "msr_briefly": (
        "import os, time",
        "while True:",
        "    file = os.open('/dev/cpu/WHAT/msr', os.O_RDONLY)",
        "    os.pread(file, 8, 16)",
        "    os.close(file)",
        "    time.sleep(0.005)",
    ),
    # Its first thread spins on CPU 3 without Python's lock; a second one, on the housekeeping CPUs, does the rest.
    "engine": (
        "import hashlib, mmap, os, threading, time",
        "def beside():",
        "    os.sched_setaffinity(0, {0, 1})",
        "    while True:",
        "        WHAT",
        "        time.sleep(0.01)",
        "threading.Thread(target=beside, daemon=True).start()",
        "os.sched_setaffinity(0, {3})",
        "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 2 * 10**9)",
    ),
    # A timer on the CPU time of the whole engine, 200 times a second.
    "cpu_timer": (
        "import ctypes, signal",
        "signal.signal(signal.SIGALRM, lambda *_: None)",
        "libc, timer = ctypes.CDLL(None), ctypes.c_void_p()",
        "assert not libc.timer_create(2, None, ctypes.byref(timer))",
        "assert not libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 5 * 10**6, 0, 5 * 10**6), None)",
    ),
    # So many threads named engine, which sleep on CPU 2; the first is no engine, and stays on the housekeeping CPUs.
    "twin": (
        "import os, pathlib, threading, time",
        "def run():",
        "    os.sched_setaffinity(0, {2})",
        "    pathlib.Path(f'/proc/self/task/{threading.get_native_id()}/comm').write_text('engine')",
        "    time.sleep(10**6)",
        "for _ in range(WHAT):",
        "    threading.Thread(target=run).start()",
    ),
    # Asks for the gateway's address, over and over; each answer is an interrupt.
    "asker": (
        "import socket, time",
        "line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "line.bind((socket.if_nameindex()[1][1], 0))",
        "mac = line.getsockname()[4]",
        "head = bytes.fromhex('08060001080006040001')",
        r"frame = b'\xff' * 6 + mac + head + mac + bytes((10, 0, 2, 15)) + bytes(6) + bytes((10, 0, 2, 2))",
        "while True:",
        "    line.send(frame)",
        "    time.sleep(0.1)",
    ),
    # What irqbalance-ui says to the daemon; prints what that answers.
    "ask_irqbalance": (
        "import os, socket, struct, sys",
        "pid = int(os.popen('pgrep -xo irqbalance').read())",
        "rows = [row.split()[-1] for row in open('/proc/net/unix')]",
        "name = next(row for row in rows if row.endswith(f'irqbalance{pid}.sock'))",
        "line = socket.socket(socket.AF_UNIX)",
        "line.connect(name.replace('@', chr(0)))",
        "own = struct.pack('3i', os.getpid(), 0, 0)",
        "line.sendmsg([sys.argv[1].encode()], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, own)])",
        "print(line.recv(65536).decode())",
    ),
}
# The list of its CPUs stands behind them in its status, beyond the first page. systemd knows no group without a name.
_MANY_GROUPS = "import os; os.setgroups(range(2000000001, 2000000601)); os.execlp('tail', 'tail', '-f', '/dev/null')"


def written(text: str) -> str:
    """A command of a row, each name between « and » replaced by its text, or by what its function makes of the rest."""
    return re.sub("«(.*?)»", lambda match: _named(*match[1].split("¦")), text)


def _named(name: str, *words: str) -> str:
    return TEXTS[name] if name in TEXTS else COMMANDS[name](*words)


def put(path: str, *lines: str) -> str:
    """A file of these lines, and its folder."""
    words = " ".join(map(shlex.quote, lines))
    return f"mkdir -p $(dirname {path}); printf '%s\\n' {words} > {path}"


def word(text: str) -> str:
    """Adds a word to the operator's own GRUB_CMDLINE_LINUX, as the last one, and update-grub.

    Of several words with one key the kernel goes by the last.
    """
    return f'sed -i \'s|^\\(GRUB_CMDLINE_LINUX="[^"]*\\)"|\\1 {text}"|\' {_GRUB} && {_UPDATE}'


def no_word(text: str) -> str:
    """Takes that word out again."""
    return f"sed -i 's| *{text}||' {_GRUB} && {_UPDATE}"


def declare(table: str, *lines: str) -> str:
    """Adds a table to the host file."""
    words = " ".join(map(shlex.quote, ("", f"[[{table}]]", *lines)))
    return f"printf '%s\\n' {words} >> /etc/tunectl/host.toml"


def ask_irqbalance(words: str) -> str:
    """Says something to the running irqbalance; `setup` is answered with what it bans."""
    program = "/usr/local/bin/irqbalance-ask"
    return f"{put(program, *PROGRAMS['ask_irqbalance'])}; python3 {program} {shlex.quote(words)}"


def agent(name: str, *programs: str, options: str = "") -> str:
    """Starts programs, one after the other in one file, as a service of that name, as a package would."""
    path = f"/usr/local/bin/{name}"
    lines = [line for program in programs for line in _lines(program)]
    started = f"systemctl -q stop {name} 2>/dev/null; systemd-run -q --collect --unit={name} {options} {path}"
    return f"{put(path, '#!/usr/bin/python3', *lines)}; chmod +x {path}; {started}; sleep 2"


def _lines(program: str) -> list[str]:
    name, _, what = program.removeprefix("@").partition(":")
    return [line.replace("WHAT", what) for line in PROGRAMS[name]]


def twin(count: str, options: str = "") -> str:
    """A program with so many threads named engine."""
    return agent("twin", f"@twin:{count}", options=options)


def boot_script(name: str, *script: str) -> str:
    """A service that runs a script of its own at the end of each boot."""
    path = f"/usr/local/sbin/{name}"
    unit = ("[Service]", "Type=oneshot", f"ExecStart={path}", "[Install]", "WantedBy=multi-user.target")
    made = f"{put(path, '#!/bin/sh', *script)}; chmod +x {path}; {put(f'/etc/systemd/system/{name}.service', *unit)}"
    return f"{made}; {_RELOAD}; systemctl -q enable {name}.service"


def dropin(path: str, section: str, *lines: str) -> str:
    """A drop-in, as `systemctl edit` makes it."""
    return f"{put(path, f'[{section}]', *lines)}; {_RELOAD}"


def override(section: str, *lines: str) -> str:
    """A drop-in for our own service."""
    return dropin("/etc/systemd/system/tunectl-apply.service.d/override.conf", section, *lines)


def run_again() -> str:
    """What a boot does: a value is lost, and our own service runs with what is declared for it; the value is mended."""
    return "sysctl -qw vm.swappiness=60; systemctl restart tunectl-apply.service || true; sysctl -qw vm.swappiness=1"


def unit(name: str, *service: str, verb: str = "enable") -> str:
    """A service of somebody else's after ours, enabled."""
    lines = ["[Unit]", "After=tunectl-apply.service", "[Service]", "Type=oneshot", *service]
    installed = put(f"/etc/systemd/system/{name}", *lines, "[Install]", "WantedBy=multi-user.target")
    return f"{installed}; {_RELOAD}; systemctl -q {verb} {name}"


def unit_not_enabled(name: str, *service: str) -> str:
    """The same, not enabled."""
    return unit(name, *service, verb="disable")


def trading_target(*lines: str) -> str:
    """A target of the operator's own, and the boot goes to it."""
    path = "/etc/systemd/system/trading.target"
    made = put(path, "[Unit]", "Description=Trading", "After=basic.target", "AllowIsolate=yes", *lines)
    return f"{made}; {_RELOAD}; systemctl -q set-default trading.target"


def grub_menu(path: str, *more: str) -> str:
    """A file of GRUB's with an entry of its own for the running kernel, and what else is said there."""
    entry = (
        "menuentry 'vendor kernel' --id vendor {",
        "  search --no-floppy --fs-uuid --set=root UUID",
        "  linux /boot/vmlinuz-KERNEL root=UUID=UUID ro console=ttyS0,115200",
        "  initrd /boot/initrd.img-KERNEL",
        "}",
    )
    known = "s/KERNEL/'$(uname -r)'/; s/root UUID/root '$(findmnt -no UUID /)'/; s/=UUID /='$(findmnt -no UUID /)' /"
    return f"{put(path, *entry, *more)}; sed -i '{known}' {path}"


def grub_script(*lines: str) -> str:
    """A script of /etc/grub.d that prints these lines, and update-grub."""
    path = "/etc/grub.d/42_vendor"
    return f"{put(path, '#!/bin/sh', 'exec tail -n +3 $0', *lines)}; chmod +x {path}; {_UPDATE}"


def grub_default(text: str) -> str:
    """GRUB_DEFAULT in the operator's file, and update-grub."""
    return f"sed -i 's/^GRUB_DEFAULT=.*/GRUB_DEFAULT={text}/' {_GRUB}; {_UPDATE}"


def kernel_thread(name: str, cpus: str) -> str:
    """A kernel thread gets another mask."""
    return f"taskset -pc {cpus} $(pgrep -x {name}) >/dev/null"


def service(name: str, options: str, program: str = "sleep infinity", settles_s: int = 1) -> str:
    """A service of that name, with other options than before, that sleeps."""
    stopped = f"systemctl -q stop {name} 2>/dev/null"
    return f"{stopped}; systemd-run -q --collect --unit={name} {options} {program}; sleep {settles_s}"


def of_many_groups(cpu: str) -> str:
    """A service of a user in hundreds of groups."""
    return service("exporter", f"-p CPUAffinity={cpu}", f'python3 -c "{_MANY_GROUPS}"')


def spinner(options: str) -> str:
    """A service that spins."""
    return service("backtest", options, "sh -c 'while :; do :; done'", 2)


def journal_record(wrote: str) -> str:
    """Appends the record that ends a run, with its checksum."""
    return f"printf '%s\\n' {shlex.quote(_end(json.loads(wrote)))} >> {_JOURNAL}"


def half_a_journal_record() -> str:
    """Appends the beginning of such a record."""
    return f"printf '%s' {shlex.quote(_end([])[:20])} >> {_JOURNAL}"


def _end(wrote: object) -> str:
    return line_of({"type": "end", "wrote": wrote}).decode().strip()


COMMANDS: dict[str, Callable[..., str]] = {
    command.__name__: command
    for command in (
        put,
        word,
        no_word,
        declare,
        ask_irqbalance,
        agent,
        twin,
        boot_script,
        dropin,
        override,
        run_again,
        unit,
        unit_not_enabled,
        trading_target,
        grub_menu,
        grub_script,
        grub_default,
        kernel_thread,
        service,
        of_many_groups,
        spinner,
        journal_record,
        half_a_journal_record,
    )
}
