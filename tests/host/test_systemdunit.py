"""One unit as systemd will run it: files, drop-ins and masks in systemd's own order, conditions, what wants it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.trees import write
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdunit import in_force, is_wanted, mask_of, read_unit, words_of

UNIT = "tunectl-apply.service"
ETC, RUN, USR = "etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system"
WANTS = f"{ETC}/multi-user.target.wants"


def unit(root: Path) -> Sysroot:
    return Sysroot(str(root))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed (Debian: systemd)")
def test_files_are_read_in_systemds_own_order(tmp_path: Path) -> None:
    """systemd names every key that it does not know, in the order in which it reads them."""
    write(tmp_path, f"{ETC}/{UNIT}", "[Service]\nType=oneshot\nExecStart=/bin/true\nMark=1\n")
    write(tmp_path, f"{USR}/{UNIT}", "[Service]\nExecStart=/bin/true\nMark=2\n")
    for place in (
        f"{USR}/service.d/10-all.conf",
        f"{ETC}/service.d/50-same.conf",
        f"{USR}/tunectl-.service.d/40-prefix.conf",
        f"{RUN}/tunectl-.service.d/45-prefix.conf",
        f"{RUN}/{UNIT}.d/50-same.conf",
        f"{ETC}/{UNIT}.d/50-same.conf",
        f"{USR}/{UNIT}.d/60-late.conf",
        f"etc/systemd/system.control/{UNIT}.d/50-CPU.conf",
        f"{ETC}/{UNIT}.d/70-no.txt",
    ):
        write(tmp_path, place, "[Service]\nMark=3\n")
    write(tmp_path, "bin/true", "")
    (tmp_path / "bin/true").chmod(0o755)
    analyze = ["systemd-analyze", f"--root={tmp_path}", "verify", "--man=no", "--recursive-errors=no", UNIT]
    said = subprocess.run(analyze, capture_output=True, text=True).stderr
    systemds = re.findall(rf"^{tmp_path}/(\S+?):\d+: Unknown key", said, re.MULTILINE)
    assert len(systemds) > 5
    assert [one.file for one in read_unit(unit(tmp_path), UNIT) if one.key == "Mark"] == systemds


@pytest.mark.parametrize(("text", "link"), [("", ""), ("", "/dev/null")])
def test_a_mask(tmp_path: Path, text: str, link: str) -> None:
    write(tmp_path, f"{USR}/{UNIT}", "[Service]\nExecStart=/bin/true\n")
    assert mask_of(unit(tmp_path), UNIT) == ""
    (tmp_path / RUN).mkdir(parents=True)
    if link:
        (tmp_path / RUN / UNIT).symlink_to(link)
    else:
        (tmp_path / RUN / UNIT).write_text(text)
    assert mask_of(unit(tmp_path), UNIT) == f"{RUN}/{UNIT}"
    write(tmp_path, f"{ETC}/{UNIT}", "[Service]\nExecStart=/bin/true\n")  # a mask in /run does not hide what /etc has
    assert mask_of(unit(tmp_path), UNIT) == ""


def test_lists_begin_anew_and_lines_that_go_on_have_an_end(tmp_path: Path) -> None:
    write(tmp_path, f"{ETC}/{UNIT}", "[Service]\nExecStart=/a\nExecStartPre=/p\n")
    write(tmp_path, f"{ETC}/{UNIT}.d/x.conf", "[Service]\nExecStart=\nExecStart=/b \\\n# between\n  --c\nNice=5\n")
    said = read_unit(unit(tmp_path), UNIT)
    (start,) = in_force(said, "Service", "ExecStart")
    assert (words_of(start.value), start.line, start.last) == (["/b", "--c"], 3, 5)
    assert [one.value for one in in_force(said, "Service", "ExecStartPre")] == ["/p"]
    assert words_of("-@/bin/sh 'a b' 100%% $$x") == ["/bin/sh", "a b", "100%", "$x"]
    assert words_of("/bin/sh 'a") == []


def test_what_wants_it(tmp_path: Path) -> None:
    (tmp_path / WANTS).mkdir(parents=True)
    assert not is_wanted(unit(tmp_path), UNIT)
    (tmp_path / WANTS / UNIT).symlink_to(f"/{ETC}/{UNIT}")
    assert is_wanted(unit(tmp_path), UNIT)
    control = tmp_path / "etc/systemd/system.control/multi-user.target.wants"
    control.mkdir(parents=True)
    (control / UNIT).symlink_to("/dev/null")
    assert not is_wanted(unit(tmp_path), UNIT)
    (tmp_path / USR / "sysinit.target.requires").mkdir(parents=True)
    (tmp_path / USR / "sysinit.target.requires" / UNIT).symlink_to(f"../{UNIT}")
    assert is_wanted(unit(tmp_path), UNIT)
