"""Swap in compressed memory: what zram-generator's configuration has the next boot swap to.

Source: zram-generator.conf(5); its config.rs: a device of size 0 is left out, one with a mount point is no swap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunectl.command import argv
from tunectl.fix import to_type
from tunectl.host.inifiles import parse_ini
from tunectl.host.sysctld import Setting
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_of
from tunectl.host.systemdunit import mask_of

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
        for one in parse_ini(text):
            options.setdefault(one.section, {})[one.key] = one.value
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
