"""Following the fix of a finding as an operator does: the words of the fix, as commands.

Nothing here knows which sabotage was done. A fix that names nothing to do gives no commands, and the test fails.
"""

import re

APPLY = "tunectl apply --yes -q"
REBOOT = "reboot"
# What a fix may ask for: its kind, how it is worded, and the command an operator would type, with the pattern's groups.
_ASKS = (
    ("remove a setting", r"remove that setting \(.*?(\S+) in (/\S+?):\d+ wins", r"sed -i 's/\1 *//' \2"),
    ("remove a setting", r"remove that setting \((/\S+?):(\d+) sets", r"sed -i \2d \1"),
    ("take a line out", r"\btake (/\S+?):(\d+) out", r"sed -i \2d \1"),
    ("move a thread", r"\b(taskset -cp \S+ \d+)", r"\1"),
    ("end a process", r"^(kill \d+):", r"\1; sleep 1"),
    ("restart a service", r"(systemctl restart \w+)", r"\1"),
    ("apply", r"\btunectl apply", APPLY),
    ("reboot", r"\breboot\b", REBOOT),
)
KINDS = frozenset(kind for kind, _, _ in _ASKS)


def steps(fix: str) -> list[str]:
    """The commands a fix asks for, in the order they are to be typed."""
    return [found.expand(command) for _, pattern, command in _ASKS for found in re.finditer(pattern, fix)]


def kinds(fix: str) -> set[str]:
    """The kinds of what a fix asks for."""
    return {kind for kind, pattern, _ in _ASKS if re.search(pattern, fix)}


def in_order(fixes: list[str]) -> list[str]:
    """What several fixes ask for, each step once: what stands in the way first, then apply, then a reboot."""
    every = dict.fromkeys(step for fix in fixes for step in steps(fix))
    return sorted(every, key=lambda step: (step == APPLY) + 2 * (step == REBOOT))
