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

    Where a family's numbers have leading zeros, those of another width are another family: every name can be read back.
    """
    listed = [(name, _PLAIN.fullmatch(name)) for name in names]
    padded = {(found[1], found[3]) for _, found in listed if found and found[2][0] == "0" and len(found[2]) > 1}
    families: dict[tuple[str, int, str] | str, list[int]] = {}
    for name, found in listed:
        if not found:
            families[printable(name) or "(no name)"] = []
            continue
        width = len(found[2]) if (found[1], found[3]) in padded else 0
        families.setdefault((found[1], width, found[3] or ""), []).append(int(found[2]))
    return [one if isinstance(one, str) else _family(*one, numbers) for one, numbers in families.items()]


def _family(prefix: str, width: int, suffix: str, numbers: Iterable[int]) -> str:
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [f"{low:0{width}}" if low == high else f"{low:0{width}}-{high:0{width}}" for low, high in spans]
    inner = ",".join(texts)
    return f"{prefix}{inner}{suffix}" if inner.isdecimal() else f"{prefix}[{inner}]{suffix}"
