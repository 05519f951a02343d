"""Following the fix of a finding as an operator does: the words of the fix, as commands.

Nothing here knows which sabotage was done. A fix that names nothing to do gives no commands, and the test fails.
"""

import re

APPLY = "tunectl apply --yes -q"
REBOOT = "reboot"
# What a fix may ask for, and the command an operator would type; the pattern's groups fill it in.
_ASKS = (
    (r"remove that setting \(.*?(\S+) in (/\S+?):\d+ wins", r"sed -i 's/\1 *//' \2"),
    (r"remove that setting \((/\S+?):(\d+) sets", r"sed -i \2d \1"),
    (r"\btake (/\S+?):(\d+) out", r"sed -i \2d \1"),
    (r"\b(taskset -cp \S+ \d+)", r"\1"),
    (r"^(kill \d+):", r"\1; sleep 1"),
    (r"(systemctl restart \w+)", r"\1"),
    (r"\btunectl apply", APPLY),
    (r"\breboot\b", REBOOT),
)


def steps(fix: str) -> list[str]:
    """The commands a fix asks for, in the order they are to be typed."""
    return [found.expand(command) for pattern, command in _ASKS for found in re.finditer(pattern, fix)]


def in_order(fixes: list[str]) -> list[str]:
    """What several fixes ask for, each step once: what stands in the way first, then apply, then a reboot."""
    every = dict.fromkeys(step for fix in fixes for step in steps(fix))
    return sorted(every, key=lambda step: (step == APPLY) + 2 * (step == REBOOT))
