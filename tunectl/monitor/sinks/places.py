"""What [monitor.prometheus] names, checked before anything is opened. Pure."""

from __future__ import annotations

import os

from tunectl.errors import UsageError


def parse_listen(listen: str) -> tuple[str, int]:
    """127.0.0.1:9750, [::1]:9750. UsageError for anything else: who may see this host is not guessed."""
    host, _, port = listen.rpartition(":")
    name = host.removeprefix("[").removesuffix("]") if host.startswith("[") and host.endswith("]") else host
    if not name or (":" in name and name == host) or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        hint = '"127.0.0.1:9750", "[::1]:9750", or "0.0.0.0:9750" for every network'
        raise UsageError(f"[monitor.prometheus] listen = {listen!r} is no address with a port", hint)
    return name, int(port)


def check_textfile(path: str) -> str:
    """`path` itself. UsageError where no textfile collector would read it."""
    if not os.path.isabs(path) or not path.endswith(".prom"):
        hint = 'textfile = "/var/lib/prometheus/node-exporter/tunectl.prom"'
        raise UsageError(f"[monitor.prometheus] textfile = {path!r} is no whole path that ends in .prom", hint)
    return path
