# Copyright: tunectl contributors
# SPDX-License-Identifier: Apache-2.0
"""Preflight on one host, its document kept in the session on the controller, and not in Ansible's memory."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import tempfile
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure

from ansible.plugins.action import ActionBase

MODULE = "tunectl.host.tunectl"
ABSENT = "tunectl.fleet.absent/1"  # why there is no document; a host never writes that itself
_TOLD = ("changed", "exit_code", "headline", "msg", "outcomes", "program", "reboot_required", "verdict")
_FEW = 3  # reasons that are worth a task's result; the fleet's report has all


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs on the controller, in the fork that serves this host."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The verdict; the whole document, or why there is none, goes to the session."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        arguments = dict(self._task.args)
        session = arguments.pop("session", None)
        if not session or not os.path.isdir(os.path.join(str(session), "hosts")):
            raise AnsibleActionFail(f"session: {session!r} is no session; `tunectl fleet open` makes one")
        place = os.path.join(str(session), "hosts", file_name(str(variables["inventory_hostname"])))
        try:
            arguments.update(command="preflight", document=True)
            result = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=variables)
        except AnsibleConnectionFailure as error:
            keep(place, absent("unreachable", str(error)))
            raise
        except BaseException as error:  # a task's timeout is no Exception
            keep(place, absent("failed", self._said(error)))
            raise
        return self._kept(place, dict(result))

    def _said(self, error: BaseException) -> str:
        if type(error).__name__ == "TaskTimeoutError":
            return f"it took longer than the {self._task.timeout} s that the task allows"
        return f"{type(error).__name__}: {error}"

    def _kept(self, place: str, result: dict[str, Any]) -> dict[str, Any]:
        document = result.get("document")
        if result.get("failed") or result.get("unreachable") or not isinstance(document, dict):
            kind = "unreachable" if result.get("unreachable") else "failed"
            keep(place, absent(kind, str(result.get("msg") or "the module gave no document")))
            return result | {"failed": True}
        if document.get("schema") == ABSENT:
            said = f"the host printed {ABSENT}, which only the controller writes"
            keep(place, absent("failed", said))
            return result | {"failed": True, "msg": said}
        keep(place, document)
        told = {key: result[key] for key in _TOLD if key in result}
        return {**told, "reasons": result.get("reasons", [])[:_FEW], "document_file": place}


def absent(kind: str, reason: str) -> dict[str, str]:
    """tunectl.fleet.absent/1"""
    at = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: UP017 - Python 3.9, too
    return {"schema": ABSENT, "kind": kind, "reason": " ".join(reason.split())[:2000], "at": at}


def file_name(host: str) -> str:
    """As tunectl.fleet.names has it: a name from the inventory never becomes a path."""
    encoded = quote(host, safe="", errors="surrogatepass").replace("~", "%7E") or "%"
    if encoded.startswith("."):
        encoded = "%2E" + encoded[1:]
    if len(encoded) > 240:
        encoded = f"{encoded[:100]}~{hashlib.sha256(host.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return encoded + ".json"


def keep(path: str, document: dict[str, Any]) -> None:
    """Writes the file whole, or not at all."""
    descriptor, temporary = tempfile.mkstemp(prefix=".tunectl-", dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file)
            file.flush()
            os.fchmod(descriptor, 0o644)
            os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
