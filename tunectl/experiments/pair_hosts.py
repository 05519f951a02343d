"""The other host of a round trip: for each case of a client, the native program sends every message back."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from tunectl.errors import TunectlError, UsageError
from tunectl.experiments.pair_link import listen, serve, split_address
from tunectl.experiments.pair_placement import place
from tunectl.experiments.pair_request import PairRequest
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.probe.runner import PROGRAM, document_of, start, stay

_READY_S = 15.0
_LOOK_EVERY_S = 0.005


def serve_pair(
    experiment: str,
    request: PairRequest,
    case_words: Callable[[Sequence[str]], list[str]],
    on_line: Callable[[str], None],
) -> None:
    """Is the other host of a `--connect` until Ctrl-C; `on_line` is handed where it listens.

    `case_words` makes the program's arguments of what the other host says of a case; ValueError where that is nothing.
    """
    if request.connect:
        raise UsageError("--listen and --connect: this host is one or the other")
    address = request.listen or ""
    split_address("--listen", address)
    placed = place(request.cpus, request.among, read_scope_facts(Sysroot()), frozenset(os.sched_getaffinity(0)))
    cpus = frozenset({placed.receiver})
    fifo = ["--fifo", str(request.fifo)] if request.fifo else []
    words = [experiment, "--reflect", "--cpus", placed.text, *fifo]
    hz = document_of(start(words, cpus))["hz"]

    @contextmanager
    def reflecting(case: Sequence[str], connection: socket.socket) -> Iterator[None]:
        """A program sends every message back meanwhile. TunectlError with its reason."""
        argv = [*words, *case_words(case), "--socket", str(connection.fileno())]
        with closing(stay(argv, cpus, keep=connection.fileno())) as resident:
            until = time.monotonic() + _READY_S
            while not resident.lines():
                if why := resident.ended():
                    raise TunectlError(why.removeprefix(f"{PROGRAM}: "))
                if time.monotonic() > until:
                    raise TunectlError(f"{PROGRAM} says nothing")
                time.sleep(_LOOK_EVERY_S)
            yield

    with listen(address) as listener:
        on_line(f"listening at {address.rpartition(':')[0]}:{listener.getsockname()[1]}, CPU {placed.receiver}")
        try:
            serve(listener, experiment, hz, placed.receiver, reflecting)
        except KeyboardInterrupt:
            return
