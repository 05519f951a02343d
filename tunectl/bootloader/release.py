"""Which distribution this is: ID and ID_LIKE of os-release(5)."""

from __future__ import annotations

import re

from tunectl.bootloader.shellvars import evaluate
from tunectl.host.sysroot import Sysroot

RED_HAT = frozenset({"rhel", "fedora", "centos", "almalinux", "rocky", "ol", "amzn"})
DEBIAN = frozenset({"debian", "ubuntu"})


def system_ids(root: Sysroot) -> frozenset[str]:
    """ID and ID_LIKE, in lower case; empty where no file tells. The file is one of shell assignments."""
    text = root.get_text("etc/os-release") or root.get_text("usr/lib/os-release")
    variables = evaluate([("os-release", text)])
    ids = set(re.split(r"\s+", f"{variables.text('ID')} {variables.text('ID_LIKE')}".lower().strip()))
    if any(root.exists(f"etc/{name}-release") for name in ("redhat", "fedora")):
        ids.add("rhel")
    return frozenset(ids - {""})
