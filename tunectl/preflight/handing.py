"""Hands the kept documents on, the oldest first, each until it was taken or refused for good.

A document goes on waiting until its receiver has it on disk, or has said so. A kill between that and the rename has it
handed on again: a folder has the same bytes already.
"""

import errno
import hashlib
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from tunectl import __version__
from tunectl.address import DeliveryError, address_of
from tunectl.durable import open_directory, read_regular, rename, replace_file, sync_directory
from tunectl.errors import TunectlError
from tunectl.fleet.names import file_name
from tunectl.fleet.store import LARGEST_ANSWER
from tunectl.host.filesystem import mount_of
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.shape import Report
from tunectl.monitor.delivery_queue import Backoff
from tunectl.preflight.keeping import REFUSED, TAKEN, WAITING, odd, waiting_in
from tunectl.probe.document import is_preflight
from tunectl.wording import plural

# Slower than the monitor's: ten thousand hosts wait for one receiver.
BACKOFF = Backoff(first_s=5.0, most_s=300.0)
_NOT_OURS = (errno.ELOOP, errno.ENOTDIR, errno.EINVAL)  # a link, no directory, no regular file
Hand = Callable[[str, bytes], None]  # the day a document was made on, the document; DeliveryError


def hand_on(
    place: str,
    hand: Hand,
    say: Callable[[str], None],
    *,
    pause: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> int:
    """Returns when no document waits any more: how many were not taken. TunectlError where this host's disk fails."""
    passed_over = set(odd(place))
    for name in sorted(passed_over):
        say(f"{name} is passed over: it is no regular file, or its name is none of a document")
    failures, refused, trouble = 0, 0, ""
    while waiting := [name for name in waiting_in(place) if name not in passed_over]:
        name = waiting[0]
        path, standing = os.path.join(place, name), TAKEN
        try:
            hand(f"{name[:4]}-{name[4:6]}-{name[6:8]}", _read_whole(path))
        except OSError as error:
            say(f"{name} is passed over: {error.strerror}")
            passed_over.add(name)
            continue
        except DeliveryError as error:
            if error.retry:
                failures += 1
                if str(error) != trouble:  # the thousandth is no news
                    say(f"{error}; waiting: {plural(len(waiting), 'document')}")
                trouble = str(error)
                pause(max(BACKOFF.delay_s(failures, chance()), error.after_s or 0.0))
                continue
            say(f"{name} is refused, and kept: {error}")
            refused, standing = refused + 1, REFUSED
        try:
            rename(path, path.removesuffix(WAITING) + standing)
        except OSError as error:
            raise TunectlError(f"cannot rename {path}: {error.strerror}") from error
        failures, trouble = 0, ""
    return refused + len(passed_over)


def _read_whole(path: str) -> bytes:
    """A document. OSError where the file cannot be read; DeliveryError where it holds no whole one of ours."""
    data = read_regular(path, LARGEST_ANSWER, follow=False)
    if not is_preflight(data):
        raise DeliveryError(f"it is no whole document of a preflight ({len(data):,} bytes)", retry=False)
    return data


def open_receiver(report: Report, host: str) -> Hand | None:
    """What [report] names; None where that is nobody."""
    if report.url is not None:
        return _to_endpoint(report, report.url)
    return _to_folder(report.folder, report.mount or report.folder, host) if report.folder else None


def _to_endpoint(report: Report, url: str) -> Hand:
    """A POST of the document as it is. Its id is the same in each try: a receiver that took it knows it again."""
    from tunectl.address import held, secret
    from tunectl.post import Trust, post  # ssl is slow to import

    address = address_of(url, "report.url", report.token_file)
    own = report.certificate_file and (report.certificate_file, report.key_file or report.certificate_file)

    def hand(_: str, document: bytes) -> None:
        id_ = hashlib.sha256(document).hexdigest()[:32]
        headers = {"Content-Type": "application/json", "User-Agent": f"tunectl/{__version__}", "Idempotency-Key": id_}
        if report.token_file:
            headers["Authorization"] = f"Bearer {secret(report.token_file, 'token file', private=True)}"
        if own:
            held(own[1], "key file")
        to = address._replace(path=address.path.replace("{id}", id_))
        post(to, document, headers, timeout_s=report.timeout_s, trust=Trust(report.ca_file, own or None))

    return hand


def _to_folder(folder: str, mount: str, host: str) -> Hand:
    """FOLDER/DAY/HOST.json, as `tunectl fleet report FOLDER/DAY` reads it; of a day's second run DAY.2, and so on."""

    def hand(day: str, document: bytes) -> None:
        try:
            fd = open_directory(folder)
        except OSError as error:
            raise DeliveryError(f"{folder}: {error.strerror}: is it mounted?") from error
        try:
            # The open folder is asked, and written below: whatever is mounted or unmounted there meanwhile.
            if mount != "/" and mount_of(Sysroot(), fd) != mount:
                raise DeliveryError(f"{folder}: {mount} is not mounted")
            _put(f"/proc/self/fd/{fd}", day, file_name(host), document)
        except OSError as error:
            raise DeliveryError(f"{folder}: {error.strerror}") from error
        finally:
            os.close(fd)

    return hand


def _put(folder: str, day: str, file: str, document: bytes) -> None:
    """Where no document of another run is, nor anything else that somebody put there. OSError."""
    for number in count(1):
        fd = _open_own(folder, day + (f".{number}" if number > 1 else ""))
        if fd is None:
            continue
        path = f"/proc/self/fd/{fd}/{file}"
        try:
            if read_regular(path, LARGEST_ANSWER, follow=False) == document:
                return
        except OSError as error:
            if error.errno == errno.ENOENT:
                replace_file(path, document, beside=f"{path}.part")
                return
            if error.errno not in _NOT_OURS:
                raise
        finally:
            os.close(fd)


def _open_own(folder: str, name: str) -> int | None:
    """A directory below an open folder, made where it is missing; None for a link, or another thing of that name.

    Whoever may write the folder may put a link there: below a path it would lead anywhere. OSError.
    """
    path = f"{folder}/{name}"
    with suppress(FileExistsError):
        os.mkdir(path, 0o755)
        sync_directory(folder)
    try:
        return open_directory(path, follow=False)
    except OSError as error:
        if error.errno in _NOT_OURS:
            return None
        raise
