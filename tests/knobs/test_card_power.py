"""pcie.runtime_power and the states of links: of trading cards, graphics cards and the bridges above them alone."""

from pathlib import Path

from tests.conftest import write_host_file
from tests.hosts.builder import HostFactory
from tests.hosts.tree import Tree
from tests.tuned import apply, inspection_on, judged, restore, results
from tunectl.knobs import in_order
from tunectl.model import Outcome

PCI, PORT, GPU = "sys/bus/pci/devices", "0000:00:01.0", "0000:01:00.0"
HOST_FILE = 'profile = "low-latency"\nisolated = "2-3"\nallow_split_siblings = true\n'
SUBSTATES = ("l1_1_aspm", "l1_2_aspm", "l1_1_pcipm", "l1_2_pcipm")
KNOBS = ("pcie.runtime_power", "pcie.l0s_aspm", "pcie.l1_aspm", *(f"pcie.{name}" for name in SUBSTATES))


def host_with(root: Path, *interfaces: str) -> Path:
    """xeon2s with a graphics card behind a port and a drive beside it, all of which may sleep."""
    tree, place = Tree(root), f"sys/devices/pci0000:00/{PORT}"
    for path, kind in ((place, "0x060400"), (f"{place}/{GPU}", "0x030200"), (f"{place}/0000:01:00.1", "0x010802")):
        tree.link(f"{PCI}/{path.rpartition('/')[2]}", f"../../../{path.removeprefix('sys/')}")
        tree.values(path, **{"class": kind, "power/control": "auto", "link/l1_aspm": 1})
        tree.values(f"{path}/link", **dict.fromkeys(SUBSTATES, 1))
    network = ", ".join(f'"{name}"' for name in interfaces)
    named = f"[network]\ninterfaces = [{network}]\n" if network else ""
    write_host_file(root, f"{HOST_FILE}{named}")
    return root


def test_a_graphics_card_and_its_bridge_stay_awake_and_a_drive_may_sleep(
    host_root: HostFactory, tmp_path: Path
) -> None:
    root = host_with(host_root.fresh("xeon2s", tmp_path))
    found = {target: one.outcome for target, one in judged(root, *KNOBS).items()}
    drifted = {f"{knob}[{address}]" for knob in (KNOBS[0], *KNOBS[2:]) for address in (PORT, GPU)}
    assert {target for target, outcome in found.items() if outcome is Outcome.DRIFTED} == drifted
    assert "a display driver" in judged(root, *KNOBS)[f"pcie.runtime_power[{GPU}]"].reason
    done = results(apply(root))
    assert {done[target] for target in drifted} == {"changed"}
    assert (root / PCI / GPU / "power/control").read_text() == "on\n"
    assert (root / PCI / "0000:01:00.1/power/control").read_text() == "auto\n"
    assert {one.outcome for target, one in judged(root, *KNOBS).items() if target in drifted} == {Outcome.COMPLIANT}


def test_only_the_cards_of_the_host_file_are_trading_cards(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_with(host_root.fresh("xeon2s", tmp_path), "ens2f0")
    (root / "sys/devices/pci0000:00/0000:17:00.0/power/control").write_text("auto\n")  # eno1, which nobody named
    found = judged(root, *KNOBS)
    assert found["pcie.runtime_power[0000:b1:00.0]"].outcome is Outcome.COMPLIANT
    assert not [target for target in found if "0000:17:00.0" in target]


def test_the_cards_below_a_bond_or_a_vlan_are_judged_and_named(host_root: HostFactory, tmp_path: Path) -> None:
    """Two VLANs above one bond, which names itself as hostile recordings may: each card counts once."""
    root = host_with(host_root.fresh("xeon2s", tmp_path), "bond0.7", "bond0.8", "eno1")
    Tree(root).stacked("bond0", "ens2f0", "eno1", "tap1", "bond0")
    Tree(root).stacked("bond0.7", "bond0")
    Tree(root).stacked("bond0.8", "bond0")
    Tree(root).stacked("tap1")
    verified = judged(root, *KNOBS, "net.rx_usecs")
    assert {"net.rx_usecs[ens2f0]", "net.rx_usecs[eno1]"} <= verified.keys()
    assert not [target for target in verified if "bond0" in target]
    assert verified["pcie.runtime_power[0000:b1:00.0]"].outcome is Outcome.COMPLIANT
    notes = inspection_on(root).notes()
    assert [note.partition("interfaces: ")[2] for note in notes if "stands on" in note] == [
        "bond0.7 stands on eno1, ens2f0: they are judged",
        "bond0.8 stands on eno1, ens2f0: they are judged",
    ]


def test_a_card_whose_power_setting_is_empty_is_unknown(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_with(host_root.fresh("xeon2s", tmp_path))
    (root / PCI / GPU / "power/control").write_text("\n")
    assert judged(root, KNOBS[0])[f"{KNOBS[0]}[{GPU}]"].outcome is Outcome.UNREADABLE


def test_without_any_card_there_is_nothing_to_keep_awake(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, HOST_FILE)
    assert {one.outcome for one in judged(root, *KNOBS).values()} == {Outcome.UNSUPPORTED}


def test_links_are_set_before_the_policy_below_which_all_of_them_read_off() -> None:
    """And L1 behind its substates: it takes them along, so that what they were would not be seen any more."""
    assert in_order(["pcie.aspm_policy", *KNOBS[1:]])[-2:] == ["pcie.l1_aspm", "pcie.aspm_policy"]


def test_one_substate_that_was_on_is_put_back_alone(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_with(host_root.fresh("xeon2s", tmp_path))
    for name in SUBSTATES:
        (root / PCI / GPU / "link" / name).write_text(f"{int(name == 'l1_2_aspm')}\n")
    before = {path: path.read_bytes() for path in (root / PCI / GPU / "link").iterdir()}
    assert {
        target for target, one in judged(root, *KNOBS[3:]).items() if one.outcome is Outcome.DRIFTED and GPU in target
    } == {f"pcie.l1_2_aspm[{GPU}]"}
    apply(root)
    assert not [path for path in before if path.read_text() != "0\n"]
    restore(root)
    assert {path: path.read_bytes() for path in before} == before
