"""A real HTTP server that takes alerts, or behaves as badly as it is told to."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def key(self) -> str:
        return self.headers.get("idempotency-key", "")


_HEAD = b"HTTP/1.1 200 OK\r\nX-Slow: z\r\n"
# Answers that say 200 and are none: what is sent first, and then again and again; "" ends the connection.
UNENDING: dict[str, tuple[bytes, bytes]] = {
    "head-cut": (_HEAD, b""),
    "head-in-a-line-cut": (b"HTTP/1.1 200 OK\r\nX-Slow: z", b""),
    "head-endless": (_HEAD, b"X-Slow: z\r\n"),
    "body-cut": (_HEAD + b"Content-Length: 100\r\n\r\nz", b""),
    "body-slow": (_HEAD + b"Content-Length: 100000\r\n\r\nz", b"z"),
    "body-endless": (_HEAD + b"\r\n", b"z" * (1 << 18)),
    "body-too-long": (_HEAD + b"Content-Length: 99999999\r\n\r\n", b"z" * (1 << 18)),
    "chunk-cut": (_HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nzzzz\r\n", b""),
    "last-chunk-cut": (_HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nzzzz\r\n0\r\n", b""),
    "chunks-endless": (_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\nzzzz\r\n"),
}


class Receiver(ThreadingHTTPServer):
    """`acts` is what the next requests meet: a status, "hang", "drip", "garbage", "redirect", "vanish" or an UNENDING.

    "vanish" takes the alert and breaks the connection before it says so. With no act left it takes everything.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.acts: list[int | str] = []
        self.requests: list[Request] = []  # all that came
        self.taken: list[Request] = []  # what the application behind it has seen
        self.over = threading.Event()
        self.scheme = "http"
        self.extra: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}/hooks/pa7h-s3cret"

    def keys(self) -> list[str]:
        """Ids in the order in which the application saw them, each once: what an idempotent receiver does."""
        return list(dict.fromkeys(request.key for request in self.taken))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tests break connections on purpose."""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
        request = Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.server.requests.append(request)
        act = self.server.acts.pop(0) if self.server.acts else 200
        if isinstance(act, int):
            self.server.taken += [request] if 200 <= act < 300 else []
            self._answer(act)
        elif act in UNENDING:
            self._answer_without_end(*UNENDING[act])
        elif act == "redirect":
            self._answer(307, Location=self.server.extra["to"])
        elif act == "vanish":
            self.server.taken.append(request)
            self.connection.close()
        elif act == "garbage":
            self.wfile.write(b"SSH-2.0-OpenSSH " + self.headers.get("Authorization", "").encode() + b"\r\n\r\n")
        elif act == "hang":
            self.server.over.wait(30)
        elif act == "drip":
            for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"z" * 1000:
                self.wfile.write(bytes((byte,)))
                if self.server.over.wait(0.05):
                    break

    def _answer_without_end(self, first: bytes, more: bytes) -> None:
        self.wfile.write(first)
        while more and not self.server.over.wait(0.02):
            self.wfile.write(more)

    def _answer(self, status: int, **headers: str) -> None:
        # A careless server repeats what it was sent: nothing of it may reach a log.
        text = f"you sent {self.headers.get('Authorization')}".encode()
        self.send_response(status, f"because {self.headers.get('Authorization')}")
        for name, value in {**headers, **self.server.extra}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def receiving(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver on a free port of 127.0.0.1."""
    server = Receiver()
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
