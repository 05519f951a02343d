# Copyright: tunectl contributors
# SPDX-License-Identifier: Apache-2.0
"""From the module's parameters to the words of one call of tunectl. Pure: no Ansible, no I/O."""

from __future__ import annotations

from typing import Any

# command -> the name its document has ("schema": "tunectl.<name>/1")
SCHEMAS = {
    "plan": "plan",
    "apply": "apply",
    "confirm": "trial",
    "configure": "plan",
    "verify": "verify",
    "check": "check",
    "preflight": "preflight",
    "restore": "restore",
    "probe": "probe.jitter",
    "propose": "propose",
    "show": "show",
    "service": "service",
}
WRITES = ("apply", "confirm", "configure", "restore", "service")
_FLAGS = {
    "verify": ("strict",),
    "check": ("strict",),
    "preflight": ("strict",),
    "apply": ("runtime", "try_boot", "attended", "without_watchdog"),
    "restore": ("force", "salvage"),
    "probe": ("attribute",),
}
_SWITCHES = {"preflight": ("feed",)}  # on, off, or as the host file says
_VALUES = {
    "apply": {"confirm_within": "--confirm-within", "reach": "--reach", "wait_s": "--wait"},
    "confirm": {"wait_s": "--wait"},
    "restore": {"wait_s": "--wait"},
    "check": {"window_s": "--window"},
    "preflight": {"duration_s": "--duration", "window_s": "--window", "load": "--load"},
    "probe": {"duration_s": "--duration", "cpus": "--cpus", "threshold_ns": "--threshold-ns", "events": "--events"},
    "propose": {"nic": "--nic", "count": "--count", "profile": "--profile"},
}
_INSTEAD = {"apply": "plan", "confirm": "show"}  # in check mode
_WORDS = {"probe": ["probe", "jitter"], "apply": ["apply", "--yes"], "configure": ["plan"]}


def words(command: str, params: dict[str, Any], check_mode: bool = False, candidate: str = "") -> list[str]:
    """The words after the program's name. In check mode nothing that they start writes."""
    if command == "service":
        return [*_service(params, check_mode), *_shared(params)]
    if command == "restore" and check_mode:
        said = ["restore", "--dry-run", *(["--force"] if params.get("force") else [])]
        return [*said, *_shared(params)]
    if check_mode:
        command = _INSTEAD.get(command, command)
    said = list(_WORDS.get(command, [command]))
    said += [f"--{flag.replace('_', '-')}" for flag in _FLAGS.get(command, ()) if params.get(flag)]
    switched = [key for key in _SWITCHES.get(command, ()) if params.get(key) is not None]
    said += [f"--{key}" if params[key] else f"--no-{key}" for key in switched]
    for key, option in _VALUES.get(command, {}).items():
        if params.get(key) is not None:
            said += [option, _text(params[key])]
    if candidate and said[0] == "plan":
        said += ["--candidate", candidate]
    said += _shared(params)
    operands = {"check": params.get("paths"), "confirm": [params["id"]] if params.get("id") else None}.get(command)
    return [*said, "--", *operands] if operands else said


def schema(command: str, check_mode: bool = False) -> str:
    """The name of the document that these words are answered with."""
    return SCHEMAS[_INSTEAD.get(command, command) if check_mode else command]


def _service(params: dict[str, Any], check_mode: bool) -> list[str]:
    action = "install" if params["state"] == "present" else "remove"
    repair = ["--repair"] if params.get("repair") and action == "install" else []
    at = ["--at", params["at"]] if params.get("at") and action == "install" else []
    return ["service", "show" if check_mode else action, params["name"], *repair, *at]


def _shared(params: dict[str, Any]) -> list[str]:
    """The options that every command has."""
    said = ["--format", "json", "--quiet"]
    for key, option in (("root", "--root"), ("host_file", "--host"), ("state_dir", "--state")):
        if params.get(key):
            said += [option, params[key]]
    return said


def _text(value: Any) -> str:
    """A number as a user would write it: 5, not 5.0."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
