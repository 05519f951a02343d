"""Work in other processes, which are copies of this one (fork): they have everything imported, and run on its CPUs.

Two of them decode the documents of many hosts, which takes longer than all else; what they do not deliver is done here,
so no answer depends on them. One answers a query that anybody typed, within limits of memory and time.
"""

import math
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, TypeVar

from tunectl.durable import read_regular

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST = 2  # workers; the CPUs of a controller are others', too
_MANY = 200  # items; fewer are done before a worker has begun
_AT_ONCE = 16  # what a worker delivers together
_PATIENCE_S = 1.0  # for what ends by itself


class WorkerError(OSError):
    """A worker was killed, or ended without a word."""


def spread(items: Sequence[Item], work: Callable[[Item], Result]) -> Iterator[Result]:
    """What `work` makes of each item, in their order."""
    done, count = 0, min(_MOST, len(os.sched_getaffinity(0)))
    if len(items) >= _MANY and count > 1:
        chunks = [items[at : at + _AT_ONCE] for at in range(0, len(items), _AT_ONCE)]
        works = [partial(_chunks, work, chunks[number::count]) for number in range(count)]
        # No more processes or descriptors, no memory for one, or one was killed.
        with suppress(OSError), apart(works) as workers:
            for worker in islice(cycle(workers), len(chunks)):
                for result in next(worker):
                    yield result
                    done += 1
    yield from map(work, items[done:])


def _chunks(work: Callable[[Item], Result], chunks: Iterable[Sequence[Item]]) -> Iterator[list[Result]]:
    yield from ([*map(work, chunk)] for chunk in chunks)


def answered(work: Callable[[], Result], most_bytes: int, limit_s: float) -> Result:
    """What `work`, of two threads, returns in a process that may have so much more memory than this one, for so long.

    What `work` raises; MemoryError, TimeoutError; OSError where no process can be had.
    """

    def limited() -> Iterator[Result]:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what libc says where it gives up
        own = int(read_regular("/proc/self/statm", 1 << 12).split()[5]) * resource.getpagesize()  # data and stacks
        limits = {
            resource.RLIMIT_DATA: own + most_bytes,
            resource.RLIMIT_CPU: math.ceil(2 * until_s) + 1,  # ends it where nobody waits any more
            resource.RLIMIT_CORE: 0,
        }
        for what, most in limits.items():
            _, hard = resource.getrlimit(what)
            resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        yield work()

    until_s = limit_s + _PATIENCE_S
    try:
        with apart([limited], until_s) as (worker,):
            return next(worker)
    except WorkerError as error:  # at the end of its memory a program gives up in more than one way
        raise MemoryError from error


@contextmanager
def apart(
    works: Sequence[Callable[[], Iterable[Result]]], limit_s: float | None = None
) -> Iterator[list[Iterator[Result]]]:
    """For each of these a process, and what it yields there, as it comes. No process is left at the end.

    What the work raises; OSError where no process can be had, WorkerError among them, and TimeoutError after `limit_s`.
    """
    from multiprocessing import get_context  # slow to import

    context, until = get_context("fork"), None if limit_s is None else time.monotonic() + limit_s
    with ExitStack() as stack:
        workers = []
        for work in works:
            ours, its = (stack.enter_context(end) for end in context.Pipe(duplex=False))
            process = context.Process(target=_deliver, args=(work, ours, its), daemon=True)
            process.start()
            stack.callback(process.join)
            stack.callback(process.kill)
            its.close()
            workers.append(_delivered(process, ours, until))
        yield workers


def _delivered(process: "BaseProcess", ours: "Connection[Any, Any]", until: float | None) -> Iterator[Any]:
    while ours.poll(None if until is None else max(until - time.monotonic(), 0)):
        try:
            result, error = ours.recv()
        except (EOFError, OSError):  # also in the middle of a result
            process.join()
            if code := process.exitcode:
                raise WorkerError(
                    code, f"a worker {'was killed by signal' if code < 0 else 'failed:'} {abs(code)}"
                ) from None
            return
        if error:
            raise error
        yield result
    raise TimeoutError


def _deliver(work: Callable[[], Iterable[Any]], ours: "Connection[Any, Any]", its: "Connection[Any, Any]") -> None:
    """The worker: nothing of the process that it was forked from is to be ended, and of Ctrl-C it dies."""
    status = 1
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ours.close()
    with suppress(BaseException):  # of memory there may be too little even to say so
        try:
            for result in work():
                its.send((result, None))
        except Exception as error:
            its.send((None, error))
        status = 0
    os._exit(status)
