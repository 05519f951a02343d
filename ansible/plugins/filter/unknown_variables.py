# Copyright: tunectl contributors
# SPDX-License-Identifier: Apache-2.0
"""The filter unknown_variables: a variable whose name is misspelt would be left out without a word."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ansible_collections.tunectl.host.plugins.module_utils.hostfile import unknown_variables

_COLLECTION = Path(__file__).resolve().parents[2]
_NAME = re.compile(r"\btunectl_\w+")


@cache
def _read() -> frozenset[str]:
    """Every name that a playbook or role of this collection reads or sets."""
    files = [path for folder in ("playbooks", "roles") for path in (_COLLECTION / folder).glob("**/*.yml")]
    return frozenset(name for path in files for name in _NAME.findall(path.read_text(encoding="utf-8")))


def _unknown(names: Iterable[str]) -> list[str]:
    return unknown_variables(names, _read())


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filters by name."""
        return {"unknown_variables": _unknown}
