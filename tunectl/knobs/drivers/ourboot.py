"""Did a service of ours do its work on this boot? systemd says so; and what do drop-ins say that no boot has tried yet?

No drop-in is weighed by what its keys mean. One that stood before this boot, in which the service ended well, is in
nobody's way. Any other is named as not known, but for two kinds of lines that tell by themselves that the service will
not do what it was written for: another command, and variables let in that lead it to another host file.

Source: org.freedesktop.systemd1(5); systemd.unit(5), drop-ins and `.requires`; systemd.service(5).
"""

from collections.abc import Sequence
from typing import NamedTuple

from tunectl import kinds
from tunectl.command import argv
from tunectl.fix import NOTHING, Fix, in_turn, to_type
from tunectl.host.ask import UnitState, read_unit_state
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_in_force, unit_directories
from tunectl.host.systemdunit import NULL, RELOAD, Said, in_force, taking_out, words_of
from tunectl.knobs.drivers.bootgoal import USUAL, goal_of
from tunectl.knobs.drivers.bootline import boot_lines
from tunectl.knobs.row import View

UNKNOWN = "unknown"
NOT_RUN = "not run"
_DONE = (None, 0, 4)  # how `tunectl apply` ends where all is in force, or waits for the next boot
_DRIFTED = 3  # how `tunectl apply` ends where it did all it can, and something is drifted that it cannot apply
_SETTLED = "multi-user.target"
_INSTALLED = (("tunectl-monitor.service",), ("tunectl-repair.path", "tunectl-repair.service"))
_ALL_OURS = "tunectl-.service"  # whose drop-ins are those of every service of ours, and of no other
_EVERYBODYS = "service.d"


class Found(NamedTuple):
    """A state of a service, why it is one, and what ends it where `apply` does not."""

    value: str
    reason: str = ""
    fix: Fix = NOTHING


class Others(NamedTuple):
    """What others declare of a unit: lines of drop-ins, and links by which it requires another unit."""

    lines: list[Said]
    links: list[str]

    def __str__(self) -> str:
        return ", ".join(
            [f"/{link}" for link in self.links] + [f"{line} says {line.key}={line.value}" for line in self.lines]
        )

    @property
    def files(self) -> list[str]:
        """Where they stand, without a leading slash."""
        return [*self.links, *dict.fromkeys(line.file for line in self.lines)]

    def fix(self, *names: str) -> Fix:
        """How they go; of what holds for other units than these the operator decides."""
        unlink = [to_type(argv("sudo", "rm", of=[f"/{link}"]).then(RELOAD)) for link in self.links]
        return in_turn(*unlink, taking_out(self.lines, *names))


def of_others(view: View, said: Sequence[Said], unit: str) -> Found | None:
    """What drop-ins and this boot make of a unit whose own file is right; None where nothing is in its way."""
    root, name = view.root, unit.rpartition("/")[2]
    if changing := _changing(said, unit):
        lines = Others(changing, [])
        return Found("overridden", f"it would not run as it was written: {lines}", lines.fix(name, _ALL_OURS))
    state = read_unit_state(root, name)
    others = _others(root, said, unit)
    if found := _of_this_boot(view, name, state, others) or (state and _too_early(root, said, name, state)):
        return found
    if not others.files or (state and was_tried(root, state, others.files)):
        return None
    why = f"no boot has run it yet with what others declare for it, and what that does is not known before: {others}"
    return Found(UNKNOWN, why, others.fix(name, _ALL_OURS))


def _others(root: Sysroot, said: Sequence[Said], unit: str) -> Others:
    """Of what holds for the services of everybody only conditions, which may be met by all but ours."""
    name = unit.rpartition("/")[2]
    own = {(line.section, line.key, line.value) for line in said if line.file == unit}
    lines = []
    for line in said:
        is_condition = line.section == "Unit" and line.key.startswith(("Condition", "Assert"))
        if line.section not in ("Unit", "Service") or line.key.startswith("X-"):
            continue
        is_own = line.file == unit or (line.section, line.key, line.value) in own
        if not is_own and (is_condition or line.file.split("/")[-2] != _EVERYBODYS):
            lines.append(line)
    links = files_in_force(root, unit_directories(f"{name}.requires"), "")
    return Others(lines, [path for path in links if not root.readlink(path).endswith(NULL)])


def _changing(said: Sequence[Said], unit: str) -> list[Said]:
    """The lines of others by which its own command is not run, or a variable is let in that it takes away."""
    changing: list[Said] = []
    own = [line for line in said if line.file == unit]
    for key in ("ExecStart", "UnsetEnvironment"):
        if not _values(own, key) <= _values(said, key):
            changing += [line for line in said if line.file != unit and (line.section, line.key) == ("Service", key)]
    return changing


def _values(said: Sequence[Said], key: str) -> set[tuple[str, ...]]:
    """What counts of this key: each command as a whole, of variables each name."""
    lines = in_force(said, "Service", key)
    if key == "ExecStart":
        return {tuple(words_of(line.value)) for line in lines}
    return {(name,) for line in lines for name in line.value.split()}


def _of_this_boot(view: View, name: str, state: UnitState | None, others: Others) -> Found | None:
    """What became of it in this boot; None where it ran and ended well, or nobody can say."""
    if "@" in name:  # an instance is gone when it has ended
        return None
    if state is None:  # systemd makes a link when it starts a unit. Where it runs and does not answer, nothing is known
        root, links = view.root, "run/systemd/units"
        if root.live or not root.exists(links) or root.exists(f"{links}/invocation:{name}"):
            return None
        return Found(NOT_RUN, _why_not(view, name), to_type(kinds.restart_ours(name)))
    found = of_state(name, state, tampered=bool(others.files))
    if not found:
        return None
    reason = _why_not(view, name) if found.value == NOT_RUN else found.reason
    if others.files:
        mending = others.fix(name, _ALL_OURS)
        found = found._replace(fix=in_turn(mending, found.fix) if mending.is_typed else mending)
    return found._replace(reason=f"{reason}; {others}" if others.files else reason)


def installed_services(root: Sysroot) -> list[str]:
    """The units of `service install` of which a boot starts the first, without the one that applies the host file."""
    wants = unit_directories(f"{_SETTLED}.wants")
    return [
        name for names in _INSTALLED if any(root.exists(f"{place}/{names[0]}") for place in wants) for name in names
    ]


def of_state(name: str, state: UnitState, *, tampered: bool = False) -> Found | None:
    """What systemd says went wrong in this boot with a unit of ours that is enabled; None for nothing."""
    again = to_type(kinds.restart_ours(name))
    if state.load in ("bad-setting", "error"):
        return Found("broken", f"systemd cannot load it: `systemctl status {name}` says why", again)
    if is_failed(state, tampered=tampered):
        why = f"it failed in this boot (result {state.result}): `journalctl -b -u {name}` says why"
        return Found("failed", why, again)
    if state.active != "active" and (state.condition is False or state.asserted is False):
        return Found("conditional", "systemd did not start it, because a condition does not hold", again)
    if state.began_us or state.file_state == "static":  # another unit has it started
        return None
    if state.has_job:
        why = "it has not run yet in this boot: `systemctl list-jobs` says what its start waits for"
        return Found(UNKNOWN, why)
    return Found(NOT_RUN, "it did not run in this boot, although its files have it started", again)


def _why_not(view: View, name: str) -> str:
    goal = goal_of(view.root, boot_lines(view).this)
    if goal and goal.word and goal.unit not in USUAL:
        return f"it did not run in this boot, which had {goal.word}"
    return "it did not run in this boot, although its files have it started"


def is_failed(state: UnitState, *, tampered: bool) -> bool:
    """Did it fail? What is drifted and cannot be applied is named by itself, unless a unit was `tampered` with."""
    if state.active == "inactive":  # `systemctl reset-failed` forgets the result alone
        return state.status not in (*_DONE, _DRIFTED)
    is_drift = state.result == "exit-code" and state.status == _DRIFTED
    return state.active == "failed" and (tampered or not is_drift)


def _too_early(root: Sysroot, said: Sequence[Said], name: str, state: UnitState) -> Found | None:
    """While the host booted it began before something was done that writes the same values, and that it waits for."""
    settled = read_unit_state(root, _SETTLED)
    for unit in (unit for one in in_force(said, "Unit", "After") for unit in one.value.split()):
        other = read_unit_state(root, unit)
        if settled and other and state.began_us < other.entered_us <= settled.entered_us:
            why = f"it ran before {unit} in this boot, which may have written after it"
            return Found("too early", why, to_type(kinds.restart_ours(name)))
    return None


def was_tried(root: Sysroot, state: UnitState, files: Sequence[str]) -> bool:
    """Did it run well in this boot, and was every one of these files there before the host booted?

    A run of this boot that found everything in force wrote nothing, and so has tried nothing: the boot's own counts.
    """
    words = [line.split() for line in root.get_text("proc/stat").splitlines() if line.startswith("btime ")]
    if not root.live or not words or not state.began_us or state.result != "success":
        return False
    try:
        return all(root.lstat(file).st_ctime < int(words[0][1]) for file in files)  # no program sets a file's ctime
    except OSError:
        return False
