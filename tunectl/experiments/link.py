"""The control connection of an experiment between two hosts: lines of text, and a connection for each case.

Nothing is authenticated: it is for two hosts on a wire that one owns. EXPERIMENT is wake or feed. The host of
`--listen` answers:

    tunectl-EXPERIMENT 4                    tunectl-EXPERIMENT 4 HZ CPU
    open TRANSPORT BYTES TOKEN WORD...      port N, then, once the greeting with the token has come, ready
    close                                   closed

or `refused REASON`. The greeting has as many bytes as a message, and the words say what the other host's program has to
know of the case. Neither host waits for the other without end.
"""

import errno
import os
import re
import secrets
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from typing import Any, NamedTuple

from tunectl.errors import TunectlError, UsageError
from tunectl.experiments.ends import SENDER_AND_RECEIVER, PairRequest, place_request
from tunectl.experiments.frame import CaseError
from tunectl.experiments.pair import Peer
from tunectl.host.ethtool import interface_to
from tunectl.probe.runner import PROGRAM, document_of, start, stay

TYPES = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}  # of messages between two hosts
_VERSION = 4
_GREETING = re.compile(r"tunectl-(wake|feed) (\d{1,9}) (\d{1,18}) (\d{1,9})", re.ASCII)
_MOST = 256  # bytes of a line
_ANSWER_S = 15.0
_HELLO_S = 5.0  # for what the other side says unasked
_HELLO_EVERY_S = 0.5
_HELLOS = 30
_MESSAGE = struct.Struct("=QQQQ")  # struct message of native/src/lib/ring.h: sequence, sent, received and sent far away
SMALLEST, _LARGEST = _MESSAGE.size, 4096  # bytes of a greeting; as of wake --bytes
_GREETS = 1 << 63  # a sequence number with this bit greets
# A host that vanished, without a word, is given up after 25 s.
_ALIVE = ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
_READY_S = 15.0
_LOOK_EVERY_S = 0.005


class UnreachableError(CaseError):
    """Why a case cannot be measured over this connection."""


class Asked(NamedTuple):
    """What a case is to the other host."""

    transport: str
    message_bytes: int
    words: tuple[str, ...]  # what its program has to know


# the words of a case and its connection: sends every message back meanwhile. ValueError where they are none
Reflect = Callable[[Sequence[str], socket.socket], AbstractContextManager[None]]


def require_reach(option: str, names: Iterable[str], request: PairRequest) -> None:
    """UsageError where messages of these names go to no host of --connect."""
    if request.connect and not set(names) <= set(TYPES):
        raise UsageError(f"{option}: only {' and '.join(TYPES)} lead to the host of --connect")


def split_address(option: str, address: str) -> tuple[str, int]:
    """`10.0.0.2:7000` or `[fe80::2]:7000` in two; UsageError in one line."""
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif "[" in host or "]" in host:
        host = ""
    if not colon or not host or not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UsageError(f"{option} {address}: expected ADDRESS:PORT, like 10.0.0.2:7000 or [fe80::2]:7000")
    return host, int(port)


class Lines:
    """Lines over a socket. OSError where none comes: TimeoutError, ConnectionResetError at the end, EMSGSIZE."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._pending = b""

    def read(self, timeout_s: float | None) -> str:
        """The next line; without end where `timeout_s` is None."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while b"\n" not in self._pending[:_MOST]:
            if len(self._pending) >= _MOST:
                raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
            self.socket.settimeout(None if until is None else max(until - time.monotonic(), 0.001))
            got = self.socket.recv(2 * _MOST)
            if not got:
                raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            self._pending += got
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode("ascii", "replace")

    def write(self, line: str) -> None:
        """Short lines, one at a time: they fit the buffer of any socket whose other end reads at all."""
        self.socket.settimeout(_ANSWER_S)
        self.socket.sendall(line.encode("ascii", "replace")[: _MOST - 1] + b"\n")


class Link:
    """The other host, as the one that measures sees it. TunectlError where nobody of this kind and version answers."""

    def __init__(self, experiment: str, address: str) -> None:
        place = split_address("--connect", address)
        match: re.Match[str] | None = None
        with ExitStack() as on_failure:
            try:
                self._lines = Lines(on_failure.enter_context(socket.create_connection(place, _ANSWER_S)))
                self._lines.write(f"tunectl-{experiment} {_VERSION}")
                with suppress(ConnectionResetError):  # an earlier version hangs up
                    match = _GREETING.fullmatch(self._lines.read(_ANSWER_S))
            except OSError as error:
                raise TunectlError(f"--connect {address}: {_said(error)}") from error
            if not match or (match[1], match[2]) != (experiment, str(_VERSION)):
                who = f"no `tunectl probe {experiment} --listen` of this version answers there"
                if match and match[1] != experiment:
                    asked = f"`tunectl probe {experiment} --listen`"
                    who = f"`tunectl probe {match[1]} --listen` answers there, and not {asked}"
                raise TunectlError(f"--connect {address}: {who}")
            self.peer = Peer(address, int(match[3]), int(match[4]))
            on_failure.pop_all()
        self._is_gone = False

    def interface(self) -> str:
        """The network interface of this host that leads there."""
        host, _, *rest = self._lines.socket.getpeername()
        try:
            return interface_to(host, rest[1] if rest else 0)
        except OSError as error:
            raise TunectlError(f"--connect {self.peer.address}: no route leads there: {error.strerror}") from error

    @contextmanager
    def case(self, asked: Asked) -> Iterator[socket.socket]:
        """A connection whose messages come back meanwhile. UnreachableError with the reason."""
        connection = self._open(asked)
        try:
            yield connection
        finally:
            connection.close()
            self._close_case()

    def close(self) -> None:
        """Ends the connection: the other host is free for the next."""
        self._lines.socket.close()

    def _open(self, asked: Asked) -> socket.socket:
        if self._is_gone:
            raise UnreachableError("the other host went away")
        token = _GREETS | secrets.randbits(62)
        port = self._port(" ".join(["open", asked.transport, str(asked.message_bytes), str(token), *asked.words]))
        with ExitStack() as on_failure:
            on_failure.callback(self._close_case)
            try:
                connection = on_failure.enter_context(self._connected(TYPES[asked.transport], port))
                self._greet(connection, token, asked.message_bytes)
                connection.setblocking(True)
            except OSError as error:
                raise UnreachableError(f"the connection cannot be set up: {_said(error)}") from error
            on_failure.pop_all()
        return connection

    def _close_case(self) -> None:
        """Ends the other host's part of a case; answers to what came before are passed over."""
        try:
            self._lines.write("close")
            while self._lines.read(_ANSWER_S) != "closed":
                pass
        except OSError:
            self._is_gone = True

    def _port(self, line: str) -> int:
        try:
            self._lines.write(line)
            word, _, rest = self._lines.read(_ANSWER_S).partition(" ")
        except OSError as error:
            self._is_gone = True
            raise UnreachableError(f"the other host: {_said(error)}") from error
        if word == "port" and rest.isdigit() and 0 < int(rest) < 1 << 16:
            return int(rest)
        raise UnreachableError(f"the other host: {_printable(rest) if word == 'refused' else 'an answer that is none'}")

    def _connected(self, kind: socket.SocketKind, port: int) -> socket.socket:
        """The other host's address with another port."""
        host, _, *rest = self._lines.socket.getpeername()
        connection = socket.socket(self._lines.socket.family, kind)
        try:
            connection.settimeout(_ANSWER_S)
            connection.connect((host, port, *rest))
            _without_delay(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _greet(self, connection: socket.socket, token: int, size: int) -> None:
        """Says hello until the other host has heard it: a datagram may be lost, and it must learn our port.

        It is as long as a message: the program there passes over the greetings that come to it.
        """
        for attempt in range(_HELLOS):
            if attempt == 0 or connection.type == socket.SOCK_DGRAM:
                connection.send(_MESSAGE.pack(token, 0, 0, 0).ljust(size, b"\0"))
            with suppress(TimeoutError):
                answer = self._lines.read(_HELLO_EVERY_S)
                if answer == "ready":
                    return
                raise OSError(errno.EPROTO, f"the other host: {_printable(answer.removeprefix('refused '))}")
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


@contextmanager
def linked(experiment: str, address: str | None) -> Iterator[Link | None]:
    """The other host; None where none is asked for. TunectlError as of a Link."""
    with ExitStack() as closed:
        yield closed.enter_context(closing(Link(experiment, address))) if address else None


def listen(address: str) -> socket.socket:
    """A socket that listens there. TunectlError where that fails."""
    host, port = split_address("--listen", address)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=16)
    except OSError as error:
        raise TunectlError(f"--listen {address}: {_said(error)}") from error


def serve(listener: socket.socket, experiment: str, hz: int, cpu: int, reflect: Reflect) -> None:
    """Is the other host for one client after the other, whatever they say, until a signal."""
    greeting = f"tunectl-{experiment} {_VERSION}"
    while True:
        connection = listener.accept()[0]
        with connection, suppress(OSError, ValueError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _ALIVE:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
            _serve_client(Lines(connection), greeting, f"{greeting} {hz} {cpu}", reflect)


def _serve_client(lines: Lines, greeting: str, answer: str, reflect: Reflect) -> None:
    said = lines.read(_HELLO_S)
    lines.write(answer)  # a client of another kind or version then knows what is wrong
    if said != greeting:
        return
    with ExitStack() as case:
        while True:
            word, *rest = lines.read(None).split(" ")
            case.close()
            if word == "open":
                _open(lines, rest, case, reflect)
            elif word == "close":
                lines.write("closed")
            else:
                return


def _open(lines: Lines, said: list[str], case: ExitStack, reflect: Reflect) -> None:
    """What belongs to the case is left in `case`. ValueError where the words are none."""
    transport, size, token, *words = said
    message_bytes = min(max(int(size), SMALLEST), _LARGEST)
    if transport not in TYPES:
        lines.write(f"refused it does not know {transport}")
        return
    try:
        waiting = case.enter_context(_bound(lines.socket, TYPES[transport]))
        lines.write(f"port {waiting.getsockname()[1]}")
        connection = _accepted(waiting, int(token), message_bytes, case)
        connection.setblocking(True)
        case.enter_context(reflect(words, connection))
        connection.close()  # the program's alone from now on: when that ends, so does the connection
    except (TunectlError, OSError) as error:
        case.close()
        lines.write(f"refused {_said(error)}")
        return
    lines.write("ready")


def _bound(control: socket.socket, kind: socket.SocketKind) -> socket.socket:
    """A socket at the address that the client came to, at any port."""
    host, _, *rest = control.getsockname()
    made = socket.socket(control.family, kind)
    try:
        made.bind((host, 0, *rest))
        if kind == socket.SOCK_STREAM:
            made.listen(1)
        made.settimeout(_HELLO_S)
    except BaseException:
        made.close()
        raise
    return made


def _accepted(waiting: socket.socket, token: int, size: int, case: ExitStack) -> socket.socket:
    """The connection that begins with the greeting. Other datagrams are passed over."""
    if waiting.type == socket.SOCK_DGRAM:
        until = time.monotonic() + _HELLO_S
        while time.monotonic() < until:
            hello, sender = waiting.recvfrom(size)
            if _greets(hello, token):
                waiting.connect(sender)
                return waiting
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    connection = case.enter_context(waiting.accept()[0])
    waiting.close()
    connection.settimeout(_HELLO_S)
    _without_delay(connection)
    if not _greets(connection.recv(size, socket.MSG_WAITALL), token):
        raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))
    return connection


def _greets(hello: bytes, token: int) -> bool:
    return len(hello) >= _MESSAGE.size and _MESSAGE.unpack_from(hello)[0] == token


def _without_delay(connection: socket.socket) -> None:
    if connection.type == socket.SOCK_STREAM:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _said(error: Any) -> str:
    """In a few words, whatever failed."""
    return _printable(getattr(error, "strerror", None) or str(error) or os.strerror(errno.ETIMEDOUT))


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)[:150]


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
    placed = place_request(SENDER_AND_RECEIVER, request)
    cpu = placed.ends[-1]
    fifo = ["--fifo", str(request.fifo)] if request.fifo else []
    words = [experiment, "--reflect", "--cpus", placed.text, *fifo]
    hz = document_of(start(words, frozenset({cpu})))["hz"]

    @contextmanager
    def reflecting(case: Sequence[str], connection: socket.socket) -> Iterator[None]:
        """A program sends every message back meanwhile. TunectlError with its reason."""
        argv = [*words, *case_words(case), "--socket", str(connection.fileno())]
        with closing(stay(argv, frozenset({cpu}), keep=connection.fileno())) as resident:
            until = time.monotonic() + _READY_S
            while not resident.lines():
                if why := resident.ended():
                    raise TunectlError(why.removeprefix(f"{PROGRAM}: "))
                if time.monotonic() > until:
                    raise TunectlError(f"{PROGRAM} says nothing")
                time.sleep(_LOOK_EVERY_S)
            yield

    with listen(address) as listener:
        on_line(f"listening at {address.rpartition(':')[0]}:{listener.getsockname()[1]}, CPU {cpu}")
        try:
            serve(listener, experiment, hz, cpu, reflecting)
        except KeyboardInterrupt:
            return
