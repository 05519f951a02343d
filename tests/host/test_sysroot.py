"""The one module that opens host files: what it follows, what it never leaves, what it keeps."""

import errno
import os
import socket
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from tests.trees import differences, picture
from tunectl.host.folder import open_folder
from tunectl.host.nonintrusive import TracingSysroot
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot
from tunectl.host.writable import TEMPORARY, WritableSysroot

IS_ROOT = os.geteuid() == 0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A recorded host, with a secret beside it."""
    (tmp_path / "secret").write_text("secret\n")
    root = tmp_path / "host"
    for path, text in {"etc/file": "text\n", "sys/real/value": "7\n", "proc/sys/vm/swappiness": "60\n"}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def number(error: pytest.ExceptionInfo[OSError]) -> int | None:
    return error.value.errno


# ---- reading


def test_a_value_is_without_its_newline(tree: Path) -> None:
    root = Sysroot(str(tree))
    assert root.read_value("etc/file") == "text"
    assert root.get("etc/file") == "text"
    assert root.read_text("etc/file") == "text\n"
    assert root.read_bytes("etc/file") == b"text\n"


@pytest.mark.slow
def test_a_long_file_is_read_to_its_end(tree: Path) -> None:
    root = Sysroot(str(tree))
    for size in (0, 1, 4095, 4096, 4097, 8192, 300_000):
        (tree / "etc/long").write_bytes((b"1," * size)[:size])
        assert len(root.read_value("etc/long")) == size
        assert len(root.read_text("etc/long")) == size


def test_a_list_or_file_without_an_end_is_refused(tree: Path) -> None:
    root = Sysroot(str(tree))
    (tree / "etc/long").write_bytes(b"1," * ((2 << 20) + 4096))
    with pytest.raises(OSError, match="longer than any list of CPUs"):
        root.read_value("etc/long")
    assert len(root.read_text("etc/long")) == (4 << 20) + 8192
    os.truncate(tree / "etc/long", (64 << 20) + 1)
    with pytest.raises(OSError, match="is larger than 64 MiB"):
        root.read_text("etc/long")


def test_bytes_of_names_are_escaped_and_a_file_of_nothing_else_is_refused_at_once(tree: Path) -> None:
    """4,096 interrupts with names of 64 bytes that are no text are 262,144 such bytes."""
    root = Sysroot(str(tree))
    (tree / "etc/long").write_bytes(b" 24: 0 0 eth0-" + b"\xff" * 64 * 4096 + "ß".encode() * (1 << 20))
    assert root.read_text("etc/long").count("\\xff") == 64 * 4096
    (tree / "etc/long").write_bytes(b"\xff" * ((1 << 20) + 1))
    with pytest.raises(OSError, match="is no text"):
        root.read_text("etc/long")
    (tree / "etc/long").write_bytes(bytes(range(256)) * (8 << 12))
    took_s = []
    for _ in range(5):  # on a virtual machine a pause counts, too
        begun = time.process_time()
        assert root.get_text("etc/long", "refused") == "refused"
        took_s.append(time.process_time() - begun)
    assert min(took_s) < 1


def test_a_number_that_no_host_has_is_refused(tree: Path) -> None:
    root = Sysroot(str(tree))
    (tree / "etc/long").write_bytes(b"a " + b"9" * 99 + b"\n")
    assert root.get_text("etc/long")
    (tree / "etc/long").write_bytes(b"a " + b"9" * 100 + b"\n")
    for read in (root.read_value, root.read_text):
        with pytest.raises(OSError, match="holds a number of more than 100 digits"):
            read("etc/long")
    assert len(root.read_bytes("etc/long")) == 103  # a before-image is brought back whatever it holds


def test_no_question_is_answered_outside_of_the_tree(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "below").mkdir(parents=True)
    (outside / "link").symlink_to("x")
    (outside / "file").write_text("theirs")
    (tree / "out").symlink_to(outside)
    root = Sysroot(str(tree))
    assert (root.readlink("out/link"), root.get("out/file"), list(root.walk("out"))) == ("", "", [])
    assert not root.exists("out/below")
    with pytest.raises(FileNotFoundError):
        root.lstat("out/file")
    with pytest.raises(FileNotFoundError):
        root.open("out/file")


def test_an_attribute_that_is_no_list_is_a_page_at_most(tree: Path) -> None:
    (tree / "etc/long").write_bytes(b"x" * 3_000_000)
    assert len(Sysroot(str(tree)).read_value("etc/long")) == 4096


def test_bytes_that_are_no_text_are_shown(tree: Path) -> None:
    (tree / "etc/file").write_bytes(b"a\xff\xfeb\0\n")
    assert Sysroot(str(tree)).read_value("etc/file") == "a\\xff\\xfeb\0"
    assert Sysroot(str(tree)).read_text("etc/file") == "a\\xff\\xfeb\0\n"


def test_what_is_not_there(tree: Path) -> None:
    root = Sysroot(str(tree))
    assert (root.get("no/such"), root.get("no/such", "default")) == ("", "default")
    assert (root.get_text("no/such", "x"), root.listdir("no/such"), root.exists("no/such")) == ("x", [], False)
    assert (root.mode("no/such"), root.readlink("no/such"), list(root.walk("no/such"))) == (None, "", [])
    with pytest.raises(FileNotFoundError):
        root.read_value("no/such")
    with pytest.raises(NotADirectoryError):
        root.read_value("etc/file/below")


def test_a_directory_is_no_file(tree: Path) -> None:
    with pytest.raises(IsADirectoryError):
        Sysroot(str(tree)).read_value("etc")
    assert Sysroot(str(tree)).get("etc") == ""


@pytest.mark.skipif(IS_ROOT, reason="root may read everything")
def test_what_may_not_be_read(tree: Path) -> None:
    (tree / "etc/file").chmod(0)
    with pytest.raises(PermissionError):
        Sysroot(str(tree)).read_value("etc/file")


@pytest.mark.parametrize(
    "target", ["../sys/real/value", "/sys/real/value", "/sys/again", "../sys/./real/../real/value"]
)
def test_links_inside_the_root_are_followed(tree: Path, target: str) -> None:
    os.symlink("real/value", tree / "sys/again")
    os.symlink(target, tree / "etc/link")
    assert Sysroot(str(tree)).read_value("etc/link") == "7"


@pytest.mark.parametrize("target", ["../../secret", "../../../../../../../../{outside}/secret", "/{outside}/secret"])
def test_links_out_of_the_root_lead_nowhere(tree: Path, tmp_path: Path, target: str) -> None:
    os.symlink(target.format(outside=str(tmp_path).lstrip("/")), tree / "etc/link")
    root = Sysroot(str(tree))
    assert root.get("etc/link") == ""
    assert root.resolve("etc/link").startswith(f"{tree}/")
    with pytest.raises(FileNotFoundError):
        root.read_value("etc/link")


@pytest.mark.parametrize("target", ["../..", "/{outside}"])
def test_linked_directories_do_not_leave_the_root(tree: Path, tmp_path: Path, target: str) -> None:
    os.symlink(target.format(outside=str(tmp_path).lstrip("/")), tree / "etc/out")
    root = Sysroot(str(tree))
    assert (root.get("etc/out/secret"), root.exists("etc/out/secret")) == ("", False)


@pytest.mark.parametrize("target", ["loop", "/etc/loop", "other"])
def test_links_in_a_circle_end(tree: Path, target: str) -> None:
    os.symlink(target, tree / "etc/loop")
    os.symlink("loop", tree / "etc/other")
    with pytest.raises(OSError) as error:
        Sysroot(str(tree)).read_value("etc/loop")
    assert number(error) == errno.ELOOP
    assert Sysroot(str(tree)).get("etc/loop") == ""


def test_dots_stay_below_the_root(tree: Path) -> None:
    root = Sysroot(str(tree))
    assert root.resolve("../../../etc/file") == f"{tree}/etc/file"
    assert root.resolve("etc/../etc/./file") == f"{tree}/etc/file"


def opened(tree: Path, where: str, path: str) -> tuple[Sysroot, str]:
    """The same file on a recorded host and on the running one."""
    return (Sysroot(str(tree)), path) if where == "recorded" else (Sysroot(), f"{tree}/{path}".lstrip("/"))


@pytest.mark.parametrize("where", ["recorded", "running"])
def test_a_fifo_does_not_block(tree: Path, where: str) -> None:
    """Nor does a link to one, wherever it lies."""
    os.mkfifo(tree / "etc/fifo")
    os.symlink("fifo", tree / "etc/link")
    started = time.monotonic()
    for name in ("etc/fifo", "etc/link"):
        root, path = opened(tree, where, name)
        for read in (root.read_value, root.read_bytes):
            with pytest.raises(OSError, match="not a regular file"):
                read(path)
        assert (root.get(path, "x"), root.get_text(path, "x")) == ("x", "x")
    assert time.monotonic() - started < 60


def test_what_systemd_masks_reads_as_empty_and_no_other_device_does(tree: Path) -> None:
    for name in ("null", "zero"):
        os.symlink(f"/dev/{name}", tree / f"etc/{name}.service")
    root, _ = opened(tree, "running", "")
    assert root.read_bytes(f"{tree}/etc/null.service".lstrip("/")) == b""
    with pytest.raises(OSError, match="not a regular file"):
        root.read_bytes(f"{tree}/etc/zero.service".lstrip("/"))


@pytest.mark.parametrize("where", ["recorded", "running"])
def test_a_directory_is_still_opened_and_an_ordinary_file_read(tree: Path, where: str) -> None:
    root, path = opened(tree, where, "etc")
    os.close(root.open(path))
    root, path = opened(tree, where, "etc/file")
    assert root.read_text(path) == "text\n"


@pytest.mark.parametrize("where", ["recorded", "running"])
def test_a_socket_is_not_absent(tree: Path, where: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "etc/socket"))
    root, path = opened(tree, where, "etc/socket")
    with pytest.raises(OSError, match="not a regular file") as error:
        root.read_value(path)
    assert number(error) not in ABSENT_ERRNOS


def test_what_is_no_regular_file_is_not_replaced(tree: Path) -> None:
    os.mkfifo(tree / "etc/fifo")
    os.symlink("fifo", tree / "etc/link")
    before = picture(tree)
    for path in ("etc/fifo", "etc/link", "etc"):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            WritableSysroot(str(tree)).replace_file(path, b"new", None)
    assert not differences(before, tree)


def test_the_root_may_itself_be_a_link(tree: Path, tmp_path: Path) -> None:
    os.symlink(tree, tmp_path / "link")
    root = Sysroot(str(tmp_path / "link"))
    assert root.root == str(tree)
    assert root.read_value("etc/file") == "text"
    assert root.path("etc/file") == f"{tree}/etc/file"


def test_only_slash_is_the_running_host(tree: Path) -> None:
    assert Sysroot("/").live
    assert Sysroot("//").live
    assert not Sysroot(str(tree)).live
    assert Sysroot("/").path("proc/version") == "/proc/version"
    assert Sysroot("/").read_value("proc/sys/kernel/ostype") == "Linux"


def test_walk_lists_files_and_links_in_order(tree: Path) -> None:
    os.symlink("..", tree / "etc/up")
    (tree / "etc/a").mkdir()
    (tree / "etc/a/z").touch()
    assert list(Sysroot(str(tree)).walk("etc")) == ["etc/a/z", "etc/file", "etc/up"]


def test_a_dangling_link_exists(tree: Path) -> None:
    os.symlink("nowhere", tree / "etc/link")
    root = Sysroot(str(tree))
    assert root.exists("etc/link")
    assert root.readlink("etc/link") == "nowhere"
    assert stat.S_ISLNK(root.lstat("etc/link").st_mode)


# ---- writing


def test_reading_roots_cannot_write(tree: Path) -> None:
    assert [name for name in dir(Sysroot) if name.startswith(("write", "replace", "make", "remove", "sweep"))] == []


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o444])
def test_a_replaced_file_keeps_its_mode(tree: Path, mode: int) -> None:
    (tree / "etc/file").chmod(mode)
    before = (tree / "etc/file").stat().st_ino
    WritableSysroot(str(tree)).replace_file("etc/file", b"new\n", None)
    assert (tree / "etc/file").read_bytes() == b"new\n"
    assert stat.S_IMODE((tree / "etc/file").stat().st_mode) == mode
    assert (tree / "etc/file").stat().st_ino != before
    assert sorted(path.name for path in (tree / "etc").iterdir()) == ["file"]


@pytest.mark.skipif(not IS_ROOT, reason="only root may give files away")
def test_a_replaced_file_keeps_its_owner(tree: Path) -> None:
    os.chown(tree / "etc/file", 1234, 4321)
    WritableSysroot(str(tree)).replace_file("etc/file", b"new\n", None)
    assert ((tree / "etc/file").stat().st_uid, (tree / "etc/file").stat().st_gid) == (1234, 4321)


def test_a_new_file_is_readable_by_all_whatever_the_umask(tree: Path) -> None:
    old = os.umask(0o077)
    try:
        WritableSysroot(str(tree)).replace_file("etc/new", b"x", None)
        WritableSysroot(str(tree)).make_directory("etc/d")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tree / "etc/new").stat().st_mode) == 0o644
    assert stat.S_IMODE((tree / "etc/d").stat().st_mode) == 0o755


def test_a_mode_may_be_given(tree: Path) -> None:
    WritableSysroot(str(tree)).replace_file("etc/file", b"x", 0o640)
    assert stat.S_IMODE((tree / "etc/file").stat().st_mode) == 0o640


def test_a_reader_keeps_the_file_it_opened(tree: Path) -> None:
    with (tree / "etc/file").open() as file:
        WritableSysroot(str(tree)).replace_file("etc/file", b"new\n", None)
        assert file.read() == "text\n"


def test_a_value_of_a_recorded_host_is_written_whole(tree: Path) -> None:
    WritableSysroot(str(tree)).write_value("proc/sys/vm/swappiness", "1\n")
    assert (tree / "proc/sys/vm/swappiness").read_text() == "1\n"


def test_a_value_that_is_not_there_is_not_made(tree: Path) -> None:
    before = picture(tree)
    with pytest.raises(FileNotFoundError):
        WritableSysroot(str(tree)).write_value("proc/sys/vm/nothing", "1\n")
    assert not differences(before, tree)


def test_a_value_behind_a_link_is_written_where_it_lies(tree: Path) -> None:
    os.symlink("../sys/real", tree / "etc/real")
    WritableSysroot(str(tree)).write_value("etc/real/value", "8\n")
    assert (tree / "sys/real/value").read_text() == "8\n"
    assert (tree / "etc/real").is_symlink()


def test_no_write_leaves_the_root(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "value").write_text("1\n")
    os.symlink(outside, tree / "etc/out")
    os.symlink(outside / "value", tree / "etc/value")
    before = picture(outside)
    root = WritableSysroot(str(tree))
    with pytest.raises(FileNotFoundError):
        root.write_value("etc/out/value", "2\n")
    with pytest.raises(FileNotFoundError):
        root.write_value("etc/value", "2\n")
    with pytest.raises(FileNotFoundError):
        root.replace_file("etc/out/new", b"", None)
    with pytest.raises(FileNotFoundError):
        root.make_link("etc/out/link", "x")
    with pytest.raises(FileNotFoundError):
        root.make_directory("etc/out/dir")
    root.remove("etc/out/value")
    root.sweep("etc/out/value")
    assert root.remove_directory("etc/out/dir")
    with pytest.raises(FileNotFoundError):
        root.replace_file("etc/value", b"ours\n", None)
    assert not differences(before, outside)


def test_a_replaced_link_stays_and_what_it_points_to_is_replaced(tree: Path) -> None:
    os.symlink("/sys/real/value", tree / "etc/link")
    WritableSysroot(str(tree)).replace_file("etc/link", b"8\n", None)
    assert (tree / "etc/link").is_symlink()
    assert (tree / "sys/real/value").read_text() == "8\n"


def test_a_temporary_that_is_a_link_is_not_followed(tree: Path, tmp_path: Path) -> None:
    os.symlink(tmp_path / "secret", tree / f"etc/file{TEMPORARY}")
    WritableSysroot(str(tree)).replace_file("etc/file", b"new", None)
    assert (tmp_path / "secret").read_text() == "secret\n"
    assert (tree / "etc/file").read_text() == "new"
    assert not (tree / "etc/file").is_symlink()


def test_links_are_made_and_replaced(tree: Path) -> None:
    root = WritableSysroot(str(tree))
    root.make_link("etc/link", "/one")
    root.make_link("etc/link", "/two")
    assert os.readlink(tree / "etc/link") == "/two"
    root.make_link("etc/file", "/three")
    assert os.readlink(tree / "etc/file") == "/three"
    assert sorted(path.name for path in (tree / "etc").iterdir()) == ["file", "link"]


def test_removing(tree: Path) -> None:
    root = WritableSysroot(str(tree))
    root.remove("etc/file")
    root.remove("etc/file")
    assert root.remove_directory("etc")
    assert root.remove_directory("etc")
    assert not root.remove_directory("proc")
    assert not (tree / "etc").exists()
    assert (tree / "proc/sys/vm/swappiness").exists()


def test_what_a_killed_write_left_is_swept(tree: Path) -> None:
    before = picture(tree)
    (tree / f"etc/file{TEMPORARY}").write_text("half")
    os.symlink("nowhere", tree / f"etc/link{TEMPORARY}")
    root = WritableSysroot(str(tree))
    for path in ("etc/file", "etc/link", "etc/other", "no/such"):
        root.sweep(path)
    assert not differences(before, tree)


def test_a_leftover_temporary_is_written_over(tree: Path) -> None:
    (tree / f"etc/file{TEMPORARY}").write_text("half of something much longer")
    WritableSysroot(str(tree)).replace_file("etc/file", b"new\n", None)
    assert (tree / "etc/file").read_text() == "new\n"
    assert sorted(path.name for path in (tree / "etc").iterdir()) == ["file"]


# ---- many directories with the same files


def test_a_folder_reads_what_the_root_reads(tree: Path) -> None:
    for name, text in {"1": "0-3\n", "2": "0-3\n", "3": "\n", "4": "a\xff\n"}.items():
        (tree / "proc/irq" / name).mkdir(parents=True)
        (tree / "proc/irq" / name / "mask").write_text(text, encoding="latin-1")
    (tree / "proc/irq/2/mask").chmod(0o444)
    root = Sysroot(str(tree))
    with open_folder(root, "proc/irq") as folder:
        assert sorted(folder.names) == ["1", "2", "3", "4"]
        for name in folder.names:
            assert folder.read_value(name, "mask") == root.read_value(f"proc/irq/{name}/mask")
        with pytest.raises(FileNotFoundError):
            folder.read_value("1", "other")
        with pytest.raises(FileNotFoundError):
            folder.read_value("5", "mask")


def test_a_folder_follows_links_inside_the_host_only(tree: Path) -> None:
    for name in ("1", "2", "3"):
        (tree / "proc/irq" / name).mkdir(parents=True)
        (tree / "proc/irq" / name / "mask").write_text(f"{name}\n")
    outside = tree.parent / "outside"
    outside.mkdir()
    (outside / "mask").write_text("secret\n")
    (tree / "proc/irq/4").symlink_to("3")
    (tree / "proc/irq/5").symlink_to(outside)
    (tree / "proc/irq/6").symlink_to("../../../outside")
    (tree / "proc/irq/1/mask").unlink()
    (tree / "proc/irq/1/mask").symlink_to(tree.parent / "secret")
    (tree / "proc/irq/2/mask").unlink()
    (tree / "proc/irq/2/mask").symlink_to("../3/mask")
    with open_folder(Sysroot(str(tree)), "proc/irq") as folder:
        assert [folder.read_value(name, "mask") for name in ("2", "3", "4")] == ["3", "3", "3"]
        for name in ("1", "5", "6"):
            with pytest.raises(FileNotFoundError):
                folder.read_value(name, "mask")


def test_an_absent_folder_is_empty(tree: Path) -> None:
    for path in ("no/such", "etc/file"):
        with open_folder(Sysroot(str(tree)), path) as folder:
            assert (folder.names, folder.problem) == ([], None)


@pytest.mark.parametrize("call", ["open", "scandir"])
def test_a_folder_that_cannot_be_listed_is_not_absent(tree: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    (tree / "proc/irq/1").mkdir(parents=True)
    real = getattr(os, call)

    def fails(*args: Any, **more: Any) -> Any:
        if call == "scandir" or (isinstance(args[0], str) and "irq" in args[0]):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(*args, **more)

    monkeypatch.setattr(os, call, fails)
    with open_folder(Sysroot(str(tree)), "proc/irq") as folder:
        assert folder.names == []
        assert folder.problem is not None
        assert folder.problem.errno == errno.EIO


def test_a_folder_reads_each_file_once_in_one_look_and_anew_in_the_next(tree: Path) -> None:
    mask = tree / "proc/irq/1/mask"
    mask.parent.mkdir(parents=True)
    root = Sysroot(str(tree))
    shown = []
    for text in ("0-3", "0-1"):
        mask.write_text(f"{text}\n")
        with root.one_look():
            with open_folder(root, "proc/irq") as folder:
                shown.append(folder.read_value("1", "mask"))
            mask.write_text("2\n")
            with open_folder(root, "proc/irq") as again:
                shown.append(again.read_value("1", "mask"))
    with open_folder(root, "proc/irq") as outside:
        shown.append(outside.read_value("1", "mask"))
    assert shown == ["0-3", "0-3", "0-1", "0-1", "2"]


def test_each_knob_is_seen_to_open_what_it_rests_on_though_another_read_it_in_this_look(tree: Path) -> None:
    (tree / "proc/irq/1").mkdir(parents=True)
    (tree / "proc/irq/1/mask").write_text("0-3\n")
    root = TracingSysroot(str(tree), frozenset())
    seen = []
    with root.one_look():
        for _ in range(2):
            root.begin()
            with open_folder(root, "proc/irq") as folder:
                folder.read_value("1", "mask")
            seen.append(list(root.files))
    assert seen == [["proc/irq/1/mask"]] * 2


def test_a_folder_of_the_running_host() -> None:
    with open_folder(Sysroot("/"), "proc/self") as folder:
        assert "net" in folder.names
        assert folder.read_value("attr", "../comm") == Sysroot("/").read_value("proc/self/comm")
        with pytest.raises(FileNotFoundError):
            folder.read_value("net", "no-such-file")


def test_one_look_reads_configuration_once_and_the_next_one_anew(tmp_path: Path) -> None:
    root = Sysroot(str(tmp_path))
    for path in ("etc/systemd/unit.d/one.conf", "proc/sys/one"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("1\n")
    for look in (1, 2):
        with root.one_look():
            assert len(root.names("etc/systemd/unit.d")) == look
            for path in ("etc/systemd/unit.d/one.conf", "proc/sys/one"):
                assert root.read_text(path) == f"{look}\n"
                (tmp_path / path).write_text(f"{look + 1}\n")
            assert not root.exists(f"etc/systemd/unit.d/{look}.conf")
            (tmp_path / f"etc/systemd/unit.d/{look}.conf").touch()
            assert len(root.listdir("etc/systemd/unit.d")) == look
            assert root.read_text("etc/systemd/unit.d/one.conf") == f"{look}\n"
            assert root.read_text("proc/sys/one") == f"{look + 1}\n"
    assert len(root.names("etc/systemd/unit.d")) == 3


def test_what_is_not_there_is_not_there_in_one_look(tmp_path: Path) -> None:
    root = Sysroot(str(tmp_path))
    (tmp_path / "etc/a").mkdir(parents=True)
    (tmp_path / "etc/a/file").touch()
    (tmp_path / "etc/link").symlink_to("/etc/a")
    with root.one_look():
        assert root.names("etc/link") == root.names("etc/a") == ["file"]
        for path in ("etc/b", "etc/a/c/d", "run/none", "usr/lib/none/below"):
            assert root.listdir(path) == []
            with pytest.raises(FileNotFoundError):
                root.names(path)
        with pytest.raises(NotADirectoryError):
            root.names("etc/a/file")
        assert [root.exists(f"etc/a/{name}") for name in ("file", "c", "..", ".")] == [True, False, True, True]


def test_what_is_worked_out_once_has_its_refusals_noted_each_time(tmp_path: Path) -> None:
    root = Sysroot(str(tmp_path))
    asked: list[int] = []

    def work() -> int:
        asked.append(1)
        root._note("etc/secret", PermissionError(errno.EACCES, "denied"))
        return len(asked)

    with root.one_look():
        for _ in range(2):
            with root.noting() as denied:
                assert root.once("it", work) == 1
            assert str(denied) == "/etc/secret: Permission denied"
    assert root.once("it", work) == 2
