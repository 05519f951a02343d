"""What grub-mkconfig will see: /etc/default/grub, then /etc/default/grub.d/*.cfg, later files over earlier ones."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tunectl.bootloader.settings import DEFAULT, LINUX, MAIN, Configured, settings_files, settings_of
from tunectl.bootloader.shellvars import evaluate
from tunectl.bootloader.sourcing import source_live
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot


def configured(root: Sysroot, without_ours: bool = False, *, overlay: Mapping[str, str] | None = None) -> Configured:
    """The configuration as the files stand; with `overlay`, as it would be with these files ({path: text}) in place.

    A `problem` says which file cannot be read, or `needs a shell: FILE:LINE` where it depends on a command; on a
    live host a shell is then asked, unless there is an overlay.
    """
    texts = dict(overlay or {})
    paths = set(settings_files(root, without_ours=without_ours)) | texts.keys()
    order = sorted(paths, key=lambda path: (path != MAIN, os.fsencode(path)))
    read: list[tuple[str, str]] = []
    for path in order:
        try:
            read.append(("/" + path, texts[path] if path in texts else root.read_text(path)))
        except OSError as error:
            if error.errno not in ABSENT_ERRNOS:  # a dangling link is skipped, as `[ -e ]` does
                return Configured(problem=f"cannot read /{path}: {error.strerror}")
    variables = evaluate(read)
    files = tuple(name for name, _ in read)
    unknown = variables.unknown(LINUX) or variables.unknown(DEFAULT)
    problem = variables.problem or (f"needs a shell: {unknown}" if unknown else None)
    if problem and root.live and overlay is None:
        return source_live(root, without_ours=without_ours)
    return settings_of(root, variables, files, problem)
