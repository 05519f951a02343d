"""What the programs with a configuration of `key = value` lines write: TLP, cpupower, cpufrequtils, auto-cpufreq, KSM.

Source: tlp.conf's own comments and defaults.conf; cpupower(1) and its service's file; auto-cpufreq's example.

Swap in compressed memory: what zram-generator's configuration has the next boot swap to.

Source: zram-generator.conf(5); its config.rs: a device of size 0 is left out, one with a mount point is no swap.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from tunectl.command import argv
from tunectl.fix import to_type
from tunectl.host.inifiles import Option, parse_ini
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


def parse_assignments(text: str) -> Iterator[Option]:
    """`NAME="value" # why` lines as options without a section."""
    return (
        Option("", assignment.name, assignment.value, assignment.line, assignment.line)
        for assignment in assignments(text)
    )


def read_tlp(root: Sysroot) -> tuple[Setting, ...] | None:
    """Its defaults, then /etc/tlp.d by name, then /etc/tlp.conf; the last line of a key counts. None without files."""
    files = ("usr/share/tlp/defaults.conf", *files_in_force(root, ("etc/tlp.d",)), "etc/tlp.conf")
    options = [(path, option) for path in files for option in parse_assignments(root.get_text(path))]
    if not options:
        return None
    enabled = [option.value for _, option in options if option.key == "TLP_ENABLE"]
    if enabled and enabled[-1] != "1":
        return ()
    return _settings(options, _TLP)


def read_cpupower(root: Sysroot) -> tuple[Setting, ...] | None:
    """Its service's file: Arch and upstream name values, Red Hat gives the program's arguments. None without one."""
    files = ("etc/default/cpupower", "etc/cpupower-service.conf", "etc/sysconfig/cpupower")
    if not any(root.exists(path) for path in files):
        return None
    options = [(path, option) for path in files for option in parse_assignments(root.get_text(path))]
    named = _settings([(path, option._replace(key=option.key.lower())) for path, option in options], _CPUPOWER)
    given = [(path, option) for path, option in options if option.key.lower().endswith("start_opts")]
    return (*named, *(setting for path, option in given for setting in _of_arguments(path, option)))


def _of_arguments(path: str, option: Option) -> Iterator[Setting]:
    """`CPUPOWER_START_OPTS="frequency-set -g performance"`."""
    for write in TOOLS["cpupower"](option.value.split()):
        yield Setting(write.knob, write.key, write.value, f"/{path}", option.line, wins=True)


def read_cpufrequtils(root: Sysroot) -> tuple[Setting, ...]:
    """/etc/default/cpufrequtils; without it the init script picks the governor. A limit of 0 is none."""
    path = "etc/default/cpufrequtils"
    options = [(path, option._replace(key=option.key.lower())) for option in parse_assignments(root.get_text(path))]
    chosen = _settings([option for option in options if option[1].value != "0"], _CPUPOWER)
    return (
        chosen
        if any(setting.knob == "cpufreq.governor" for setting in chosen)
        else (*_own("cpufreq.governor"), *chosen)
    )


def read_auto_cpufreq(root: Sysroot) -> tuple[Setting, ...]:
    """Governor, preference and turbo always, by load; limits where /etc/auto-cpufreq.conf gives them."""
    path = "etc/auto-cpufreq.conf"
    options = [
        (path, option) for option in parse_ini(root.get_text(path), continued=False) if option.section == "charger"
    ]
    chosen = _settings([(path, option._replace(value=_load_dependent(option))) for path, option in options], _AUTO)
    always = ("cpufreq.governor", "cpufreq.energy_performance_preference", "cpufreq.boost")
    return (*_own(*(knob for knob in always if knob not in {setting.knob for setting in chosen})), *chosen)


def read_ksm(root: Sysroot) -> tuple[Setting, ...]:
    """ksm.service starts merging at boot; ksmtuned starts and stops it by the memory that is free."""
    return _own("mm.ksm")


def _load_dependent(option: Option) -> str:
    words = {"always": "1", "never": "0", "auto": ""}
    return words.get(option.value, option.value) if option.key == "turbo" else option.value


def _own(*knobs: str) -> tuple[Setting, ...]:
    """What a program writes without being configured to."""
    return tuple(Setting(knob, knob, "", _BUILT_IN, 0, wins=True) for knob in knobs)


def _settings(options: Iterable[tuple[str, Option]], knob_of: Mapping[str, tuple[str, ...]]) -> tuple[Setting, ...]:
    """The options that stand for knobs of ours; an empty one sets nothing."""
    last = {option.key: (path, option) for path, option in options if option.key in knob_of}
    settings = []
    for path, option in last.values():
        if option.value or option.key == "turbo":
            settings += [
                Setting(knob, option.key, _in_our_terms(knob, option), "/" + path, option.line, wins=True)
                for knob in knob_of[option.key]
            ]
    return tuple(last_wins(settings))


def _in_our_terms(knob: str, option: Option) -> str:
    """A frequency in kHz, whatever its unit; anything else as it stands."""
    has_unit = knob.endswith("_khz") and option.value.lower().endswith("hz")
    return khz_of(option.value) if has_unit else option.value


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
    return tuple(
        _setting(name, f"dev-{name}.swap", *place)
        for name, place in places.items()
        if _is_swap(options.get(name, {}), memory_mb) and not mask_of(root, f"dev-{name}.swap")
    )


def _is_swap(options: Mapping[str, str], memory_mb: int) -> bool:
    limit = options.get("host-memory-limit", "")
    if limit.isdecimal() and memory_mb > int(limit):  # only small hosts get the device
        return False
    kind = options.get("fs-type", "" if "mount-point" not in options else "ext2")
    sizes = (options[key] for key in _SIZES if key in options)
    return kind in ("", "swap") and not any(re.fullmatch(r"0+(?:\.0*)?", size) for size in sizes)


def _setting(name: str, unit: str, file: str, line: int) -> Setting:
    ends = to_type(argv("sudo", "systemctl", "mask", of=[unit]))
    return Setting("mm.swap", f"swapon /dev/{name}", "on", f"/{file}", line, wins=True, ends=ends)
