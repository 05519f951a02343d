"""Many files worked on by two processes, in their order: to decode a host's document takes longer than all else.

A worker is a copy of this process (fork), which has everything imported and runs on the CPUs that this one may run on.
Its results come through a pipe, which holds it back where they are not read. What it does not deliver is done here, so
no answer depends on it.
"""

import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import IO, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST = 2  # workers; the CPUs of a controller are others', too
_MANY = 200  # items; fewer are done before a worker has begun


def spread(items: Sequence[Item], work: Callable[[Item], Result]) -> Iterator[Result]:
    """What `work` makes of each item, in their order. It writes nothing."""
    count = min(_MOST, len(os.sched_getaffinity(0))) if len(items) >= _MANY else 0
    workers: list[tuple[int, IO[bytes]]] = []
    try:
        with suppress(OSError):  # no more processes, or no memory for one
            for place in range(count):
                workers.append(_start(items[place::count], work))
        is_done = len(workers) == count > 0
        for place, item in enumerate(items):
            if is_done:
                try:
                    yield pickle.load(workers[place % count][1])  # noqa: S301  # our own copy wrote it
                    continue
                except (EOFError, OSError, pickle.UnpicklingError):  # it was killed
                    is_done = False
            yield work(item)
    finally:
        for _, stream in workers:
            stream.close()
        for pid, _ in workers:
            os.waitpid(pid, 0)


def _start(items: Sequence[Item], work: Callable[[Item], Result]) -> tuple[int, IO[bytes]]:
    """A worker, and where its results come. OSError."""
    reads, writes = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reads)
        os.close(writes)
        raise
    if pid:
        os.close(writes)
        return pid, os.fdopen(reads, "rb", 1 << 20)
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(reads)
        with os.fdopen(writes, "wb", 1 << 16) as stream:
            for item in items:
                stream.write(pickle.dumps(work(item), pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)  # nothing of the parent's is flushed, and no error of here is told: the parent meets it itself
