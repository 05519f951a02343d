"""What TuneD's chosen profile writes: its tuned.conf and those it includes, with the variables worked out.

Source: tuned.conf(5), tuned-profiles(7); the plug-ins' own descriptions of their options.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.cpulist import parse_cpulist
from tunectl.errors import UsageError
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.inifiles import Option, parse_ini
from tunectl.host.sysctld import Setting, last_wins, normal_key
from tunectl.host.sysroot import Sysroot
from tunectl.tuners.places import knob_at, places
from tunectl.tuners.tools import net_settings
from tunectl.tuners.tunedvars import Machine, expand

# Of two profiles of one name the site's own counts. Releases from 2.23 on keep them one directory deeper.
_DIRECTORIES = ("etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned")

# Plug-in and option -> our knob. sysctl, sysfs and bootloader carry our keys in their own names.
_KNOB_OF = {
    ("cpu", "governor"): "cpufreq.governor",
    ("cpu", "energy_performance_preference"): "cpufreq.energy_performance_preference",
    ("cpu", "energy_perf_bias"): "cpufreq.energy_perf_bias",
    ("cpu", "min_perf_pct"): "cpufreq.min_perf_pct",
    ("cpu", "max_perf_pct"): "cpufreq.max_perf_pct",
    ("cpu", "no_turbo"): "cpufreq.boost",
    ("cpu", "boost"): "cpufreq.boost",
    ("cpu", "force_latency"): "cpuidle.dma_latency_us",
    ("cpu", "pm_qos_resume_latency_us"): "cpuidle.resume_latency_us",
    ("uncore", "max_freq_khz"): "uncore.max_khz",
    ("uncore", "min_freq_khz"): "uncore.min_khz",
    ("vm", "transparent_hugepages"): "mm.thp_enabled",
    ("vm", "transparent_hugepage"): "mm.thp_enabled",
    ("vm", "transparent_hugepage.defrag"): "mm.thp_defrag",
    ("irqbalance", "banned_cpus"): "irqbalance.banned_cpus",
    ("scheduler", "isolated_cores"): "irq.affinity",
    ("systemd", "cpu_affinity"): "systemd.cpu_affinity",
}


class Profile(NamedTuple):
    """The options in force, {(section, key): option with its value worked out, None where it cannot be, and path}."""

    names: tuple[str, ...]
    options: Mapping[tuple[str, str], tuple[Option, str | None, str]]
    missing: tuple[str, ...]  # profiles that are named, and whose files are not there
    plugins: Mapping[str, str]  # {section: its type}
    machine: Machine


def read_profile(root: Sysroot) -> Profile:
    """The active profile with everything it includes. Never raises."""
    names = tuple(root.get("etc/tuned/active_profile").split())
    files: list[tuple[str, list[Option]]] = []
    missing: list[str] = []
    for name in names:
        _collect(root, name, files, missing, ())
    machine = _machine(root)
    variables = _variables(root, files, machine)
    options: dict[tuple[str, str], tuple[Option, str | None, str]] = {}
    sections: dict[str, str] = {}
    for path, listed in files:
        for option in listed:
            if option.key == "replace" and option.value.lower() in ("1", "true"):
                options = {key: found for key, found in options.items() if key[0] != option.section}
        for option in listed:
            sections.setdefault(option.section, option.section)
            if option.key == "type":
                sections[option.section] = option.value
            options[option.section, option.key] = (option, expand(option.value, variables, machine), "/" + path)
    return Profile(names, options, tuple(missing), sections, machine)


def _collect(
    root: Sysroot, name: str, files: list[tuple[str, list[Option]]], missing: list[str], below: tuple[str, ...]
) -> None:
    """The files of a profile, those it includes before its own."""
    places_ = [f"{directory}/{name}/tuned.conf" for directory in _DIRECTORIES]
    path = next((place for place in places_ if "/" not in name and root.exists(place)), "")
    if not path or path in below:
        missing += [] if path else [name]
        return
    listed = list(parse_ini(root.get_named(path), continued=False))
    for option in listed:
        if (option.section, option.key) == ("main", "include"):
            for included in filter(None, re.split(r"[,;\s]+", option.value)):
                _collect(root, included, files, missing, (*below, path))
    files.append((path, listed))


def _variables(root: Sysroot, files: list[tuple[str, list[Option]]], machine: Machine) -> dict[str, str | None]:
    variables: dict[str, str | None] = {}
    for path, listed in files:
        for option in (option for option in listed if option.section == "variables"):
            lines = [option]
            if option.key == "include":
                place = option.value if option.value.startswith("/") else f"{path.rpartition('/')[0]}/{option.value}"
                lines = list(parse_ini(root.get_named(place.lstrip("/")), continued=False))
            for line in lines:
                variables[line.key] = expand(line.value, variables, machine)
    return variables


def _machine(root: Sysroot) -> Machine:
    facts = read_scope_facts(root)
    packages: dict[int, set[int]] = {}
    for cpu in facts.present:
        text = root.get(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id")
        if text.isdecimal():
            packages.setdefault(int(text), set()).add(cpu)
    latencies: dict[str, str] = {}
    for state in root.listdir("sys/devices/system/cpu/cpu0/cpuidle"):
        place = f"sys/devices/system/cpu/cpu0/cpuidle/{state}"
        latencies[state.removeprefix("state")] = latencies[root.get(f"{place}/name")] = root.get(f"{place}/latency")
    whole = {number: frozenset(cpus) for number, cpus in packages.items()}
    return Machine(facts.present, facts.online, whole, latencies, root.get_text("proc/cpuinfo"))


def read_tuned(root: Sysroot) -> tuple[Setting, ...] | None:
    """Every knob of ours that the active profile sets; None where a file of it is missing: then any may be."""
    profile = read_profile(root)
    if not profile.names or profile.missing:
        return None if profile.missing else ()
    excluded = partial(_excluded, profile, root.get("proc/sys/kernel/arch") or root.get("proc/version"))
    settings: list[Setting] = []
    for (section, _), (option, value, path) in profile.options.items():
        if section in ("main", "variables") or excluded(section):
            continue
        place = partial(Setting, path=path, line=option.line, wins=True)
        for knob, key, text in _ours(profile, profile.plugins[section], option.key, value):
            settings.append(place(knob, key, "" if (section, "cpuinfo_regex") in profile.options else text))
    return tuple(last_wins(settings))


def _excluded(profile: Profile, machine: str, section: str) -> bool:
    """Is the section switched off, or for another kind of machine? A condition we cannot judge excludes nothing."""
    off = profile.options.get((section, "enabled"))
    if off and off[0].value.lower() in ("0", "false"):
        return True
    uname = profile.options.get((section, "uname_regex"))
    words = uname[0].value if uname else ""
    return bool(re.fullmatch(r"[\w|]+", words)) and not any(word in machine for word in words.split("|"))


def _ours(profile: Profile, plugin: str, key: str, value: str | None) -> Iterator[tuple[str, str, str]]:
    """(knob, its name there, the text; "" where it is not known) of one option."""
    text = (value or "").lstrip("<>=") if plugin == "sysctl" else (value or "").partition("|")[0].strip()
    if plugin == "sysctl" and (knob := places().sysctls.get(normal_key(key))):
        yield knob, normal_key(key), text
    elif plugin == "sysfs" and (knob := knob_at(key)):
        yield knob, key, text
    elif plugin == "bootloader" and key.startswith("cmdline"):
        for arg in parse_cmdline((value or "").lstrip("+")):
            if knob := places().arguments.get(arg.key):
                yield knob, arg.key, arg.value or ""
    elif plugin == "net":
        yield from net_settings(key, value)
    elif knob := _KNOB_OF.get((plugin, key), ""):
        yield knob, f"{plugin}.{key}", _in_our_terms(profile.machine, knob, key, text)


def _in_our_terms(machine: Machine, knob: str, key: str, text: str) -> str:
    """The option's text in the knob's own terms; "" where it cannot be said in them."""
    if key == "no_turbo":
        return {"0": "1", "1": "0"}.get(text, "")
    if knob == "irq.affinity":  # interrupts are moved off the isolated CPUs
        return expand(f"${{f:cpulist_invert:{text}}}", {}, machine) or ""
    if key == "force_latency":  # microseconds, or an idle state of CPU 0 that has them
        words, _, state = text.rpartition(":")
        text = machine.latencies.get(state, "") if words in ("cstate.id", "cstate.name", "cstate.id_no_zero") else text
        return "n/a" if text == "0" else text  # the strictest limit, as the kernel calls it
    return text


def isolated_by(profile: Profile) -> tuple[frozenset[int], str]:
    """(the CPUs a partitioning profile isolates, where that is said); empty where it isolates none."""
    for key in (("irqbalance", "banned_cpus"), ("scheduler", "isolated_cores")):
        if key in profile.options and (text := profile.options[key][1]):
            try:
                return parse_cpulist(text), f"{profile.options[key][2]}:{profile.options[key][0].line}"
            except UsageError:
                continue
    return frozenset(), ""
