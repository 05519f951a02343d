"""Who may write a file that root obeys: every directory and link on the way to it counts."""

import os
import stat
from pathlib import Path

import pytest

from tests.nobody import needs_root
from tunectl.host.refusals import doubt_of, mending
from tunectl.host.sysroot import Sysroot

NOBODY = 65534
OTHERS = "may be written by others than root"


def status(kind: int, mode: int, uid: int = 0) -> os.stat_result:
    return os.stat_result((kind | mode, 1, 1, 1, uid, 5, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("kind", "mode", "uid", "why", "mends"),
    [
        (stat.S_IFREG, 0o644, 0, None, ""),
        (stat.S_IFREG, 0o640, 7, None, ""),  # who runs this is trusted
        (stat.S_IFREG, 0o664, 0, OTHERS, "sudo chmod go-w '/a b'"),
        (stat.S_IFREG, 0o646, 7, OTHERS, "sudo chmod go-w '/a b'"),
        (stat.S_IFREG, 0o644, 8, "belongs to UID 8, not to root", "sudo chown root: '/a b'"),
        (stat.S_IFREG, 0o666, 8, "belongs to UID 8, not to root", "sudo chown root: '/a b' && sudo chmod go-w '/a b'"),
        (stat.S_IFDIR, 0o755, 0, None, ""),
        (stat.S_IFDIR, 0o775, 0, OTHERS, "sudo chmod go-w '/a b'"),
        (stat.S_IFDIR, 0o1777, 0, None, ""),  # as /tmp
        (stat.S_IFDIR, 0o755, 8, "belongs to UID 8, not to root", ""),  # perhaps a home
        (stat.S_IFDIR, 0o1777, 8, "belongs to UID 8, not to root", ""),
        (stat.S_IFLNK, 0o777, 0, None, ""),
        (stat.S_IFLNK, 0o777, 8, "belongs to UID 8, not to root", ""),
    ],
)
def test_one_place(kind: int, mode: int, uid: int, why: str | None, mends: str) -> None:
    doubt = doubt_of("/a b", status(kind, mode, uid), (0, 7))
    assert (doubt and doubt.why, (doubt and doubt.mends) or "") == (why, mends)


def test_a_trusted_group_may_write() -> None:
    assert doubt_of("/a b", status(stat.S_IFREG, 0o664), (0,), (0, 5)) is None
    assert doubt_of("/a b", status(stat.S_IFREG, 0o666), (0,), (0, 5)) is not None


def test_a_file_of_root_is_in_no_doubt() -> None:
    assert Sysroot().doubts("/etc/passwd", (0,)) == []
    with pytest.raises(FileNotFoundError):
        Sysroot().doubts("/etc/no-such-file", (0,))


@needs_root
def test_every_link_and_directory_on_the_way_counts(public: Path) -> None:
    """What nobody can swap chooses the file, whoever owns the file itself."""
    (public / "safe").mkdir()
    (public / "safe/host.toml").touch()
    (public / "home").mkdir()
    os.symlink("../safe/host.toml", public / "home/link")
    os.symlink("home/../home/link", public / "twice")
    assert Sysroot().doubts(f"{public}/twice", (0,)) == []
    os.chown(public / "home/link", NOBODY, NOBODY, follow_symlinks=False)
    assert [str(one) for one in Sysroot().doubts(f"{public}/twice", (0,))] == [
        f"{public}/home/link belongs to UID 65534, not to root"
    ]
    (public / "safe").chmod(0o777)
    places = [one.place for one in Sysroot().doubts(f"{public}/twice", (0,))]
    assert places == [f"{public}/home/link", f"{public}/safe"]
    assert (
        mending(Sysroot().doubts(f"{public}/twice", (0,))) == "keep it where only root writes, such as in /etc/tunectl"
    )
    assert mending(Sysroot().doubts(f"{public}/safe/host.toml", (0,))) == f"sudo chmod go-w {public}/safe"


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    os.symlink("b", tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    with pytest.raises(OSError, match="symbolic links"):
        Sysroot().doubts(str(tmp_path / "a"), (os.geteuid(),))
