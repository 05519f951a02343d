"""What the programs that tune write, told from their arguments: sysctl, cpupower, ethtool and others. Pure.

The settings of a NIC in the words of ethtool(8), as TuneD's [net] plug-in has them, too. Pure.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple

from tunectl.knobs.cpufreq import BIASES
from tunectl.tuners.places import knob_of_sysctl, places

_BIAS = {word: str(number) for word, number in BIASES.items()} | {"default": "6"}
_LOADS = re.compile(r"-[A-Za-z]*?[pf](.*)|--load(?:=(.*))?")  # sysctl -p FILE
_SYSCTL_CONF = "/etc/sysctl.conf"


class Write(NamedTuple):
    """One write: its line; the name shown; the knob, "" for none of ours; the text, "" if unknown."""

    line: int
    key: str
    knob: str = ""
    value: str = ""
    loads: str = ""  # the sysctls of this file, /etc/x.conf
    instance: str = ""  # the card, where it is of one
    named: bool = False  # a program's text names it, and whether and what it writes is not known


def _sysctl(arguments: list[str]) -> Iterator[Write]:
    if any(map(_LOADS.fullmatch, arguments)):  # -p FILE...
        words = (match[1] or match[2] or "" if (match := _LOADS.fullmatch(word)) else word for word in arguments)
        files = [word for word in words if word == "-" or (word and not word.startswith("-"))]
        for file in files or [_SYSCTL_CONF]:
            if file.startswith("/"):
                yield Write(0, f"sysctl -p {file}", loads=file)
        return
    if "--system" in arguments:  # sysctl.d has a row of its own; this file comes after it
        yield Write(0, "sysctl --system", loads=_SYSCTL_CONF)
    for word in arguments:
        key, equals, value = word.partition("=")
        if "$" in key and (equals or "-w" in arguments):  # any that it may be
            pattern = re.sub(r"\$\{?\w*\}?", "*", key)
            ours = (knob for sysctl, knob in places().sysctls.items() if fnmatchcase(sysctl, pattern))
            yield from (Write(0, f"sysctl {key}", knob, named=True) for knob in ours)
        elif equals and not key.startswith("-"):
            yield Write(0, key, knob_of_sysctl(key), _clean(value))


def _clean(value: str) -> str:
    return "" if "$" in value else value


# Program and verb, option -> knob.
_BIAS_OPTIONS = dict.fromkeys(("-a", "--all", "-b", "--epb"), "cpufreq.energy_perf_bias")
_FREQUENCY = dict.fromkeys(("-g", "--governor"), "cpufreq.governor")
_FREQUENCY |= dict.fromkeys(("-u", "--max"), "cpufreq.max_khz") | dict.fromkeys(("-d", "--min"), "cpufreq.min_khz")
_CPUPOWER_SET = dict.fromkeys(("-b", "--perf-bias"), "cpufreq.energy_perf_bias")
_CPUPOWER_SET |= dict.fromkeys(("-e", "--epp"), "cpufreq.energy_performance_preference")
_CPUPOWER_SET |= dict.fromkeys(("-t", "--turbo-boost"), "cpufreq.boost")
_IDLE = ("-d", "-D", "-e", "-E", "--disable", "--enable", "--disable-by-latency", "--enable-all")
_OPTIONS = {
    "cpupower frequency-set": _FREQUENCY,
    "cpupower set": _CPUPOWER_SET,
    "cpupower idle-set": dict.fromkeys(_IDLE, "cpuidle.max_latency_us"),
    "cpufreq-set": _FREQUENCY,
    "x86_energy_perf_policy": _BIAS_OPTIONS,
}


def _by_options(program: str, arguments: Sequence[str]) -> Iterator[Write]:
    """What the options of a program set: `--governor=x`, `--governor x`, `-g x` and `-gx`."""
    for word, after in zip(arguments, [*arguments, ""][1:], strict=True):
        name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        knob, text = _OPTIONS[program].get(name), _clean(value if equals else after)
        if not knob:
            continue
        if knob == "cpuidle.max_latency_us":  # a number of a state
            text = ""
        elif knob.endswith("_khz"):
            text = khz_of(text)
        elif knob.endswith("_bias"):
            text = _BIAS.get(text, text)
        yield Write(0, f"{program} {name}", knob, text)


def _cpupower(arguments: list[str]) -> Iterator[Write]:
    verb = next((word for word in arguments if f"cpupower {word}" in _OPTIONS), "")
    if verb:
        yield from _by_options(f"cpupower {verb}", arguments[arguments.index(verb) + 1 :])


def khz_of(text: str) -> str:
    """A frequency as these programs take it, `2.5GHz`, in kHz; "" where it is none."""
    match = re.fullmatch(r"([0-9.]{1,20})\s*(|hz|khz|mhz|ghz)", text.lower())
    if match is None or match[1].count(".") > 1 or match[1] == ".":
        return ""
    return str(round(float(match[1]) * {"": 1, "hz": 0.001, "khz": 1, "mhz": 1000, "ghz": 1_000_000}[match[2]]))


def _tuned_adm(arguments: list[str]) -> Iterator[Write]:
    words = [word for word in arguments if not word.startswith("-")]  # `tuned-adm profile` lists them
    if (words[:1] == ["profile"] and len(words) > 1) or words[:1] == ["auto_profile"]:
        yield Write(0, " ".join(["tuned-adm", *arguments]), "cpufreq.governor")


def _energy(arguments: list[str]) -> Iterator[Write]:
    yield from _by_options("x86_energy_perf_policy", arguments)
    if arguments and arguments[-1] in _BIAS and arguments[-2:-1] not in (["-a"], ["--all"], ["-b"], ["--epb"]):
        yield Write(0, "x86_energy_perf_policy", "cpufreq.energy_perf_bias", _BIAS[arguments[-1]])


def _swapon(arguments: list[str]) -> Iterator[Write]:
    shows = any(word in ("-s", "--summary", "-h", "--help", "-V") or word.startswith("--show") for word in arguments)
    starts = any(word in ("-a", "--all") or not word.startswith("-") for word in arguments)
    if starts and not shows:
        yield Write(0, " ".join(["swapon", *arguments]), "mm.swap", "on")


_ETHTOOL = {"-C": "coalesce", "-G": "ring", "-L": "channels", "-K": "features"}
_ETHTOOL |= {"--coalesce": "coalesce", "--set-ring": "ring", "--set-channels": "channels"}
_ETHTOOL |= {"--features": "features", "--offload": "features"}


def _ethtool(arguments: list[str]) -> Iterator[Write]:
    option, card, *words = [*arguments, "", ""][: max(len(arguments), 2)]
    kind = _ETHTOOL.get(option)
    if kind and any("$" in word for word in words[::2]):  # which words it has, only the running program knows
        for knob, _, _ in net_settings(kind, None):
            yield Write(0, knob=knob, key=f"ethtool {option} {card} {words[0]}", named=True, instance=_clean(card))
    elif kind:
        for knob, key, value in net_settings(kind, " ".join(words)):
            typed = f"ethtool {option} {card} {key.rpartition(' ')[2]}"
            yield Write(0, typed, knob, _clean(value), instance=_clean(card))


def _names(*knobs: str, if_given: str = "") -> Callable[[list[str]], Iterator[Write]]:
    """A program that may write these; with `if_given` only where it is given an option of this form."""

    def writes(arguments: list[str]) -> Iterator[Write]:
        if not if_given or any(re.fullmatch(if_given, word) for word in arguments):
            yield from (Write(0, " ".join(arguments[:3]), knob, named=True) for knob in knobs)

    return writes


_PLACED = ("irq.affinity", "net.queue_irqs", "kthread.affinity")
TOOLS: Mapping[str, Callable[[list[str]], Iterator[Write]]] = {
    "sysctl": _sysctl,
    "cpupower": _cpupower,
    "cpufreq-set": partial(_by_options, "cpufreq-set"),
    "tuned-adm": _tuned_adm,
    "x86_energy_perf_policy": _energy,
    "swapon": _swapon,
    "ethtool": _ethtool,
    "tuna": _names(*_PLACED, if_given="(?:--(?:cpus|irqs|threads|isolate|include|priority)|-[cqtiIpm]).*|move|isolate"),
    "taskset": _names("kthread.affinity", if_given="-[ac]*p[ac]*|--pid"),  # of a thread that runs already
    "irqbalance": _names("irq.affinity", "net.queue_irqs"),
    "mlnx_tune": _names("irq.affinity", "net.queue_irqs", "net.rx_usecs", "net.adaptive_rx", "net.lro", if_given=".+"),
    "set_irq_affinity": _names("irq.affinity", "net.queue_irqs"),  # the drivers' own scripts
    "set_irq_affinity.sh": _names("irq.affinity", "net.queue_irqs"),
    "set_irq_affinity_bynode.sh": _names("irq.affinity", "net.queue_irqs"),
    "set_irq_affinity_cpulist.sh": _names("irq.affinity", "net.queue_irqs"),
}


# The [net] plug-in's option and word -> our knob: `coalesce=adaptive-rx off rx-usecs 0`, pairs in the words of
# ethtool(8), separated as TuneD's plugin_net.py has it.
_NET_KNOB_OF = {
    ("coalesce", "adaptive-rx"): "net.adaptive_rx",
    ("coalesce", "adaptive-tx"): "net.adaptive_tx",
    ("coalesce", "rx-usecs"): "net.rx_usecs",
    ("coalesce", "rx-frames"): "net.rx_frames",
    ("coalesce", "tx-usecs"): "net.tx_usecs",
    ("coalesce", "tx-frames"): "net.tx_frames",
    ("ring", "rx"): "net.rx_ring",
    ("ring", "tx"): "net.tx_ring",
    ("channels", "combined"): "net.combined_channels",
    ("channels", "rx"): "net.rx_channels",
    ("channels", "tx"): "net.tx_channels",
    ("features", "ntuple"): "net.ntuple",
    ("features", "rx-ntuple-filter"): "net.ntuple",
    ("features", "gro"): "net.gro",
    ("features", "rx-gro"): "net.gro",
    ("features", "lro"): "net.lro",
    ("features", "rx-lro"): "net.lro",
}
_NET_OPTIONS = frozenset(option for option, _ in _NET_KNOB_OF)
_SWITCH = {"on": "1", "off": "0"}


def net_settings(key: str, value: str | None) -> Iterator[tuple[str, str, str]]:
    """(knob, its name there, the text as the kernel would be given it; "" where it is not known) of one option."""
    if value is None and key in _NET_OPTIONS:  # which words it has is not known: any of them
        found = dict.fromkeys(knob for (option, _), knob in _NET_KNOB_OF.items() if option == key)
        yield from ((knob, f"net.{key}", "") for knob in found)
        return
    words = re.split(r"[\s:;,]+", (value or "").strip())
    for word, text in zip(words[::2], words[1::2], strict=False):
        if knob := _NET_KNOB_OF.get((key, word)):
            yield knob, f"net.{key} {word}", _SWITCH.get(text, text)
