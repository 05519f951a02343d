"""Environment variables that change which program runs, what it loads, or what tunectl takes for its host and root.

Source: systemd.exec(5), UnsetEnvironment=; python(1); ld.so(8).
"""

from __future__ import annotations

import re

STEERS = re.compile(r"TUNECTL_|PATH$|PYTHON|LD_|GLIBC_TUNABLES$|GCONV_PATH$|LOCPATH$")
# Our units take these away, whoever set them: the manager (DefaultEnvironment=, `systemctl set-environment`,
# systemd.setenv= on the kernel's line), a drop-in, or a file that one names.
_TAKEN_AWAY = (
    *("TUNECTL_ROOT", "TUNECTL_HOST", "TUNECTL_STATE", "TUNECTL_FORMAT", "TUNECTL_QUIET", "TUNECTL_VERBOSE"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONINSPECT"),
    *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_TRACE_LOADED_OBJECTS", "GLIBC_TUNABLES"),
)
UNSET = f"UnsetEnvironment={' '.join(_TAKEN_AWAY)}"
