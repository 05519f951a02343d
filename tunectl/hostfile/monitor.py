"""[monitor] of the host file: what its values may be beyond their types.

The receivers use the same checks, so that what `verify` accepts is what the monitor opens.
"""

import os
import re
from collections.abc import Iterator

from tunectl.address import Address, address_of
from tunectl.cpulist import format_cpulist
from tunectl.errors import UsageError
from tunectl.hostfile.shape import Hook, Monitor, Sla, Webhook
from tunectl.model import Scope

_LISTEN_HINT = '"127.0.0.1:9750", "[::1]:9750", or "0.0.0.0:9750" for every network'
_TEXTFILE_HINT = 'textfile = "/var/lib/prometheus/node-exporter/tunectl.prom"'
_HOOK_HINT = 'command = ["/usr/local/bin/page-me"]'
_URL_FILE_HINT = 'url_file = "/run/credentials/tunectl-monitor.service/desk"'
_SOCKET_HINT = 'socket = "/run/tunectl-monitor/latency", or "127.0.0.1:9751" for UDP'
_PORT_DIGITS = 5
_SUN_PATH = 107  # unix(7): sun_path has 108 bytes, with the NUL
_GROUP = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,30}\$?")  # useradd(8)
_DAY_NS = 86_400e9


def check_monitor(monitor: Monitor, scope: Scope, origin: str) -> None:
    """UsageError, naming file and key, where the monitor could not do what is asked for."""
    limits = {
        "interval_s": (monitor.interval_s, 0.05, 3600),
        "drift_interval_s": (monitor.drift_interval_s, 0.05, 86400),
        "sla.window_s": (monitor.sla.window_s, 0.1, 3600),
    }
    where = f"{origin}: monitor"
    for key, (value, least, most) in limits.items():
        if not least <= value <= most:  # NaN, too
            raise UsageError(f"{where}.{key}: {value:g} is not from {least:g} to {most:g} seconds")
    _check_sla(monitor.sla, f"{where}.sla")
    if monitor.sentinel is not None and monitor.sentinel.cpu not in scope.present:
        present = format_cpulist(scope.present)
        raise UsageError(f"{where}.sentinel.cpu: this host has no CPU {monitor.sentinel.cpu}", f"it has {present}")
    if monitor.prometheus.listen is not None:
        parse_listen(monitor.prometheus.listen, f"{where}.prometheus.listen")
    if monitor.prometheus.textfile is not None:
        check_textfile(monitor.prometheus.textfile, f"{where}.prometheus.textfile")
    for number, webhook in enumerate(monitor.webhooks):
        check_webhook(webhook, f"{where}.webhooks[{number}]")
    for number, hook in enumerate(monitor.hooks):
        check_hook(hook, f"{where}.hooks[{number}]")


def _check_sla(sla: Sla, where: str) -> None:
    for key, limit in (("p99_9_ns", sla.p99_9_ns), ("max_ns", sla.max_ns)):
        if limit is not None and not 1 <= limit <= _DAY_NS:  # NaN, too
            raise UsageError(f"{where}.{key}: {limit:g} is not from 1 to {_DAY_NS:g} ns")
    if sla.socket is not None:
        check_socket(sla.socket, f"{where}.socket")
    # The group itself need not be known to this host's files: the monitor looks it up when it binds.
    if sla.socket_group is not None and not (sla.socket or "").startswith("/"):
        raise UsageError(f"{where}.socket_group: only the path of a Unix socket has a group", _SOCKET_HINT)
    if sla.socket_group is not None and not _GROUP.fullmatch(sla.socket_group):
        why = f"{where}.socket_group: {sla.socket_group!r} is no group's name"
        raise UsageError(why, 'socket_group = "trading"')


def sla_notes(monitor: Monitor, origin: str) -> Iterator[str]:
    """What may stand in [monitor.sla] and does nothing."""
    sla, where = monitor.sla, f"{origin}: monitor.sla"
    limits = {key: limit for key, limit in (("p99_9_ns", sla.p99_9_ns), ("max_ns", sla.max_ns)) if limit is not None}
    if limits and sla.socket is None and monitor.sentinel is None:
        judges = "judge" if len(limits) > 1 else "judges"
        yield f"{where}: {' and '.join(limits)} {judges} nothing: no socket is named here, and no [monitor.sentinel]"
    if len(limits) > 1 and limits["max_ns"] < limits["p99_9_ns"]:
        yield f"{where}: max_ns is below p99_9_ns: what breaks the limit of P99.9 has broken that of the longest"


def check_webhook(webhook: Webhook, where: str) -> Address | None:
    """Where it posts to; None where a file says that, which is read at each try.

    UsageError, which does not repeat the URL: it may hold a secret.
    """
    if bool(webhook.url) == (webhook.url_file is not None):
        raise UsageError(f"{where}: needs url or url_file, one of them", 'url = "https://alerts.example:9093"')
    if webhook.url_file is None:
        return address_of(webhook.url, f"{where}.url", webhook.token_file)
    if not os.path.isabs(webhook.url_file):
        raise UsageError(f"{where}.url_file: {webhook.url_file!r} is no whole path", _URL_FILE_HINT)
    return None


def parse_listen(listen: str, where: str = "monitor.prometheus.listen") -> tuple[str, int]:
    """127.0.0.1:9750, [::1]:9750. UsageError for anything else: who may see this host is not guessed."""
    found = _host_and_port(listen)
    if found is None:
        raise UsageError(f"{where}: {listen!r} is no address with a port", _LISTEN_HINT)
    return found


def _host_and_port(address: str) -> tuple[str, int] | None:
    host, _, port = address.rpartition(":")
    name = host.removeprefix("[").removesuffix("]") if host.startswith("[") and host.endswith("]") else host
    is_name = bool(name) and name.isascii() and name.isprintable() and " " not in name
    is_port = port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS and int(port) <= 65535
    if not is_name or not is_port or (":" in name and name == host):
        return None
    return name, int(port)


def check_socket(address: str, where: str = "monitor.sla.socket") -> tuple[str, int] | None:
    """HOST and PORT of a UDP socket; None for the path of a Unix socket. UsageError for what can be neither."""
    if address.startswith("/"):
        if address.endswith("/"):
            raise UsageError(f"{where}: {address!r} is a directory", _SOCKET_HINT)
        if len(os.fsencode(address)) > _SUN_PATH:
            why = f"the path has {len(os.fsencode(address))} bytes, and a Unix socket's has at most {_SUN_PATH}"
            raise UsageError(f"{where}: {why}", _SOCKET_HINT)
        return None
    host, port = _host_and_port(address) or ("", 0)
    if not port:
        raise UsageError(f"{where}: {address!r} is neither a whole path nor HOST:PORT", _SOCKET_HINT)
    return host, port


def check_textfile(path: str, where: str = "monitor.prometheus.textfile") -> None:
    """UsageError where no textfile collector would read it."""
    if not os.path.isabs(path) or not path.endswith(".prom"):
        raise UsageError(f"{where}: {path!r} is no whole path that ends in .prom", _TEXTFILE_HINT)


def check_hook(hook: Hook, where: str) -> None:
    """UsageError where its command cannot be started."""
    if not hook.command or not os.path.isabs(hook.command[0]) or hook.command[0].endswith("/"):
        raise UsageError(f"{where}.command: has no program with its whole path", _HOOK_HINT)
