"""A file that another file names: whose it may be, and what on the way to it is never opened."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.places import needs_mounts
from tests.nobody import as_user, needs_root
from tests.starter import NOBODY
from tunectl.bootloader.grubsettings import source_live
from tunectl.host.refusals import AS_ROOT, OWNED, NotFollowedError
from tunectl.host.sysroot import Sysroot

LARGEST = 1 << 10
TEXT = "sysctl -w vm.swappiness=60\n"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of root's that all may look into; pytest's own are below /dev, where nothing is followed."""
    place = Path(tempfile.mkdtemp(prefix="tunectl-named-", dir="/var/tmp"))
    place.chmod(0o755)
    (place / "opt").mkdir()
    (place / "opt/own").write_text(TEXT)
    (place / "home").mkdir()
    if os.geteuid() == 0:
        os.chown(place / "home", NOBODY, NOBODY)
    yield place
    shutil.rmtree(place)


@pytest.fixture(params=["live", "recorded"])
def root(request: pytest.FixtureRequest, place: Path) -> Sysroot:
    """This machine, or the directory as a recorded host."""
    if request.param == "live" and os.geteuid():
        pytest.skip("on this machine only root's own files are followed, and this user cannot make one")
    return Sysroot("/" if request.param == "live" else str(place))


def named(root: Sysroot, place: Path, path: str) -> str:
    return f"{place}/{path}"[1:] if root.live else path


def read(root: Sysroot, place: Path, path: str) -> str:
    """What is read of a file in the directory; or, in brackets, why it is not."""
    try:
        return root.read_named(named(root, place, path), LARGEST).decode()
    except OSError as error:
        return f"[{error.strerror}]".replace(str(place), "")


def test_roots_own_file_is_read(root: Sysroot, place: Path) -> None:
    (place / "opt/absolute").symlink_to("/" + named(root, place, "opt/own"))
    (place / "opt/relative").symlink_to("../opt/./absolute")
    (place / "usr").symlink_to("opt")
    (place / "opt/empty").touch()
    for path in ("opt/own", "opt/absolute", "opt/relative", "usr/relative", "opt/../opt//own"):
        assert read(root, place, path) == TEXT
    assert read(root, place, "opt/empty") == ""
    assert root.get_named(named(root, place, "opt/own")) == TEXT
    (place / "opt/own").chmod(0o664)  # for a group that is root's own
    assert read(root, place, "opt/own") == TEXT


def test_what_is_no_file_or_too_large_is_not_opened(root: Sysroot, place: Path) -> None:
    os.mkfifo(place / "opt/fifo")
    (place / "opt/loop").symlink_to("loop")
    (place / "opt/huge").touch()
    os.truncate(place / "opt/huge", 1 << 40)
    for name in ("proc/kmsg", "dev/zero", "sys/kernel/notes"):
        (place / "opt" / name.rpartition("/")[2]).symlink_to(f"/{name}")
        assert read(root, place, f"opt/{name.rpartition('/')[2]}") == (
            f"[not followed, because it is in /{name.partition('/')[0]}]"
        )
    assert read(root, place, "opt/fifo") == "[not a regular file]"
    assert read(root, place, "opt/huge") == "[is larger than 1 KiB]"
    assert read(root, place, "opt/loop") == f"[{os.strerror(errno.ELOOP)}]"
    for path in ("opt/gone", "opt/own/below", "opt/a\0b"):
        assert read(root, place, path) in (f"[{os.strerror(number)}]" for number in (errno.ENOENT, errno.ENOTDIR))
        assert root.get_named(named(root, place, path)) == ""
    with pytest.raises(IsADirectoryError):
        root.read_named(named(root, place, "opt"), LARGEST)
    for way in ("proc/kmsg", "//proc/../proc/kmsg", "../../proc/kmsg", "opt/../../../../../proc/kmsg"):
        with pytest.raises(OSError, match="it is in /proc"):
            root.read_named(way, LARGEST)


@needs_root
def test_what_a_user_chooses_is_not_opened_and_said_to_be_his(root: Sysroot, place: Path) -> None:
    (place / "tmp").mkdir()
    (place / "tmp").chmod(0o1777)
    as_user(
        f"cd {place}; mkfifo home/fifo; echo x > home/save; echo x > tmp/save; ln -s ../opt/own home/link\n"
        f"ln -s ../opt/own tmp/link; truncate -s 1G home/huge; ln -s .. home/up; mkdir tmp/his"
    )
    (place / "home/roots").write_text(TEXT)
    (place / "tmp/his/roots").write_text(TEXT)
    (place / "tmp/roots").write_text(TEXT)
    (place / "opt/his").write_text(TEXT)
    os.chown(place / "opt/his", NOBODY, -1)
    (place / "opt/linked").symlink_to("../home/save")
    (place / "opt/open").mkdir()
    (place / "opt/open/file").write_text(TEXT)
    for mode, group in ((0o777, 0), (0o775, NOBODY)):
        os.chown(place / "opt/open", 0, group)
        (place / "opt/open").chmod(mode)
        assert read(root, place, "opt/open/file") == (
            "[not followed, because /opt/open may be written by others than root]"
        )
    (place / "opt/written").write_text(TEXT)
    (place / "opt/written").chmod(0o666)
    assert read(root, place, "opt/written") == (
        "[not followed, because /opt/written may be written by others than root]"
    )
    for path, whose in {
        "home/save": "home",
        "home/roots": "home",
        "home/link": "home",
        "home/up/opt/own": "home",
        "opt/linked": "home",
        "opt/his": "opt/his",
        "tmp/save": "tmp/save",
        "tmp/link": "tmp/link",
        "tmp/his/roots": "tmp/his",
    }.items():
        why = f"not followed, because /{whose} belongs to UID {NOBODY}, not to root"
        assert read(root, place, path) == f"[{why}]"
        with root.noting() as denied, pytest.raises(NotFollowedError):
            root.check_named(named(root, place, path))
        assert str(denied).replace(str(place), "") == f"/{path}: {why}"
        assert denied.fix == OWNED
    assert read(root, place, "home/fifo") == "[not a regular file]"
    assert read(root, place, "home/huge") == "[is larger than 1 KiB]"
    assert read(root, place, "tmp/roots") == TEXT  # in a sticky directory it stays what it is


@needs_root
def test_the_owner_of_a_recorded_host_counts_as_root_and_nobody_else(place: Path) -> None:
    (place / "home/own").write_text(TEXT)
    (place / "home/roots").write_text(TEXT)
    (place / "home/another").write_text(TEXT)
    os.chown(place / "home/own", NOBODY, NOBODY)
    os.chown(place / "home/another", NOBODY - 1, NOBODY)
    host, home = Sysroot(str(place / "home")), place / "home"
    assert [read(host, home, path) for path in ("own", "roots")] == [TEXT, TEXT]
    assert f"/another belongs to UID {NOBODY - 1}" in read(host, home, "another")


def in_a_child_of_nobody(work: Callable[[], str]) -> str:
    """What a process of nobody's says that has all of this one imported: it need not be able to read our files."""
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(write_end, work().encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@needs_root
def test_who_is_not_root_has_the_same_answer_or_is_denied(place: Path) -> None:
    (place / "opt/closed").write_text(TEXT)
    (place / "opt/closed").chmod(0o600)
    as_user(f"echo x > {place}/home/own")

    def look() -> str:
        lines = []
        for path in ("opt/own", "home/own", "opt/closed"):
            root = Sysroot("/")
            with root.noting() as denied:
                text = root.get_named(f"{str(place)[1:]}/{path}")
            lines.append(f"{len(text)}|{denied}|{denied.fix == AS_ROOT}")
        return "\n".join(lines)

    said = in_a_child_of_nobody(look).replace(str(place), "").splitlines()
    assert said == [
        f"{len(TEXT)}||True",
        f"0|/home/own: not followed, because /home belongs to UID {NOBODY}, not to root|False",
        "0|/opt/closed: Permission denied|True",
    ]


@needs_mounts
def test_what_the_kernel_makes_up_is_empty_wherever_it_is_mounted(place: Path) -> None:
    (place / "opt/proc").mkdir()
    script = f"""
import sys
from tunectl.host.sysroot import Sysroot
sys.exit(Sysroot("/").read_named("{str(place)[1:]}/opt/proc/kmsg", 1 << 20) != b"")
"""
    mounts = f"mount -t proc proc {place}/opt/proc; exec {sys.executable} -c '{script}'"
    assert subprocess.run(["unshare", "-m", "sh", "-ec", mounts], timeout=60).returncode == 0


@pytest.mark.slow
@needs_mounts
def test_no_shell_reads_settings_that_a_user_may_write(place: Path) -> None:
    (place / "opt/grub").write_text("GRUB_CMDLINE_LINUX=$(echo a)\n")
    script = "from tunectl.host.sysroot import Sysroot; from tunectl.bootloader.grubsettings import source_live\n"
    script += "found = source_live(Sysroot()); print(found.problem or found.linux)"
    mounts = f"mkdir -p {place}/etc; cp -a /etc/. {place}/etc; rm -rf {place}/etc/default/grub*; "
    mounts += (
        f"mkdir -p {place}/etc/default; cp -p {place}/opt/grub {place}/etc/default; mount --bind {place}/etc /etc; "
    )
    argv = ["unshare", "-m", "sh", "-ec", f"{mounts}exec {sys.executable} -c '{script}'"]
    assert subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout == "a\n"
    os.chown(place / "opt/grub", NOBODY, -1)
    assert subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout == (
        "needs a shell, and /etc/default/grub: not followed, because /etc/default/grub belongs to "
        f"UID {NOBODY}, not to root\n"
    )
    assert source_live(Sysroot(str(place))).problem == "needs a shell, and files of a recorded host are never run"
