"""Environment variables that change which program runs, what it loads, or what tunectl takes for its host and root.

What acts before Python runs, or in another program of a unit, only systemd can take away; `python -I` ignores PYTHON*
(but not PYTHONEXECUTABLE: Modules/getpath.py), and cli/start.py the rest.

Source: systemd.exec(5), UnsetEnvironment=; python(1); ld.so(8); openssl-env(7); glibc's resolv.conf(5), mtrace(3).
"""

from __future__ import annotations

import re

STEERS = re.compile(r"TUNECTL_|PATH$|PYTHON|LD_|GLIBC_TUNABLES$|GCONV_PATH$|LOCPATH$")
# Our units take these away, whoever set them: the manager (DefaultEnvironment=, `systemctl set-environment`,
# systemd.setenv= on the kernel's line), a drop-in, or a file that one names.
_TAKEN_AWAY = (
    *("TUNECTL_ROOT", "TUNECTL_HOST", "TUNECTL_STATE", "TUNECTL_FORMAT", "TUNECTL_QUIET", "TUNECTL_VERBOSE"),
    *("TUNECTL_PROBE", "TUNECTL_PROBE_PARENT", "TUNECTL_DEBUG", "_TUNECTL_COMPLETE"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONINSPECT", "PYTHONSTARTUP"),
    *("PYTHONBREAKPOINT", "PYTHONPYCACHEPREFIX", "PYTHONWARNINGS", "PYTHONEXECUTABLE", "PYTHONPERFSUPPORT"),
    *("PYTHON_PERF_JIT_SUPPORT", "PYTHON_PRESITE", "PYTHON_HISTORY", "PYTHONDUMPREFSFILE"),
    *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_TRACE_LOADED_OBJECTS", "LD_DEBUG", "LD_DEBUG_OUTPUT"),
    *("LD_PROFILE", "LD_PROFILE_OUTPUT", "LD_ORIGIN_PATH", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH"),
    *("MALLOC_TRACE", "TZDIR", "GETCONF_DIR", "HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS", "RESOLV_HOST_CONF"),
    *("OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_MODULES", "OPENSSL_ENGINES"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE", "BASH_ENV", "ENV"),
)
UNSET = f"UnsetEnvironment={' '.join(_TAKEN_AWAY)}"
