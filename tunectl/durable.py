"""Files of our own: the one way to replace one so that it survives a loss of power, and the one way to read one whole.

A file is written beside its place, synced, renamed over it, and the directory is synced. fsync(2) of a file does not
make its name durable; fsync(2) of the directory does. A boot loader reads no journal: what it is to find has to leave
that, too.

A record in a file is one line of JSON with its checksum: the journal's, and those in the monitor's store. A file that
somebody else may have put there or named is read up to a size, and nobody waits for ever.
"""

import errno
import fcntl
import os
import stat
import sys
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

NOT_REGULAR = "not a regular file"
_CHUNK = 1 << 20
_FIRST_S, _ALL_S = 5.0, 3600.0  # a host that is asked through a pipe may measure for a while before it answers
_MOST_LINKS = 40  # MAXSYMLINKS of the kernel
_CHECKPOINT = 0x4004662B  # EXT4_IOC_CHECKPOINT, _IOW('f', 43, __u32)
# No ext4, one without a journal, a kernel before 5.14, or somebody who is not root.
_NO_CHECKPOINT = (errno.ENOTTY, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL, errno.EPERM)


def replace_file(
    path: str,
    data: bytes,
    *,
    mode: int = 0o644,
    owner: tuple[int, int] | None = None,
    beside: str = "",
    durable: bool = True,
) -> None:
    """Replaces a file as a whole: after any crash there is the old one or the new one. A link is itself replaced.

    Only a regular file is replaced, or a link to one: a device that was replaced would be gone for the whole machine.
    `owner` is (uid, gid). `beside` is the name to write to first: a caller
    that lets in one writer at a time gives one, so that it finds what a kill left; other callers get a name of their
    own, because two may write at once. Without `durable` nothing is synced: for a file that is written every few
    seconds. OSError where it fails. Nothing is left beside the file then, but the new file may stand already: when
    only the last step, the sync of the directory, failed.
    """
    require_regular(path)
    fd, temporary = _create(path, beside)
    try:
        try:
            write_all(fd, data)
            if owner:
                os.fchown(fd, *owner)
            os.fchmod(fd, mode)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if durable:
        sync_directory(os.path.dirname(path))


def followed(path: str) -> str:
    """Where a file is that a user named, its links followed. OSError for a link that is neither ours nor root's.

    In a directory where all may write, anybody can make a link of that name to a file of ours.
    """
    place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    for _ in range(_MOST_LINKS):
        try:
            about = os.lstat(place)
        except FileNotFoundError:
            return place
        if not stat.S_ISLNK(about.st_mode):
            return place
        if about.st_uid not in (0, os.geteuid()):
            raise OSError(errno.EPERM, f"{place} is a link of another user (uid {about.st_uid})")
        target = os.path.join(os.path.dirname(place), os.readlink(place))
        place = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def require_regular(place: str | int) -> None:
    """OSError where a path, links followed, or an open file is no regular file. A path may lead to nothing."""
    try:
        mode = os.stat(place).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, NOT_REGULAR)


def _create(path: str, beside: str) -> tuple[int, str]:
    """A new file to write to, private until it is complete: descriptor and path."""
    if not beside:
        import tempfile  # slow to import, and most commands write nothing

        return tempfile.mkstemp(prefix=".tunectl-", dir=os.path.dirname(os.path.abspath(path)))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC  # what stands there may be anybody's, and anything
    try:
        return os.open(beside, flags, 0o600), beside
    except FileExistsError:
        os.unlink(beside)
        return os.open(beside, flags, 0o600), beside


def write_all(fd: int, data: bytes) -> None:
    """All of it, in as many write(2)s as that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def replace_link(path: str, target: str, *, beside: str) -> None:
    """Puts a symbolic link in place as replace_file() does a file. OSError, under the same rule."""
    with suppress(FileNotFoundError):
        os.unlink(beside)
    try:
        os.symlink(target, beside)
        os.rename(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    sync_directory(os.path.dirname(path))


def rename(path: str, to: str) -> None:
    """Gives a file another name in the same directory. OSError; the new name may stand all the same."""
    os.rename(path, to)
    sync_directory(os.path.dirname(to))


def make_directory(path: str) -> None:
    """One directory, mode 0755 whatever the umask; its parent must exist. OSError, FileExistsError among them."""
    os.mkdir(path, 0o755)
    os.chmod(path, 0o755)
    sync_directory(os.path.dirname(path))


def make_directories(path: str) -> tuple[str, ...]:
    """A directory with its parents: those that had to be made. OSError, and then none of them stays."""
    missing: list[str] = []
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        missing.append(path)
        path = os.path.dirname(path)
    made: list[str] = []
    try:
        for each in reversed(missing):
            with suppress(FileExistsError):  # another tunectl was quicker: then it is that one's to remember
                os.mkdir(each, 0o755)
                made.append(each)
                os.chmod(each, 0o755)  # whatever the umask
                sync_directory(os.path.dirname(each))
    except OSError:
        remove_directories(made)
        raise
    return tuple(made)


def remove_directories(made: Sequence[str]) -> None:
    """Directories that make_directories() made and that nothing came into go again. Never raises."""
    for path in reversed(made):
        with suppress(OSError):
            os.rmdir(path)


def remove_file(path: str) -> None:
    """A file or link goes away. OSError, FileNotFoundError among them."""
    os.unlink(path)
    sync_directory(os.path.dirname(path))


def remove_directory(path: str) -> None:
    """An empty directory goes away. OSError, FileNotFoundError among them."""
    os.rmdir(path)
    sync_directory(os.path.dirname(path))


def sync_file(path: str) -> None:
    """What another program wrote there, and its name, is on disk when this returns. OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_directory(os.path.dirname(path))


def checkpoint(path: str) -> None:
    """What was synced of this file and its name is where a boot loader finds it when this returns. OSError.

    GRUB reads no journal: of a file that was renamed a moment before power was lost it finds the one before. ext4 is
    asked to empty its own; XFS has nothing to ask but a freeze of the whole file system, which we do not do.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, _CHECKPOINT, bytes(4))  # without a flag
    except OSError as error:
        if error.errno not in _NO_CHECKPOINT:
            raise
    finally:
        os.close(fd)


def open_directory(directory: str, *, follow: bool = True) -> int:
    """A directory as a descriptor that the caller closes. OSError, ENOTDIR for a link that is not to be followed."""
    return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))


def sync_directory(directory: str) -> None:
    """What was made, renamed or removed in a directory is on disk when this returns. "" is the working directory."""
    fd = open_directory(directory or ".")
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a directory of the cgroup file system is on no disk
            raise
    finally:
        os.close(fd)


def line_of(record: dict[str, Any]) -> bytes:
    """The record as it stands in the file."""
    import json  # slow to import: only where there is a journal

    body = json.dumps(record, ensure_ascii=True, separators=(",", ":"))
    return f"{zlib.crc32(body.encode()):08x} {body}\n".encode()


def decode(line: bytes) -> dict[str, Any] | None:
    """One record; None where the line is not as it was written."""
    import json

    crc, _, body = line.partition(b" ")
    try:
        if crc != f"{zlib.crc32(body):08x}".encode():
            return None
        record = json.loads(body)
    except (ValueError, RecursionError):  # nesting beyond measure is nothing that anybody wrote
        return None
    return record if isinstance(record, dict) else None


def open_regular(path: str, *, follow: bool = True) -> int:
    """A file as a descriptor that the caller closes. OSError where it is not regular, or (not `follow`) is a link.

    A FIFO would keep its reader waiting for a writer, a device may have no end.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    try:
        require_regular(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def read_regular(path: str, largest: int, *, follow: bool = True) -> bytes:
    """The bytes of a file that open_regular() opens. OSError also where it exceeds `largest` bytes."""
    fd = open_regular(path, follow=follow)
    try:
        return read_up_to(fd, largest)
    finally:
        os.close(fd)


def read_given(path: str, largest: int) -> bytes:
    """The bytes of a file or pipe that a user named on the command line; `-` is standard input.

    OSError where it is neither, exceeds `largest` bytes, or keeps us waiting: 5 s for the first byte of a FIFO, which
    may have no writer, and an hour for all of any pipe.
    """
    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "stdin is closed")
        return _read_pipe(sys.stdin.fileno(), largest, _ALL_S)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            is_named = not os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:")
            return _read_pipe(fd, largest, _FIRST_S if is_named else _ALL_S)
        require_regular(fd)
        return read_up_to(fd, largest)
    finally:
        os.close(fd)


def _read_pipe(fd: int, largest: int, first_s: float) -> bytes:
    """All that comes through it. A FIFO that nobody has opened for writing is not at its end: poll(2) tells."""
    import select  # few commands read a pipe

    chunks: list[bytes] = []
    size, end = 0, time.monotonic() + first_s
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while size <= largest:
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            raise TimeoutError(errno.ETIMEDOUT, f"is a pipe, and {'its end' if chunks else 'nothing'} came in time")
        if not (chunk := os.read(fd, _CHUNK)):
            break
        end += 0 if chunks else _ALL_S - first_s
        chunks.append(chunk)
        size += len(chunk)
    return _within(largest, size, chunks)


def read_up_to(fd: int, largest: int) -> bytes:
    """All that an open file still has. OSError for more than `largest` bytes: files of /proc do not say their size."""
    chunks, size = [], os.fstat(fd).st_size
    while size <= largest and (chunk := os.read(fd, _CHUNK)):
        chunks.append(chunk)
        size = sum(map(len, chunks))
    return _within(largest, size, chunks)


def _within(largest: int, size: int, chunks: list[bytes]) -> bytes:
    if size > largest:
        raise too_large(largest)
    return b"".join(chunks)


def too_large(largest: int) -> OSError:
    """What is said of a file with more bytes."""
    shown = f"{largest >> 20} MiB" if largest >= 1 << 20 else f"{largest >> 10} KiB"
    return OSError(errno.EFBIG, f"is larger than {shown}")
