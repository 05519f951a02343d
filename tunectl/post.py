"""One HTTP POST to an address of the operator's: TLS verified, no redirect, no proxy, an end in time, no secret said.

http.client follows nothing and reads no environment variable. It takes the end of the connection for the end of the
headers, and half a body for a body: only a whole answer counts here as taken. What a failure says holds the server's
name and port and never the path, the headers or what the server answered: each of those can be, or repeat, a secret.
"""

import errno
import http.client
import io
import socket
import ssl
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, BinaryIO, NamedTuple

from tunectl.address import Address, DeliveryError

# These say that this very request is wrong, so another try is as well. Everything else can pass: a token is renewed,
# a proxy finds its server again, a path is mended.
_REFUSED = {400, 413, 422}
_LONGEST_PAUSE_S = 300.0  # the most that a Retry-After is believed
_LARGEST = 1 << 20  # bytes of an answer's body; of one that nobody reads all


Body = bytes | Iterable[bytes]  # of a request


class Trust(NamedTuple):
    """Whom we trust, and by what we are trusted."""

    ca_file: str | None = None  # instead of the system's authorities
    certificate: tuple[str, str] | None = None  # our own: its file, and that of its key


class Into(NamedTuple):
    """A file for the body of an answer of at most so many bytes."""

    file: BinaryIO
    most: int


def post(address: Address, body: bytes, headers: Mapping[str, str], *, timeout_s: float, trust: Trust) -> None:
    """Returns once all of a 2xx answer has come within `timeout_s` of the connection; otherwise DeliveryError."""
    status, answered = exchange(address, body, headers, timeout_s, trust)
    if not 200 <= status < 300:
        pause = _seconds(answered["Retry-After"], answered["Date"])
        raise DeliveryError(f"{address} answers {said(status)}", retry=status not in _REFUSED, after_s=pause)


def exchange(
    address: Address, body: Body, headers: Mapping[str, str], timeout_s: float, trust: Trust, into: Into | None = None
) -> tuple[int, Message]:
    """The status and headers of what is answered to a POST; of any other than 2xx the body only goes `into` a file.

    DeliveryError where no whole answer, or a larger one than is wanted, has come within `timeout_s` of the connection.
    """
    failed = ""
    try:
        return _exchange(address, body, headers, timeout_s, trust, into)
    except ssl.SSLCertVerificationError as error:
        failed = f"its TLS certificate is not trusted: {error.verify_message}"
    except ssl.SSLError as error:
        failed = f"TLS failed: {error.reason}"
    except TimeoutError:
        failed = f"no answer within {timeout_s:g} s"
    except OSError as error:
        failed = error.strerror or "the connection was closed without an answer"
    except http.client.IncompleteRead:
        failed = "its answer broke off"
    except (http.client.HTTPException, ValueError) as error:
        failed = f"what it answers is not HTTP ({type(error).__name__})"
    # Raised here, not above: no exception that may quote what was sent is chained to it.
    raise DeliveryError(f"{address}: {failed}")


def _exchange(
    address: Address, body: Body, headers: Mapping[str, str], timeout_s: float, trust: Trust, into: Into | None
) -> tuple[int, Message]:
    connection = _connection(address, timeout_s, trust)
    connection.response_class = _Answer
    late = threading.Event()
    try:
        connection.connect()
        sock = connection.sock

        def give_up() -> None:
            late.set()
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

        # The socket's own time limit starts again with each byte: a server that sends one now and then would hold us.
        timer = threading.Timer(timeout_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            connection.request("POST", address.path, body, {**headers, "Connection": "close"})
            answer = connection.getresponse()
            if into or 200 <= answer.status < 300:
                _read_whole(answer, into)
        finally:
            timer.cancel()
        if late.is_set():  # what came by then may look whole
            raise TimeoutError
        return answer.status, answer.headers
    except Exception:
        if late.is_set():
            raise TimeoutError from None
        raise
    finally:
        connection.close()


class _Answer(http.client.HTTPResponse):
    """One whose head has an end of its own."""

    def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp = _WholeLines(self.fp.detach())


class _WholeLines(io.BufferedReader):
    _has_begun = False

    def readline(self, size: int | None = -1, /) -> bytes:
        """A line with its end, once the answer has begun; IncompleteRead where the connection ends before."""
        line = super().readline(size)
        if self._has_begun and not line.endswith(b"\n") and len(line) != size:
            raise http.client.IncompleteRead(line)
        self._has_begun = True
        return line


def _read_whole(answer: http.client.HTTPResponse, into: Into | None) -> None:
    """To its end, which a length, the last chunk or the connection's end says. HTTPException or OSError without one."""
    left = into.most if into else _LARGEST
    while part := answer.read(_LARGEST + 1):
        if (left := left - len(part)) < 0:
            raise OSError(errno.EFBIG, "its answer has no end, or one that is too far away")
        if into:
            into.file.write(part)
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)


def _connection(address: Address, timeout_s: float, trust: Trust) -> http.client.HTTPConnection:
    if not address.tls:
        return http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)
    try:  # made again for each try: a CA file that was renewed counts at once
        context = ssl.create_default_context(cafile=trust.ca_file)
    except OSError as error:
        raise DeliveryError(f"ca_file {trust.ca_file}: {error.strerror or 'holds no certificate'}") from None
    try:
        if trust.certificate:
            context.load_cert_chain(*trust.certificate, password=_no_password)
    except (OSError, ValueError):  # an SSLError is an OSError, whose text says little
        files = " and ".join(dict.fromkeys(trust.certificate or ()))
        raise DeliveryError(f"{files}: holds no certificate with its key, without a password") from None
    return http.client.HTTPSConnection(address.host, address.port, timeout=timeout_s, context=context)


def _no_password() -> str:
    """Instead of a question on the terminal."""
    raise ValueError


def said(status: int) -> str:
    """A status in words."""
    if 300 <= status < 400:
        return f"{status}, a redirect, which is not followed: name the right address"
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _seconds(text: str | None, answered: str | None) -> float | None:
    """A Retry-After in seconds: a number of them, or a date (RFC 9110, 10.2.3); None where it is neither.

    A date is the server's, and is held against the Date of its answer: this host's wall clock may be wrong.
    """
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST_PAUSE_S)
    try:
        pause_s = _utc_s(text) - _utc_s(answered or "")
    except (ValueError, OverflowError):
        return None
    return min(max(pause_s, 0.0), _LONGEST_PAUSE_S)


def _utc_s(text: str) -> float:
    """A date of HTTP; one that names no zone is in UTC. ValueError where it is none."""
    date = parsedate_to_datetime(text)
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
