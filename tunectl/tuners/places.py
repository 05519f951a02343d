"""Which knob stands behind a kernel path, a sysctl or a boot argument. Made from the table: a new row is known here."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

from tunectl.cpulist import format_cpulist, parse_cpumask
from tunectl.errors import UsageError
from tunectl.host.sysctld import normal_key
from tunectl.knobs import KNOBS
from tunectl.knobs.codecs import Codec
from tunectl.knobs.drivers.pseudofile import FirstOf

# kernel.watchdog and soft_watchdog are switches over the same detector (kernel/watchdog.c).
_ALIASES = {"/proc/sys/kernel/watchdog": "/proc/sys/kernel/nmi_watchdog"}
_NARROWER = frozenset({"net.queue_irqs"})  # some of irq.affinity's: a path does not say which
_SYSCTL = "/proc/sys/"
# An instance, or a pattern for all of them: cpu3, cpu*, policy0, irq/12, rx-3.
_NUMBER = re.compile(r"(?<=[a-z/-])(?:[0-9]+|\*|\[0-9\]\*?|N|M)(?=/)")
_NAMED = re.compile(r"(?<=/intel_uncore_frequency/)[^/]+|(?<=/sys/class/net/)[^/]+")
_POLICY = "/sys/devices/system/cpu/cpufreq/policyN/"
_OF_CPU = "/sys/devices/system/cpu/cpuN/cpufreq/"


class Places(NamedTuple):
    """Names as others use them -> ours; `codecs` only where a path is read otherwise than its knob."""

    paths: Mapping[str, str]
    sysctls: Mapping[str, str]
    arguments: Mapping[str, str]
    codecs: Mapping[str, Codec]


def normal_path(path: str) -> str:
    """A kernel path with every instance as `N`, a frequency policy as its CPU's; `/sys/.../cpuN/cpufreq/boost`."""
    return _NUMBER.sub("N", _NAMED.sub("N", "/" + path.lstrip("/"))).replace(_POLICY, _OF_CPU)


@cache
def places() -> Places:
    """Of every row of the table."""
    paths: dict[str, str] = {}
    arguments: dict[str, str] = {}
    codecs: dict[str, Codec] = {}
    for knob in KNOBS.values():
        for place in knob.driver.describe():
            if place.startswith(("/proc/", "/sys/")) and knob.name not in _NARROWER:
                paths.setdefault(normal_path(place), knob.name)
            elif place.endswith("=") and knob.facility == "boot":
                arguments[place.removesuffix("=")] = knob.name
        if isinstance(knob.driver, FirstOf):
            codecs |= {normal_path(file.describe()[0]): codec for file, codec in knob.driver.options}
    paths |= {other: paths[ours] for other, ours in _ALIASES.items() if ours in paths}
    sysctls = {path.removeprefix(_SYSCTL).replace("/", "."): knob for path, knob in paths.items() if _SYSCTL in path}
    return Places(paths, sysctls, arguments, codecs)


def knob_at(path: str) -> str:
    """The knob whose attribute a path (or a shell pattern of paths) is; "" for none of ours."""
    return places().paths.get(normal_path(path), "")


def knob_of_sysctl(name: str) -> str:
    """The knob of a sysctl, `vm.swappiness` or `vm/swappiness`; "" for none of ours."""
    return places().sysctls.get(normal_key(name), "")


def write_at(path: str, value: str) -> tuple[str, str]:
    """(the knob, the text in its own terms) of what is written to a path; ("", the text) of what is none of ours."""
    knob = _masks(normal_path(path)) or knob_at(path)
    if knob == "irq.affinity" and path.endswith("/smp_affinity"):  # a mask of CPUs, as a list; "" where it is none
        try:
            return knob, format_cpulist(parse_cpumask(value)) if value else ""
        except UsageError:
            return knob, ""
    if knob == "cpuidle.max_latency_us" and path.endswith("/disable"):
        return knob, "0" if value == "1" else ""  # an idle state that is switched off is what we want as well
    return knob, value


@cache
def knobs_at(pattern: str) -> tuple[str, ...]:
    """The knobs whose attributes a place in a program's text may be: itself, or below it where it is a directory.

    What only the running program knows in it (`$cpu`, `{0..3}`) stands for anything.
    """
    wild = normal_path(re.sub(r"\$\w+|\$?\{[^}]*\}", "*", pattern) + "/").rstrip("/")
    if knob := _masks(wild) or places().paths.get(wild):
        return (knob,)
    parts = re.sub(r"N(?=/|$)", "*", wild).split("/")
    # Each path of which the pattern means the whole, or the beginning.
    ours = {
        path: knob
        for path, knob in places().paths.items()
        if len(parts) <= path.count("/") + 1 and all(map(fnmatchcase, path.split("/"), parts))
    }
    files = [knob for path, knob in ours.items() if path.count("/") == wild.count("/") > 2]  # /proc/$pid is a process
    is_deep = wild.count("/") > 2 or wild.startswith("/proc/sys")
    return tuple(dict.fromkeys(files or (ours.values() if is_deep else ())))


def _masks(path: str) -> str:
    return "irq.affinity" if re.fullmatch(r"/proc/irq/(?:N|\*)/smp_affinity(?:_list)?", path) else ""
