"""GRUB whose grub.cfg is made by grub-mkconfig: Debian and Ubuntu, SUSE, Arch.

Where grub-mkconfig reads /etc/default/grub.d, our words are in a file of our own there; elsewhere they are edited into
GRUB_CMDLINE_LINUX_DEFAULT of /etc/default/grub. Recovery entries do not get that variable (grub-mkconfig's 10_linux):
they boot without isolation. Then grub-mkconfig writes a new menu. The name of our file sorts behind those of cloud
images, since a later file overwrites an earlier one.
"""

import re
from collections.abc import Sequence
from functools import partial

from tunectl import kinds
from tunectl.bootloader import grubonce, grubtry
from tunectl.bootloader.cmdline import Arg, Rule, kernel_args, lookup, same_key
from tunectl.bootloader.editor import (
    Holder,
    Look,
    line_without_ours,
    our_words,
    plan_edits,
    read,
    variable,
    without_ours,
)
from tunectl.bootloader.family import BootPlan, Conflict, Default, Family, Journaled, Once, Refusal, Upcoming, Write
from tunectl.bootloader.grubsettings import (
    DEFAULT,
    DIRECTORY,
    DROPIN,
    FILES,
    LINUX,
    MAIN,
    Configured,
    Placed,
    configured,
    menu_path,
    source_live,
)
from tunectl.bootloader.grubstart import FILES as STARTS
from tunectl.bootloader.grubstart import starts_elsewhere
from tunectl.bootloader.nextboot import next_boot, next_length_problem
from tunectl.bootloader.words import Desired, Same, Swap, checked, given, is_safe, is_value, take_out, written
from tunectl.command import as_data, as_place
from tunectl.errors import UsageError
from tunectl.fix import NOTHING, Fix, to_type
from tunectl.host.identity import DEBIAN, read_os_ids
from tunectl.host.sysroot import Sysroot

_HEAD = (
    "# Written by tunectl: the boot arguments that isolate the trading CPUs.\n"
    "# Edits are lost with the next 'tunectl apply'; 'tunectl restore' removes this file.\n"
)
_LINE = re.compile(rf'{DEFAULT}="\$\{{{DEFAULT}\}} (?P<args>[^"\n]+)"\n')


def render_dropin(args: Sequence[str]) -> str:
    """The whole file for one or more arguments. UsageError for none, and for one that would need quoting."""
    if not args:
        raise UsageError("there is no boot argument to write", "without one the file is removed, not left empty")
    words = " ".join(map(checked, args))
    return f'{_HEAD}{DEFAULT}="${{{DEFAULT}}} {words}"\n'


def parse_dropin(text: str) -> tuple[str, ...] | None:
    """The arguments of a file that render_dropin() wrote; None for any other text, an edited one too."""
    match = _LINE.fullmatch(text.removeprefix(_HEAD)) if text.startswith(_HEAD) else None
    args = tuple(match["args"].split(" ")) if match else ()
    return args if args and all(map(is_safe, args)) else None


def plan_dropin(root: Sysroot, desired: Sequence[Desired], same: Same) -> BootPlan:
    """The drop-in for these arguments; its removal where the other settings give everything.

    `same(key, a, b)` compares two values, as CPU sets where they are.
    """
    rest = configured(root, without_ours=True)
    if rest.problem:
        return BootPlan(problem=rest.problem)
    needed = [written(want) for want in desired if not given(rest.args, want, same)]
    if not needed:
        return BootPlan((Write("removal", DROPIN, ""),) if root.exists(DROPIN) else ())
    content = render_dropin(needed)
    after = configured(root, overlay={DROPIN: content})
    if after.problem:  # only a shell could tell, and the file is not there yet: _confirm() looks once it is
        where = "/" + DROPIN
        added = tuple(Placed(Arg(key, value or None), where) for key, value, _ in desired)
        default = " ".join([rest.linux_default, *needed])
        after = Configured(rest.linux, default, rest.files, placed=rest.placed + added)
    problem = next_length_problem(root, after.line) or ""
    return BootPlan((Write("file", DROPIN, content),), unmet(after, desired, same), problem, _remedy(after))


def _remedy(settings: Configured) -> Fix:
    """What ends that entries do not get what we write."""
    return settings.withheld.remedy if settings.withheld else NOTHING


def confirm(settings: Configured, desired: Sequence[Desired], same: Same) -> str | None:
    """What is wrong with the written configuration, read or sourced again; None where it gives every argument."""
    return settings.problem or "; ".join(unmet(settings, desired, same)) or None


def unmet(settings: Configured, desired: Sequence[Desired], same: Same) -> tuple[Conflict, ...]:
    """Which desired arguments these settings do not put in force, and what stands in the way, one line each."""
    return tuple(_obstacle(settings, want, same) for want in desired if not given(settings.args, want, same))


def _obstacle(settings: Configured, want: Desired, same: Same) -> Conflict:
    key, _, rule = want
    placed = [placed for placed in settings.placed if same_key(placed.arg.key, key)]
    if settings.withheld:
        return Conflict(f"{settings.withheld.why}, and so without {written(want)}", key)
    mine = kernel_args(settings.args)
    if len(mine) < len(settings.args) and any(is_value(one.arg.value, want, same) for one in placed):
        end = as_place(settings.placed[len(mine)].where)
        return Conflict(f"'--' in {end} ends the kernel's own arguments: {written(want)} behind it goes to init", key)
    found = lookup(settings.args, key, rule, partial(same, key))
    if found is None or rule is Rule.EACH:
        place = settings.default_set_at or "the settings"
        if place.startswith("/" + DROPIN):
            cut = f"a ';' or a brace in {as_place(settings.cut_at) or 'the settings'} ends GRUB's linux command"
            return Conflict(f"{cut} before {written(want)}", key, settings.cut_at)
        setting = f"{as_place(place)} overwrites GRUB_CMDLINE_LINUX_DEFAULT"
        known = settings.default_set_at and setting
        return Conflict(f"{setting}, without {written(want)}", key, settings.default_set_at, known)
    order = placed if rule is Rule.FIRST else placed[::-1]
    winner = next((placed for placed in order if placed.arg.value is not None), order[0])
    line = winner.where if winner.where.startswith("/") else ""
    return Conflict(f"{as_data(winner.arg)} in {as_place(winner.where)} wins: {rule.value}", key, line)


def reads_dropins(root: Sysroot) -> bool:
    """Does this distribution's grub-mkconfig read /etc/default/grub.d? Debian's does; elsewhere the directory tells."""
    system = read_os_ids(root)
    return not system or bool(system & DEBIAN) or root.exists(DIRECTORY)


def look(root: Sysroot) -> Look:
    """/etc/default/grub, as a file to be edited."""
    return Look((Holder(MAIN, variable(DEFAULT)),), Upcoming((), configured(root).problem or ""))


def _plan(root: Sysroot, desired: Sequence[Desired], same: Same, journaled: Journaled) -> BootPlan:
    if (start := starts_elsewhere(root, menu_path(root))) and not root.exists(menu_path(root)):
        where = as_data(f"/{start.path}")
        return BootPlan(problem=f"GRUB's menu is {where}: add to {LINUX} in /{MAIN}, then `grub2-mkconfig -o {where}`")
    if reads_dropins(root):
        return plan_dropin(root, desired, same)
    edits = plan_edits(look, root, desired, same, journaled)
    if edits.problem:
        return edits
    after = configured(root, overlay={write.path: write.content for write in edits.writes})
    too_long = next_length_problem(root, after.line) or ""
    return BootPlan(edits.writes, unmet(after, desired, same), after.problem or too_long, _remedy(after))


def _ours(root: Sysroot, journaled: Journaled) -> tuple[str, ...]:
    return parse_dropin(root.get_text(DROPIN)) or our_words(look, root, journaled)


def _stripped(root: Sysroot, journaled: Journaled) -> tuple[Write, ...]:
    edited = without_ours(look, root, journaled) if read(root, MAIN) is not None else ()
    return (*edited, *grubtry.without_ours(root))


def _once_refusals(root: Sysroot) -> tuple[Refusal, ...]:
    """What is tried has to be what the settings come to: a menu that was not made of them since is refused, too."""
    stale = next_boot(root).problem
    return (*((Refusal(stale),) if stale else ()), *grubtry.refusals(root))


def _default(root: Sysroot, journaled: Journaled) -> Default | None:
    """The default entry. Its initrds are those beside the kernel, by the names in its file."""
    made = grubtry.read_default(root)
    if isinstance(made, str):
        return None
    ours = [Swap(word, None) for word in parse_dropin(root.get_text(DROPIN)) or ()]
    line = take_out((line_without_ours(look, root, made.line, journaled),), ours)[0]
    return Default(line, grubtry.loaded_files(root, made))


def _confirm(root: Sysroot, desired: Sequence[Desired], same: Same) -> str | None:
    return confirm(source_live(root) if root.live else configured(root), desired, same)


FAMILY = Family(
    next_boot,
    _plan,
    _ours,
    _stripped,
    (*FILES, *STARTS),
    ("update-grub",),
    to_type(kinds.update_grub()),
    _confirm,
    Once(_once_refusals, _default, grubtry.once_entry, lambda root: grubonce.armed(root, menu_path(root))),
)
