"""What the units that run apply as root may not do, and for how long: lines of [Service], the same for each of them.

They write /proc, /sys, /etc and the boot loader's files, start update-grub, and talk to systemd. So some of what would
confine them further cannot be set. ProtectKernelTunables, ProtectControlGroups: they write there. PrivateDevices:
grub-probe reads the disks. ProtectKernelModules: it hides /usr/lib/modules, which kernel-install reads and writes.
PrivateNetwork, AF_NETLINK and CAP_NET_ADMIN: the settings of the NICs. CAP_SYS_ADMIN: the kernel asks for it where
kernel.numa_balancing is written, and os-prober mounts, in a mount namespace of its own. CAP_SYS_NICE: the affinity of
other threads, and the priority of those of interrupts, which RestrictRealtime would refuse. CAP_SYS_PTRACE, and no
ProtectProc: what the threads of others hold. RestrictSUIDSGID: kernel-install copies programs with their modes.

Source: systemd.exec(5), systemd.resource-control(5), systemd-analyze(1), "security".

Environment variables that change which program runs, what it loads, or what tunectl takes for its host and root.

What acts before Python runs, or in another program of a unit, only systemd can take away; `python -I` ignores PYTHON*
(but not PYTHONEXECUTABLE: Modules/getpath.py), and cli/start.py the rest.

Source: systemd.exec(5), UnsetEnvironment=; python(1); ld.so(8); openssl-env(7); glibc's resolv.conf(5), mtrace(3).
"""

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from tunectl.command import one_line

_TEMPORARY = ("/tmp/", "/var/tmp/")  # noqa: S108
# Under ProtectSystem=strict all but these, /proc, /sys and /dev is read-only. /run: lvm's locks.
WRITTEN = "/etc /var -/boot -/efi -/run -/usr/lib/modules"
_LINES = """\
SyslogIdentifier=tunectl
# No boot waits for ever: a oneshot service has no limit of its own. A host with 512 CPUs has some 5,000 writes, each
# with three fsyncs: minutes on a slow disk. Killed at any time, apply leaves a journal that `tunectl restore` takes.
TimeoutStartSec=600
TimeoutStopSec=30
# It writes /proc, /sys, /etc and the boot loader's files, runs update-grub and talks to systemd: no more than that.
NoNewPrivileges=yes
CapabilityBoundingSet=CAP_SYS_ADMIN CAP_NET_ADMIN CAP_SYS_NICE CAP_SYS_PTRACE
CapabilityBoundingSet=CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_CHOWN CAP_FOWNER
ProtectSystem=strict
ReadWritePaths={written}
ProtectHome=read-only
PrivateTmp={private}
DevicePolicy=closed
DeviceAllow=block-* r
DeviceAllow=/dev/mapper/control rw
DeviceAllow=/dev/fuse rw
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
RestrictNamespaces=mnt
LockPersonality=yes
MemoryDenyWriteExecute=yes
KeyringMode=private
RestrictAddressFamilies=AF_UNIX AF_NETLINK
IPAddressDeny=any
SystemCallArchitectures=native
SystemCallFilter=@system-service @mount
SystemCallErrorNumber=EPERM"""


def quoted(word: str) -> str:
    """One word of ExecStart= as systemd reads it back (systemd.service(5), "Command lines").

    UsageError for one that would end the line: what follows would be a directive of its own.
    """
    return _in_quotes(one_line(word, "a word of the unit's command line").replace("$", "$$"))


def _in_quotes(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if re.search(r"[\s'\"\\;]", word) else escaped


def program_files(words: Sequence[str]) -> list[str]:
    """The files that a command of ours is started by: the interpreter and the script, or one program."""
    return [word for word in takewhile(lambda word: not word.startswith("--"), words) if word.startswith("/")]


def starting(invocation: Sequence[str]) -> str:
    """ExecStart= of a unit, up to the command; before it, what asks whether our files are there, and not another's."""
    exec_start = "ExecStart=" + " ".join(map(quoted, invocation))
    if list(invocation[1:2]) not in (["-I"], ["-EP"]):  # not by the Python whose files they are (installed.isolating())
        return exec_start
    return f"ExecStartPre={quoted(invocation[0])} {invocation[1]} -m tunectl.installed\n{exec_start}"


def confined(invocation: Sequence[str]) -> str:
    """The lines for a unit that this command starts: its state directory may be written, wherever it lies."""
    written = [WRITTEN]
    for place in dict.fromkeys(after for word, after in pairwise(invocation) if word == "--state"):
        above = place.rpartition("/")[0]  # the directory itself may have to be made
        written.append(_in_quotes(f"-{one_line(above or place, '--state')}"))
    private = not any(word.startswith(_TEMPORARY) for word in invocation)
    written += [] if private else ["-/tmp"]
    return _LINES.format(written=" ".join(written), private="yes" if private else "no")


# Our units take these away, whoever set them: the manager (DefaultEnvironment=, `systemctl set-environment`,
# systemd.setenv= on the kernel's line), a drop-in, or a file that one names.
_TAKEN_AWAY = (
    *("TUNECTL_ROOT", "TUNECTL_HOST", "TUNECTL_STATE", "TUNECTL_FORMAT", "TUNECTL_QUIET", "TUNECTL_VERBOSE"),
    *("TUNECTL_PROBE", "TUNECTL_PROBE_PARENT", "TUNECTL_DEBUG", "_TUNECTL_COMPLETE"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONINSPECT", "PYTHONSTARTUP"),
    *("PYTHONBREAKPOINT", "PYTHONPYCACHEPREFIX", "PYTHONWARNINGS", "PYTHONEXECUTABLE", "PYTHONPERFSUPPORT"),
    *("PYTHON_PERF_JIT_SUPPORT", "PYTHON_PRESITE", "PYTHON_HISTORY", "PYTHONDUMPREFSFILE"),
    *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_TRACE_LOADED_OBJECTS", "LD_DEBUG", "LD_DEBUG_OUTPUT"),
    *("LD_PROFILE", "LD_PROFILE_OUTPUT", "LD_ORIGIN_PATH", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH"),
    *("MALLOC_TRACE", "TZDIR", "GETCONF_DIR", "HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS", "RESOLV_HOST_CONF"),
    *("OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_MODULES", "OPENSSL_ENGINES"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE", "BASH_ENV", "ENV"),
)
UNSET = f"UnsetEnvironment={' '.join(_TAKEN_AWAY)}"
