# Copyright: tunectl contributors
# SPDX-License-Identifier: Apache-2.0
"""The host file of tunectl, from typed values to TOML text. Pure: no Ansible, no I/O.

What a value may be, and whether it fits the host, is for `tunectl plan --candidate` to say, on the host itself.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterable
from typing import Any

PROPOSAL = "proposal"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_OWN = ("nic", "count", "renew")  # how to come to a proposal: no part of the file
_ADDRESS = re.compile(r"""(?m)^(\s*url\s*=\s*["'][a-z]+://[^/"'?#]*)([/?#][^"']+)(["'])""")
_HIDDEN = "(hidden)"
_VARIABLE = "tunectl_host_"
_HEAD = "# Written by Ansible (tunectl.host.tunectl): edit the inventory, not this file.\n"


# The host file's keys, from docs/schema/hostfile.schema.json: begin
OPTIONS: dict[str, Any] = {
    "profile": {"type": "str", "default": "low-latency"},
    "isolated": {"type": "str", "default": "proposal"},
    "nic": {"type": "str"},
    "count": {"type": "int"},
    "renew": {"type": "bool", "default": False},
    "bootloader": {"type": "str"},
    "isolation": {"type": "str", "choices": ["boot", "runtime", "both"]},
    "allow_split_siblings": {"type": "bool"},
    "network": {"type": "dict", "options": {"interfaces": {"type": "list", "elements": "str"}}},
    "budget": {
        "type": "dict",
        "options": {
            "max_ns": {"type": "float"},
            "p99_9_ns": {"type": "float"},
            "interruptions_per_s": {"type": "float"},
            "stolen_ppm": {"type": "float"},
            "smis_per_s": {"type": "float"},
            "feed": {"type": "dict", "options": {"due_to_book_p99_9_ns": {"type": "float"}}},
        },
    },
    "thermal": {
        "type": "dict",
        "options": {"base_frequency_khz": {"type": "int"}, "min_ratio": {"type": "float"}},
    },
    "clock": {
        "type": "dict",
        "options": {
            "rule": {"type": "str", "choices": ["rts25-high-frequency", "rts25", "cat"]},
            "max_error_ns": {"type": "float"},
        },
    },
    "preflight": {
        "type": "dict",
        "options": {
            "load": {
                "type": "list",
                "elements": "str",
                "choices": ["memory", "faults", "files", "network", "timers", "all", "none"],
            },
            "feed": {"type": "bool"},
        },
    },
    "report": {
        "type": "dict",
        "options": {
            "keep": {"type": "int"},
            "textfile": {"type": "str"},
            "folder": {"type": "str"},
            "mount": {"type": "str"},
            "url": {"type": "str"},
            "token_file": {"type": "str"},
            "certificate_file": {"type": "str"},
            "key_file": {"type": "str"},
            "ca_file": {"type": "str"},
            "timeout_s": {"type": "float"},
        },
    },
    "monitor": {
        "type": "dict",
        "options": {
            "interval_s": {"type": "float"},
            "drift_interval_s": {"type": "float"},
            "log": {"type": "str", "choices": ["journal", "syslog", "none"]},
            "repair": {"type": "bool"},
            "sla": {
                "type": "dict",
                "options": {
                    "window_s": {"type": "float"},
                    "p99_9_ns": {"type": "float"},
                    "max_ns": {"type": "float"},
                    "socket": {"type": "str"},
                    "socket_group": {"type": "str"},
                },
            },
            "sentinel": {"type": "dict", "options": {"cpu": {"type": "int", "required": True}}},
            "prometheus": {"type": "dict", "options": {"listen": {"type": "str"}, "textfile": {"type": "str"}}},
            "webhooks": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "url": {"type": "str"},
                    "format": {"type": "str", "choices": ["alertmanager", "json"]},
                    "token_file": {"type": "str"},
                    "url_file": {"type": "str"},
                    "ca_file": {"type": "str"},
                    "timeout_s": {"type": "float"},
                    "resend_s": {"type": "float"},
                },
            },
            "hooks": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "command": {"type": "list", "elements": "str", "required": True},
                    "timeout_s": {"type": "float"},
                },
            },
        },
    },
    "knobs": {"type": "dict"},
    "threads": {
        "type": "list",
        "elements": "dict",
        "options": {
            "cpu": {"type": "int", "required": True},
            "unit": {"type": "str"},
            "command": {"type": "str"},
            "user": {"type": "str"},
            "thread": {"type": "str"},
            "name": {"type": "str"},
            "policy": {"type": "str", "choices": ["other", "batch", "idle", "fifo", "rr", "deadline"]},
            "priority": {"type": "int"},
            "locked_memory": {"type": "bool"},
            "fed_by": {"type": "list", "elements": "str"},
            "spins": {"type": "bool"},
        },
    },
    "waivers": {
        "type": "list",
        "elements": "dict",
        "options": {
            "knob": {"type": "str", "required": True},
            "reason": {"type": "str", "required": True},
            "until": {"type": "str", "required": True},
            "target": {"type": "str"},
        },
    },
}
# end


def arguments() -> dict[str, Any]:
    """OPTIONS for the module: Ansible shows no address of a webhook, in no result and on no log."""
    made = copy.deepcopy(OPTIONS)
    made["monitor"]["options"]["webhooks"]["options"]["url"]["no_log"] = True
    return made


def redacted(text: str) -> str:
    """A host file's text without the part of an address that may be a secret: all behind the host's name."""
    return _ADDRESS.sub(rf"\1/{_HIDDEN}\3", text)


def exposed(host: dict[str, Any]) -> list[str]:
    """The webhooks of which an address with more than a host would stand in a file that everybody may read."""
    webhooks = (host.get("monitor") or {}).get("webhooks") or []
    return [f"monitor.webhooks[{number}]" for number, one in enumerate(webhooks) if _is_exposed(one)]


def _is_exposed(webhook: dict[str, Any]) -> bool:
    path = (webhook.get("url") or "").partition("://")[2].partition("/")[2]
    return path.rstrip("/") not in ("", "api/v2/alerts")


def unknown_variables(names: Iterable[str], others: Iterable[str] = ()) -> list[str]:
    """Those that are no key of the host file and none of the `others` that are read, each with the nearest that is.

    A name that begins with tunectl_host_ is a key or nothing.
    """
    keys = {f"{_VARIABLE}{key}" for key in OPTIONS}
    known = keys | {name for name in others if not name.startswith(_VARIABLE)}
    unknown = []
    for name in sorted(set(names) - known):
        near = difflib.get_close_matches(name, sorted(keys if name.startswith(_VARIABLE) else known), n=1, cutoff=0)
        unknown.append(f"{name}: did you mean {near[0]}?")
    return unknown


def render(host: dict[str, Any], isolated: str) -> str:
    """The file's text. `host` as OPTIONS describes it, with None for what was not given; `isolated` is a cpulist.

    ValueError names the key of what TOML cannot hold.
    """
    wanted = {key: value for key, value in host.items() if key not in _OWN}
    wanted["isolated"] = isolated
    return _HEAD + "\n".join(_lines(_given(wanted, OPTIONS), ())) + "\n"


def _given(value: Any, options: dict[str, Any]) -> Any:
    """Without what was not given, and tables that are empty for it; in one order, whatever order Ansible hands over."""
    if isinstance(value, dict):
        order = [key for key in options if key in value] + [key for key in value if key not in options]
        kept = {key: _given(value[key], options.get(key, {}).get("options", {})) for key in order}
        return {key: inner for key, inner in kept.items() if inner is not None and inner != {} and inner != []}
    if isinstance(value, list):
        return [_given(inner, options) for inner in value]
    return value


def _lines(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """A table: its plain keys first, since a header ends them; then its tables, then its rows of tables."""
    lines: list[str] = []
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    rows = {key: value for key, value in table.items() if _is_rows(value)}
    for key, value in table.items():
        if key not in inner and key not in rows:
            lines.append(f"{_key(key)} = {_value(value, (*path, key))}")
    for key, value in inner.items():
        header = [] if _is_header_only(value) else ["", f"[{_dotted((*path, key))}]"]
        lines += [*header, *_lines(value, (*path, key))]
    for key, value in rows.items():
        for row in value:
            lines += ["", f"[[{_dotted((*path, key))}]]", *_lines(row, (*path, key))]
    return lines


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _is_header_only(table: dict[str, Any]) -> bool:
    """Nothing but tables of its own: their headers imply this one."""
    return bool(table) and all(isinstance(value, dict) or _is_rows(value) for value in table.values())


def _key(key: Any) -> str:
    text = str(key)
    return text if _BARE.fullmatch(text) else _string(text)


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(_key, path))


def _value(value: Any, path: tuple[str, ...]) -> str:
    where = ".".join(map(str, path))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, str) and path[-1] == "until":
        if not _DATE.fullmatch(value):
            raise ValueError(f"{where}: {value!r} is no date; what is right: 2027-03-31")
        return value
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner, path) for inner in value) + "]"
    raise ValueError(f"{where}: {value!r}: a {type(value).__name__} has no place in a host file")


def _string(text: str) -> str:
    """A basic string. JSON's escapes are TOML's, but for the delete character, which TOML wants escaped, too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
