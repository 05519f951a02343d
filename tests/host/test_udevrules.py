"""Which of udev's rules keep a network card from having our unit started."""

from pathlib import Path

import pytest

from tests.trees import write
from tunectl.host.inifiles import continued_lines
from tunectl.host.sysroot import Sysroot
from tunectl.host.udevrules import parse_rules, rules_against_units

OURS = "95-tunectl.rules"
RULES = "etc/udev/rules.d"
PACKAGED = Path("/usr/lib/udev/rules.d")


def card(root: Path, *rules: str, name: str = "99-site.rules") -> Sysroot:
    """A host with one network card, our rule and a file of somebody else's."""
    (root / "sys/class/net/eth0/device").mkdir(parents=True, exist_ok=True)
    (root / "sys/class/net/lo").mkdir(exist_ok=True)
    write(root, f"{RULES}/{OURS}", 'SUBSYSTEM=="net", TAG+="systemd", ENV{SYSTEMD_WANTS}+="ours.service"\n')
    write(root, f"{RULES}/{name}", "\n".join([*rules, ""]))
    return Sysroot(str(root))


AGAINST = [
    ['SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}=""'],
    ['ENV{SYSTEMD_WANTS}=""'],
    ['SUBSYSTEM=="net|block", ACTION=="add|change", ENV{SYSTEMD_WANTS}:="other.service"'],
    ['KERNEL=="eth*", SUBSYSTEM!="tty", ENV{SYSTEMD_WANTS}="other.service"'],
    ['KERNEL!="lo", DEVPATH!="/devices/virtual/*", \\', '  ENV{SYSTEMD_WANTS}=""'],
    ['SUBSYSTEM=="net", ENV{SYSTEMD_READY}="0"'],
    ['SUBSYSTEM=="net", TAG-="systemd"'],
    ['SUBSYSTEM=="net", TAG="uaccess"'],
    ['SUBSYSTEM!="net", GOTO="end"', 'ENV{SYSTEMD_WANTS}=""', 'LABEL="end"'],
    ["# a comment", "", 'SUBSYSTEM=="net",ENV{SYSTEMD_WANTS}=""'],
    ['  , SUBSYSTEM == "net" ENV{SYSTEMD_WANTS} = "a \\"quoted\\" word",'],
    ['SUBSYSTEM=="net", GOTO="nowhere"', 'ENV{SYSTEMD_WANTS}=""'],
    ['SUBSYSTEM=="net", \\', "# why", '  ENV{SYSTEMD_WANTS}=""'],
    ['LABEL="before"', 'SUBSYSTEM=="net", GOTO="before"', 'ENV{SYSTEMD_WANTS}=""'],
    ['SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}:="other.service", TAG-="systemd", RUN{program}+="/bin/true"'],
    # what becomes of these, the card or a later rule decides
    ['SUBSYSTEM=="net", ENV{SYSTEMD_READY}="0"', 'SUBSYSTEM=="net", ENV{SYSTEMD_READY}="1"'],
    ['SUBSYSTEM=="net", ATTR{mtu}=="9000", ENV{SYSTEMD_WANTS}=""'],
    ['DRIVERS!="virtio_net", GOTO="end"', 'ENV{SYSTEMD_WANTS}=""', 'LABEL="end"'],
    ['SUBSYSTEM=="net", ENV{ID_BUS}=="usb", ENV{SYSTEMD_READY}="0"'],
]
IGNORED = [  # by udev, each with a complaint in the journal
    'SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}="" and more',
    'SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}=',
    'SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}="", ENV{X}="unclosed',
    'SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}="", ENV{X}="unclosed\\"',
    "SUBSYSTEM=='net', ENV{SYSTEMD_WANTS}=''",
    'SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}="" # off',
]
NOT_AGAINST = [
    ['SUBSYSTEM=="tty", ENV{SYSTEMD_WANTS}=""'],
    ['SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}+="other.service"'],
    ['SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}="$env{SYSTEMD_WANTS} other.service"'],
    ['SUBSYSTEM=="net", ACTION=="remove", ENV{SYSTEMD_WANTS}=""'],
    ['SUBSYSTEM=="net", KERNEL=="lo", ENV{SYSTEMD_WANTS}=""'],
    ['SUBSYSTEM=="net", KERNEL=="veth*|docker*", ENV{SYSTEMD_WANTS}=""'],
    ['SUBSYSTEM=="net", DEVPATH=="/devices/virtual/*", ENV{SYSTEMD_READY}="0"'],
    ['SUBSYSTEM=="net", ENV{SYSTEMD_USER_WANTS}=""'],
    ['SUBSYSTEM!="block", GOTO="end"', 'ENV{SYSTEMD_WANTS}=""', 'LABEL="end"'],
    ['SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}=="", ENV{SEEN}="1"'],
    ['# SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}=""'],
]


@pytest.mark.parametrize("rules", AGAINST, ids=" ".join)
def test_what_takes_our_unit_away_is_found(tmp_path: Path, rules: list[str]) -> None:
    found = list(rules_against_units(card(tmp_path, *rules), OURS))
    assert {rule.file for rule, _ in found} == {f"{RULES}/99-site.rules"}


@pytest.mark.parametrize("rule", IGNORED)
def test_a_line_that_udev_ignores_takes_nothing_away(tmp_path: Path, rule: str) -> None:
    assert not list(rules_against_units(card(tmp_path, rule), OURS))


@pytest.mark.parametrize("rules", NOT_AGAINST, ids=" ".join)
def test_what_leaves_it_is_not(tmp_path: Path, rules: list[str]) -> None:
    assert not list(rules_against_units(card(tmp_path, *rules), OURS))


def test_the_order_of_names_counts_and_the_first_directory(tmp_path: Path) -> None:
    """What comes before ours is said anew by ours; but a card that is not ready starts nothing."""
    wants, ready = 'SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}=""', 'SUBSYSTEM=="net", ENV{SYSTEMD_READY}="0"'
    root = card(tmp_path, wants, name="90-site.rules")
    assert not list(rules_against_units(root, OURS))
    card(tmp_path, ready, name="90-site.rules")
    assert list(rules_against_units(root, OURS))
    card(tmp_path, "", name="90-site.rules")
    write(tmp_path, "usr/lib/udev/rules.d/99-vendor.rules", wants)
    assert list(rules_against_units(root, OURS))
    card(tmp_path, "", name="99-vendor.rules")  # in its place
    assert not list(rules_against_units(root, OURS))


def test_lines_of_a_rule() -> None:
    (first, second) = parse_rules('KERNEL=="x", \\\n  ENV{B}+="y \\" z"\n# no\n\nTEST{0755}=="/q"\n', "f.rules")
    assert (first.line, first.last, str(first.keys[1])) == (1, 2, 'ENV{B}+="y \\" z"')
    assert (second.line, second.last, second.assigns) == (5, 5, ())


@pytest.mark.skipif(not PACKAGED.is_dir(), reason="this machine has no udev (Debian: udev)")
def test_the_rules_of_a_distribution_take_nothing_away(tmp_path: Path) -> None:
    for path in PACKAGED.glob("*.rules"):
        write(tmp_path, f"usr/lib/udev/rules.d/{path.name}", path.read_text())
        lines = [one for one in continued_lines(path.read_text(), "", comments="#", anywhere=True) if one.text.strip()]
        assert len(list(parse_rules(path.read_text(), path.name))) == len(lines)  # none is taken for invalid
    assert not list(rules_against_units(card(tmp_path, ""), OURS))
