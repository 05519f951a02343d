"""[report] of the host file: what its values may be beyond their types."""

import os

from tunectl.errors import UsageError
from tunectl.hostfile.monitor import check_textfile
from tunectl.hostfile.shape import Report


def check_report(report: Report, where: str) -> None:
    """UsageError, naming file and key, where a document could not be handed on as it is asked for."""
    if report.textfile is not None:
        check_textfile(report.textfile, f"{where}.textfile")
    for key, path in (("folder", report.folder), ("mount", report.mount)):
        if path is not None and (not os.path.isabs(path) or path != os.path.normpath(path)):
            raise UsageError(f"{where}.{key}: {path!r} is no whole path", 'folder = "/mnt/fleet/preflight"')
    if report.mount is not None and not f"{report.folder or ''}/".startswith(f"{report.mount.rstrip('/')}/"):
        raise UsageError(f"{where}.mount: {report.mount!r} is not the folder, or above it")
