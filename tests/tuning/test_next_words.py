"""Words of the next boot's command line that take away what is in force now, or the CPUs themselves."""

from pathlib import Path

import pytest

from tests.conftest import LOW_LATENCY, write_host_file
from tests.knobs.test_switched_off import booted, typed
from tests.tuned import apply, inspection_on
from tunectl.bootloader.cmdline import parse_cmdline, taken_cpus, taking_tsc
from tunectl.model import Finding

GRUB = "etc/default/grub"


def next_line(root: Path, words: str) -> None:
    grub = root / GRUB
    grub.write_text(f'{grub.read_text()}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX x{words} {words} panic=10"\n')


def lost(root: Path) -> dict[str, Finding]:
    """What is in force now and will not be."""
    found = inspection_on(root).assess().findings
    return {one.target: one for one in found if one.reason.startswith("in force now, but the next boot will have ")}


CPUS, TSC = ("cpu.online[2]", "cpu.online[3]"), ("boot.tsc",)
ALONE = ("nr_cpus", "maxcpus", "nosmp", "possible_cpus", "notsc", "tsc", "clocksource")  # nothing else goes along


@pytest.fixture
def tuned(lab4: Path) -> Path:
    """The recorded host, applied, and booted as the menu has it."""
    apply(lab4)
    booted(lab4, "tsc=reliable")
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
        ("notsc", TSC),
        ("tsc=unstable", TSC),
        ("clocksource=hpet", TSC),
    ],
)
def test_a_word_that_takes_something_away_is_named_with_its_place_and_the_fix_takes_it_out(
    tuned: Path, word: str, targets: tuple[str, ...]
) -> None:
    before = (tuned / GRUB).read_text()
    next_line(tuned, word)
    found = lost(tuned)
    assert set(targets) <= found.keys()
    assert word.partition("=")[0] not in ALONE or set(targets) == found.keys()
    one = found[targets[0]]
    assert (one.outcome, f"will have {word} (/{GRUB}:" in one.reason) == ("drifted", True)
    apply(tuned)  # writes nothing here
    assert lost(tuned) == found
    typed(tuned, str(one.fix))
    assert (tuned / GRUB).read_text() == f'{before}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX x{word} panic=10"\n'
    assert not lost(tuned)


@pytest.mark.parametrize(
    "words",
    [
        "notsc notsc",
        "notsc notsc notsc",
        "nr_cpus=2 maxcpus=1",
        "maxcpus=1 nr_cpus=3 nr_cpus=2 nosmp",
        "maxcpus=1 maxcpus=2",
        "notsc clocksource=hpet tsc=unstable",
        "clocksource=acpi_pm clocksource=hpet",
    ],
)
def test_words_that_take_the_same_go_by_one_fix(tuned: Path, words: str) -> None:
    before = (tuned / GRUB).read_text()
    for start in ('"$GRUB_CMDLINE_LINUX ', "'"):
        (tuned / GRUB).write_text(f"{before}GRUB_CMDLINE_LINUX={start}{words} xnotsc nr_cpus=4{start[0]}\n")
        found = lost(tuned)
        assert len({one.fix for one in found.values()}) == 1
        typed(tuned, str(next(iter(found.values())).fix))
        left = (tuned / GRUB).read_text().removeprefix(before).replace("' ", "'")
        assert left == f"GRUB_CMDLINE_LINUX={start}xnotsc nr_cpus=4{start[0]}\n"
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
        "tsc=nowatchdog",
        "tsc=noirqtime",
        "clocksource=tsc",
        "clocksource=hpet clocksource=tsc",
        "clocksource=pit",  # this machine has none: the kernel chooses
        "-- notsc",
    ],
)
def test_a_word_that_leaves_everything_in_force_is_no_matter(tuned: Path, words: str) -> None:
    grub = tuned / GRUB
    grub.write_text(f'{grub.read_text()}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {words}"\n')
    assert not lost(tuned)


def test_a_word_behind_an_escaped_blank_is_taken_out_by_hand(tuned: Path) -> None:
    """Without the word the backslash would be in front of another character, and the shell might run what is left."""
    (tuned / GRUB).write_text("GRUB_CMDLINE_LINUX=a\\ nosmp\\ b\n")
    fixes = {str(one.fix) for one in lost(tuned).values()}
    assert fixes == {f"take nosmp out of the kernel command line, where your boot loader has it (/{GRUB}:1)"}


def test_what_this_boot_had_took_nothing_away_that_is_there(tuned: Path) -> None:
    """Our service switches on the CPUs that maxcpus= left off."""
    booted(tuned, "maxcpus=2")
    next_line(tuned, "maxcpus=2")
    assert not lost(tuned)


def test_it_is_named_before_the_first_boot_that_is_tuned_too(lab4: Path) -> None:
    apply(lab4)
    next_line(lab4, "notsc")
    found = {one.target: one for one in inspection_on(lab4).assess().findings}
    assert found["boot.skew_tick"].outcome == "pending-reboot"
    assert found["boot.tsc"].outcome == "drifted"
    assert found["boot.tsc"].reason.startswith(f"the next boot will have notsc (/{GRUB}:")


def with_apic_ids(root: Path) -> None:
    blocks = (f"processor\t: {cpu}\nvendor_id\t: X\napicid\t\t: {cpu * 2}\ninitial apicid\t: 9\n\n" for cpu in range(4))
    (root / "proc/cpuinfo").write_text("".join(blocks))


def test_a_cpu_that_is_left_out_by_its_apic_id_is_named_and_the_fix_takes_the_words_out(tuned: Path) -> None:
    with_apic_ids(tuned)
    next_line(tuned, "disable_cpu_apicid=2 disable_cpu_apicid=4")
    found = lost(tuned)
    assert set(found) == set(CPUS)
    assert f"will have disable_cpu_apicid=4 (/{GRUB}:" in found["cpu.online[2]"].reason
    for one in found.values():
        typed(tuned, str(one.fix))
    assert not lost(tuned)


@pytest.mark.parametrize("word", ["disable_cpu_apicid=0", "disable_cpu_apicid=8", "disable_cpu_apicid=x"])
def test_an_apic_id_that_is_no_cpus_or_the_first_ones_leaves_all_there(tuned: Path, word: str) -> None:
    with_apic_ids(tuned)
    next_line(tuned, word)
    assert not lost(tuned)


def test_a_kernel_without_that_word_leaves_all_there(tuned: Path) -> None:
    with_apic_ids(tuned)
    next_line(tuned, "disable_cpu_apicid=4")
    (tuned / "proc/kallsyms").write_text("0000000000000000 T apic_set_disabled_cpu_apicid\n")
    assert lost(tuned)
    (tuned / "proc/kallsyms").write_text("0000000000000000 T start_kernel\n")
    assert not lost(tuned)


def clock(root: Path, name: str) -> None:
    (root / "sys/devices/system/clocksource/clocksource0/current_clocksource").write_text(f"{name}\n")


def test_the_word_is_named_also_where_this_boot_had_it_and_somebody_chose_the_tsc_since(tuned: Path) -> None:
    booted(tuned, "clocksource=hpet")
    next_line(tuned, "clocksource=hpet")
    assert lost(tuned)["boot.tsc"].reason.endswith("the TSC is not the clock then")


@pytest.mark.parametrize("word", ["notsc", "tsc=unstable", "clocksource=acpi_pm"])
def test_where_the_tsc_is_not_the_clock_nothing_is_lost(tuned: Path, word: str) -> None:
    """check.clocksource says so, where it might be."""
    clock(tuned, "hpet")
    next_line(tuned, word)
    assert not lost(tuned)


@pytest.mark.parametrize(
    ("word", "targets"),
    [("notsc", {"boot.tsc", "clocksource.current"}), ("clocksource=hpet", set())],
)
def test_a_clock_that_is_chosen_again_at_each_boot_is_lost_with_the_tsc_alone(
    tuned: Path, word: str, targets: set[str]
) -> None:
    write_host_file(tuned, f'{LOW_LATENCY}[knobs]\n"clocksource.current" = "tsc"\n')
    apply(tuned)
    next_line(tuned, word)
    assert set(lost(tuned)) == targets


@pytest.mark.parametrize(
    ("line", "taking"),
    [
        ("tsc=reliable notsc tsc=unstable clocksource=hpet", {"notsc", "tsc=unstable", "clocksource=hpet"}),
        ("tsc=unstablex xnotsc clocksource=acpi_pm clocksource=tsc", set()),
        ("clocksource=tsc clocksource=acpi_pm", {"clocksource=acpi_pm"}),
        ("clocksource", set()),
    ],
)
def test_the_words_that_take_the_tsc(line: str, taking: set[str]) -> None:
    assert {str(arg) for arg in taking_tsc(parse_cmdline(line), ("hpet", "acpi_pm"))} == taking


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("nosmt", {"nosmt": {1, 3}}),
        ("nosmt=force nr_cpus=4", {"nosmt=force": {1, 3}}),
        ("nr-cpus=2 nr_cpus=3", {"nr-cpus=2": {2, 3}, "nr_cpus=3": {3}}),
        ("maxcpus=1 maxcpus=3", {"maxcpus=3": {3}}),
        ("maxcpus", {}),
        ("maxcpus=-1 nr_cpus=x", {}),
        ("nr_cpus=03 maxcpus=08", {"nr_cpus=03": {3}, "maxcpus=08": {1, 2, 3}}),  # eight is no octal digit: 0
        ("disable_cpu_apicid=0x12", {"disable_cpu_apicid=0x12": {1, 3}}),
        ("disable_cpu_apicid=18 disable_cpu_apicid=22", {"disable_cpu_apicid=22": {3}}),
        ("disable_cpu_apicid=18 disable_cpu_apicid=16", {}),  # the CPU that boots stays
        ("disable_cpu_apicid=2", {}),
    ],
)
def test_the_cpus_that_words_take(line: str, taken: dict[str, set[int]]) -> None:
    found = taken_cpus(parse_cmdline(line), frozenset(range(4)), frozenset({1, 3}), {16: 0, 18: 1, 20: 2, 22: 3})
    assert {str(arg): set(cpus) for arg, cpus in found.items()} == taken
