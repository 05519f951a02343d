"""What rises outside the CPUs: SMIs, errors of PCI Express and memory, links, what network cards lost."""

import shutil
import struct
from pathlib import Path

import pytest

from tests.hosts.tree import Tree
from tests.monitor.watched import Watched, of, watch
from tunectl.host.niccounters import CORRECTED, CORRUPT, meanings
from tunectl.monitor.model import Freshness, Health, Sample, Snapshot
from tunectl.monitor.rules import RULES
from tunectl.monitor.rules.history import History

NICS = '[network]\ninterfaces = ["ens2f0", "eno1"]\n'
CARD, EDAC, NET = "sys/bus/pci/devices/0000:b1:00.0", "sys/devices/system/edac/mc", "sys/class/net"
STATISTICS = "ethtool/ens2f0/statistics"
FRESH, STALE, ABSENT, NO_DATA = Freshness.FRESH, Freshness.STALE, Freshness.ABSENT, Freshness.NO_DATA


@pytest.fixture
def xeon(tmp_path: Path) -> Watched:
    """A bare Intel server that counts everything, and nothing has happened yet; 2 and 18 are isolated."""
    host = watch(tmp_path, "xeon2s", {2, 18}, NICS)
    errors(host, RxErr=3, BadTLP=0)
    Tree(host.root).values(EDAC, **{"mc0/ce_count": 5, "mc1/ce_count": 0})
    Tree(host.root).value(f"{NET}/ens2f0/carrier_changes", 4)
    Tree(host.root).value(f"{NET}/eno1/statistics/rx_missed_errors", 2)
    statistics(host, rx_out_of_buffer=10, rx_pause_ctrl_phy=0, rx_crc_errors_phy=0, rx_corrected_bits_phy=900)
    for cpu, count in ((0, 7), (2, 99)):
        msr(host, cpu, count)
    return host


def errors(host: Watched, **counts: int) -> None:
    rows = [f"{name} {count}" for name, count in counts.items()]
    (host.root / CARD / "aer_dev_correctable").write_text(
        "\n".join([*rows, f"TOTAL_ERR_COR {sum(counts.values())}", ""])
    )


def statistics(host: Watched, **counts: int) -> None:
    Tree(host.root).text(STATISTICS, "".join(f"{name} {count}\n" for name, count in counts.items()))


def msr(host: Watched, cpu: int, count: int) -> None:
    place = host.root / f"dev/cpu/{cpu}/msr"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(bytes(0x34) + struct.pack("<Q", count))


def one(snapshot: Snapshot, quantity: str) -> Sample:
    """The only sample of a quantity."""
    (sample,) = snapshot.of(quantity)
    return sample


def healths(name: str, *looks: Snapshot) -> dict[str, Health]:
    """What a rule says at the last of these looks."""
    history, (rule,) = History(), [rule for rule in RULES if rule.name == name]
    for look in looks:
        history.add(look)
    return {condition.subject: condition.health for condition in rule.judge(history)}


def test_a_first_look_compares_nothing_and_a_second_finds_nothing(xeon: Watched) -> None:
    quantities = ("smis", "pcie_errors", "memory_errors", "carrier_changes", "nic_lost", "nic_paused", "nic_corrupt")
    first, second = xeon.look(), xeon.look()
    assert {sample.freshness for sample in first.of(*quantities)} == {STALE}
    assert {(sample.freshness, sample.value) for sample in second.of(*quantities)} == {(FRESH, 0)}
    assert healths("PcieErrors", first) == {"0000:b1:00.0": Health.UNKNOWN}
    assert healths("PcieErrors", first, second) == {"0000:b1:00.0": Health.GOOD}


def test_an_smi_is_counted_on_a_housekeeping_cpu_and_told_with_its_rate(xeon: Watched) -> None:
    looks = [xeon.look()]
    msr(xeon, 2, 5000)  # an isolated CPU is never asked
    msr(xeon, 0, 9)
    looks.append(xeon.look(60))
    assert (one(looks[-1], "smis").value, healths("SmiOnHost", *looks)) == (2, {"host": Health.BAD})
    assert "2 in the last 60 s, 0.033/s, 2 of them in the last minute" in one(looks[-1], "smis").reason
    looks.append(xeon.look(599))
    assert healths("SmiOnHost", *looks) == {"host": Health.BAD}
    looks.append(xeon.look(2))
    assert healths("SmiOnHost", *looks) == {"host": Health.GOOD}


def test_the_count_wraps_at_32_bits(xeon: Watched) -> None:
    msr(xeon, 0, 0xFFFF_FFFF)
    xeon.look()
    msr(xeon, 0, 2)
    assert one(xeon.look(), "smis").value == 3


def test_where_nobody_counts_smis_it_is_unknown_or_not_there(xeon: Watched, tmp_path: Path) -> None:
    xeon.remove("dev/cpu/0/msr")
    look = xeon.look()
    assert (one(look, "smis").freshness, "sudo modprobe msr" in one(look, "smis").reason) == (STALE, True)
    assert healths("SmiOnHost", look) == {"host": Health.UNKNOWN}
    msr(xeon, 0, 7)
    xeon.look()
    xeon.remove("dev/cpu/0/msr")  # somebody took the module away: what was watched is lost
    assert one(xeon.look(), "smis").freshness is NO_DATA
    Tree(xeon.root).value("sys/module/msr/parameters/allow_writes", "default")
    assert "is not given" in one(xeon.look(), "smis").reason
    for name, isolated, why in (("epyc", {3, 19}, "only Intel"), ("lab4", {2, 3}, "virtual machine")):
        look = watch(tmp_path, name, isolated).look()
        assert (one(look, "smis").freshness, why in one(look, "smis").reason) == (ABSENT, True)
        assert healths("SmiOnHost", look) == {}


def test_a_recording_without_msrs_is_not_unknown(tmp_path: Path) -> None:
    assert one(watch(tmp_path, "xeon2s", {2, 18}).look(), "smis").freshness is ABSENT


def test_every_member_counts_for_itself_and_the_total_does_not(xeon: Watched) -> None:
    """A sum would not have risen: one error's count began anew with the driver."""
    xeon.look()
    errors(xeon, RxErr=0, BadTLP=12)
    look = xeon.look()
    sample = one(look, "pcie_errors")
    assert (sample.value, sample.kind) == (12, "on the way to ens2f0")
    assert "(BadTLP 12)" in sample.reason
    assert healths("PcieErrors", look) == {"0000:b1:00.0": Health.BAD}


def test_a_few_mended_errors_are_chance(xeon: Watched) -> None:
    looks = [xeon.look()]
    errors(xeon, RxErr=5, BadTLP=0)
    looks.append(xeon.look())
    assert healths("PcieErrors", *looks) == {"0000:b1:00.0": Health.BETWEEN}


def test_an_old_kernels_names_have_spaces(xeon: Watched) -> None:
    for count in (1, 31):
        xeon.write(f"{CARD}/aer_dev_correctable", f"Receiver Error 2\nBad TLP {count}\nnonsense\nTOTAL_ERR_COR 99999")
        look = xeon.look()
    assert (one(look, "pcie_errors").value, "Bad TLP 30" in one(look, "pcie_errors").reason) == (30, True)


def test_a_card_that_went_away_has_mended_nothing(xeon: Watched) -> None:
    """Neither good nor bad, until nothing of the last ten minutes is known of it."""
    looks = [xeon.look()]
    errors(xeon, RxErr=30, BadTLP=0)
    looks.append(xeon.look())
    (xeon.root / CARD / "aer_dev_correctable").unlink()
    for seconds in (11, 300):
        looks.append(xeon.look(seconds))
        assert healths("PcieErrors", *looks) == {"0000:b1:00.0": Health.UNKNOWN}
    looks.append(xeon.look(300))
    assert healths("PcieErrors", *looks) == {}


@pytest.mark.parametrize("text", ["garbage\n", "RxErr -5\n", "", None])
def test_errors_that_cannot_be_read_are_unknown(xeon: Watched, text: str | None) -> None:
    looks, place = [xeon.look()], xeon.root / CARD / "aer_dev_correctable"
    place.unlink()
    place.write_text(text) if text is not None else place.mkdir()
    looks += [xeon.look(), xeon.look()]
    assert (one(looks[-1], "pcie_errors").freshness, healths("PcieErrors", *looks)) == (
        NO_DATA,
        {"0000:b1:00.0": Health.UNKNOWN},
    )
    assert one(looks[-1], "pcie_errors").reason.endswith("aer_dev_correctable holds no count")


def test_what_rose_before_a_card_went_is_told_over_the_time_in_which_it_rose(xeon: Watched) -> None:
    """Two changes before it went and two since it is back: four, in the four minutes since the first look."""
    for count in (4, 6, None, 50, 52):
        if count is None:
            xeon.remove(f"{NET}/ens2f0/carrier_changes")
        else:
            Tree(xeon.root).value(f"{NET}/ens2f0/carrier_changes", count)
        look = xeon.look(61)
    assert one(look, "carrier_changes").reason == "4 in the last 4 minutes, 0.016/s, 2 of them in the last minute"


def test_a_card_that_went_and_came_back_begins_anew(xeon: Watched) -> None:
    xeon.look()
    kept = (xeon.root / CARD).resolve()
    shutil.move(kept, xeon.root / "away")
    look = xeon.look()
    assert one(look, "pcie_errors").freshness is ABSENT
    assert healths("PcieErrors", look) == {}
    shutil.move(xeon.root / "away", kept)
    errors(xeon, RxErr=500, BadTLP=500)
    assert one(xeon.look(), "pcie_errors").freshness is STALE
    assert one(xeon.look(), "pcie_errors").value == 0


def test_memory_that_mends_itself_is_told_by_controller(xeon: Watched) -> None:
    looks = [xeon.look()]
    xeon.write(f"{EDAC}/mc1/ce_count", 40)
    looks.append(xeon.look())
    assert healths("MemoryErrors", *looks) == {"mc0": Health.GOOD, "mc1": Health.BAD}
    xeon.write(f"{EDAC}/mc0/ce_count", "9" * 40)
    look = xeon.look()
    assert of(look, "memory_errors")["mc0"].freshness is NO_DATA
    assert healths("MemoryErrors", look)["mc0"] is Health.UNKNOWN


def test_the_module_that_mends_is_named(xeon: Watched) -> None:
    """Ten in ten minutes are trouble, nine are chance; the hardware does not always say which module it was."""
    Tree(xeon.root).values(f"{EDAC}/mc1/dimm2", dimm_ce_count=0, dimm_label="CPU_SrcID#1_MC#0_Chan#1_DIMM#0")
    Tree(xeon.root).values(f"{EDAC}/mc1/rank3", dimm_ce_count=0)
    looks = [xeon.look()]
    xeon.write(f"{EDAC}/mc1/ce_count", 9)
    xeon.write(f"{EDAC}/mc1/dimm2/dimm_ce_count", 8)  # and ce_noinfo_count 1
    looks.append(xeon.look())
    assert healths("MemoryErrors", *looks) == {"mc0": Health.GOOD, "mc1": Health.BETWEEN}
    xeon.write(f"{EDAC}/mc1/ce_count", 10)
    xeon.write(f"{EDAC}/mc1/rank3/dimm_ce_count", 1)
    looks.append(xeon.look())
    assert healths("MemoryErrors", *looks) == {"mc0": Health.GOOD, "mc1": Health.BAD}
    sample = of(looks[-1], "memory_errors")["mc1"]
    assert (sample.value, sample.kind) == (10, "CPU_SrcID#1_MC#0_Chan#1_DIMM#0 8, rank3 1")
    xeon.write(f"{EDAC}/mc1/dimm2/dimm_ce_count", "nonsense")
    assert of(xeon.look(), "memory_errors")["mc1"].kind == "rank3 1"
    xeon.write(f"{EDAC}/mc1/ce_count", 0)  # reset_counters: began anew, and adds nothing
    assert of(xeon.look(), "memory_errors")["mc1"].value == 10


def test_a_link_that_flaps_is_told(xeon: Watched) -> None:
    looks = [xeon.look()]
    xeon.write(f"{NET}/ens2f0/carrier_changes", 6)
    looks.append(xeon.look())
    assert healths("LinkFlap", *looks) == {"ens2f0": Health.BAD}


def test_a_driver_s_counts_are_told_by_what_they_mean(xeon: Watched) -> None:
    looks = [xeon.look()]
    statistics(xeon, rx_out_of_buffer=13, rx_pause_ctrl_phy=7, rx_crc_errors_phy=0, rx_corrected_bits_phy=90000)
    looks.append(xeon.look())
    assert healths("NicLoss", *looks) == {"ens2f0": Health.BAD, "eno1": Health.GOOD}
    assert healths("NicPaused", *looks) == {"ens2f0": Health.BAD}
    # What error correction mended is no trouble by itself; it stands beside what it did not mend.
    assert healths("NicCorrupt", *looks) == {"ens2f0": Health.GOOD}
    assert "rx_out_of_buffer 3" in of(looks[-1], "nic_lost")["ens2f0"].reason
    statistics(xeon, rx_out_of_buffer=13, rx_pause_ctrl_phy=7, rx_crc_errors_phy=1, rx_corrected_bits_phy=90000)
    sample = one(xeon.look(), "nic_corrupt")
    assert (sample.value, sample.kind) == (1, "90,000 mended so far")


@pytest.mark.parametrize(
    ("driver", "mended", "lost"),
    [
        ("mlx5_core", "rx_corrected_bits_phy", "rx_pcs_symbol_err_phy"),
        ("bnxt_en", "rx_fec_corrected_blocks", "rx_fec_uncorrectable_blocks"),
        ("sfc", "fec_corrected_errors", "fec_uncorrected_errors"),
    ],
)
def test_error_correction_is_judged_by_what_it_did_not_mend(driver: str, mended: str, lost: str) -> None:
    """Corrected words stand beside it, and may be as many as they are."""
    assert meanings(driver, {mended: 10**12, lost: 1}) == {CORRECTED: {mended: 10**12}, CORRUPT: {lost: 1}}


def test_a_driver_that_tells_nothing_has_what_every_driver_has(xeon: Watched) -> None:
    xeon.look()
    xeon.write(f"{NET}/eno1/statistics/rx_missed_errors", 3)
    xeon.remove(STATISTICS)
    look = xeon.look()
    assert (of(look, "nic_lost")["eno1"].value, "rx_missed_errors 1" in of(look, "nic_lost")["eno1"].reason) == (
        1,
        True,
    )
    assert {sample.subject: sample.freshness for sample in look.of("nic_paused")} == {"host": ABSENT}


def test_a_driver_that_was_loaded_again_invents_no_loss(xeon: Watched) -> None:
    xeon.look()
    statistics(xeon, rx_out_of_buffer=0, rx_discards_phy=5000)
    assert of(xeon.look(), "nic_lost")["ens2f0"].value == 0


def test_a_host_that_counts_nothing_has_no_trouble(tmp_path: Path) -> None:
    host = watch(tmp_path, "lab4", {2, 3})
    host.look()
    look = host.look()
    for rule in ("PcieErrors", "MemoryErrors", "LinkFlap", "NicLoss", "NicPaused", "NicCorrupt"):
        assert healths(rule, look) == {}


def test_names_and_counts_of_a_hostile_recording_are_bounded(xeon: Watched) -> None:
    for count in (1, 99):
        xeon.write(f"{CARD}/aer_dev_correctable", f"{'x' * 3000} {count}\nBadTLP {'9' * 90}\n \nBadDLLP -5\nRxErr ٣")
        statistics(xeon, rx_out_of_buffer=2**64 + count, rx_crc_errors_phy=count, rx_discards_phy=10**30)
        look = xeon.look()
    assert one(look, "pcie_errors").value == 98
    assert len(one(look, "pcie_errors").reason) < 200
    assert healths("NicLoss", look) == {"eno1": Health.GOOD}
    assert healths("NicCorrupt", look) == {"ens2f0": Health.BAD}
