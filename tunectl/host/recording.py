"""A host's files as one archive: a bug report, and a test's fixture. `tar xf` unpacks what --root accepts.

What a recording of a host holds beside the files that the knobs read: an explicit list.

The knob table says itself what its rows read (knobs.files_read()); here is what topology, checks, the monitor and the
readers of other tuners need. Nothing that is in neither list is ever read for a recording.

Left out on purpose: environments and command lines of processes (they hold secrets), hardware
addresses and serial numbers, keys, logs, the operator's own files, and MSRs. secrets.py takes out what is secret in
the files that are recorded.
"""

import errno
import fnmatch
import gzip
import io
import json
import os
import posixpath
import re
import tarfile
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from tunectl import __version__
from tunectl.cpulist import CpuSet
from tunectl.durable import followed, replace_file
from tunectl.host.ask import ANSWERS, QUESTIONS, answer_to_record
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.ethtool import ASKED, PREFIX, paths_of
from tunectl.host.nonintrusive import DISTURBING
from tunectl.host.secrets import Taken, is_secret_file, without_secrets
from tunectl.host.shellvars import SH
from tunectl.host.sysroot import ABSENT_ERRNOS, MARK, Sysroot
from tunectl.host.thermal import DISTURBING_ZONES
from tunectl.shapes import Count, Maybe, plain

_CPU_OF = re.compile(r"/(?:cpu|policy)(\d+)/")
_KERNELS_OWN = ("proc/", "sys/")  # nobody keeps a secret there, but on the kernel's command line


class Skipped(msgspec.Struct, frozen=True):
    """A file that was not recorded."""

    path: str
    reason: str


class Recorded(msgspec.Struct, frozen=True):
    """What `tunectl snapshot` recorded of a host."""

    file: str
    files: Count
    bytes: Count
    skipped: list[Skipped]
    left_out: Annotated[list[Taken], Meta(description="The secrets that were taken out of the files."), Maybe] = []


class _Member(NamedTuple):
    """One entry of the archive: a file's bytes, or a link's target, or (both None) a directory."""

    data: bytes | None
    target: str | None
    mode: int


class _Recorder:
    """Gathers members by their real path; a link on the way becomes a member of its own."""

    def __init__(self, root: Sysroot, quiet: CpuSet) -> None:
        self.members: dict[str, _Member] = {}
        self.skipped: dict[str, str] = {}
        self.left_out: dict[str, list[Taken]] = {}
        self._root = root
        self._quiet = quiet
        self._places: dict[str, str] = {"": ""}

    def place(self, path: str) -> str:
        """The real path of a directory or file, links recorded on the way. Links in cycles end as they are."""
        if path in self._places:
            return self._places[path]
        directory, _, name = path.rpartition("/")
        home = self.place(directory)
        here = posixpath.normpath(f"{home}/{name}").lstrip("/")
        seen = set()
        while (target := self._root.readlink(here)) and here not in seen:
            seen.add(here)
            parent = posixpath.dirname(here)
            inside = posixpath.normpath(f"/{parent}/{target}" if not target.startswith("/") else target)
            # On the recorded host an absolute link would leave the directory it is unpacked in.
            relative = posixpath.relpath(inside, f"/{parent}") if target.startswith("/") else target
            self.members[here] = _Member(None, relative, 0o777)
            here = inside.lstrip("/")
            here = f"{self.place(posixpath.dirname(here))}/{posixpath.basename(here)}".lstrip("/")
        self._places[path] = here
        return here

    def file(self, path: str) -> None:
        """One file by its logical path; what cannot be read is listed, what is not there is not."""
        place = self.place(path)
        reason = self._stays(path, place)
        if place in self.members:
            if self.members[place].target is not None:
                self.skipped[path] = "links in a circle"
            return
        if reason:
            self.skipped[path] = reason
            return
        try:
            data = self._root.read_bytes(place)
        except IsADirectoryError:
            return
        except OSError as error:
            # A link that is down has no speed: EINVAL (net/core/net-sysfs.c).
            if error.errno not in ABSENT_ERRNOS and not (
                error.errno == errno.EINVAL and path.startswith("sys/class/net")
            ):
                self.skipped[path] = error.strerror or str(error)
            return
        if place == "proc/cmdline" or not place.startswith(_KERNELS_OWN):
            data, self.left_out[place] = without_secrets(place, data)
        self.members[place] = _Member(data, None, self._root.mode(place) or 0o644)

    def _stays(self, path: str, place: str) -> str:
        """Why a file must not be read; "" for all others."""
        if not place.startswith(_KERNELS_OWN) and (is_secret_file(path) or is_secret_file(place)):
            return "its name says that it is a secret"
        name = path.rpartition("/")[2]
        if not self._root.live:
            return ""
        match = _CPU_OF.search(path)
        if match and name in DISTURBING and int(match[1]) in self._quiet:
            return f"reading it would interrupt CPU {match[1]}, which is isolated"
        if "_link_" in name and self._root.get(f"{path[: -len(name)]}power/runtime_status") == "suspended":
            return "reading it would wake the device"
        if name == "temp" and self._root.get(f"{path[:-4]}type") in DISTURBING_ZONES and self._quiet:
            return "reading it interrupts a CPU of the package, which may be an isolated one"
        return ""

    def link(self, path: str) -> None:
        """A link whose target does not matter."""
        if self._root.readlink(path):
            self.place(path)

    def presence(self, path: str) -> None:
        """An empty file where there is one."""
        if self._root.exists(path):
            self.members[self.place(path)] = _Member(b"", None, 0o755)

    def directory(self, path: str) -> None:
        """A directory, even an empty one."""
        if self._root.exists(path):
            self.members.setdefault(self.place(path), _Member(None, None, 0o755))


def record(
    root: Sysroot,
    out_path: str,
    quiet: CpuSet = frozenset(),
    units: Iterable[str] = (),
    files: Iterable[str] = (),
) -> Recorded:
    """Writes the archive (.tar.gz).

    `quiet`: CPUs, besides those the kernel isolates, that must not be interrupted. `units`: those of programs that
    tune. `files`: shell patterns of what else must be in it (knobs.files_read()). The same files give the same
    archive, to the byte. Needs no privileges: what may not be read is in `skipped`. OSError where the archive cannot
    be written; then there is none.
    """
    facts = read_scope_facts(root)
    recorder = _Recorder(root, facts.quiet | quiet)
    for pattern in dict.fromkeys((*FILES, *files)):
        for path in expand(root, pattern):
            recorder.file(path)
    for nic in sorted(root.listdir("sys/class/net")):
        # Asked of the kernel on a running host, files on a recorded one.
        for path in (*paths_of(nic), *(f"{PREFIX}{nic}/{kind}" for kind in ASKED)):
            recorder.file(path)
    for path in PRESENCE:
        recorder.presence(path)
    recorder.link(SH)
    for pattern in DIRECTORIES:
        for path in expand(root, pattern):
            recorder.directory(path)
    _record_units(root, recorder, units)
    _record_answers(root, recorder)
    if root.live and "proc/sys/kernel/arch" not in recorder.members:  # /proc has it since 6.1
        recorder.members["proc/sys/kernel/arch"] = _Member(f"{os.uname().machine}\n".encode(), None, 0o444)
    skipped = [Skipped("/" + path, reason) for path, reason in sorted(recorder.skipped.items())]
    left_out = [taken for path in sorted(recorder.left_out) for taken in recorder.left_out[path]]
    told = {"skipped": plain(skipped), "left_out": plain(left_out)}
    note = {"schema": "tunectl.recording/1", "tunectl_version": __version__, **told}
    recorder.members[MARK] = _Member((json.dumps(note, indent=1) + "\n").encode(), None, 0o644)
    _write(out_path, recorder.members)
    count = sum(member.data is not None for member in recorder.members.values())
    return Recorded(out_path, count, os.path.getsize(out_path), skipped, left_out)


def _record_units(root: Sysroot, recorder: _Recorder, units: Iterable[str]) -> None:
    """What says that another tuner runs, is enabled or installed."""
    for unit in units:
        for slice_ in ("sys/fs/cgroup", "sys/fs/cgroup/systemd", "sys/fs/cgroup/unified"):
            recorder.file(f"{slice_}/system.slice/{unit}/cgroup.procs")
        for where in ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"):
            for path in (*expand(root, f"{where}/*.wants/{unit}"), f"{where}/{unit}"):
                recorder.file(path) if root.readlink(path) != "/dev/null" else recorder.link(path)


def _record_answers(root: Sysroot, recorder: _Recorder) -> None:
    """What the owners of this host's configuration say; host/ask.py reads it again."""
    for question in QUESTIONS:
        if (answer := answer_to_record(root, question)) is not None:
            place = f"{ANSWERS}/{question.name}"
            data, recorder.left_out[place] = without_secrets(place, answer.encode())
            recorder.members[place] = _Member(data, None, 0o644)


def expand(root: Sysroot, pattern: str) -> Iterator[str]:
    """The paths that match a shell pattern, one directory at a time, in order; without wildcards it is itself."""
    head, *rest = pattern.split("/")
    paths = [head]
    for part in rest:
        if any(char in part for char in "*?["):
            paths = [f"{path}/{name}" for path in paths for name in fnmatch.filter(sorted(root.listdir(path)), part)]
        else:
            paths = [f"{path}/{part}" for path in paths]
    yield from paths


def _write(out_path: str, members: dict[str, _Member]) -> None:
    """The archive as one file, for its owner alone: a full disk leaves no half of one."""
    packed = io.BytesIO()
    # No name, no time: gzip would put both into its header.
    with (
        gzip.GzipFile("", "wb", 6, packed, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(members):
            member, entry = members[path], tarfile.TarInfo(path)
            entry.mode = member.mode | 0o400  # what only root could read must still unpack to something readable
            if member.target is not None:
                entry.type, entry.linkname = tarfile.SYMTYPE, member.target
            elif member.data is None:
                entry.type = tarfile.DIRTYPE
            else:
                entry.size = len(member.data)
            archive.addfile(entry, io.BytesIO(member.data) if member.data is not None else None)
    replace_file(followed(out_path), packed.getvalue(), mode=0o600)


_CPU = "sys/devices/system/cpu"
_ONE = f"{_CPU}/cpu[0-9]*"
_NET = "sys/class/net/*"
_PCI = "numa_node local_cpulist irq vendor device msi_irqs/*"
_POLICY = (
    "scaling_driver scaling_governor scaling_cur_freq scaling_available_frequencies scaling_setspeed cpuinfo_min_freq "
    "cpuinfo_max_freq cpuinfo_transition_latency bios_limit related_cpus affected_cpus base_frequency amd_pstate_*"
)


def _below(directory: str, names: str) -> tuple[str, ...]:
    return tuple(f"{directory}/{name}" for name in names.split())


# Shell patterns, a directory at a time; links on the way are recorded as links.
FILES = (
    *_below("proc", "cmdline cpuinfo interrupts loadavg meminfo softirqs stat uptime version"),
    *_below("proc/irq/[0-9]*", "smp_affinity smp_affinity_list effective_affinity effective_affinity_list"),
    *_below("proc/irq/[0-9]*", "affinity_hint node spurious"),
    *_below("proc/[0-9]*", "comm stat status cgroup task/*/comm task/*/stat task/*/status"),
    *_below("proc/sys/kernel", "arch hostname osrelease ostype version random/boot_id"),
    *_below("proc/sys/kernel", "watchdog watchdog_thresh sched_rt_period_us"),
    *_below("proc/sys/vm", "dirty_ratio dirty_background_ratio"),
    *_below("proc/sys/net/core", "netdev_budget netdev_max_backlog"),
    *_below(_CPU, "present online possible offline isolated nohz_full kernel_max smt/active"),
    *_below(_CPU, "cpuidle/current_driver cpuidle/current_governor cpuidle/current_governor_ro"),
    *_below(_CPU, "cpufreq/boost intel_pstate/* amd_pstate/* vulnerabilities/*"),
    *_below(_ONE, "online cpu_capacity topology/* node[0-9]* microcode/version"),
    *_below(f"{_ONE}/cache/index*", "level type size id shared_cpu_list shared_cpu_map coherency_line_size"),
    *_below(f"{_ONE}/cpufreq", _POLICY),
    *_below(f"{_ONE}/cpuidle/state*", "name desc latency residency default_status usage time above below"),
    *_below(_ONE, "thermal_throttle/* acpi_cppc/nominal_freq acpi_cppc/highest_perf acpi_cppc/lowest_freq"),
    *_below("sys/devices", "cpu/type cpu_core/cpus cpu_atom/cpus cpu_lowpower/cpus"),
    *_below("sys/devices/system/node", "online possible has_cpu has_memory node[0-9]*/cpulist node[0-9]*/cpumap"),
    *_below("sys/devices/system/node/node[0-9]*", "distance meminfo hugepages/*/*_hugepages"),
    *_below("sys/devices/system/clocksource/clocksource0", "current_clocksource available_clocksource"),
    *_below("sys/devices/virtual/workqueue", "cpumask_requested cpumask_isolated writeback/cpumask"),
    *_below("sys/kernel/irq/[0-9]*", "actions chip_name hwirq name type wakeup per_cpu_count"),
    *_below("sys/kernel", "security/lockdown debug/kprobes/list"),
    *_below("sys/kernel/tracing", "current_tracer set_event kprobe_events uprobe_events function_profile_enabled"),
    *_below("sys/kernel/tracing/instances/*", "current_tracer set_event"),
    "proc/sys/kernel/stack_tracer_enabled",
    *_below("sys/kernel/debug/sched/fair_server/cpu[0-9]*", "runtime period"),
    *_below("sys/module", "intel_idle/parameters/max_cstate processor/parameters/max_cstate"),
    *_below("sys/bus/pci/devices/*", "class physfn power/runtime_status link/*_aspm aer_dev_correctable"),
    *_below("sys/bus/pci/devices/*", "current_link_speed current_link_width max_link_speed max_link_width"),
    *_below(_NET, "operstate speed mtu type carrier carrier_changes device/driver statistics/rx_missed_errors"),
    *_below("sys/devices/system/edac/mc/mc[0-9]*", "ce_count */dimm_ce_count */dimm_label"),
    *_below(f"{_NET}/device", _PCI),
    *_below(f"{_NET}/device/..", _PCI),
    *_below(f"{_NET}/queues/*", "rps_cpus rps_flow_cnt xps_cpus tx_timeout"),
    *_below(
        "sys/class/thermal/thermal_zone*",
        "type temp mode policy trip_point_*_temp trip_point_*_type cdev*/type cdev*_trip_point",
    ),
    *_below("sys/class/thermal/cooling_device*", "type cur_state max_state"),
    *_below("sys/class/hwmon/hwmon*", "name"),
    *_below("sys/class/dmi/id", "sys_vendor product_name bios_version bios_date chassis_asset_tag"),
    *_below("sys/hypervisor", "type"),
    *_below("sys/class/watchdog/watchdog*", "identity state timeout"),
    *_below("sys", "class/misc/watchdog/dev module/ipmi_watchdog/initstate"),
    *_below("sys/fs/cgroup", "cpuset.cpus.effective cpuset.cpus.isolated"),
    *_below("sys/fs/cgroup/*", "cpuset.cpus cpuset.cpus.effective cpuset.cpus.partition"),
    *_below("etc", "os-release kernel/install.conf"),
    *_below("etc", "tuned/active_profile tuned/profile_mode tuned/bootcmdline sysctl.conf sysctl.d/*.conf"),
    *_below("etc", "tuned/*-variables.conf tuned/*/tuned.conf tuned/profiles/*/tuned.conf tlp.conf tlp.d/*.conf"),
    *_below("etc", "default/cpupower sysconfig/cpupower cpupower-service.conf default/cpufrequtils auto-cpufreq.conf"),
    "sys/devices/system/cpu/modalias",
    *(f"{place}/modprobe.d/*.conf" for place in ("etc", "run", "usr/local/lib", "usr/lib", "lib")),
    *(
        f"{place}/systemd/zram-generator.conf{more}"
        for place in ("etc", "run", "usr/lib")
        for more in ("", ".d/*.conf")
    ),
    *_below("etc", "tmpfiles.d/*.conf sysfs.conf sysfs.d/*.conf udev/rules.d/*.rules"),
    *(
        f"{place}/systemd/network/{name}"
        for place in ("etc", "run", "usr/local/lib", "usr/lib", "lib")
        for name in ("*.link", "*.link.d/*.conf")
    ),
    *_below("etc", "network/interfaces network/interfaces.d/* sysconfig/network-scripts/ifcfg-* netplan/*.yaml"),
    *_below("etc", "sysconfig/network/ifcfg-* NetworkManager/system-connections/*"),
    *_below("run", "netplan/*.yaml NetworkManager/system-connections/*"),
    *_below("usr/lib", "netplan/*.yaml NetworkManager/system-connections/*"),
    *_below("usr/lib", "tuned/*/tuned.conf tuned/profiles/*/tuned.conf tmpfiles.d/*.conf udev/rules.d/*.rules"),
    *_below("run", "tmpfiles.d/*.conf udev/rules.d/*.rules udev/data/n[0-9]* sysctl.d/*.conf"),
    "sys/class/net/*/ifindex",
    "sys/class/net/*/lower_*/ifindex",
    *_below("usr/lib", "os-release sysctl.d/*.conf"),
    "usr/local/lib/sysctl.d/*.conf",
    "usr/share/tlp/defaults.conf",
)

# Of these only that they are there matters: recorded as empty files.
PRESENCE = (
    *_below("usr/sbin", "update-grub grub-mkconfig grub2-mkconfig grubby irqbalance"),
    *_below("usr/bin", "bootctl kernel-install rpm-ostree"),
    *_below("etc", "zipl.conf kernel/postinst.d/z50-raspi-firmware"),
    *_below("run", "ostree-booted ostree/staged-deployment"),
)
DIRECTORIES = (
    "etc/default/grub.d",
    "etc/udev/rules.d",
    "sys/firmware/efi",
    "proc/irq",
    "sys/kernel/debug/sched",
    "sys/class/net",
    f"{_NET}/queues/*",
)
