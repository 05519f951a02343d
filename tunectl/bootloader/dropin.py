"""Plans our drop-in: which arguments it must hold, and which of the operator's own settings would win over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tunectl.bootloader.cmdline import Arg, Found, Rule, kernel_args, lookup, same_key
from tunectl.bootloader.grub import DROPIN, render_dropin
from tunectl.bootloader.mkconfig import configured
from tunectl.bootloader.nextboot import next_length_problem
from tunectl.bootloader.settings import Configured, Placed
from tunectl.bootloader.words import Desired, Same, given, written
from tunectl.host.sysroot import Sysroot


class DropinPlan(NamedTuple):
    """The file to write; None where the rest of the configuration already gives everything.

    `conflicts` name settings that win over ours, by file and line; `problem` is why nothing can be planned.
    """

    content: str | None
    conflicts: tuple[str, ...]
    problem: str | None


def plan_dropin(root: Sysroot, desired: Sequence[Desired], same: Same) -> DropinPlan:
    """The drop-in for these arguments. `same(key, a, b)` compares two values, as CPU sets where they are."""
    rest = configured(root, without_ours=True)
    if rest.problem:
        return DropinPlan(None, (), rest.problem)
    needed = [written(want) for want in desired if not given(rest.args, want, same)]
    if not needed:
        return DropinPlan(None, (), None)
    content = render_dropin(needed)
    after = configured(root, overlay={DROPIN: content})
    if after.problem:  # only a shell could tell, and the file is not there yet: confirm() looks once it is
        where = "/" + DROPIN
        added = tuple(Placed(Arg(key, value or None), where) for key, value, _ in desired)
        default = " ".join([rest.linux_default, *needed])
        after = Configured(rest.linux, default, rest.files, placed=rest.placed + added)
    return DropinPlan(content, unmet(after, desired, same), next_length_problem(root, after.line))


def confirm(settings: Configured, desired: Sequence[Desired], same: Same) -> str | None:
    """What is wrong with the written configuration, read or sourced again; None where it gives every argument."""
    return settings.problem or "; ".join(unmet(settings, desired, same)) or None


def unmet(settings: Configured, desired: Sequence[Desired], same: Same) -> tuple[str, ...]:
    """Which desired arguments these settings do not put in force, and what stands in the way, one line each."""
    return tuple(_obstacle(settings, want, same) for want in desired if not given(settings.args, want, same))


def _find(args: Sequence[Arg], key: str, rule: Rule, same: Same) -> Found | None:
    return lookup(args, key, rule, lambda one, other: same(key, one, other))


def _equal(same: Same, key: str, one: str | None, other: str | None) -> bool:
    return same(key, one, other) if one and other else not one and not other


def _obstacle(settings: Configured, want: Desired, same: Same) -> str:
    key, value, rule = want
    placed = [one for one in settings.placed if same_key(one.arg.key, key)]
    mine = kernel_args(settings.args)
    if len(mine) < len(settings.args) and any(_equal(same, key, one.arg.value, value) for one in placed):
        end = settings.placed[len(mine)]
        return f"'--' in {end.where} ends the kernel's own arguments: {written(want)} behind it goes to init"
    found = _find(settings.args, key, rule, same)
    if found is None or rule is Rule.EACH:
        place = settings.default_set_at or "the settings"
        if place.startswith("/" + DROPIN):
            return f"a ';' or a brace in the settings ends GRUB's linux command before {written(want)}"
        return f"{place} sets GRUB_CMDLINE_LINUX_DEFAULT anew, without {written(want)}"
    order = placed if rule is Rule.FIRST else placed[::-1]
    winner = next((one for one in order if one.arg.value is not None), order[0])
    return f"{winner.arg} in {winner.where} wins: {rule.value}"
