"""Many files worked on by two other processes, in their order: to decode a host's document takes longer than all else.

They are copies of this process (fork), which have everything imported and run on the CPUs that this one may run on.
What they do not deliver is done here, so no answer depends on them.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST = 2  # workers; the CPUs of a controller are others', too
_MANY = 200  # items; fewer are done before a worker has begun
_AT_ONCE = 16  # what a worker is handed


def spread(items: Sequence[Item], work: Callable[[Item], Result]) -> Iterator[Result]:
    """What `work`, a function of a module, makes of each item, in their order."""
    done, count = 0, min(_MOST, len(os.sched_getaffinity(0)))
    if len(items) >= _MANY and count > 1:
        from concurrent.futures import ProcessPoolExecutor  # slow to import
        from multiprocessing import get_context

        dies = (signal.SIGINT, signal.SIG_DFL)  # of Ctrl-C, and says nothing
        # No more processes or descriptors, no memory for one, or one was killed.
        with (
            suppress(OSError, RuntimeError),
            ProcessPoolExecutor(count, get_context("fork"), signal.signal, dies) as pool,
        ):
            for result in pool.map(work, items, chunksize=_AT_ONCE):
                yield result
                done += 1
    yield from map(work, items[done:])
