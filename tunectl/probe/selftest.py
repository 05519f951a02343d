"""Starts `tunectl-probe selftest`, known interruptions against what the probe finds, and hands back its result."""

from __future__ import annotations

import json
from typing import Any

from tunectl.errors import TunectlError
from tunectl.probe.runner import PROGRAM, document_of, start

SCHEMA = "tunectl.probe.selftest/1"
# It takes some twelve seconds; a loaded host may make each of 56,000 injections wait.
_LIMIT_S = 300.0


def run_selftest(cpu: int | None) -> dict[str, Any]:
    """The tunectl.probe.selftest/1 document for `cpu`, or for the program's own choice, passed or not.

    TunectlError with the program's own reason when it fails, UsageError when it refuses the request.
    """
    words = [] if cpu is None else ["--cpus", str(cpu)]
    done = start(["selftest", *words], frozenset() if cpu is None else frozenset({cpu}), timeout_s=_LIMIT_S)
    if done.returncode == 1 and done.stdout.strip():
        # Status 1 with a document is an answer: not every known interruption was found.
        return _checked(json.loads(done.stdout))
    return _checked(document_of(done))


def _checked(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise TunectlError(f"{PROGRAM}: expected a document of schema {SCHEMA}")
    return document
