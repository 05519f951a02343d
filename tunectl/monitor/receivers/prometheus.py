"""The HTTP endpoint that Prometheus scrapes: GET and HEAD of /metrics, and nothing else.

What is shown is the last board; it is written out in the thread of the scrape, not in the cycle. The address may come
later than the monitor (an interface that is not up yet, a port still held): it is tried again, and alerts go on.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from tunectl.hostfile.monitor import parse_listen
from tunectl.monitor.model import Status
from tunectl.monitor.receivers.metrics import Shown
from tunectl.monitor.receivers.receiver import Exporter

LOG = logging.getLogger("tunectl.monitor.prometheus")
_AGAIN_S = 10.0
_AT_ONCE = 8  # requests; a client that opens hundreds must not make hundreds of threads
_TIMEOUT_S = 5.0  # for a client that connects and says nothing


def endpoint(listen: str) -> Exporter:
    """The exporter at `listen`: it serves, or says why not and tries again. UsageError for no address."""
    server = Endpoint(*parse_listen(listen))
    return Exporter("prometheus", server.show, server.close)


class Endpoint:
    """The server of one address. With port 0 the kernel chooses one: `port` has it."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self.port = host, port
        self._shown = Shown()
        self._server: _Server | None = None
        self._due_s = 0.0
        self._trouble = ""
        self._listen()

    def show(self, status: Status) -> None:
        """What the next scrape gets."""
        self._shown.see(status)
        if self._server is None and time.monotonic() >= self._due_s:
            self._listen()

    def close(self) -> None:
        """Gives the port back."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _listen(self) -> None:
        try:
            self._server = _Server(self._host, self.port, self._shown.registry)
        except OSError as error:
            self._due_s = time.monotonic() + _AGAIN_S
            if str(error) != self._trouble:
                LOG.error("cannot listen on %s port %d: %s", self._host, self.port, error.strerror)
            self._trouble = str(error)
            return
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="tunectl-metrics", daemon=True).start()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__(address[:2], _Handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Without the library's own, which asks the DNS for this host's name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "tunectl", ""
    timeout = _TIMEOUT_S

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
        text = encoder(self.server.registry)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if body:
            self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """A scrape is no news."""
