"""What each tuner writes, read from its own configuration; and that it matters only where it differs from ours."""

import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.builder import HostFactory
from tests.trees import write
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.tuners import keyfiles, tools, tuned
from tunectl.tuners.conflicts import FoundTuner, conflicts, describe, notes_of, objection
from tunectl.tuners.find import read_tuners
from tunectl.tuners.places import knob_at, places
from tunectl.tuners.table import FILES, PROGRAMS

needs_tmpfiles = pytest.mark.skipif(not shutil.which("systemd-tmpfiles"), reason="systemd-tmpfiles is not installed")

OURS: dict[str, Any] = {
    "cpufreq.governor": "performance",
    "cpufreq.max_khz": "hardware-max",
    "cpufreq.boost": True,
    "cpufreq.hwp_dynamic_boost": False,
    "mm.ksm": "stopped",
    "mm.swappiness": 1,
    "mm.thp_enabled": "never",
    "kernel.nmi_watchdog": False,
    "irq.affinity": frozenset({0, 1}),
    "net.queue_irqs": frozenset({0, 1}),
    "net.busy_poll": 50,
}


def running(root: Path, *units: str) -> None:
    for unit in units:
        write(root, f"sys/fs/cgroup/system.slice/{unit}.service/cgroup.procs", "77\n")


def found(root: Path, name: str) -> FoundTuner:
    return {tuner.name: tuner for tuner in read_tuners(Sysroot(str(root)))}[name]


def against(root: Path, name: str) -> list[str]:
    return list(map(describe, conflicts(found(root, name), OURS)))


@pytest.mark.parametrize(
    ("path", "knob"),
    [
        ("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "cpufreq.governor"),
        ("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "cpufreq.governor"),
        ("sys/devices/system/cpu/cpufreq/policy12/scaling_max_freq", "cpufreq.max_khz"),
        ("/proc/irq/33/smp_affinity_list", "irq.affinity"),
        ("/sys/class/net/eth0/queues/rx-12/rps_cpus", "net.rps_cpus"),
        ("/sys/class/net/*/gro_flush_timeout", "net.gro_flush_timeout_ns"),
        ("/proc/sys/vm/swappiness", "mm.swappiness"),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "cpufreq.boost"),
        ("/sys/block/sda/queue/scheduler", ""),
    ],
)
def test_the_knob_behind_a_path(path: str, knob: str) -> None:
    assert knob_at(path) == knob


def test_every_sysctl_row_is_known_as_a_sysctl() -> None:
    ours = {knob.name for knob in KNOBS.values() if knob.driver.describe()[0].startswith("/proc/sys/")}
    assert ours == set(places().sysctls.values())


# unit, {file: text}, what of OURS it writes otherwise
PROGRAM_CASES: list[tuple[str, dict[str, str], list[str]]] = [
    ("tlp", {"etc/tlp.conf": "CPU_SCALING_GOVERNOR_ON_AC=performance\nNMI_WATCHDOG=0\n"}, []),
    ("tlp", {"etc/tlp.conf": "#CPU_SCALING_GOVERNOR_ON_AC=powersave\nCPU_SCALING_GOVERNOR_ON_BAT=powersave\n"}, []),
    (
        "tlp",
        {
            "usr/share/tlp/defaults.conf": "NMI_WATCHDOG=0\n",
            "etc/tlp.d/10-a.conf": "NMI_WATCHDOG=1\nCPU_BOOST_ON_AC=1\n",
            "etc/tlp.conf": 'CPU_SCALING_GOVERNOR_ON_AC="powersave"  # quiet\n',
        },
        [
            "NMI_WATCHDOG = 1 (/etc/tlp.d/10-a.conf:1)",
            "CPU_SCALING_GOVERNOR_ON_AC = powersave (/etc/tlp.conf:1)",
        ],
    ),
    ("tlp", {"etc/tlp.conf": "NMI_WATCHDOG=1\nTLP_ENABLE=0\n"}, []),
    (
        "tlp",
        {"etc/tlp.conf": "CPU_HWP_DYN_BOOST_ON_AC=1\n"},
        ["CPU_HWP_DYN_BOOST_ON_AC = 1 (/etc/tlp.conf:1)"],
    ),
    ("cpupower", {"etc/default/cpupower": "governor='performance'\n"}, []),
    (
        "cpupower",
        {"etc/default/cpupower": "governor='powersave'\nmax_freq=\"2.4GHz\"\n"},
        ["governor = powersave (/etc/default/cpupower:1)", "max_freq = 2400000 (/etc/default/cpupower:2)"],
    ),
    (
        "cpupower",
        {"etc/sysconfig/cpupower": 'CPUPOWER_START_OPTS="frequency-set -g ondemand"\n'},
        ["cpupower frequency-set -g = ondemand (/etc/sysconfig/cpupower:1)"],
    ),
    ("cpufrequtils", {"etc/default/cpufrequtils": 'GOVERNOR="performance"\nMAX_SPEED="0"\n'}, []),
    ("cpufrequtils", {}, ["cpufreq.governor"]),
    ("auto-cpufreq", {}, ["cpufreq.governor", "cpufreq.boost"]),
    (
        "auto-cpufreq",
        {"etc/auto-cpufreq.conf": "[charger]\ngovernor = performance\nturbo = never\n[battery]\ngovernor = x\n"},
        ["turbo = 0 (/etc/auto-cpufreq.conf:3)"],
    ),
    ("ksmtuned", {}, ["mm.ksm"]),
    ("thermald", {}, ["cpufreq.boost", "cpufreq.max_khz"]),
    ("power-profiles-daemon", {}, ["cpufreq.boost", "cpufreq.governor"]),
    ("irqbalance", {}, ["irq.affinity", "net.queue_irqs"]),
]


@pytest.mark.parametrize(("unit", "files", "said"), PROGRAM_CASES)
def test_a_program_is_judged_by_what_it_is_told_to_write(
    tmp_path: Path, unit: str, files: dict[str, str], said: list[str]
) -> None:
    running(tmp_path, unit)
    for path, text in files.items():
        write(tmp_path, path, text)
    write(tmp_path, "sys/devices/system/cpu/present", "0-3\n")
    assert against(tmp_path, unit) == said
    tuner = found(tmp_path, unit)
    assert tuner.when
    assert tuner.answer


FILE_CASES = [
    ("sysctl.d", "etc/sysctl.d/9.conf", "vm.swappiness = 60\n", "vm.swappiness = 60 (/etc/sysctl.d/9.conf:1)"),
    ("sysctl.d", "etc/sysctl.d/9.conf", "vm.swappiness = 1\n", ""),
    ("sysctl.d", "etc/sysctl.d/9.conf", "net.core.busy_poll=0\n", "net.core.busy_poll = 0 (/etc/sysctl.d/9.conf:1)"),
    (
        "tmpfiles.d",
        "etc/tmpfiles.d/thp.conf",
        "# huge pages\nw! /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\nd /run/x 0755 root root -\n",
        "/sys/kernel/mm/transparent_hugepage/enabled = madvise (/etc/tmpfiles.d/thp.conf:2)",
    ),
    (
        "tmpfiles.d",
        "etc/tmpfiles.d/cpus.conf",
        "w /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor - - - - powersave\n"
        "w /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor - - - - performance\n",
        "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor = powersave (/etc/tmpfiles.d/cpus.conf:1)",
    ),
    (
        "tmpfiles.d",
        "etc/tmpfiles.d/cpus.conf",
        "w /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor - - - - powersave\n"
        "w /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor - - - - performance\n",
        "",
    ),
    (
        "sysfs.conf",
        "etc/sysfs.conf",
        "devices/system/cpu/cpu0/cpufreq/scaling_governor = powersave # less heat\n",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor = powersave (/etc/sysfs.conf:1)",
    ),
    (
        "udev rules",
        "etc/udev/rules.d/50-cpu.rules",
        'SUBSYSTEM=="cpu", ACTION=="add", \\\n  ATTR{cpufreq/scaling_governor}="schedutil"\n',
        "/sys/devices/system/cpu/cpuN/cpufreq/scaling_governor = schedutil (/etc/udev/rules.d/50-cpu.rules:1)",
    ),
    (
        "udev rules",
        "usr/lib/udev/rules.d/60-ksm.rules",
        'ACTION=="add", RUN+="/bin/sh -c \'echo 1 > /sys/kernel/mm/ksm/run\'"\n',
        "/sys/kernel/mm/ksm/run = 1 (/usr/lib/udev/rules.d/60-ksm.rules:1)",
    ),
    (
        "udev rules",
        "etc/udev/rules.d/50-turbo.rules",
        'SUBSYSTEM=="cpu", SYSCTL{kernel/nmi_watchdog}="1"\n',
        "kernel/nmi_watchdog = 1 (/etc/udev/rules.d/50-turbo.rules:1)",
    ),
]


@pytest.mark.parametrize(("name", "path", "text", "said"), FILE_CASES)
def test_a_file_is_judged_by_its_lines(tmp_path: Path, name: str, path: str, text: str, said: str) -> None:
    write(tmp_path, path, text)
    assert against(tmp_path, name) == ([said] if said else [])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("etc/udev/rules.d/1.rules", 'SUBSYSTEM=="cpu", ATTR{cpufreq/scaling_governor}=="schedutil"\n'),  # a question
        ("etc/udev/rules.d/1.rules", '# SUBSYSTEM=="cpu", ATTR{cpufreq/scaling_governor}="schedutil"\n'),
        ("etc/udev/rules.d/1.rules", 'SUBSYSTEM=="usb", ATTR{power/control}="auto"\n'),
        ("etc/tmpfiles.d/1.conf", "w /sys/class/leds/x/trigger - - - - none\n"),
        ("etc/sysfs.conf", "# devices/system/cpu/cpu0/cpufreq/scaling_governor = powersave\n"),
    ],
)
def test_files_that_touch_none_of_our_keys_are_not_mentioned(tmp_path: Path, path: str, text: str) -> None:
    write(tmp_path, path, text)
    assert read_tuners(Sysroot(str(tmp_path))) == []


def test_the_files_of_cloud_images_and_what_apply_does(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write(root, "etc/default/grub.d/50-cloudimg-settings.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="console=ttyS0"\n')
    assert "GRUB" not in {tuner.name for tuner in read_tuners(Sysroot(str(root)))}
    write(root, "etc/default/grub.d/50-cloudimg-settings.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="isolcpus=1 tsc=reliable"\n')
    tuner = found(root, "GRUB")
    assert tuner.overwrites == ("boot.isolcpus", "boot.tsc")
    wanted = {"boot.tsc": "reliable", "boot.isolcpus": KNOBS["boot.isolcpus"].codec.decode("managed_irq,domain,2-3")}
    said = notes_of([tuner], wanted)
    assert len(said) == 1
    assert "isolcpus = 1 (/etc/default/grub.d/50-cloudimg-settings.cfg:1)" in said[0]
    assert "tsc" not in said[0].partition(":1)")[0]


def test_every_tuner_says_when_and_what_apply_does() -> None:
    assert all(tuner.when and tuner.answer for tuner in (*FILES, *PROGRAMS))


def test_the_tables_name_rows() -> None:
    named = {
        knob for table in (keyfiles._TLP, keyfiles._CPUPOWER, keyfiles._AUTO) for row in table.values() for knob in row
    }
    assert named | set(tuned._KNOB_OF.values()) | set(tools._NET_KNOB_OF.values()) <= set(KNOBS)


def test_the_patterns_of_programs_match_rows() -> None:
    for tuner in PROGRAMS:
        for pattern in tuner.overwrites:
            assert any(fnmatchcase(knob, pattern) for knob in KNOBS), (tuner.name, pattern)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("etc/tmpfiles.d/x.conf", "w+ /sys/kernel/mm/ksm/run - - - - {}"),
        ("etc/sysfs.conf", "kernel/mm/ksm/run = {}"),
        ("etc/udev/rules.d/x.rules", "RUN+=\"/bin/sh -c 'echo {} > /sys/kernel/mm/ksm/run'\""),
    ],
)
def test_of_two_lines_the_last_is_in_force(tmp_path: Path, path: str, line: str) -> None:
    write(tmp_path, path, f"{line.format(0)}\n{line.format(1)}\n")
    (tuner,) = read_tuners(Sysroot(str(tmp_path)))
    assert [(setting.line, setting.wins) for setting in tuner.settings] == [(1, False), (2, True)]


TWO_LINES = pytest.mark.parametrize(
    ("first", "second", "counts"), [("w", "w", "0"), ("w", "w+", "0"), ("w+", "w", "0"), ("w+", "w+", "1")]
)


@TWO_LINES
def test_of_two_lines_for_a_path_the_first_counts(tmp_path: Path, first: str, second: str, counts: str) -> None:
    """In the order of the files' names, wherever they lie."""
    write(tmp_path, "etc/tmpfiles.d/1.conf", f"{first} /sys/kernel/mm/ksm/run - - - - 0\n")
    write(tmp_path, "usr/lib/tmpfiles.d/2.conf", f"{second} /sys/kernel/mm/ksm/run - - - - 1\n")
    assert [setting.value for setting in found(tmp_path, "tmpfiles.d").settings if setting.wins] == [counts]


@needs_tmpfiles
@TWO_LINES
def test_so_does_systemd_tmpfiles(tmp_path: Path, first: str, second: str, counts: str) -> None:
    write(tmp_path, "value", "")
    write(tmp_path, "etc/tmpfiles.d/1.conf", f"{first} /value - - - - 0\n")
    write(tmp_path, "usr/lib/tmpfiles.d/2.conf", f"{second} /value - - - - 1\n")
    subprocess.run(["systemd-tmpfiles", "--create", f"--root={tmp_path}"], check=True, capture_output=True)
    assert (tmp_path / "value").read_text()[-1] == counts  # w+ appends to a file; in sysfs it is a write of its own


@pytest.mark.parametrize("unit", ["ondemand", "cpupower-service", "com.system76.PowerDaemon"])
def test_a_fix_ends_the_unit_that_starts_it(tmp_path: Path, unit: str) -> None:
    write(tmp_path, f"usr/lib/systemd/system/{unit}.service", "[Service]\nExecStart=/x\n")
    running(tmp_path, unit)
    for name in ("present", "online"):
        write(tmp_path, f"sys/devices/system/cpu/{name}", "0-3\n")
    host = Sysroot(str(tmp_path))
    (tuner,) = read_tuners(host)
    against_us = objection(tuner, OURS, frozenset({2, 3}), read_scope_facts(host))
    assert against_us is not None
    (task,) = against_us.fix.tasks
    assert str(task.text) == f"sudo systemctl disable --now {unit}.service"


def test_a_word_that_names_no_cpu_sets_no_other_cpus(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write(root, "etc/default/grub.d/50-site.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="rcu_nocbs nohz_full=1"\n')
    assert found(root, "GRUB").overwrites == ("boot.nohz_full",)
