"""irqbalance's ban list: what its unit declares, and nothing that a shell or another program would make of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.knobs.test_laws import broken
from tests.trees import write
from tests.tuned import apply
from tunectl.host.ask import ANSWERS, SHOW, VERSION
from tunectl.host.environmentfiles import parse_environment_file
from tunectl.knobs.drivers.irqbalance import with_ban

UNIT = "usr/lib/systemd/system/irqbalance.service"
DROP_IN = "etc/systemd/system/irqbalance.service.d"
FILE = "etc/default/irqbalance"
BAN = "irqbalance.banned_cpus"
# This boot isolates nothing, so nothing is banned of itself.
UNISOLATED = ("sys/devices/system/cpu/isolated", "sys/devices/system/cpu/nohz_full")


@pytest.fixture
def banned(host: Callable[[str], Path]) -> Path:
    """A host whose unit reads its list from the one file, and that is as asked."""
    root = host("lab4")
    (root / UNIT).write_text(f"[Service]\nEnvironmentFile=-/{FILE}\nExecStart=/usr/sbin/irqbalance --foreground\n")
    for path in UNISOLATED:
        (root / path).write_text("\n")
    return root


@pytest.mark.parametrize(
    "text",
    [
        "IRQBALANCE_BANNED_CPULIST=2-3\n",
        "# of shells\nexport PATH=/bin\n IRQBALANCE_BANNED_CPULIST = '2-3' \n",
        'IRQBALANCE_BANNED_CPULIST="2,\\\n3"\n',
    ],
)
def test_a_list_that_systemd_hands_on_is_in_force(banned: Path, text: str) -> None:
    (banned / FILE).write_text(text)
    assert BAN not in broken(banned)


def test_what_a_shell_would_take_for_a_list_is_named_and_apply_mends_it(banned: Path) -> None:
    (banned / FILE).write_text("# mine\nexport IRQBALANCE_BANNED_CPULIST=2-3\nexport OTHER=1\n")
    finding = broken(banned)[BAN]
    assert (finding.outcome, finding.observed, finding.desired) == ("drifted", "", "2-3")
    assert f"/{FILE}:2" in finding.reason
    assert "'export IRQBALANCE_BANNED_CPULIST'" in finding.reason
    apply(banned)
    assert (banned / FILE).read_text() == "# mine\nIRQBALANCE_BANNED_CPULIST=2-3\nexport OTHER=1\n"
    assert BAN not in broken(banned)


def test_another_file_than_its_unit_reads_counts_for_nothing(banned: Path) -> None:
    (banned / FILE).write_text("IRQBALANCE_BANNED_CPULIST=2-3\n")
    (banned / UNIT).write_text("[Service]\nEnvironmentFile=/etc/irqbalance.d/*.env\nExecStart=/usr/sbin/irqbalance\n")
    assert broken(banned)[BAN].observed == ""
    (banned / "etc/irqbalance.d").mkdir()
    (banned / "etc/irqbalance.d/1.env").write_text("IRQBALANCE_BANNED_CPULIST=1\n")
    (banned / "etc/irqbalance.d/2.env").write_text("IRQBALANCE_BANNED_CPULIST=2-3\n")
    assert BAN not in broken(banned)


def test_what_env_makes_of_the_environment_is_named_and_not_followed(banned: Path) -> None:
    (banned / FILE).write_text("IRQBALANCE_BANNED_CPULIST=2-3\n")
    (banned / DROP_IN).mkdir(parents=True)
    (banned / DROP_IN / "site.conf").write_text(
        "[Service]\nExecStart=\nExecStart=/usr/bin/env -i /usr/sbin/irqbalance\n"
    )
    finding = broken(banned)[BAN]
    assert (finding.outcome, finding.observed) == ("unreadable", None)
    assert f"/{DROP_IN}/site.conf:3" in finding.reason
    assert str(finding.fix).startswith(f"sudo sed -i '2d;3d' /{DROP_IN}/site.conf")


def test_below_a_continued_comment_it_depends_on_the_version(banned: Path) -> None:
    (banned / FILE).write_text("# CPUs \\\nIRQBALANCE_BANNED_CPULIST=2-3\n")
    assert broken(banned)[BAN].outcome == "unreadable"
    write(banned, f"{ANSWERS}/{VERSION.name}", "systemd 252 (252.39-1~deb12u2)\n")
    finding = broken(banned)[BAN]
    assert (finding.outcome, finding.observed, f"/{FILE}:2" in finding.reason) == ("drifted", "", True)
    write(banned, f"{ANSWERS}/{VERSION.name}", "systemd 254 (254.1-1)\n")
    assert BAN not in broken(banned)


def loaded(root: Path, *properties: str) -> None:
    """What systemd says of the unit."""
    lines = ("Names=irqbalance.service", "LoadState=loaded", *properties)
    write(root, f"{ANSWERS}/{SHOW.name}", "".join(f"{line}\n" for line in lines))


def test_what_systemd_has_read_counts_more_than_how_the_unit_is_read_here(banned: Path) -> None:
    (banned / FILE).write_text("IRQBALANCE_BANNED_CPULIST=2-3\n")
    loaded(banned, f"EnvironmentFiles=/{FILE} (ignore_errors=yes)")
    assert BAN not in broken(banned)
    loaded(banned, "EnvironmentFiles=/etc/site.env (ignore_errors=yes)")
    assert broken(banned)[BAN].observed == ""
    loaded(banned, "Environment=IRQBALANCE_BANNED_CPULIST=2-3")
    assert BAN not in broken(banned)
    loaded(banned)
    assert broken(banned)[BAN].observed == ""


def test_what_systemd_has_not_read_yet_is_read_here(banned: Path) -> None:
    (banned / FILE).write_text("IRQBALANCE_BANNED_CPULIST=2-3\n")
    loaded(banned, "EnvironmentFiles=/etc/site.env (ignore_errors=yes)", "NeedDaemonReload=yes")
    assert BAN not in broken(banned)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", "IRQBALANCE_BANNED_CPULIST=2-3\n"),
        ("A=1\n", "A=1\nIRQBALANCE_BANNED_CPULIST=2-3\n"),
        ("# one \\\n", "# one \\\n\nIRQBALANCE_BANNED_CPULIST=2-3\n"),
        ("IRQBALANCE_BANNED_CPUS=c\nA=1\nIRQBALANCE_BANNED_CPULIST=\nB=1", "A=1\nIRQBALANCE_BANNED_CPULIST=2-3\nB=1\n"),
        ("IRQBALANCE_BANNED_CPULIST='1,\n2'\nB=1\n", "IRQBALANCE_BANNED_CPULIST=2-3\nB=1\n"),
        (
            "# one \\\nIRQBALANCE_BANNED_CPULIST=1\nB=1\n",
            "# one \\\nB=1\nIRQBALANCE_BANNED_CPULIST=2-3\n",
        ),
    ],
)
def test_the_list_is_put_in_its_place(text: str, written: str) -> None:
    assert with_ban(text, frozenset({2, 3})) == written
    assert {one.name: one.value for one in parse_environment_file(written)}["IRQBALANCE_BANNED_CPULIST"] == "2-3"
