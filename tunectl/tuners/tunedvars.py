"""TuneD's variables and the functions over CPU sets that its profiles use. Pure: nothing is ever executed.

Source: tuned-profiles documentation, "Variables" and "Built-in functions"; tuned.conf(5).
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist, format_cpumask, parse_cpulist
from tunectl.errors import UsageError

_INNERMOST = re.compile(r"(?<!\\)\$\{((?:[^${}]|\$(?!\{))*)\}")
_MAX_TURNS = 200  # a variable that contains itself grows for ever


class Machine(NamedTuple):
    """What the functions ask of the host."""

    present: CpuSet
    online: CpuSet
    packages: Mapping[int, CpuSet]  # {package: its CPUs}
    latencies: Mapping[str, str] = {}  # exit latency in microseconds of CPU 0's idle states, by number and by name
    cpuinfo: str = ""  # /proc/cpuinfo


def expand(text: str, variables: Mapping[str, str | None], machine: Machine) -> str | None:
    """The text with its variables and functions in place; None where that would need something to be run."""
    for _ in range(_MAX_TURNS):
        match = _INNERMOST.search(text)
        if match is None:
            return text.replace("\\$", "$")
        if match[1].startswith("f:"):
            value = _call(match[1].split(":")[1:], machine)
        else:  # one that nobody defines is what the assertions of a profile look for
            value = variables.get(match[1], "")
        if value is None or len(text) > 100_000:
            return None
        text = text[: match.start()] + value + text[match.end() :]
    return None


def _call(words: list[str], machine: Machine) -> str | None:
    """What a function gives, by its name and arguments; None where it is not known or refuses them."""
    function = _FUNCTIONS.get(words[0])
    try:
        return function(machine, [word.replace("\\$", "$") for word in words[1:]]) if function else None
    except (UsageError, ValueError, KeyError):
        return None


def _set(arguments: list[str]) -> CpuSet:
    return parse_cpulist(",".join(part.strip() for part in ",".join(arguments).split(",") if part.strip()))


def _reserved(machine: Machine, arguments: list[str]) -> str:
    """Every package keeps its first CPUs, one unless a number is given; the others are isolated."""
    count = int(arguments[0]) if arguments and arguments[0] else 1
    kept = {cpu for members in machine.packages.values() for cpu in sorted(members)[:count]}
    return format_cpulist(frozenset().union(*machine.packages.values()) - kept)


def _ternary(machine: Machine, arguments: list[str]) -> str:
    """`TEXT:REGEX:YES:NO`. Only the two expressions of the shipped profiles: a stranger's could run for ever."""
    text, expression, yes, no = arguments
    known = {r"\s*[0-9]": r"[0-9]", r"\b[y,Y,1,t,T]\b": r"\b[yY1tT]\b"}
    return yes if re.search(known[expression.strip()], text) else no


def _of_cpu(machine: Machine, arguments: list[str]) -> str | None:
    """`WORD:TEXT:WORD:TEXT:ELSE`, by what /proc/cpuinfo has. Only words: a stranger's expression could run for ever."""
    for word, text in zip(arguments[::2], arguments[1::2], strict=False):
        if not re.fullmatch(r"\w+", word):
            return None
        if word in machine.cpuinfo:
            return text
    return arguments[-1] if len(arguments) % 2 else ""


_FUNCTIONS: dict[str, Callable[[Machine, list[str]], str | None]] = {
    "assertion": lambda machine, arguments: "",
    "assertion_non_equal": lambda machine, arguments: "",
    "calc_isolated_cores": _reserved,
    # Without a number it is that of the CPUs TuneD itself may use when it starts: not known here.
    "check_net_queue_count": lambda machine, arguments: "".join(arguments) if "".join(arguments).isdecimal() else None,
    "cpuinfo_check": _of_cpu,
    "cpulist2hex": lambda machine, arguments: format_cpumask(_set(arguments)),
    "cpulist2hex_invert": lambda machine, arguments: format_cpumask(machine.present - _set(arguments)),
    "cpulist_invert": lambda machine, arguments: format_cpulist(machine.present - _set(arguments)),
    "cpulist_online": lambda machine, arguments: format_cpulist(_set(arguments) & machine.online),
    "cpulist_pack": lambda machine, arguments: format_cpulist(_set(arguments)),
    "cpulist_present": lambda machine, arguments: format_cpulist(_set(arguments) & machine.present),
    "cpulist_unpack": lambda machine, arguments: format_cpulist(_set(arguments)),
    "regex_search_ternary": _ternary,
    "strip": lambda machine, arguments: "".join(arguments).strip(),
}
