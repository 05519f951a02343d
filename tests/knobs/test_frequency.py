"""Power rows on every driver and mode: applied where the file is, unsupported where not, and never a failure."""

from pathlib import Path

import pytest

from tests.conftest import write_host_file
from tests.hosts.builder import HostFactory, bind_cooler
from tests.knobs.test_laws import ASKED
from tests.lab.follow import steps
from tests.trees import write
from tests.tuned import apply, inspection_on
from tunectl.host.sysroot import Sysroot
from tunectl.knobs import KNOBS
from tunectl.knobs.codecs import PERCENT
from tunectl.knobs.drivers.hugepages import PAGES
from tunectl.knobs.row import View
from tunectl.knobs.uncore import read_on
from tunectl.model import Finding, Outcome, Scope
from tunectl.tuning.journal import is_first, load

INTEL = {"cpufreq.max_perf_pct", "cpufreq.min_perf_pct", "cpufreq.energy_perf_bias", "uncore.max_khz", "uncore.min_khz"}
HERE: dict[str, set[str]] = {  # the rows that have a file there, of those that not every host has
    "intelpassive": {*INTEL, "cpufreq.hwp_dynamic_boost", "cpufreq.boost"},
    "intelnohwp": {*INTEL, "cpufreq.boost"},
    "amdacpi": {"cpufreq.boost"},
    "amdpassive": {"cpufreq.boost", "cpufreq.policy_boost"},
    "amdguided": {"cpufreq.boost"},
    "arm64": set(),
    "vm2": set(),
}
SOMETIMES = {*INTEL, "cpufreq.hwp_dynamic_boost", "cpufreq.boost", "cpufreq.policy_boost"}


@pytest.mark.parametrize("name", HERE)
def test_which_rows_a_driver_and_mode_have(host_root: HostFactory, tmp_path: Path, name: str) -> None:
    root = host_root.fresh(name, tmp_path)
    write_host_file(root, ASKED.format(1))
    absent = {one.knob for one in inspection_on(root).assess().findings if one.outcome is Outcome.UNSUPPORTED}
    assert absent & SOMETIMES == SOMETIMES - HERE[name]


def test_the_cpus_an_uncore_clock_is_read_on(host_root: HostFactory) -> None:
    everything = frozenset(range(32))
    view = View(Sysroot(str(host_root("xeon2s"))), Scope(everything, everything, frozenset({1}), 32))
    assert read_on(view, "package_01_die_00") == {*range(8, 16), *range(24, 32)}
    assert read_on(view, "uncore00") == frozenset()


BIAS = KNOBS["cpufreq.energy_perf_bias"].codec
NOBODY = Scope(frozenset(), frozenset(), frozenset(), 1)


def test_the_words_of_the_energy_bias() -> None:
    assert [BIAS.want(value, NOBODY) for value in ("performance", "normal", 7)] == [0, 6, 7]
    assert [BIAS.show(value) for value in (0, 6, 7)] == ["performance", "normal", 7]
    for value in ("fast", 16, True, -1):
        with pytest.raises(ValueError, match="0 to 15"):
            BIAS.want(value, NOBODY)


def test_huge_pages_by_node() -> None:
    assert PAGES.want("1:4, 0:512", NOBODY) == ((0, 512), (1, 4))
    assert PAGES.encode(((0, 512), (1, 4))) == PAGES.show(((0, 512), (1, 4))) == "0:512,1:4"
    assert (PAGES.want(3, NOBODY), PAGES.show(3)) == (3, 3)
    for value in ("0:1,0:2", "x:1", "0", -1, 1.5):
        with pytest.raises(ValueError):
            PAGES.want(value, NOBODY)


def test_huge_pages_on_a_node_that_is_not_there(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("xeon2s", tmp_path)
    write_host_file(root, 'profile = "balanced-latency"\nisolated = "4,20"\n[knobs]\n"mm.hugepages_2mib" = "0:8,7:8"\n')
    apply(root)
    found = {
        one.target: one.outcome for one in inspection_on(root).assess().findings if one.knob == "mm.hugepages_2mib"
    }
    assert found == {"mm.hugepages_2mib[0]": Outcome.COMPLIANT, "mm.hugepages_2mib[7]": Outcome.UNSUPPORTED}
    node = root / "sys/devices/system/node"
    assert (node / "node0/hugepages/hugepages-2048kB/nr_hugepages").read_text() == "8\n"
    assert (node / "node1/hugepages/hugepages-2048kB/nr_hugepages").read_text() == "0\n"


def test_an_isolated_cpu_is_asked_by_the_first_apply_of_a_boot_only(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("intelpassive", tmp_path, tuned_boot=frozenset({2, 3}))
    write_host_file(root, 'profile = "low-latency"\nisolated = "2-3"\n')
    inspection = inspection_on(root)
    (wish,) = [one for one in inspection.config.settings if one.knob == "cpufreq.energy_perf_bias"]
    inspection.root.live = True  # a running host, as far as reading is concerned
    outcomes = {one.target: one.outcome for one in inspection.assess((wish,)).findings}
    assert outcomes["cpufreq.energy_perf_bias[1]"] is Outcome.DRIFTED
    assert outcomes["cpufreq.energy_perf_bias[2]"] is outcomes["cpufreq.energy_perf_bias[3]"] is Outcome.UNREADABLE
    asked = {settling: inspection._replace(settling=settling).assess((wish,)).changes for settling in (False, True)}
    assert {settling: [one.instance for one in changes] for settling, changes in asked.items()} == {
        False: ["0", "1"],
        True: ["0", "1", "2", "3"],
    }


def test_which_apply_is_the_first_of_a_boot(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("intelpassive", tmp_path)
    write_host_file(root, ASKED.format(1))
    state = f"{root}/var/lib/tunectl"
    boot_id = inspection_on(root).identity.boot_id
    assert is_first(load(state), boot_id)
    apply(root)
    assert not is_first(load(state), boot_id)
    assert is_first(load(state), "another-boot")


def test_a_policy_without_a_link_that_it_acts_on_is_not_asked_for(lab4: Path) -> None:
    """As in a virtual machine, or where the firmware keeps the links to itself: the kernel would refuse it (EPERM)."""
    (lab4 / "sys/bus/pci/devices/0000:00:1c.0/link/l1_aspm").unlink()
    plan = inspection_on(lab4).assess()
    found = next(one for one in plan.findings if one.knob == "pcie.aspm_policy")
    assert found.outcome == Outcome.UNSUPPORTED
    assert "pcie.aspm_policy" not in {change.knob for change in plan.changes}


COOLER, ZONE = "sys/class/thermal/cooling_device0", "sys/class/thermal/thermal_zone0"


def put(host: Path, place: str, **files: object) -> None:
    for name, value in files.items():
        write(host, f"{place}/{name}", f"{value}\n")


def cooler(host: Path, state: int, place: str = COOLER) -> None:
    put(host, place, type="Processor", cur_state=state, max_state=3)


def zone(host: Path, celsius: int) -> None:
    put(host, ZONE, temp=celsius * 1000, trip_point_0_type="passive", trip_point_0_temp=90000)
    bind_cooler(host, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 4294967295])
def test_a_cap_that_cannot_be_is_never_compliant(lab4: Path, number: int) -> None:
    clock = lab4 / "sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq"
    clock.write_text(f"{number}\n")
    found = {one.target: one for one in inspection_on(lab4).assess().findings}
    assert found["cpufreq.max_khz[2]"].outcome == "unreadable"


def test_a_share_is_from_1_to_100_percent() -> None:
    for number in (1, 100):
        assert PERCENT.decode(f"{number}\n") == PERCENT.want(number, NOBODY) == number
    for number in (0, 101, -1, 4294967295):
        with pytest.raises(ValueError):
            PERCENT.decode(f"{number}\n")
        with pytest.raises(ValueError):
            PERCENT.want(number, NOBODY)


@pytest.mark.slow
def test_a_share_that_cannot_be_is_never_compliant(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("intelpassive", tmp_path)
    write_host_file(root, ASKED.format(1))
    write(root, "sys/devices/system/cpu/intel_pstate/max_perf_pct", "4294967295\n")
    found = {one.target: one for one in inspection_on(root).assess().findings}
    assert found["cpufreq.max_perf_pct"].outcome is Outcome.UNREADABLE


@pytest.mark.slow
@pytest.mark.parametrize(("celsius", "fix"), [(45, f"echo 0 | sudo tee /{COOLER}/cur_state"), (95, "failed fan")])
def test_a_cap_that_a_cooling_device_holds_is_named_by_it(lab4: Path, celsius: int, fix: str) -> None:
    """A write to scaling_max_freq would change nothing; where no zone is hot, somebody wrote the device's state."""
    apply(lab4)
    cooler(lab4, 1)
    zone(lab4, celsius)
    clock = lab4 / "sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq"
    before = clock.read_text()

    def drifted() -> dict[str, Finding]:
        found = inspection_on(lab4).assess().findings
        return {one.instance: one for one in found if one.knob == "cpufreq.max_khz" and one.outcome == "drifted"}

    assert drifted() == {}  # the device acts, and the clock may still be what was asked for
    clock.write_text("2400000\n")
    assert drifted().keys() == {"2"}
    assert "cooling_device0 (Processor) is at state 1" in drifted()["2"].reason
    assert fix in str(drifted()["2"].fix)
    apply(lab4)
    assert drifted().keys() == {"2"}  # nothing was written
    write(lab4, f"{COOLER}/cur_state", "0\n")
    assert str(drifted()["2"].fix) == "sudo tunectl apply"
    apply(lab4)
    assert clock.read_text() == before


def test_a_second_cooling_device_is_named_beside_the_first_and_one_command_ends_both(lab4: Path) -> None:
    """To end the first alone would leave the clock where it is."""
    apply(lab4)
    other = COOLER.replace("device0", "device1")
    for place, state in ((COOLER, 1), (other, 2), (COOLER.replace("device0", "device2"), 0)):
        cooler(lab4, state, place)
    zone(lab4, 45)
    (lab4 / "sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq").write_text("2400000\n")
    found = {one.target: one for one in inspection_on(lab4).assess().findings}["cpufreq.max_khz[2]"]
    named = [f"cooling_device{number}" in found.reason for number in range(3)]
    assert named == [True, True, False]
    (command,) = steps(str(found.fix))
    assert command.startswith(f"echo 0 | sudo tee /{COOLER}/cur_state /{other}/cur_state ")


def test_a_cooling_device_of_another_package_caps_nothing_here(lab4: Path) -> None:
    apply(lab4)
    cooler(lab4, 1)
    (lab4 / COOLER / "device").mkdir()
    (lab4 / COOLER / "device/physical_node").symlink_to("../../../../devices/system/cpu/cpu3")
    write(lab4, "sys/devices/system/cpu/cpu3/topology/physical_package_id", "1\n")
    for cpu in (2, 3):
        write(lab4, f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq", "2400000\n")
    found = {one.target: one for one in inspection_on(lab4).assess().findings}
    assert str(found["cpufreq.max_khz[2]"].fix) == "sudo tunectl apply"
    assert "cooling_device0" in found["cpufreq.max_khz[3]"].reason
