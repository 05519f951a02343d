"""The systemd service that applies the host file at every boot: a unit file, the link that enables it,
and what a boot makes of a service of ours: does the next one start it, and did this one?

Source: systemd.unit(5), systemd.service(5); kernel-command-line(7), systemd.mask=, systemd.unit= and systemd.volatile=;
systemd-fstab-generator(8) and systemd-volatile-root.service(8); bootup(7).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tunectl import kinds
from tunectl.bootloader.cmdline import Arg, same_key
from tunectl.command import argv
from tunectl.fix import APPLY, REBOOT, Fix, in_turn, to_type
from tunectl.host.ask import read_unit_state
from tunectl.host.systemdconf import files_of, patterns_of, unit_directories
from tunectl.host.systemdunit import RELOAD, YES, Said, in_force, is_wanted, mask_of, read_unit, words_of
from tunectl.knobs.drivers.bootgoal import (
    RESCUE,
    Goal,
    barred,
    goal_files,
    goal_of,
    is_there,
    lasting_mask,
    leads_to,
    masking,
    needs_of,
    way_of,
)
from tunectl.knobs.drivers.bootline import boot_lines, place_of, removal_fix
from tunectl.knobs.drivers.confined import UNSET, confined, program_files, starting
from tunectl.knobs.drivers.ourboot import NOT_RUN, UNKNOWN, Found, Others, of_others, was_tried
from tunectl.knobs.row import Batch, Facts, Judgement, Knob, Step, View, if_readable, missing
from tunectl.model import Outcome, Reading, State

_SYSTEM = "etc/systemd/system"
UNIT = f"{_SYSTEM}/tunectl-apply.service"
WRITTEN_BY_APPLY = "# Written by `tunectl apply`"  # how each file begins that is ours as a whole
LINK = f"{_SYSTEM}/multi-user.target.wants/tunectl-apply.service"
INITRAMFS_TOOLS = "usr/share/initramfs-tools/init"  # its initial RAM disk has no systemd
Render = Callable[[Sequence[str]], str]  # the words that start tunectl -> the unit


def render(invocation: Sequence[str]) -> str:
    """The unit. It runs after what sets sysctls, and before irqbalance may move an interrupt."""
    return f"""\
# Written by `tunectl apply`; `tunectl restore` removes it.
[Unit]
Description=Put the runtime settings of tunectl's host file in force
Documentation=man:tunectl-apply(1)
After=local-fs.target systemd-modules-load.service systemd-sysctl.service systemd-udev-trigger.service tuned.service
After=cpupower.service cpufrequtils.service loadcpufreq.service ksm.service sysfsutils.service
Before=irqbalance.service

[Service]
Type=oneshot
RemainAfterExit=yes
# no environment has it apply another host file, or run other code
{UNSET}
{starting(invocation)} apply --yes --runtime
# 4: everything is in force but what waits for the next boot
SuccessExitStatus=4
{confined(invocation)}

[Install]
WantedBy=multi-user.target
"""


def host_file_of(words: Sequence[str]) -> str:
    """The host file a command line names; "" for the default."""
    return next((after for word, after in pairwise(words) if word == "--host"), "")


def service_files(unit: str, companion: str) -> tuple[str, ...]:
    """Every file that says whether a service of ours runs, as shell patterns."""
    name = unit.rpartition("/")[2]
    links = unit_directories(f"{name}.requires/*.target")  # the targets that it may wait for, and no other unit's file
    return (unit, companion, *patterns_of(name), *links, f"run/systemd/units/invocation:{name}")


class ServiceFacts(NamedTuple):
    """What ends a drift of a service of ours; "" where `apply` does. `apply` mends it only where it writes the file."""

    fix: Fix


def judge_service(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """Enabled, and systemd says that it ran; where the journal knows of no apply in this boot, it did run."""
    value, fix = reading.value, reading.of_facts(ServiceFacts).fix
    if value == NOT_RUN and (facts.applied or facts.journal):  # the first apply of this boot was by hand
        value = desired
    if value == desired:
        return Judgement(Outcome.COMPLIANT, value, desired)
    if value == UNKNOWN:
        return Judgement(Outcome.UNREADABLE, None, desired, reading.reason, fix, changeable=False)
    return Judgement(Outcome.DRIFTED, value, desired, reading.reason or knob.why, fix, changeable=not fix)


def read_service(knob: Knob, view: View, unit: str, companion: str, ours: Render) -> Reading:
    """The state of a service of ours: what is declared, and what systemd says of this boot. `companion` has it started.

    `enabled`: both files are there, for this host file, and the program too. Otherwise `disabled`, `outdated` (it
    applies another host file, or is not `ours`, this version's unit, but for the command it starts), `broken`
    (its program is gone, or systemd cannot load it), `masked`, `overridden` (by another file of its name, or a drop-in
    with another command), `left out` (nothing that the next boot starts wants it); in this boot `failed`,
    `conditional`, `not run` or `too early`. `unknown` where a drop-in is there with which no boot has run it yet.
    Unreadable where this user may not read or list one of its files.
    """
    boot_lines(view)  # before anything is noted: a boot loader's file that may not be read is for the boot arguments
    root, text = view.root, ""
    with root.noting() as denied:
        try:
            text = root.read_text(unit) if root.exists(unit) else ""
        except OSError as error:
            if not mask_of(root, unit.rpartition("/")[2]):
                return Reading(knob.name, "", State.UNREADABLE, "", f"/{unit}: {error.strerror}", error.errno)
        found = _of_files(view, unit, companion, text, ours) or Found("enabled")
    reading = Reading(knob.name, "", State.READ, found.value, found.reason, facts=ServiceFacts(found.fix))
    return if_readable(reading, denied)


def _of_files(view: View, unit: str, companion: str, text: str, ours: Render) -> Found | None:
    """What keeps it from its work, by its files and by systemd; None where nothing does."""
    root, name = view.root, unit.rpartition("/")[2]
    if mask := lasting_mask(root, name):
        unmask = to_type(argv("sudo", "rm", of=[f"/{mask}"]))
        return Found("masked", f"/{mask} masks it: it is never started", in_turn(unmask, APPLY))
    if not text or (companion != LINK and not root.exists(companion)):
        return Found("disabled")
    if found := of_line(view, name) or of_volatile(view):
        return found
    way = of_goal(view, name) if companion == LINK else None
    if way and way.value != UNKNOWN:
        return way
    said = read_unit(root, name)
    if said and (other := said[0].file) != unit:
        ends = to_type(argv("sudo", "rm", of=[f"/{other}"]).then(RELOAD))
        return Found("overridden", f"systemd reads /{other} instead of /{unit}", ends)
    found = _of_command(view, said, unit, text, ours) or of_others(view, said, unit)
    if found and way:
        return found._replace(reason=f"{found.reason}; {way.reason}", fix=in_turn(way.fix, found.fix or APPLY))
    return found or way


def _of_command(view: View, said: list[Said], unit: str, text: str, ours: Render) -> Found | None:
    root = view.root
    own = in_force([line for line in said if line.file == unit], "Service", "ExecStart")
    words = words_of(own[0].value) if own else []
    gone = [file for file in program_files(words) if root.live and not root.exists(file.lstrip("/"))]
    if "apply" not in words or gone:
        return Found("broken")
    # Without the first line, too: it says whether `apply` or `service install` wrote the unit.
    written, wanted = (
        [line for line in unit_text.split("\n")[1:] if not line.startswith("ExecStart=")]
        for unit_text in (text, ours(words[: words.index("apply")]))
    )
    if written != wanted or host_file_of(words) != host_file_of(view.invocation):
        return Found("outdated")
    return None


class ApplyService:
    """The service that multi-user.target starts."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading."""
        if gone := missing(knob.name, view, _SYSTEM):
            yield gone
            return
        yield read_service(knob, view, UNIT, LINK, render)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The unit, then the link, then systemd is told."""
        for _, change in batch:
            yield Step("file", UNIT, render(view.invocation or ("/usr/bin/tunectl",)), (change,))
            yield Step("link", LINK, "/" + UNIT, (change,), commands=("reload-systemd",))

    def describe(self) -> tuple[str, ...]:
        """The unit and the link."""
        return ("/" + UNIT, "/" + LINK)

    def reads(self) -> tuple[str, ...]:
        """Both, whatever else configures the unit, what leads a boot to it, and that it was started in this boot."""
        return (*service_files(UNIT, LINK), *goal_files(UNIT.rpartition("/")[2]), INITRAMFS_TOOLS)


def of_line(view: View, name: str) -> Found | None:
    """What words of the kernel's command line do to it; None for nothing."""
    lines = boot_lines(view)
    word = masking(lines.this, name)
    if later := masking(lines.next or (), name):
        why = f"the next boot will have {_placed(view, str(later))}: it is never started then"
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
    elif mode in YES and not view.root.exists(INITRAMFS_TOOLS):
        lost = "/etc and /var are empty then: there is no unit, no host file and no journal"
    else:
        return None
    word = str(words[-1])
    why = f"the next boot will have {_placed(view, word)}: {lost}"
    return Found("left out", why, removal_fix(view, word, reboot=False))


def of_goal(view: View, name: str) -> Found | None:
    """Does the next boot reach it? None where it does, or nobody can say."""
    root, args = view.root, boot_lines(view).next or ()
    if not is_wanted(root, name):
        return Found("disabled")
    goal = goal_of(root, args)
    if goal is None:
        return None
    said = _placed(view, goal.word) if goal.word else f"/{goal.file}"
    if not goal.unit:
        why = f"the next boot will have {said}: it does not start systemd"
        return Found("left out", why, removal_fix(view, goal.word, reboot=False))
    for unit in way_of(goal):
        if mask := barred(root, unit, args):
            why = f"the next boot goes to {goal.unit} ({said}), and {mask_place(view, mask)} masks {unit}"
            return Found("left out", why, unmask_fix(view, mask))
    if goal.unit in RESCUE or not is_there(root, goal.unit):
        why = f"the next boot goes to {goal.unit} ({said}), and nothing that this starts wants {name}"
        return Found("left out", why, _way_back_fix(view, goal, name))
    return _of_way(view, goal, name, said)


def _of_way(view: View, goal: Goal, name: str, said: str) -> Found | None:
    """What nobody knows of the way to our service before a boot has gone it."""
    root, lines = view.root, boot_lines(view)
    if not leads_to(root, goal, name, lines.next or ()):
        why = f"the next boot goes to {goal.unit} ({said}), and no file says that this starts {name}"
        others, fix = Others([], []), _way_back_fix(view, goal, name)
    elif (others := Others(*needs_of(root, goal))).files:
        why = f"the next boot goes to {goal.unit} ({said}), which starts nothing if what is required cannot: {others}"
        fix = others.fix(*way_of(goal))
    else:
        return None
    state = read_unit_state(root, name)
    went = goal_of(root, lines.this)
    was_there = went is not None and (went.unit, went.word) == (goal.unit, goal.word)
    files = [*filter(None, [goal.file]), *files_of(root, goal.unit), *others.files]
    if was_there and state and was_tried(root, state, files):
        return None
    return Found(UNKNOWN, f"{why}; no boot has gone there yet", fix)


def mask_place(view: View, mask: Arg | str) -> str:
    """A mask as it is named: its file, or its word and where that stands."""
    return f"/{mask}" if isinstance(mask, str) else _placed(view, str(mask))


def unmask_fix(view: View, mask: Arg | str) -> Fix:
    """How a mask goes: its file, or its word for the next boot."""
    if isinstance(mask, Arg):
        return removal_fix(view, str(mask), reboot=False)
    return to_type(argv("sudo", "rm", of=[f"/{mask}"]).then(RELOAD))


def _way_back_fix(view: View, goal: Goal, name: str) -> Fix:
    """How a boot comes to start it: a target of the operator's own gets to want it, others are left."""
    if goal.word:
        return removal_fix(view, goal.word, reboot=False)
    if goal.unit in RESCUE or not is_there(view.root, goal.unit):
        return to_type(kinds.boot_to_multi_user())
    return to_type(argv("sudo", "systemctl", "add-wants", of=(goal.unit, name)))


def _placed(view: View, word: str) -> str:
    place = place_of(view, word)
    return f"{word} ({place})" if place else word
