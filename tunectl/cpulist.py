"""The kernel's grammar for CPU sets: cpulists, cpumasks and isolcpus= flags. Pure.

Source: lib/bitmap-str.c (bitmap_parselist, bitmap_parse), kernel/sched/isolation.c
(housekeeping_isolcpus_setup), Documentation/admin-guide/kernel-parameters.rst.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tunectl.errors import UsageError

CpuSet = frozenset[int]

# The kernel keeps CPU numbers in an unsigned int; NR_CPUS is far below. A list read without
# knowing nr_cpu_ids is bounded here, so that a typing error cannot ask for four billion CPUs.
MAX_CPUS = 1 << 16
_UINT_MAX = (1 << 32) - 1
_SEPARATORS = re.compile(r"[ \t\n\v\f\r,]+")
_REGION = re.compile(
    r"(?P<only>[0-9]+|N)"
    r"|(?:(?P<all>[aA][lL][lL])|(?P<start>[0-9]+|N)-(?P<end>[0-9]+|N))(?::(?P<used>[0-9]+|N)/(?P<group>[0-9]+|N))?"
)
_MASK_GROUP = re.compile(r"[0-9a-fA-F]{1,8}")


class Isolcpus(NamedTuple):
    """The value of isolcpus=: the flags in force and the CPUs, with the flags the kernel would skip."""

    flags: frozenset[str]
    cpus: CpuSet
    unknown: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def parse_cpulist(text: str, *, nr_cpus: int | None = None) -> CpuSet:
    """The CPUs a kernel cpulist names: `2-7:1/2`, `all`, `N`, `0-N`, separated by commas or spaces.

    `nr_cpus` is the kernel's nr_cpu_ids; without it `N` and `all` have no meaning and are refused.
    Raises UsageError, with the part and the reason, for whatever bitmap_parselist() refuses.
    """
    bits = 0
    for region in dict.fromkeys(_SEPARATORS.split(text)):
        if region:
            bits |= _region(region, text, nr_cpus)
    return _cpus_of(bits)


def parse_up_to_a_fault(text: str, *, nr_cpus: int) -> CpuSet:
    """The CPUs that bitmap_parselist() has set when it refuses a part of the list; all of them where it does not."""
    bits = 0
    for region in filter(None, _SEPARATORS.split(text)):
        try:
            bits |= _region(region, text, nr_cpus)
        except UsageError:
            break
    return _cpus_of(bits)


def parse_on_present(text: str, present: CpuSet, *, nr_cpus: int) -> CpuSet:
    """The CPUs that a person names on a host with these: `N` is the last one that is there, `all` are those that are.

    To the kernel both mean *possible* CPUs, of which a guest often has more. Raises UsageError as parse_cpulist() does.
    """
    named: set[int] = set()
    for region in filter(None, _SEPARATORS.split(text)):
        last = re.search("[Na]", region, re.IGNORECASE)
        cpus = parse_cpulist(region, nr_cpus=max(present) + 1 if last else nr_cpus)
        named |= cpus & present if last else cpus
    return frozenset(named)


def _cpus_of(bits: int) -> CpuSet:
    return frozenset([cpu for cpu, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"])


def _region(region: str, text: str, nr_cpus: int | None) -> int:
    """The CPUs as bits: a list of another host may name each of them thousands of times."""
    match = _REGION.fullmatch(region)
    if not match:
        raise _bad(text, f"'{region}' is not a CPU, a range, 'all', or range:used/group")
    if nr_cpus is None and ("N" in region or match["all"]):
        raise _bad(text, f"'{region}' has a word of the kernel's lists (N, all), which means nothing here")
    limit = nr_cpus or MAX_CPUS

    def number(part: str) -> int:
        return _number(match[part], limit, text)

    single = match["only"] is not None
    start = 0 if match["all"] else number("only" if single else "start")
    end = limit - 1 if match["all"] else start if single else number("end")
    if start > end:
        raise _bad(text, f"'{region}' runs backwards")
    if end >= limit:
        raise _bad(text, f"'{region}' is past the last CPU, {limit - 1}")
    length = end - start + 1
    if not match["group"]:
        return ((1 << length) - 1) << start
    used, group = number("used"), number("group")
    if group == 0:
        raise _bad(text, f"'{region}' has groups of 0 CPUs")
    if used > group:
        raise _bad(text, f"'{region}' uses {used} of every {group} CPUs")
    pattern, width = (1 << min(used, length)) - 1, group
    while width < length:
        pattern, width = pattern | pattern << width, width * 2
    return (pattern & (1 << length) - 1) << start


def _number(token: str, limit: int, text: str) -> int:
    """A CPU number, or `N` for the last CPU."""
    if token == "N":
        return limit - 1
    digits = token.lstrip("0") or "0"
    if len(digits) > 10 or int(digits) > _UINT_MAX:
        raise _bad(text, "a number in it is too large")
    return int(digits)


def parse_spaced(text: str) -> CpuSet:
    """A list of CPUs as systemd takes it: parted by commas or blanks (systemd.exec(5), CPUAffinity=). UsageError."""
    return parse_cpulist(",".join(text.replace(",", " ").split()))


@lru_cache(maxsize=4096)
def parse_shown(text: str) -> CpuSet:
    """A cpulist as the kernel prints it in /sys and /proc: plain ranges, or nothing.

    The empty set is shown as "", and as spaces with "(null)" where the mask was never allocated
    (nohz_full without the boot argument; drivers/base/cpu.c).
    """
    bare = text.strip()
    return frozenset() if bare in ("", "(null)") else parse_cpulist(bare)


def format_cpulist(cpus: Iterable[int]) -> str:
    """The kernel's output form, `%*pbl`: ascending plain ranges, "" for the empty set."""
    return _ranges(cpus if isinstance(cpus, frozenset) else frozenset(cpus))


def named_cpus(cpus: Iterable[int]) -> str:
    """`CPU 2`, `CPUs 2-3`: for a sentence."""
    listed = frozenset(cpus)
    return f"{'CPU' if len(listed) == 1 else 'CPUs'} {format_cpulist(listed)}"


@lru_cache(maxsize=4096)
def _ranges(cpus: CpuSet) -> str:
    parts: list[str] = []
    run: list[int] = []
    for cpu in [*sorted(cpus), None]:
        if run and cpu != run[-1] + 1:
            parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
            run = []
        if cpu is not None:
            run.append(cpu)
    return ",".join(parts)


@lru_cache(maxsize=4096)
def parse_cpumask(text: str) -> CpuSet:
    """The CPUs of a hex mask in comma-separated 32-bit groups, most significant first: `00000001,000000f0`."""
    groups = text.strip().removeprefix("0x").split(",")
    value = 0
    for group in groups:
        if not _MASK_GROUP.fullmatch(group):
            raise _bad(text, f"'{group}' is not a group of one to eight hex digits", kind="mask")
        value = value << 32 | int(group, 16)
    return _cpus_of(value)


def format_cpumask(cpus: Iterable[int], *, nr_cpus: int = 1) -> str:
    """A hex mask the kernel accepts: groups of 32 bits, the first without leading zeros, wide enough for `nr_cpus`."""
    value = 0
    for cpu in cpus:
        value |= 1 << cpu
    words = max((max(value.bit_length(), nr_cpus) + 31) // 32, 1)
    groups = [value >> 32 * word & 0xFFFFFFFF for word in reversed(range(words))]
    return ",".join([f"{groups[0]:x}", *(f"{group:08x}" for group in groups[1:])])


def parse_isolcpus(text: str, *, nr_cpus: int | None = None) -> Isolcpus:
    """The value of isolcpus=: `managed_irq,domain,2-5`; no known flag means `domain`.

    A word of letters in front of the list is a flag; one the kernel does not know is skipped, one
    with another character makes the kernel ignore the whole parameter: UsageError.
    """
    flags: set[str] = set()
    unknown: list[str] = []
    rest = text
    while rest[:1].isascii() and rest[:1].isalpha():
        word, comma, tail = rest.partition(",")
        if not re.fullmatch(r"[A-Za-z_]+", word):
            raise _bad(text, f"'{word}' is not a flag: the kernel ignores the whole of isolcpus=", kind="isolcpus=")
        known = word in ("nohz", "domain", "managed_irq") and bool(comma)
        flags.update([word] if known else [])
        unknown.extend([] if known else [word])
        rest = tail
    return Isolcpus(frozenset(flags or {"domain"}), parse_cpulist(rest, nr_cpus=nr_cpus), tuple(unknown))


def format_isolcpus(value: Isolcpus) -> str:
    """`managed_irq,domain,2-5`, flags in the order the documentation uses."""
    flags = [flag for flag in ("nohz", "managed_irq", "domain") if flag in value.flags]
    return ",".join([*flags, format_cpulist(value.cpus)])


def _bad(text: str, why: str, kind: str = "list") -> UsageError:
    shown = text.strip() if len(text) <= 60 else text.strip()[:57] + "..."
    why = why if len(why) <= 200 else f"{why[:57]}... {why[-60:]}"  # it quotes a part of the text
    return UsageError(f"not a CPU {kind}: '{shown}': {why}", "a CPU list looks like 2-5,8")
