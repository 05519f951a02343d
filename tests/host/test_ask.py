"""What systemd answers, as `systemctl show` prints it, and what a recording holds of it."""

import subprocess
from pathlib import Path

import pytest

from tests.trees import write
from tunectl.host.ask import ANSWERS, SHOW, VERSION, ask, parse_states, read_unit_state
from tunectl.host.recording import record
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import systemd_version

ANSWER = """\
EnvironmentFiles=/etc/default/irqbalance (ignore_errors=yes)
EnvironmentFiles=/etc/my files (ignore_errors=no)
Environment=IRQBALANCE_ARGS="--powerthresh=1 --debug" TOKEN=hunter2
ExecMainStatus=0
Result=success
Names=irqbalance.service
LoadState=loaded
ActiveState=active
FragmentPath=/usr/lib/systemd/system/irqbalance.service
DropInPaths="/etc/systemd/system/irqbalance.service.d/a b.conf" /etc/systemd/system/service.d/c.conf
UnitFileState=enabled
InactiveExitTimestampMonotonic=2047431
ActiveEnterTimestampMonotonic=2047431
ConditionResult=yes
ConditionTimestampMonotonic=2046912
AssertResult=yes
NeedDaemonReload=no
Job=

Names=graphical.target default.target
LoadState=loaded
ActiveState=inactive
FragmentPath=/usr/lib/systemd/system/graphical.target
DropInPaths=
UnitFileState=static
InactiveExitTimestampMonotonic=0
ActiveEnterTimestampMonotonic=0
ConditionResult=no
ConditionTimestampMonotonic=0
AssertResult=no
NeedDaemonReload=yes
Job=17
"""


def test_an_answer_has_a_type() -> None:
    states = parse_states(ANSWER)
    irqbalance, goal = states["irqbalance.service"], states["default.target"]
    assert irqbalance.environment_files == ("/etc/default/irqbalance", "/etc/my files")
    assert irqbalance.environment == ("IRQBALANCE_ARGS=--powerthresh=1 --debug", "TOKEN=hunter2")
    assert (irqbalance.entered_us, irqbalance.status, irqbalance.has_job) == (2047431, 0, False)
    assert (irqbalance.condition, goal.condition, goal.status) == (True, None, None)  # none of it was tried
    assert (goal.has_job, goal.needs_reload, goal.entered_us) == (True, True, 0)
    assert states["graphical.target"] == goal


def test_a_cut_answer_is_no_error() -> None:
    for length in range(len(ANSWER)):
        parse_states(ANSWER[:length])


def test_a_recorded_host_answers_as_it_did_and_tells_no_secret(tmp_path: Path) -> None:
    host = tmp_path / "host"
    write(host, "sys/devices/system/cpu/present", "0\n")
    write(host, f"{ANSWERS}/{SHOW.name}", ANSWER)
    record(Sysroot(str(host)), str(tmp_path / "host.tar.gz"))
    (tmp_path / "copy").mkdir()
    subprocess.run(["tar", "xf", str(tmp_path / "host.tar.gz"), "-C", str(tmp_path / "copy")], check=True)
    copy = Sysroot(str(tmp_path / "copy"))
    state = read_unit_state(copy, "irqbalance.service")
    assert state is not None
    assert state.environment == ("IRQBALANCE_ARGS=--powerthresh=1 --debug",)
    assert "hunter2" not in (ask(copy, SHOW) or "")
    assert read_unit_state(copy, "default.target") == parse_states(ANSWER)["default.target"]


@pytest.mark.parametrize(
    ("answer", "release", "version"),
    [
        ("systemd 259 (259~rc1-2)\n+PAM +AUDIT\n", "ID=debian\nVERSION_ID=12\n", 259),
        ("systemd 252 (252.39-1~deb12u2)\n", "ID=arch\n", 252),
        ("", "ID=fedora\nVERSION_ID=43\n", 258),
        ("", "ID=debian\nVERSION_ID=12\n", 0),
    ],
)
def test_systemd_says_its_version_and_where_it_was_not_asked_the_release_does(
    tmp_path: Path, answer: str, release: str, version: int
) -> None:
    write(tmp_path, f"{ANSWERS}/{VERSION.name}", answer)
    write(tmp_path, "etc/os-release", release)
    assert systemd_version(Sysroot(str(tmp_path))) == version


@pytest.mark.skipif(not Path(VERSION.argv[0]).exists(), reason="systemd is not installed (Debian: systemd)")
def test_systemctl_of_this_host_says_its_version() -> None:
    assert systemd_version(Sysroot("/")) > 200


def test_who_was_never_asked_has_not_answered(tmp_path: Path) -> None:
    """A recording of an earlier version, and a container."""
    root = Sysroot(str(tmp_path))
    assert (ask(root, SHOW), read_unit_state(root, "irqbalance.service")) == (None, None)
