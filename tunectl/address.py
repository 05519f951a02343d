"""An address of the operator's to which something is posted, and the files that hold its secrets."""

import os
import stat
from typing import NamedTuple

from tunectl.durable import open_regular
from tunectl.errors import TunectlError, UsageError

_LONGEST_SECRET = 16_384  # bytes; a device or a log named by mistake is not read to its end
_CREDENTIALS = "/run/credentials/"
# systemd lets the unit's user read a credential by an ACL, whose mask stands where the group's mode would:
# systemd.exec(5), "Credentials".
_OF_CREDENTIALS = 0o440
_OWNERS_ALONE = 0o600


class Address(NamedTuple):
    """Where to post to."""

    tls: bool
    host: str
    port: int | None
    path: str  # with the query

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}{f':{self.port}' if self.port else ''}"

    @property
    def loopback(self) -> bool:
        """Does nobody else hear what is sent there without TLS?"""
        from ipaddress import ip_address  # slow to import, and most host files name no address

        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class DeliveryError(TunectlError):
    """A delivery that the receiver did not acknowledge.

    `retry`: trying again can help; without it the receiver has refused this very alert.
    `after_s`: how long the receiver asks to be left alone. The message never holds a secret.
    """

    def __init__(self, message: str, *, retry: bool = True, after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry = retry
        self.after_s = after_s


def address_of(url: str, where: str, token_file: str | None) -> Address:
    """UsageError, which repeats no part of the URL, where it is nothing to post to, or not for a token."""
    from urllib.parse import urlsplit  # slow to import, and most host files name no address

    def refusal(why: str) -> UsageError:
        return UsageError(f"{where}: cannot be used: {why}")

    if not url.isascii() or not url.isprintable() or " " in url:
        raise refusal("it has characters that no URL has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise refusal("it is no URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise refusal("it does not begin with https://host or http://host")
    if port == 0:
        raise refusal("nobody listens on port 0")
    if parts.username is not None or parts.password is not None:
        raise refusal("it holds a name or a password: put a token into a file and name it in token_file")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    address = Address(parts.scheme == "https", parts.hostname, port, path)
    if token_file and not address.tls and not address.loopback:
        raise UsageError(f"{where}: the token would cross the network in the clear", "use https://")
    return address


def secret(path: str, kind: str, *, private: bool = False) -> str:
    """The one line of a file. DeliveryError, as of held(), and where it holds another thing than a word."""
    word = held(path, kind, private=private)
    # What is no header's value would be quoted in http.client's own complaint.
    if not word or len(word) > _LONGEST_SECRET or not all(0x21 <= byte <= 0x7E for byte in word):
        raise DeliveryError(f"{kind} {path} holds none: one line of letters, digits and signs")
    return word.decode("ascii")


def held(path: str, kind: str, *, private: bool = True) -> bytes:
    """The beginning of a file. With `private`, DeliveryError where others than its owner may read it."""
    try:
        with open(open_regular(path), "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            begins = file.read(_LONGEST_SECRET + 1).strip()
    except OSError as error:
        raise DeliveryError(f"{kind} {path}: {error.strerror or 'cannot be read'}") from None
    if private and mode & ~(_OF_CREDENTIALS if path.startswith(_CREDENTIALS) else _OWNERS_ALONE):
        raise DeliveryError(f"{kind} {path}: others than its owner may read it (mode {mode:04o}): chmod 600 {path}")
    return begins
