"""A host's name as a file's name, and back. Pure.

A name comes from an inventory or from a host, and may hold anything: a slash, a newline, nothing at all. Characters
that DNS allows stay as they are in the file's name; all others are percent-encoded, as in a URL. The Ansible action
`fleet_preflight` follows the same rule, and a test compares the two.
"""

import hashlib
from urllib.parse import quote, unquote

SUFFIX = ".json"
_LONGEST = 240  # bytes; a file's name may have 255
_EMPTY = "%"  # a percent sign alone is not the code of any character


def file_name(host: str) -> str:
    """The host's file in a session's `hosts`: different for different hosts, never a hidden file, never a path."""
    encoded = quote(host, safe="", errors="surrogatepass").replace("~", "%7E") or _EMPTY
    if encoded.startswith("."):
        encoded = "%2E" + encoded[1:]
    if len(encoded) > _LONGEST:
        digest = hashlib.sha256(host.encode("utf-8", "surrogatepass")).hexdigest()
        encoded = f"{encoded[:100]}~{digest}"  # nothing else holds a tilde
    return encoded + SUFFIX


def host_name(file: str) -> str | None:
    """The host whose file has that name; None for a name that file_name() does not produce, or that it shortened."""
    if not file.endswith(SUFFIX):
        return None
    encoded = file.removesuffix(SUFFIX)
    try:
        host = "" if encoded == _EMPTY else unquote(encoded, errors="surrogatepass")
    except UnicodeDecodeError:
        return None
    return host if file_name(host) == file else None


def is_text(name: str) -> bool:
    """Can JSON carry it? A name with bytes that are not UTF-8 it cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
