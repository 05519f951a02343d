"""What a boot makes of a service of ours: does the next one start it, and did this one?

Source: kernel-command-line(7), systemd.mask=, systemd.unit= and systemd.volatile=; systemd-fstab-generator(8) and
systemd-volatile-root.service(8); bootup(7); systemd.unit(5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tunectl import kinds
from tunectl.bootloader.cmdline import Arg, same_key
from tunectl.command import argv, as_data
from tunectl.fix import NOTHING, REBOOT, Fix, to_decide, to_type
from tunectl.host.systemdunit import RELOAD, is_wanted, read_state
from tunectl.knobs.drivers.bootgoal import (
    RESCUE,
    Goal,
    Obstacle,
    barred,
    goal_of,
    is_there,
    leads_to,
    masking,
    obstacle_of,
)
from tunectl.knobs.drivers.bootline import boot_lines, place_of, removal_fix
from tunectl.knobs.row import View

NOT_RUN = "not run"
INITRAMFS_TOOLS = "usr/share/initramfs-tools/init"  # its initial RAM disk has no systemd
_DRIFTED = "3"  # how `tunectl apply` ends where it did all it can, and something is drifted that it cannot apply
_YES = frozenset({"1", "yes", "y", "true", "t", "on"})


class Found(NamedTuple):
    """A state of a service, why it is one, and what ends it where `apply` does not."""

    value: str
    reason: str = ""
    fix: Fix = NOTHING


def of_line(view: View, name: str) -> Found | None:
    """What words of the kernel's command line do to it; None for nothing."""
    lines = boot_lines(view)
    word = masking(lines.this, name)
    if later := masking(lines.next or (), name):
        place = place_of(view, str(later))
        why = f"the next boot will have {later}{_at(place)}: it is never started then"
        return Found("masked", why, removal_fix(view, str(later), reboot=word is not None))
    if word is None:
        return None
    what = "whether the next has it is not known" if lines.next is None else "the next will not"
    why = f"this boot had {word}, which masks it, and {what}"
    # In the place of the service an apply by hand does; of what is started for each device only the next boot.
    return Found("masked", why, REBOOT) if "@" in name else Found(NOT_RUN, why)


def of_volatile(view: View) -> Found | None:
    """Does the next boot begin without files that the service needs? With `overlay` they are there, and may change."""
    words = [arg for arg in boot_lines(view).next or () if same_key(arg.key, "systemd.volatile")]
    mode = ("yes" if words[-1].value is None else words[-1].value.lower()) if words else ""
    if mode == "state":
        lost = "/var is empty then, and without its journal apply writes nothing"
    elif mode in _YES and not view.root.exists(INITRAMFS_TOOLS):
        lost = "/etc and /var are empty then: there is no unit, no host file and no journal"
    else:
        return None
    word = str(words[-1])
    why = f"the next boot will have {word}{_at(place_of(view, word))}: {lost}"
    return Found("left out", why, removal_fix(view, word, reboot=False))


def of_goal(view: View, name: str) -> Found | None:
    """Does the next boot reach it? None where it does, or nobody can say."""
    root, args = view.root, boot_lines(view).next or ()
    goal = goal_of(root, args)
    obstacle = obstacle_of(root, goal, args) if goal and goal.unit else None
    if goal is not None and not obstacle and leads_to(root, goal, name, args):
        return None
    if not is_wanted(root, name):
        return Found("disabled")
    if goal is None:
        return None
    if goal.unit and (bar := barred(root, goal.unit, args)):
        return _barred(view, goal, bar)
    if obstacle:
        why = f"the next boot goes to {goal.unit}, which cannot start: {obstacle}; systemd starts nothing then"
        return Found("left out", why, _start_fix(view, obstacle))
    place = place_of(view, goal.word) if goal.word else f"/{goal.file}"
    said = f"{goal.word}{_at(place)}" if goal.word else place
    why = f"the next boot goes to {goal.unit} ({said}), and nothing that this starts wants {name}"
    if not goal.unit:
        why = f"the next boot will have {said}: it does not start systemd"
    return Found("left out", why, _way_back_fix(view, goal, name))


def _barred(view: View, goal: Goal, bar: Arg | str) -> Found:
    """What masks the target that the next boot goes to, a word or a file, and how that ends."""
    if isinstance(bar, str):
        why = f"the next boot goes to {goal.unit}, which /{bar} masks"
        return Found("left out", why, to_type(argv("sudo", "rm", of=[f"/{bar}"]).then(RELOAD)))
    place = place_of(view, str(bar))
    why = f"the next boot goes to {goal.unit}, and will have {bar}{_at(place)}, which masks it"
    return Found("left out", why, removal_fix(view, str(bar), reboot=False))


def _way_back_fix(view: View, goal: Goal, name: str) -> Fix:
    """How a boot comes to start it: a target of the operator's own gets to want it, others are left."""
    if goal.word:
        return removal_fix(view, goal.word, reboot=False)
    if goal.unit in RESCUE or not is_there(view.root, goal.unit):
        return to_type(kinds.boot_to_multi_user())
    return to_type(argv("sudo", "systemctl", "add-wants", of=(goal.unit, name)))


def _start_fix(view: View, obstacle: Obstacle) -> Fix:
    """How a target comes to start that requires what is not there, or is masked."""
    if isinstance(obstacle.mask, Arg):
        return removal_fix(view, str(obstacle.mask), reboot=False)
    if obstacle.mask:
        return to_type(argv("sudo", "rm", of=[f"/{obstacle.mask}"]).then(RELOAD))
    if obstacle.line:
        return to_decide(
            f"decide what /{obstacle.file}:{obstacle.line} shall require: there is no {as_data(obstacle.unit)}"
        )
    return to_type(argv("sudo", "rm", of=[f"/{obstacle.file}"]).then(RELOAD))


def _at(place: str) -> str:
    return f" ({place})" if place else ""


def is_failed(state: Mapping[str, str]) -> bool:
    """Did it fail? What is drifted and cannot be applied is named by itself: to start the unit again mends nothing."""
    is_drift = state.get("Result") == "exit-code" and state.get("ExecMainStatus") == _DRIFTED
    return state.get("ActiveState") == "failed" and not is_drift


def of_this_boot(view: View, name: str) -> Found | None:
    """What became of it in this boot; None where it ran and ended well, or nobody can say."""
    root = view.root
    if "@" in name or not root.exists("run/systemd/units"):
        return None
    again = to_type(kinds.restart_ours(name))
    state = read_state(root, name)
    if is_failed(state):
        why = f"it failed in this boot (result {state.get('Result', '')}): `journalctl -b -u {name}` says why"
        return Found("failed", why, again)
    # systemd makes this link when it starts a unit.
    if root.exists(f"run/systemd/units/invocation:{name}") or (root.live and state.get("Job", "?") != ""):
        return None
    args = boot_lines(view).this
    goal = goal_of(root, args)
    if goal and goal.word and not leads_to(root, goal, name, args):
        return Found(NOT_RUN, f"it did not run in this boot, which had {goal.word}", again)
    return Found(NOT_RUN, "it did not run in this boot, although its files have it started", again)
