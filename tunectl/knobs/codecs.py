"""Kernel text <-> typed value. Equality is on values, never on text. Pure.

A codec is four functions: `decode` what the kernel shows, `encode` what it accepts, `show` a value
to people and JSON, `want` a value from a host file or profile (where "isolated" and "housekeeping"
are CPU sets of this host). decode() and want() raise ValueError with the reason.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tunectl.bootloader.cmdline import split_isolcpus
from tunectl.command import control_in
from tunectl.cpulist import (
    Isolcpus,
    format_cpulist,
    format_cpumask,
    format_isolcpus,
    parse_cpumask,
    parse_isolcpus,
    parse_on_present,
    parse_shown,
)
from tunectl.errors import UsageError
from tunectl.host.plausible import FREQUENCY, SHARE, Range, problem
from tunectl.model import Match, Scalar, Scope

_DIGITS = 21  # of 64 bits, with a sign
_LETTERS = 255  # more than any name in the kernel


class Codec(NamedTuple):
    """How one kind of kernel text is read, written, shown and asked for."""

    name: str
    expects: str  # for messages: what a host file may say
    decode: Callable[[str], Any]
    encode: Callable[[Any], str]
    show: Callable[[Any], Scalar]
    want: Callable[[Any, Scope], Any]


def integer(text: str) -> int:
    """A number as a kernel or a file shows it. ValueError for anything else, and for more digits than 64 bits have."""
    bare = text.strip()
    if len(bare) > _DIGITS:
        raise ValueError(f"no number has {len(bare):,} digits")
    return int(bare, 10)


def _want_integer(value: Any, scope: Scope) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    return value


INT = Codec("int", "a whole number", integer, str, lambda value: int(value), _want_integer)


def _want_natural(value: Any, scope: Scope) -> int:
    if _want_integer(value, scope) < 0:
        raise ValueError("below zero")
    return int(value)


NATURAL = INT._replace(expects="a whole number from 0 on", want=_want_natural)


def _want_khz(value: Any, scope: Scope) -> int | str:
    return value if value in ("hardware-max", "hardware-min") else _want_natural(value, scope)


def _within(allowed: Range) -> Callable[[str], int]:
    """A number as the kernel shows it; ValueError for one that cannot be true."""

    def decode(text: str) -> int:
        value = integer(text)
        if wrong := problem(value, allowed):
            raise ValueError(wrong)
        return value

    return decode


# The two words stand for cpuinfo_max_freq and cpuinfo_min_freq of the CPU in question.
KHZ = Codec("khz", 'kHz, "hardware-max" or "hardware-min"', _within(FREQUENCY), str, lambda value: value, _want_khz)


def _want_percent(value: Any, scope: Scope) -> int:
    if not SHARE.holds(_want_integer(value, scope)):
        raise ValueError("not from 1 to 100")
    return int(value)


PERCENT = INT._replace(
    name="percent", expects="a whole number from 1 to 100", decode=_within(SHARE), want=_want_percent
)


def _want_count(value: Any, scope: Scope) -> int | str:
    return value if value == "hardware-max" else _want_natural(value, scope)


# The word stands for the most that the device in question offers.
COUNT = INT._replace(
    name="count", expects='a whole number, or "hardware-max"', show=lambda value: value, want=_want_count
)


def _want_word(value: Any, scope: Scope) -> str:
    if not isinstance(value, str) or not value or value.split() != [value] or control_in(value):
        raise ValueError("a word")
    return value


def _decode_word(text: str) -> str:
    word = text.strip()
    if len(word) > _LETTERS:
        raise ValueError(f"no word has {len(word):,} characters")
    return word


WORD = Codec("word", "a word", _decode_word, str, str, _want_word)


def _decode_choice(text: str) -> str:
    """`always madvise [never]` -> `never`; a plain word stands for itself."""
    _, bracket, rest = text.partition("[")
    if word := _decode_word(rest.partition("]")[0] if bracket else text):
        return word
    raise ValueError("no word is chosen")


CHOICE = Codec("choice", "one of the words the kernel lists", _decode_choice, str, str, _want_word)


def _want_switch(value: Any, scope: Scope) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("on", "off"):
        return bool(value == "on")
    raise ValueError("true, false, on or off")


def switch(name: str, *, on: str, off: str) -> Codec:
    """A codec for a file that shows one text for on and one for off."""

    def decode(text: str) -> bool:
        bare = text.strip()
        if bare not in (on, off):
            raise ValueError(f"'{bare[:60]}' is neither {on} nor {off}")
        return bare == on

    def encode(value: bool) -> str:
        return on if value else off

    return Codec(name, "true or false", decode, encode, lambda value: "on" if value else "off", _want_switch)


SWITCH = switch("switch", on="1", off="0")
INVERTED = switch("inverted switch", on="0", off="1")


def _want_cpus(value: Any, scope: Scope) -> frozenset[int]:
    if value == "isolated":
        return scope.isolated
    if value == "housekeeping":
        return scope.housekeeping
    if not isinstance(value, str):
        raise ValueError('a CPU list, "isolated" or "housekeeping"')
    if not value.strip():
        raise ValueError("names no CPU")
    try:
        return parse_on_present(value, scope.present, nr_cpus=scope.nr_cpus)
    except UsageError as error:
        raise ValueError(str(error)) from error


_CPUS = 'a CPU list, "isolated" or "housekeeping"'
CPULIST = Codec("cpulist", _CPUS, parse_shown, format_cpulist, format_cpulist, _want_cpus)
CPUMASK = Codec("cpumask", _CPUS, parse_cpumask, format_cpumask, format_cpulist, _want_cpus)


def _want_isolcpus(value: Any, scope: Scope) -> Isolcpus:
    """`isolated` asks for `managed_irq,domain` on the isolated CPUs; flags may be spelled out in front."""
    if not isinstance(value, str):
        raise ValueError('"isolated", or a value of isolcpus=')
    if value == "isolated":
        return Isolcpus(frozenset({"managed_irq", "domain"}), scope.isolated)
    try:
        wanted = parse_isolcpus(value, nr_cpus=scope.nr_cpus)
        listed = split_isolcpus(value)[1]
        wanted = wanted._replace(cpus=parse_on_present(listed, scope.present, nr_cpus=scope.nr_cpus))
    except UsageError as error:
        raise ValueError(str(error)) from error
    if wanted.unknown:
        raise ValueError(f"'{wanted.unknown[0]}' is no flag of isolcpus=: nohz, domain, managed_irq")
    return wanted


ISOLCPUS = Codec(
    "isolcpus", '"isolated", or a value of isolcpus=', parse_isolcpus, format_isolcpus, format_isolcpus, _want_isolcpus
)


def _decode_resume_latency(text: str) -> float:
    """`0` is no constraint, `n/a` is no latency at all (ABI/testing/sysfs-devices-power)."""
    bare = text.strip()
    if bare == "n/a":
        return 0
    return integer(bare) or math.inf


def _encode_resume_latency(value: float) -> str:
    if value == math.inf:
        return "0"
    return str(int(value)) if value else "n/a"


def _want_resume_latency(value: Any, scope: Scope) -> int:
    """The kernel keeps 32 bits with a sign, and the largest of these for no constraint."""
    number = _want_natural(value, scope)
    if number >= 2**31 - 1:
        raise ValueError("more than the kernel keeps: 2147483646 is the most")
    return number


RESUME_LATENCY = Codec(
    "resume latency",
    "microseconds (0: never leave C0)",
    _decode_resume_latency,
    _encode_resume_latency,
    lambda value: "no constraint" if value == math.inf else int(value),
    _want_resume_latency,
)


def mapped(name: str, words: Mapping[str, str], encode: Mapping[str, str]) -> Codec:
    """A codec for a file of code numbers: `words` names each, `encode` gives the number to write for a name."""

    def decode(text: str) -> str:
        bare = text.strip()
        if bare not in words:
            raise ValueError(f"'{bare[:60]}' is none of {', '.join(words)}")
        return words[bare]

    def want(value: Any, scope: Scope) -> str:
        if value not in encode:
            raise ValueError("one of " + ", ".join(encode))
        return str(value)

    return Codec(name, "one of " + ", ".join(encode), decode, lambda value: encode[value], str, want)


def satisfies(match: Match, observed: Any, desired: Any) -> bool:
    """Does the observed value do what is desired? Pure; the values are of one codec."""
    if match is Match.EQUAL:
        return bool(observed == desired)
    if match is Match.WITHIN:
        return bool(observed) and observed <= desired
    if match is Match.NO_OTHER:
        return bool(observed <= desired)
    if match is Match.COVERS and isinstance(observed, Isolcpus):  # more CPUs, or flags, do no harm to those meant
        return bool(observed.flags >= desired.flags and observed.cpus >= desired.cpus)
    return bool(observed <= desired if match is Match.AT_MOST else observed >= desired)


def flag(name: str) -> Codec:
    """A codec for a boot argument without a value: it is there, or it is not."""

    def want(value: Any, scope: Scope) -> bool:
        if value is not True:
            raise ValueError(f"{name} is there, or left alone")
        return True

    return Codec(name, "true", lambda text: True, lambda value: "", lambda value: "present", want)
