"""Hosts for people: what one is built of, many names in few words, and how a fleet's hosts stand. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.command import as_data, quoted
from tunectl.report.escape import printable
from tunectl.wording import limit_name, plural, written

_LONG, _FIRST = 160, 8  # characters, hosts
# The last number of a name without its domain: `ny4-tx-01`, `tx-01.ny4`
_PLAIN = re.compile(r"((?:[\w-]*[A-Za-z_-])?|[A-Za-z._-]*)([0-9]{1,9})([A-Za-z_-]*(?:\.[\w.-]*)?)", re.ASCII)


def group_name(group: Mapping[str, Any], written_as: Callable[[object], str] = str) -> str:
    """What hosts that are compared have in common."""
    return written_as(group["alike"]) if group.get("alike") else machine_name(group["hardware"], written_as)


def machine_name(hardware: Mapping[str, Any] | None, written_as: Callable[[object], str] = str) -> str:
    """`PowerEdge R650 (Dell Inc.), Intel(R) Xeon(R) Gold 6334, 2 sockets, 16 cores, 32 CPUs`

    `written_as` writes each of its names: `as_data` where they are another host's.
    """
    if not hardware:
        return "unknown hardware"
    named = {key: written_as(text) for key in ("product", "vendor", "cpu_model") if (text := hardware.get(key))}
    product, vendor = named.get("product", ""), named.get("vendor", "")
    parts = [f"{product} ({vendor})" if product and vendor else product or vendor, named.get("cpu_model", "")]
    for key, one, many in (("sockets", "socket", "sockets"), ("cores", "core", "cores"), ("cpus", "CPU", "CPUs")):
        count = hardware.get(key) or 0
        parts.append(f"{count} {one if count == 1 else many}" if count else "")
    if hypervisor := hardware.get("hypervisor"):
        parts.append(f"on {written_as(hypervisor)}" if hypervisor != "unknown" else "virtual")
    return printable(", ".join(filter(None, parts))) or "unknown hardware"


def middle(measure: str, usual: Mapping[str, Any]) -> str:
    """The median of a group: what counts as the floor may be less."""
    less = " or less" if usual["median"] <= usual["floor"] * (1 + 1e-9) else ""
    return f"{written(measure, usual['median'])}{less}"


def folded(names: Iterable[str]) -> list[str]:
    """`tx-[01-17,20].ny4` for names that differ in a number, as clush and nodeset write it; other names stay.

    Numbers with leading zeros are grouped by their width, so that every name can be read back from the result.
    """
    listed = [(name, _PLAIN.fullmatch(name)) for name in names]
    padded = {(match[1], match[3]) for _, match in listed if match and match[2][0] == "0" and len(match[2]) > 1}
    families: dict[tuple[str, int, str] | str, list[int]] = {}
    for name, match in listed:
        if not match:
            families[printable(name) or "(no name)"] = []
            continue
        width = len(match[2]) if (match[1], match[3]) in padded else 0
        families.setdefault((match[1], width, match[3]), []).append(int(match[2]))
    return [one if isinstance(one, str) else _family(*one, numbers) for one, numbers in families.items()]


def in_short(names: Sequence[str]) -> str:
    """The same as one text, of which a long one names the first hosts and counts the others."""
    text = ", ".join(folded(names))
    if len(text) <= _LONG:
        return text
    return f"{', '.join(folded(names[:_FIRST]))} and {len(names) - _FIRST:,} more"


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


MISSING = "missing"  # of a host without a document; its verdict is unknown
STATES = ("no-go", "unknown", MISSING, "pending-reboot", "go")
FEW_CAUSES = 7  # of a state, before they are folded
MEANS = {
    "go": "every host is ready to trade",
    "no-go": "do not trade on the hosts below",
    "pending-reboot": "configured everywhere, but not in force everywhere before a reboot",
    "unknown": "could not find out enough about some hosts",
}
_WORDS = {"go": "GO", "no-go": "NO-GO", "pending-reboot": "pending reboot", "unknown": "UNKNOWN"}


class Why(NamedTuple):
    """A cause for people: the hosts that it holds back, and one of their sentences."""

    title: str
    severity: str
    said: str
    hosts: tuple[str, ...]
    example: str  # "" where the title is what they all say


def tally(counts: Mapping[str, int]) -> str:
    """`200 hosts: 3 NO-GO, 14 UNKNOWN, 2 missing, 181 GO`; `counts`: of hosts in all, and by state or verdict."""
    parts = [f"{counts.get(state, 0):,} {word(state)}" for state in STATES if counts.get(state)]
    return plural(counts.get("hosts", 0), "host") + (f": {', '.join(parts)}" if parts else "")


def causes(body: Mapping[str, Any], state: str) -> list[Why]:
    """Why the hosts of this state are not GO, the most urgent first; limits that the same hosts broke are one."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    here = frozenset(named(body["hosts"], state))
    for place, one in enumerate(each for each in body.get("causes") or () if not here.isdisjoint(each["hosts"])):
        found.setdefault(tuple(one["hosts"]) if one["outcome"] == "broken" else (f"cause {place}",), []).append(one)
    return [_why(*alike) for alike in found.values()]


def _why(one: Mapping[str, Any], *more_limits: Mapping[str, Any]) -> Why:
    hosts, targets, texts = len(one["hosts"]), one["targets"], one["texts"]
    name = f"{one['knob']}[{one['instances']}]" if one["instances"] else str(one["knob"])
    text = str(one["example"]["text"])
    if not one["knob"] and texts == 1:  # all of them say this very sentence
        return Why(_said(one, text), "", _counted(hosts, targets), tuple(one["hosts"]), "")
    title = f"{as_data(name)} {one['outcome']}" if one["knob"] else _said(one, str(one["cause"]))
    if one["outcome"] == "broken":
        title = "over the budget: " + ", ".join(limit_name(as_data(limit["cause"])) for limit in (one, *more_limits))
    others = f" (one of {texts:,} such sentences)" if texts > 1 else ""
    example = f"{one['example']['host']}: {quoted(text) if one['knob'] or one.get('own_words') else text}{others}"
    return Why(title, str(one["severity"]), _counted(hosts, targets), tuple(one["hosts"]), example)


def _said(one: Mapping[str, Any], text: str) -> str:
    """A reason that is known as text only: a document's is not tunectl's to say."""
    return f"in the hosts' own words: {quoted(text)}" if one.get("own_words") else text


def _counted(hosts: int, targets: int) -> str:
    return plural(hosts, "host") + (f", {targets:,} targets" if targets > hosts else "")


class Do(NamedTuple):
    """An action on several hosts, for people."""

    what: str
    is_command: bool
    said: str
    hosts: tuple[str, ...]
    own_words: bool = False


OWN_WORDS = "In the hosts' own words, not tunectl's: read before you type"


def to_do(body: Mapping[str, Any]) -> list[Do]:
    """A fleet's `actions`. A command that is another one on each host is told from one that can be typed, and what a
    host asks for in its own words, at the end, from both."""
    made = []
    for one in body.get("actions") or ():
        said = _counted(len(one["hosts"]), one["targets"])
        if own := one.get("own_words"):
            made.append(Do(quoted(str(own)), False, said, tuple(one["hosts"]), True))
        elif alike := one.get("alike"):
            made.append(Do(str(alike), False, f"{said}, each with other numbers", tuple(one["hosts"])))
        else:
            what = str(one.get("command") or f"by hand: {one.get('decide')}")
            made.append(Do(what, bool(one.get("command")), said, tuple(one["hosts"])))
    return made


def state_of(host: Mapping[str, Any]) -> str:
    """Its verdict, or that it left no document."""
    return str(host["verdict"]) if host["answer"] == "document" else MISSING


def named(hosts: Iterable[Mapping[str, Any]], state: str) -> list[str]:
    """The names of the hosts in this state, in the document's order."""
    return [str(host["name"]) for host in hosts if state_of(host) == state]


def word(state: str) -> str:
    """A verdict or state as it is written for people."""
    return _WORDS.get(state, state)


OddHost = tuple[str, list[Mapping[str, Any]]]  # its name, and its figures, the oddest first


def odd_hosts(outliers: Sequence[Mapping[str, Any]]) -> list[OddHost]:
    """The outliers host by host, the oddest first."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for outlier in outliers:
        found.setdefault(outlier["host"], []).append(outlier)
    return list(found.items())
