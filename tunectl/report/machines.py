"""Hosts for people: what one is built of, and many names in few words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tunectl.report.escape import printable

_PLAIN = re.compile(r"([A-Za-z0-9._-]*?)([0-9]{1,9})([A-Za-z._-][A-Za-z0-9._-]*)?", re.ASCII)


def machine_name(hardware: Mapping[str, Any] | None) -> str:
    """`PowerEdge R650 (Dell Inc.), Intel(R) Xeon(R) Gold 6334, 2 sockets, 16 cores, 32 CPUs`"""
    if not hardware:
        return "unknown hardware"
    product, vendor = str(hardware.get("product") or ""), str(hardware.get("vendor") or "")
    parts = [f"{product} ({vendor})" if product and vendor else product or vendor, str(hardware.get("cpu_model") or "")]
    for key, one, many in (("sockets", "socket", "sockets"), ("cores", "core", "cores"), ("cpus", "CPU", "CPUs")):
        count = hardware.get(key) or 0
        parts.append(f"{count} {one if count == 1 else many}" if count else "")
    if hypervisor := hardware.get("hypervisor"):
        parts.append(f"on {hypervisor}" if hypervisor != "unknown" else "virtual")
    return printable(", ".join(filter(None, parts))) or "unknown hardware"


def folded(names: Iterable[str]) -> list[str]:
    """`tx-[01-17,20].ny4` for names that differ in a number, as clush and nodeset write it; others as they are.

    Numbers of another width are another family, so that every name can be read back.
    """
    families: dict[tuple[str, int, str], list[int]] = {}
    order: dict[tuple[str, int, str] | str, None] = {}
    for name in names:
        found = _PLAIN.fullmatch(name)
        if not found:
            order[printable(name) or "(no name)"] = None
            continue
        key = (found[1], len(found[2]), found[3] or "")
        families.setdefault(key, []).append(int(found[2]))
        order[key] = None
    return [one if isinstance(one, str) else _family(one, families[one]) for one in order]


def _family(key: tuple[str, int, str], numbers: list[int]) -> str:
    prefix, width, suffix = key
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [f"{low:0{width}}" if low == high else f"{low:0{width}}-{high:0{width}}" for low, high in spans]
    inner = ",".join(texts)
    return f"{prefix}{inner}{suffix}" if len(numbers) == 1 else f"{prefix}[{inner}]{suffix}"
