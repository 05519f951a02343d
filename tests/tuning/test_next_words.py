"""Words of the next boot's command line that take away what is in force now, or the CPUs themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.knobs.test_switched_off import booted, typed
from tests.tuned import apply, inspection_on
from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.bootloader.cpuwords import taken_cpus
from tunectl.model import Finding

GRUB = "etc/default/grub"


def next_line(root: Path, words: str) -> None:
    grub = root / GRUB
    grub.write_text(f'{grub.read_text()}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX x{words} {words} panic=10"\n')


def lost(root: Path) -> dict[str, Finding]:
    """What is in force now and will not be."""
    found = inspection_on(root).assess().findings
    return {one.target: one for one in found if one.reason.startswith("in force now, but the next boot will have ")}


CPUS = ("cpu.online[2]", "cpu.online[3]")


@pytest.fixture
def tuned(lab4: Path) -> Path:
    """The recorded host, applied."""
    apply(lab4)
    return lab4


@pytest.mark.parametrize(
    ("word", "targets"),
    [
        ("nr_cpus=2", CPUS),
        ("nr_cpus=3", CPUS[1:]),
        ("maxcpus=0x2", CPUS),
        ("maxcpus=0", CPUS),
        ("nosmp", CPUS),
        ("possible_cpus=3", CPUS[1:]),
        ("cpufreq.off=1", ("cpufreq.governor[0]", "cpufreq.max_khz[3]")),
        ("cpufreq.off", ("cpufreq.governor[0]", "cpufreq.max_khz[3]")),
    ],
)
def test_a_word_that_takes_something_away_is_named_with_its_place_and_the_fix_takes_it_out(
    tuned: Path, word: str, targets: tuple[str, ...]
) -> None:
    before = (tuned / GRUB).read_text()
    next_line(tuned, word)
    found = lost(tuned)
    assert set(targets) <= found.keys()
    if word.partition("=")[0] in ("nr_cpus", "maxcpus", "nosmp", "possible_cpus"):
        assert set(targets) == found.keys()
    one = found[targets[0]]
    assert (one.outcome, f"will have {word} (/{GRUB}:" in one.reason) == ("drifted", True)
    apply(tuned)  # writes nothing here
    assert lost(tuned) == found
    typed(tuned, one.fix)
    assert (tuned / GRUB).read_text() == f'{before}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX x{word} panic=10"\n'
    assert not lost(tuned)


@pytest.mark.parametrize(
    "words",
    [
        "nr_cpus=4",
        "nr_cpus=0",
        "maxcpus=2 maxcpus=4",
        "possible_cpus=8",
        "nosmt",  # no CPU of this host shares a core
        "-- nosmp",
        "cpufreq.off=0",
        "cpufreq.default_governor=performance",
        "cgroup_disable=memory",
        "idle=poll",
        "intel_pstate=passive",
    ],
)
def test_a_word_that_leaves_everything_in_force_is_no_matter(tuned: Path, words: str) -> None:
    grub = tuned / GRUB
    grub.write_text(f'{grub.read_text()}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {words}"\n')
    assert not lost(tuned)


def test_what_this_boot_had_took_nothing_away_that_is_there(tuned: Path) -> None:
    """Our service switches on the CPUs that maxcpus= left off."""
    booted(tuned, "maxcpus=2")
    next_line(tuned, "maxcpus=2")
    assert not lost(tuned)


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("nosmt", {"nosmt": {1, 3}}),
        ("nosmt=force nr_cpus=4", {"nosmt=force": {1, 3}}),
        ("nr-cpus=2 nr_cpus=3", {"nr-cpus=2": {2, 3}, "nr_cpus=3": {3}}),
        ("maxcpus=1 maxcpus=3", {"maxcpus=3": {3}}),
        ("maxcpus", {}),
        ("maxcpus=-1 nr_cpus=x", {}),
    ],
)
def test_the_cpus_that_words_take(line: str, taken: dict[str, set[int]]) -> None:
    found = taken_cpus(parse_cmdline(line), frozenset(range(4)), frozenset({1, 3}))
    assert {str(arg): set(cpus) for arg, cpus in found.items()} == taken
