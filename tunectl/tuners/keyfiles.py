"""What the programs with a configuration of `key = value` lines write: TLP, cpupower, cpufrequtils, auto-cpufreq, KSM.

Source: tlp.conf's own comments and defaults.conf; cpupower(1) and its service's file; auto-cpufreq's example.

Swap in compressed memory: what zram-generator's configuration has the next boot swap to.

Source: zram-generator.conf(5); its config.rs: a device of size 0 is left out, one with a mount point is no swap.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tunectl.command import argv
from tunectl.fix import to_type
from tunectl.host.inifiles import parse_ini
from tunectl.host.shellvars import assignments
from tunectl.host.sysctld import Setting, last_wins
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_in_force, files_of
from tunectl.host.systemdunit import mask_of
from tunectl.tuners.tools import TOOLS, khz_of

# A server is on AC; what is for the battery alone is never in force here.
_TLP = {
    "CPU_SCALING_GOVERNOR_ON_AC": ("cpufreq.governor",),
    "CPU_SCALING_MIN_FREQ_ON_AC": ("cpufreq.min_khz",),
    "CPU_SCALING_MAX_FREQ_ON_AC": ("cpufreq.max_khz",),
    "CPU_MIN_PERF_ON_AC": ("cpufreq.min_perf_pct",),
    "CPU_MAX_PERF_ON_AC": ("cpufreq.max_perf_pct",),
    "CPU_ENERGY_PERF_POLICY_ON_AC": ("cpufreq.energy_performance_preference", "cpufreq.energy_perf_bias"),
    "CPU_BOOST_ON_AC": ("cpufreq.boost",),
    "CPU_HWP_DYN_BOOST_ON_AC": ("cpufreq.hwp_dynamic_boost",),
    "CPU_DRIVER_OPMODE_ON_AC": ("cpufreq.intel_pstate", "cpufreq.amd_pstate"),
    "NMI_WATCHDOG": ("kernel.nmi_watchdog",),
    "PCIE_ASPM_ON_AC": ("pcie.aspm_policy",),
    "RUNTIME_PM_ON_AC": ("pcie.runtime_power",),
}
# Whichever distribution: names differ in case and in the prefix only.
_CPUPOWER = {
    "governor": ("cpufreq.governor",),
    "min_freq": ("cpufreq.min_khz",),
    "max_freq": ("cpufreq.max_khz",),
    "freq": ("cpufreq.min_khz", "cpufreq.max_khz"),
    "min_speed": ("cpufreq.min_khz",),
    "max_speed": ("cpufreq.max_khz",),
    "perf_bias": ("cpufreq.energy_perf_bias",),
    "epp": ("cpufreq.energy_performance_preference",),
    "turbo_boost": ("cpufreq.boost",),
}
_AUTO = {
    "governor": ("cpufreq.governor",),
    "energy_performance_preference": ("cpufreq.energy_performance_preference",),
    "energy_perf_bias": ("cpufreq.energy_perf_bias",),
    "scaling_min_freq": ("cpufreq.min_khz",),
    "scaling_max_freq": ("cpufreq.max_khz",),
    "turbo": ("cpufreq.boost",),
}
_BUILT_IN = "its own choice"


class _Line(NamedTuple):
    """One `key = value` line, and where it stands."""

    key: str
    value: str
    path: str
    line: int


def _read_assignments(root: Sysroot, *files: str) -> list[_Line]:
    """Of `NAME="value" # why` lines."""
    return [
        _Line(assignment.name, assignment.value, path, assignment.line)
        for path in files
        for assignment in assignments(root.get_text(path))
    ]


def read_tlp(root: Sysroot) -> tuple[Setting, ...] | None:
    """Its defaults, then /etc/tlp.d by name, then /etc/tlp.conf; the last line of a key counts. None without files."""
    dropins = files_in_force(root, ("etc/tlp.d",))
    lines = _read_assignments(root, "usr/share/tlp/defaults.conf", *dropins, "etc/tlp.conf")
    enabled = [line.value for line in lines if line.key == "TLP_ENABLE"]
    if not lines or (enabled and enabled[-1] != "1"):
        return () if lines else None
    return _settings(lines, _TLP)


def read_cpupower(root: Sysroot) -> tuple[Setting, ...] | None:
    """Its service's file: Arch and upstream name values, Red Hat gives the program's arguments. None without one."""
    files = ("etc/default/cpupower", "etc/cpupower-service.conf", "etc/sysconfig/cpupower")
    if not any(root.exists(path) for path in files):
        return None
    lines = [line._replace(key=line.key.lower()) for line in _read_assignments(root, *files)]
    given = [  # CPUPOWER_START_OPTS="frequency-set -g performance"
        Setting(write.knob, write.key, write.value, f"/{line.path}", line.line, wins=True)
        for line in lines
        if line.key.endswith("start_opts")
        for write in TOOLS["cpupower"](line.value.split())
    ]
    return (*_settings(lines, _CPUPOWER), *given)


def read_cpufrequtils(root: Sysroot) -> tuple[Setting, ...]:
    """/etc/default/cpufrequtils; without it the init script picks the governor. A limit of 0 is none."""
    lines = [line._replace(key=line.key.lower()) for line in _read_assignments(root, "etc/default/cpufrequtils")]
    return _with_own(_settings([line for line in lines if line.value != "0"], _CPUPOWER), "cpufreq.governor")


def read_auto_cpufreq(root: Sysroot) -> tuple[Setting, ...]:
    """Governor, preference and turbo always, by load; limits where /etc/auto-cpufreq.conf gives them."""
    path, lines = "etc/auto-cpufreq.conf", []
    for option in parse_ini(root.get_text(path), continued=False):
        turbo = {"always": "1", "never": "0", "auto": ""} if option.key == "turbo" else {}
        if option.section == "charger":
            lines.append(_Line(option.key, turbo.get(option.value, option.value), path, option.line))
    always = ("cpufreq.governor", "cpufreq.energy_performance_preference", "cpufreq.boost")
    return _with_own(_settings(lines, _AUTO), *always)


def _with_own(chosen: tuple[Setting, ...], *always: str) -> tuple[Setting, ...]:
    """With what a program writes without being configured to."""
    configured = {setting.knob for setting in chosen}
    own = (Setting(knob, knob, "", _BUILT_IN, 0, wins=True) for knob in always if knob not in configured)
    return (*own, *chosen)


def _settings(lines: Iterable[_Line], knob_of: Mapping[str, tuple[str, ...]]) -> tuple[Setting, ...]:
    """The lines that stand for knobs of ours, a frequency in kHz whatever its unit; an empty one sets nothing."""
    last = {line.key: line for line in lines if line.key in knob_of}
    settings = []
    for key, value, path, number in last.values():
        for knob in knob_of[key] if value or key == "turbo" else ():
            has_unit = knob.endswith("_khz") and value.lower().endswith("hz")
            text = khz_of(value) if has_unit else value
            settings.append(Setting(knob, key, text, f"/{path}", number, wins=True))
    return tuple(last_wins(settings))


_GENERATORS = tuple(
    f"{place}/systemd/system-generators/zram-generator"
    for place in ("run", "etc", "usr/local/lib", "usr/lib", "lib")  # systemd.generator(7): the first counts
)
_SECTION = re.compile(r"\[(zram[0-9]+)\]")
_SIZES = ("zram-size", "max-zram-size", "zram-fraction")


def read_zram(root: Sysroot) -> tuple[Setting, ...]:
    """A setting for each device that will be swapped to; none without the generator. Never raises."""
    generator = next((path for path in _GENERATORS if root.exists(path)), "")
    if not generator or root.readlink(generator) == "/dev/null":
        return ()
    found = re.search(r"MemTotal:\s*(\d+) kB", root.get_text("proc/meminfo"))
    memory_mb = int(found[1]) // 1024 if found else 0
    places: dict[str, tuple[str, int]] = {}
    options: dict[str, dict[str, str]] = {}
    for file in files_of(root, "zram-generator.conf"):
        text = root.get_text(file)
        for number, line in enumerate(text.split("\n"), 1):
            if match := _SECTION.fullmatch(line.strip()):
                places.setdefault(match[1], (file, number))
        for option in parse_ini(text):
            options.setdefault(option.section, {})[option.key] = option.value
    settings = []
    for name, (file, number) in places.items():
        unit = f"dev-{name}.swap"
        if _is_swap(options.get(name, {}), memory_mb) and not mask_of(root, unit):
            ends = to_type(argv("sudo", "systemctl", "mask", of=[unit]))
            settings.append(Setting("mm.swap", f"swapon /dev/{name}", "on", f"/{file}", number, wins=True, ends=ends))
    return tuple(settings)


def _is_swap(options: Mapping[str, str], memory_mb: int) -> bool:
    limit = options.get("host-memory-limit", "")
    if limit.isdecimal() and memory_mb > int(limit):  # only small hosts get the device
        return False
    kind = options.get("fs-type", "" if "mount-point" not in options else "ext2")
    sizes = (options[key] for key in _SIZES if key in options)
    return kind in ("", "swap") and not any(re.fullmatch(r"0+(?:\.0*)?", size) for size in sizes)
