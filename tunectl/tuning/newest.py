"""What tells the newest journal from an older one that was put back, and from one whose end was cut off.

The file lies beside the journal. A run of apply writes it at its end, once the journal is on disk. It has the number
of the run, its last entry, its boot, and the boot arguments that stand by then: in a line that the operator shares with
us nothing else marks them as ours. Where power fails it is older than the journal, never newer.
"""

import os
from contextlib import suppress
from typing import NamedTuple

from tunectl import durable
from tunectl.durable import decode, line_of, read_regular
from tunectl.errors import TunectlError

NAME = "newest"
_LARGEST = 1 << 20  # bytes; a kernel's command line has a few thousand


class Newest(NamedTuple):
    """The newest run of apply that came to its end."""

    run: int = 0  # 0: none is known
    seq: int = 0  # the number of the last entry that its journal had
    boot_id: str = ""
    words: tuple[str, ...] = ()  # our boot arguments


def read(directory: str) -> Newest:
    """What the file of this state directory says; nothing where it is not there, or not as it was written."""
    try:
        record = decode(read_regular(os.path.join(directory, NAME), _LARGEST, follow=False).rstrip(b"\n")) or {}
        newest = Newest(record["run"], record["seq"], record["boot_id"], tuple(record["words"]))
    except (OSError, KeyError, TypeError):
        return Newest()
    numbers, texts = (newest.run, newest.seq), (newest.boot_id, *newest.words)
    valid = all(type(number) is int for number in numbers) and all(isinstance(text, str) for text in texts)
    return newest if valid else Newest()


def note(directory: str, newest: Newest, hint: str | None = None) -> None:
    """Notes it. TunectlError where that fails, with the hint."""
    path = os.path.join(directory, NAME)
    try:
        durable.replace_file(path, line_of({**newest._asdict(), "words": list(newest.words)}), beside=f"{path}.new")
    except OSError as error:
        raise TunectlError(f"cannot write {path}: {error.strerror}", hint) from error


def remove(directory: str) -> None:
    """Removes the file, before its journal goes: a journal without it is never taken for an older one. OSError."""
    path = os.path.join(directory, NAME)
    for one in (f"{path}.new", path):
        with suppress(FileNotFoundError):
            durable.remove_file(one)
