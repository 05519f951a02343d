"""check.card_link and check.nic_irq_node: what links trained to, against what both of their ends can do."""

from pathlib import Path
from typing import Any

import pytest

from tests.checks.conftest import Judge
from tests.hosts.tree import Tree
from tunectl.model import Finding, Outcome

CHECK, PORT, CARD = "test_cards.py", "0000:3a:00.0", "0000:3b:00.0"
PCI = "sys/bus/pci/devices"
WHOLE: dict[str, Any] = {"current_link_width": 16, "max_link_width": 16, "current_link_speed": "16.0 GT/s PCIe"}
WHOLE["max_link_speed"] = WHOLE["current_link_speed"]


def device(root: Path, *way: str, kind: Any = "0x020000", **values: Any) -> None:
    """A PCI device below others, as sysfs has it; without values it is a bridge that says nothing."""
    tree, place = Tree(root), f"sys/devices/pci0000:3a/{'/'.join(way)}"
    tree.values(place, **{"class": kind, **values})
    if not (root / PCI / way[-1]).is_symlink():
        tree.link(f"{PCI}/{way[-1]}", f"../../../{place.removeprefix('sys/')}")


def plugged(root: Path, *way: str, name: str = "p1") -> None:
    """An interface whose card is at the end of this way."""
    Tree(root).link(f"sys/class/net/{name}/device", f"../../../bus/pci/devices/{way[-1]}")
    Tree(root).value(f"sys/class/net/{name}/operstate", "up")


@pytest.fixture
def found(xeon: Path, judge: Judge) -> Any:
    """The finding of a card below a port; `card` and `port` are what is not whole."""

    def look(card: dict[str, Any] | None = None, port: dict[str, Any] | None = None) -> Finding:
        now = {name: value for name, value in (card or {}).items() if name.startswith("current_")}  # both ends say it
        device(xeon, PORT, kind="0x060400", **{**WHOLE, **now, **(port or {})})
        device(xeon, PORT, CARD, **{**WHOLE, **(card or {})})
        plugged(xeon, PORT, CARD)
        return judge(xeon, {2, 3}, CHECK, interfaces=("p1",))["check.card_link[p1]"]

    return look


def test_a_whole_link_is_compliant(found: Any) -> None:
    assert found().outcome == Outcome.COMPLIANT


def test_half_of_the_lanes_is_found_and_both_ends_are_named(found: Any) -> None:
    finding = found({"current_link_width": 8})
    assert (finding.outcome, finding.observed, finding.desired) == (
        Outcome.DRIFTED,
        "x8 at 16 GT/s",
        "x16 at 16 GT/s",
    )
    assert f"from {PORT} to {CARD}" in finding.reason
    assert "reseat" in str(finding.fix)


def test_an_older_generation_is_found(found: Any) -> None:
    assert found({"current_link_speed": "8.0 GT/s PCIe"}).observed == "x16 at 8 GT/s"


@pytest.mark.parametrize(
    ("card", "port"),
    [
        ({"current_link_width": 8}, {"max_link_width": 8}),  # a riser, or a bifurcated slot
        ({"current_link_speed": "8 GT/s"}, {"max_link_speed": "8 GT/s"}),  # as before 5.7
        ({"current_link_width": 8, "max_link_width": 8}, {}),
    ],
)
def test_the_lesser_end_is_an_honest_limit(found: Any, card: dict[str, Any], port: dict[str, Any]) -> None:
    assert found(card, port).outcome == Outcome.COMPLIANT


@pytest.mark.parametrize(
    ("card", "port", "why"),
    [
        ({"current_link_width": 0}, {}, "current_link_width says 0"),
        ({"current_link_width": 63, "current_link_speed": "Unknown"}, {}, "says 63"),
        ({"current_link_width": 255}, {}, "says 255"),
        ({"max_link_width": 8}, {}, "more than both of its ends can do"),
        ({}, {"max_link_speed": "8.0 GT/s PCIe"}, "more than both of its ends can do"),
        ({"current_link_speed": "16.0 GT/s\x1b[2J"}, {}, "which no link is"),
        ({"current_link_width": "9" * 500}, {}, "current_link_width cannot be read"),
        ({"max_link_speed": "Unknown speed"}, {}, "Unknown speed"),
        ({"current_link_speed": "99.0 GT/s PCIe"}, {}, "99.0 GT/s"),
        ({}, {"max_link_width": ""}, f"{PORT}/max_link_width cannot be read"),
        ({"power/runtime_status": "suspended"}, {}, "is suspended"),
        ({}, {"current_link_width": 8}, f"{CARD} says that its link runs x16 at 16 GT/s, and {PORT} says x8 at 16"),
        ({}, {"current_link_speed": "8.0 GT/s PCIe"}, f"and {PORT} says x16 at 8 GT/s"),
    ],
)
def test_what_no_link_can_be_is_not_compliant(found: Any, card: dict[str, Any], port: dict[str, Any], why: str) -> None:
    finding = found(card, port)
    assert finding.outcome == Outcome.UNREADABLE
    assert why in finding.reason


def test_a_bad_link_counts_beside_one_that_is_not_known(xeon: Path, judge: Judge) -> None:
    """A switch on the card: the link to the root is the one that was halved, and the inner one cannot be read."""
    device(xeon, PORT, kind="0x060400", **WHOLE | {"current_link_width": 4})
    device(xeon, PORT, "0000:3b:00.0", kind="0x060400", **WHOLE | {"current_link_width": 4})
    device(xeon, PORT, "0000:3b:00.0", "0000:3c:00.0", kind="0x060400", **WHOLE | {"current_link_width": 1})
    way = (PORT, "0000:3b:00.0", "0000:3c:00.0", "0000:3d:00.0")
    device(xeon, *way, **WHOLE | {"current_link_width": 0})
    plugged(xeon, *way)
    finding = judge(xeon, {2, 3}, CHECK, interfaces=("p1",))["check.card_link[p1]"]
    assert (finding.outcome, finding.observed) == (Outcome.DRIFTED, "x4 at 16 GT/s")


def test_a_virtual_function_has_the_link_of_its_card(xeon: Path, judge: Judge) -> None:
    device(xeon, PORT, kind="0x060400", **WHOLE | {"current_link_width": 8})
    device(xeon, PORT, CARD, **WHOLE | {"current_link_width": 8})
    virtual = "0000:3b:00.2"
    device(xeon, PORT, virtual, **WHOLE | {"current_link_width": 0, "current_link_speed": "Unknown"})
    Tree(xeon).link(f"{PCI}/{virtual}/physfn", f"../{CARD}")
    plugged(xeon, PORT, virtual)
    assert judge(xeon, {2, 3}, CHECK, interfaces=("p1",))["check.card_link[p1]"].observed == "x8 at 16 GT/s"


def test_a_graphics_card_is_judged_by_its_lanes_alone(xeon: Path, judge: Judge) -> None:
    idle = {"kind": "0x030200", "current_link_speed": "2.5 GT/s PCIe"}
    device(xeon, PORT, kind="0x060400", **WHOLE | {"current_link_speed": idle["current_link_speed"]})
    device(xeon, PORT, CARD, **WHOLE | idle)
    target = f"check.card_link[{CARD}]"
    assert judge(xeon, {2, 3}, CHECK)[target].outcome == Outcome.COMPLIANT
    Tree(xeon).value(f"{PCI}/{PORT}/current_link_width", 8)
    device(xeon, PORT, CARD, **WHOLE | idle | {"current_link_width": 8})
    assert judge(xeon, {2, 3}, CHECK)[target].outcome == Outcome.DRIFTED


def test_what_has_no_link_or_no_slot_is_unsupported(xeon: Path, lab4: Path, judge: Judge) -> None:
    Tree(xeon).value("sys/class/net/bond0/operstate", "up")
    found = judge(xeon, {2, 3}, CHECK, interfaces=("eno1", "bond0", "gone"))
    assert {one.outcome for one in found.values()} == {Outcome.UNSUPPORTED}
    assert "no PCI Express link" in found["check.card_link[eno1]"].reason
    assert "is no PCI card" in found["check.card_link[bond0]"].reason
    assert "this host has no interface gone" in found["check.card_link[gone]"].reason
    virtual = judge(lab4, {2, 3}, CHECK, interfaces=("eth0",))["check.card_link[eth0]"]
    assert (virtual.outcome, "virtual machine" in virtual.reason) == (Outcome.UNSUPPORTED, True)
    assert judge(lab4, {2, 3}, CHECK)["check.card_link"].outcome == Outcome.UNSUPPORTED


@pytest.mark.parametrize(
    ("port", "card", "outcome", "who"),
    [
        (WHOLE, {}, Outcome.UNREADABLE, CARD),
        ({}, WHOLE, Outcome.UNREADABLE, PORT),
        ({}, {}, Outcome.UNSUPPORTED, CARD),  # an older bus, or a recording without them
    ],
)
def test_an_end_without_link_files_is_named(
    xeon: Path, judge: Judge, port: dict[str, Any], card: dict[str, Any], outcome: Outcome, who: str
) -> None:
    device(xeon, PORT, kind="0x060400", **port)
    device(xeon, PORT, CARD, **card)
    plugged(xeon, PORT, CARD)
    finding = judge(xeon, {2, 3}, CHECK, interfaces=("p1",))["check.card_link[p1]"]
    assert (finding.outcome, f"{who} has no link files" in finding.reason) == (outcome, True)


def test_interrupts_that_are_served_across_the_socket(xeon: Path, judge: Judge) -> None:
    found = judge(xeon, {2, 3, 18, 19}, "test_nics.py", interfaces=("eno1", "ens2f0"))
    assert found["check.nic_irq_node[eno1]"].outcome == Outcome.COMPLIANT
    assert found["check.nic_irq_node[ens2f0]"].outcome == Outcome.COMPLIANT
    (xeon / "proc/irq/61/effective_affinity_list").write_text("4\n")
    finding = judge(xeon, {2, 3, 18, 19}, "test_nics.py", interfaces=("ens2f0",))["check.nic_irq_node[ens2f0]"]
    assert (finding.outcome, finding.observed, finding.desired) == (Outcome.DRIFTED, "4", "8-15,24-31")
    assert "IRQ 61" in finding.reason
    # No housekeeping CPU is near: nothing could serve them better.
    alone = judge(xeon, {*range(8, 16), *range(24, 32)}, "test_nics.py", interfaces=("ens2f0",))
    assert alone["check.nic_irq_node[ens2f0]"].outcome == Outcome.UNSUPPORTED
