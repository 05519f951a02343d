"""Asks a real `sh` what GRUB's settings come to: where they are more than assignments, and to read back a write.

The files of a recorded host are never run. On a live host they are, if nobody but root can have written them:
update-grub, which tunectl runs as well, sources the very same files.
"""

from __future__ import annotations

import os
import stat

from tunectl.bootloader.settings import DEFAULT, LINUX, Configured, settings_files, settings_of
from tunectl.bootloader.shellvars import Variables
from tunectl.bootloader.shellwords import Piece, Value
from tunectl.errors import TunectlError
from tunectl.host.sysroot import Sysroot

_TIMEOUT_S = 20
# `set -e` as grub-mkconfig has it; what a file prints must not be taken for a value.
_SCRIPT = (
    'set -e; for file do . "$file" >&2; done; '
    'printf "%s\\0%s\\0." "${GRUB_CMDLINE_LINUX}" "${GRUB_CMDLINE_LINUX_DEFAULT}"'
)


def source_live(root: Sysroot, without_ours: bool = False) -> Configured:
    """What a real shell makes of the files. Only on a live host, and only files that only root may write.

    For the read-back after writing: equal to configured(), or the evaluation here was wrong.
    """
    paths = settings_files(root, without_ours=without_ours)
    files = tuple("/" + path for path in paths)
    if not root.live:
        return Configured(files=files, problem="needs a shell, and files of a recorded host are never run")
    for path in paths:
        if unsafe := others_can_write(root, path):
            return Configured(files=files, problem=f"needs a shell, and {unsafe}: not run")
    return run_shell(root, files)


def run_shell(root: Sysroot, files: tuple[str, ...]) -> Configured:
    """Sources files by absolute path with sh. The caller has made sure that they may be run."""
    from tunectl.host.run import run  # subprocess is not cheap to import, and rarely needed

    try:
        done = run(("/bin/sh", "-c", _SCRIPT, "tunectl", *files), timeout_s=_TIMEOUT_S)
    except TunectlError as error:
        return Configured(files=files, problem=error.message)
    linux, _, rest = done.stdout.partition("\0")
    default, _, end = rest.partition("\0")
    if done.returncode or end != ".":
        said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return Configured(files=files, problem=f"sh cannot read {', '.join(files)}: {said}")
    where = "the settings in " + ", ".join(files)
    values: dict[str, Value] = {LINUX: (Piece(linux, where),), DEFAULT: (Piece(default, where),)}
    return settings_of(root, Variables(values, {DEFAULT: where}, None), files, None)


def others_can_write(root: Sysroot, path: str) -> str | None:
    """Who else than root could have written a file of a live host, or a directory above it; None for nobody."""
    try:
        place = root.resolve(path)
        while True:
            status = root.lstat(place.lstrip("/"))
            if status.st_uid != 0:
                return f"{place} belongs to user {status.st_uid}, not to root"
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return f"{place} may be written by others than root"
            if place == "/":
                return None
            place = os.path.dirname(place)
    except OSError as error:
        return f"/{path}: {error.strerror}"
