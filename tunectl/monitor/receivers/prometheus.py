"""The HTTP endpoint that Prometheus scrapes: GET and HEAD of /metrics, and nothing else.

What is shown is the last board; it is written out in the thread of the endpoint, not in the cycle. The address may come
later than the monitor (an interface that is not up yet, a port still held): it is tried again, and alerts go on.

One thread has all connections, and waits for none: a client that sends or reads slowly takes nothing from the others.
Each has a limit for the whole, from its first moment to the last byte of its answer (a limit for each read would begin
again with each byte); who comes when all places are taken has the place of who came first, because a scrape is done in
no time. Who is cut is counted, in the metrics and in the log.
"""

import logging
import os
import selectors
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from tunectl.hostfile.monitor import parse_listen
from tunectl.monitor.model import Status
from tunectl.monitor.receivers import Exporter
from tunectl.monitor.receivers.metrics import Shown
from tunectl.wording import plural

LOG = logging.getLogger("tunectl.monitor.prometheus")
_AGAIN_S = 10.0
_SAY_S = 60.0  # between two lines of the log about clients that were cut
_AT_ONCE = 32  # clients: of each the request and the answer are held
_LIMIT_S = 10.0  # Prometheus' own limit for a scrape (scrape_timeout), unless it is configured otherwise
_LONGEST = 1 << 14  # bytes of a request; Prometheus sends some 500
_ENDS = (b"\r\n\r\n", b"\n\n")
_BACKLOG = 64
_IN_KERNEL = 1 << 16  # bytes of an answer: with more, a client that reads nothing would pass for one that has it all
_FULL_S = 0.1
_BYTES = 1 << 16
LATE, CROWDED, TOO_LONG = "late", "crowded", "too-long"
_CUT = {
    LATE: "were not done within {limit_s:g} s",
    CROWDED: "came first when all {at_once} places were taken",
    TOO_LONG: "sent more than a request",
}


def endpoint(listen: str) -> Exporter:
    """The exporter at `listen`: it serves, or says why not and tries again. UsageError for no address."""
    server = Endpoint(*parse_listen(listen))
    return Exporter("prometheus", server.show, server.close)


class Endpoint:
    """The server of one address. With port 0 the kernel chooses one: `port` has it."""

    def __init__(self, host: str, port: int, limit_s: float = _LIMIT_S, at_once: int = _AT_ONCE) -> None:
        """A client has `limit_s` for all, and `at_once` of them have a place."""
        self._host, self.port = host, port
        self._limit_s, self._at_once = limit_s, at_once
        self._cut = Counter(dict.fromkeys(_CUT, 0))
        self._told: Counter[str] = Counter()
        self._tell_at_s = 0.0
        self._shown = Shown(self._cut)
        self._server: _Server | None = None
        self._due_s = 0.0
        self._trouble = ""
        self._listen()

    def show(self, status: Status) -> None:
        """What the next scrape gets."""
        self._shown.see(status)
        now = time.monotonic()
        if self._server is None and now >= self._due_s:
            self._listen()
        if (fresh := self._cut - self._told) and now >= self._tell_at_s:
            clients = ", ".join(f"{plural(fresh[why], 'client')} that {_CUT[why]}" for why in _CUT if fresh[why])
            LOG.warning("cut %s (port %d)", clients.format(limit_s=self._limit_s, at_once=self._at_once), self.port)
            self._told += fresh
            self._tell_at_s = now + _SAY_S

    def close(self) -> None:
        """Gives the port back."""
        if self._server:
            self._server.close()
            self._server = None

    def _listen(self) -> None:
        try:
            listening = _bound(self._host, self.port)
        except OSError as error:
            self._due_s = time.monotonic() + _AGAIN_S
            if str(error) != self._trouble:
                LOG.error("cannot listen on %s port %d: %s", self._host, self.port, error.strerror)
            self._trouble = str(error)
            return
        self.port = int(listening.getsockname()[1])
        self._server = _Server(listening, self._shown.registry, self._cut, self._limit_s, self._at_once)
        self._server.start()


def _bound(host: str, port: int) -> socket.socket:
    """Listens there, and is asked without waiting. OSError where it cannot."""
    # As bytes: for a str Python imports IDNA, though the name is ASCII, and a label that is empty or long is a
    # UnicodeError there.
    family, *_, address = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _IN_KERNEL)
        listening.setblocking(False)
        listening.bind(address[:2])
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


@dataclass
class _Client:
    """A connection: its request as far as it has come, then what is still to be sent of its answer."""

    connection: socket.socket
    until_s: float
    request: bytes = b""
    answer: memoryview | None = None


class _Server(threading.Thread):
    """The thread of all connections of one address."""

    def __init__(
        self, listening: socket.socket, registry: CollectorRegistry, cut: Counter[str], limit_s: float, at_once: int
    ) -> None:
        super().__init__(name="tunectl-metrics", daemon=True)
        self._listening, self._registry, self._cut = listening, registry, cut
        self._limit_s, self._at_once = limit_s, at_once
        self._clients: dict[int, _Client] = {}  # by descriptor, who came first is first
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        self._ready = selectors.DefaultSelector()
        for place in (self._end, listening):
            self._ready.register(place, selectors.EVENT_READ)

    def close(self) -> None:
        """Ends the thread and every connection."""
        os.eventfd_write(self._end, 1)
        self.join()
        for client in [*self._clients.values()]:
            self._drop(client)
        self._listening.close()
        self._ready.close()
        os.close(self._end)

    def run(self) -> None:
        """Until close()."""
        while True:
            patience = [max(client.until_s - time.monotonic(), 0.0) for client in self._clients.values()]
            for key, _ in self._ready.select(min(patience, default=None)):
                if key.fd == self._end:
                    return
                client = self._clients.get(key.fd)
                if key.fileobj is self._listening:
                    self._accept()
                elif client and client is key.data:  # it may have been cut a moment ago
                    self._go_on(client)
            now = time.monotonic()
            for client in [client for client in self._clients.values() if client.until_s <= now]:
                self._drop(client, LATE)

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, ConnectionError):  # it has hung up
            return
        except OSError:  # this process may not open any more: the next turn tries again
            time.sleep(_FULL_S)
            return
        if len(self._clients) >= self._at_once:
            self._drop(next(iter(self._clients.values())), CROWDED)
        connection.setblocking(False)
        client = _Client(connection, time.monotonic() + self._limit_s)
        self._clients[connection.fileno()] = client
        self._ready.register(connection, selectors.EVENT_READ, client)

    def _go_on(self, client: _Client) -> None:
        """As far as it goes without waiting. A client that hangs up is no news."""
        try:
            is_done = self._receive(client) if client.answer is None else _send(client)
        except BlockingIOError:
            return
        except OSError:
            is_done = True
        if is_done:
            self._drop(client)

    def _receive(self, client: _Client) -> bool:
        part = client.connection.recv(_BYTES)
        client.request += part
        if len(client.request) > _LONGEST:
            self._cut[TOO_LONG] += 1
            return True
        if not any(end in client.request for end in _ENDS):
            return not part
        client.answer = memoryview(_Answer(client.request, self._registry).whole)
        self._ready.modify(client.connection, selectors.EVENT_WRITE, client)
        return _send(client)

    def _drop(self, client: _Client, why: str = "") -> None:
        if why:
            self._cut[why] += 1
        self._ready.unregister(client.connection)
        del self._clients[client.connection.fileno()]
        client.connection.close()


def _send(client: _Client) -> bool:
    assert client.answer is not None
    client.answer = client.answer[client.connection.send(client.answer) :]
    return not client.answer


class _Answer(BaseHTTPRequestHandler):
    """What is said to one request, which is there as a whole."""

    server_version, sys_version = "tunectl", ""

    def __init__(self, request: bytes, registry: CollectorRegistry) -> None:
        said = BytesIO()
        self.rfile, self.wfile, self._registry = BytesIO(request), said, registry
        try:
            self.handle_one_request()
        except Exception as error:
            LOG.error("cannot answer a scrape: %s: %s", type(error).__name__, error)
        self.whole = said.getvalue()

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _refuse(self) -> None:
        self.send_response(405)
        self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse  # noqa: N815

    def _answer(self, *, body: bool) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        encoder, kind = choose_encoder(self.headers.get("Accept", ""))
        text = encoder(self._registry)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if body:
            self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """A scrape is no news."""
