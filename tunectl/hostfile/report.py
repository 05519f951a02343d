"""[report] of the host file: what its values may be beyond their types."""

import os

from tunectl.address import address_of
from tunectl.errors import UsageError
from tunectl.hostfile.monitor import check_textfile
from tunectl.hostfile.shape import Report

_OF_URL = ("token_file", "certificate_file", "key_file", "ca_file")


def check_report(report: Report, where: str) -> None:
    """UsageError, naming file and key, where a document could not be handed on as it is asked for."""
    if report.textfile is not None:
        check_textfile(report.textfile, f"{where}.textfile")
    for key in ("folder", "mount", *_OF_URL):
        path = getattr(report, key)
        if path is not None and (not os.path.isabs(path) or path != os.path.normpath(path)):
            raise UsageError(f"{where}.{key}: {path!r} is no whole path", 'such as "/mnt/fleet/preflight"')
        if path is not None and key in _OF_URL and report.url is None:
            raise UsageError(f"{where}.{key}: goes with url")
    if report.key_file is not None and report.certificate_file is None:
        raise UsageError(f"{where}.key_file: goes with certificate_file")
    if report.mount is not None and not f"{report.folder or ''}/".startswith(f"{report.mount.rstrip('/')}/"):
        raise UsageError(f"{where}.mount: {report.mount!r} is not the folder, or above it")
    if report.url is None:
        return
    if report.folder is not None:
        raise UsageError(f"{where}: has a folder and a url: one of them")
    address = address_of(report.url, f"{where}.url", report.token_file)
    if not address.tls and not address.loopback:
        raise UsageError(f"{where}.url: the document would cross the network in the clear", "use https://")
