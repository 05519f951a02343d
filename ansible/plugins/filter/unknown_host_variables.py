# Copyright: tunectl contributors
# SPDX-License-Identifier: Apache-2.0
"""The filter unknown_host_variables: a name that is misspelt would be left out of the host file without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.tunectl.host.plugins.module_utils.hostfile import unknown_variables


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filters by name."""
        return {"unknown_host_variables": unknown_variables}
