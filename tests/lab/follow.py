"""Following the fix of a finding as an operator does: the words of the fix, as commands.

Nothing here knows which sabotage was done. A fix that names nothing to do gives no commands: then it has to be worded
as a decision, and the row says what its operator decides.
"""

import re

from tunectl.fix import Kind

APPLY = "tunectl apply --yes -q"
REBOOT = "reboot"
_UNIT = r"[\w@:-]*[\w@](?:\.[a-z]+)?"
# A service of Type=simple is started once systemd has forked: its program begins later, on a starved guest much later.
_STARTED = (
    r"while readlink /proc/$(systemctl show -p MainPID --value \2)/exe | grep -qE '/systemd(-executor)?$';"
    " do sleep 0.2; done"
)
# What a fix may ask for: its kind, how it is worded, and the command an operator would type, with the pattern's groups.
_ASKS = (
    ("remove a setting", r"remove that setting \(.*?(\S+) in (/\S+?):\d+ wins", r"sed -i 's/\1 *//' \2"),
    ("remove a setting", r"remove that setting \((/\S+?):(\d+) sets", r"sed -i \2d \1"),
    ("take a line out", r"(?:\btake |(?<=, ))(/\S+?):(\d+)(?=(?:, /\S+?:\d+)* out\b)", r"sed -i \2d \1"),
    ("move a thread", r"\b(taskset -cp \S+ \d+)", r"\1"),
    ("schedule a thread", r"\b(chrt -\w -p \d+ \d+)", r"\1"),
    ("end a process", r"\b(kill (\d+))", r"\1; timeout 60 tail --pid=\2 -f /dev/null"),
    ("stop a service", rf"\b(systemctl (?:stop|disable --now) {_UNIT})", r"\1"),
    ("restart a service", rf"\b(systemctl restart ({_UNIT}))", rf"\1; {_STARTED}; sleep 2"),
    ("start a service", rf"\b(systemctl start ({_UNIT}))", rf"\1; {_STARTED}; sleep 2"),
    ("have systemd read its files", r"\b(systemctl daemon-reload)", r"\1"),
    ("revert a unit", rf"\b(systemctl (?:revert|unmask) {_UNIT})", r"\1"),
    ("mask a unit", r"\b(systemctl mask '?[\w@:.\\-]+'?)", r"\1"),
    ("boot into another target", rf"\b(systemctl set-default {_UNIT})", r"\1"),
    ("have a target start a unit", rf"\b(systemctl add-wants {_UNIT} {_UNIT})", r"\1"),
    ("have udev read its rules", r"\b(udevadm control --reload)", r"\1"),
    ("give a control group its CPUs", rf"\b(systemctl set-property(?: --runtime)? {_UNIT} \w+=[\w,-]*)", r"\1"),
    ("let a unit go on", rf"\b(systemctl thaw {_UNIT})", r"\1"),
    ("choose an entry", r"\b(grub-editenv \S+ unset \w+|grub-set-default \w+)", r"\1"),
    ("make the menu again", r"\b(update-grub)\b", r"\1 2>/dev/null"),
    ("remove a file", r"\b(rm (?:-r )?/[\w@./-]*\w)", r"\1"),
    ("write a value", r"\b(echo(?: [^\s>;|]+)? \| sudo tee(?: -a)?(?: /[\w./-]*\w)+)", r"\1 >/dev/null"),
    ("set a value", r"\b(sysctl [\w.]+=\w+)", r"\1"),
    ("remove an instance", r"\b(rmdir /[\w./-]*\w)", r"\1"),
    ("swap off", r"\b(swapoff (?:-a|/[\w./-]*\w))", r"\1"),
    ("load a driver", r"\b(modprobe (?:-r )?[\w-]+)", r"\1; sleep 1"),
    ("edit a file", r"\b(sed -i (?:'[^']*'|\S+) '?/[\w./@-]*\w'?)", r"\1"),
    ("decide to go on without a journal", r"\btunectl apply --adopt", f"{APPLY} --adopt"),
    ("apply", r"\btunectl apply(?! --adopt)", APPLY),
    ("reboot", r"(?<![-\w])reboot\b", REBOOT),
)
KINDS = frozenset(kind for kind, _, _ in _ASKS)
# Those that the rounds of CI need; the long set needs all.
CI_KINDS = frozenset(
    {"remove a setting", "take a line out", "move a thread", "end a process", "restart a service", "apply", "reboot"}
)


def _asked(fix: str) -> list[tuple[int, str, str]]:
    """(where in the text, kind, command) of each thing that a fix asks for."""
    return sorted(
        (found.start(), kind, found.expand(command))
        for kind, pattern, command in _ASKS
        for found in re.finditer(pattern, fix)
    )


def steps(fix: str) -> list[str]:
    """The commands a fix asks for, in its own order."""
    return [command for _, _, command in _asked(fix)]


def kinds(fix: str) -> set[str]:
    """The kinds of what a fix asks for."""
    return {kind for _, kind, _ in _asked(fix)}


def in_order(fixes: list[str]) -> list[str]:
    """What several fixes ask for, in the order of the product's own list of what to do.

    Each step once, where the last of them asks for it: the menu is made after every edit.
    """
    backwards = dict.fromkeys(step for fix in reversed(fixes) for step in reversed(steps(fix)))
    every = list(reversed(backwards))
    return sorted(every, key=_rank)


def _rank(step: str) -> Kind:
    return {APPLY: Kind.APPLY, REBOOT: Kind.REBOOT}.get(step, Kind.TYPE)
