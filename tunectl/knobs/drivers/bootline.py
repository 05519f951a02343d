"""The kernel's command line, of this boot and of the next, for rows that judge an operator's own words on it.

A switch of it is judged, and never written. Source: Documentation/admin-guide/kernel-parameters.txt; lib/kstrtox.c,
kstrtobool().
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.bootloader.cmdline import Arg, kernel_args, parse_cmdline, same_key, taken_cpus, taking_tsc
from tunectl.bootloader.grubsettings import MAIN, configured, making_menu
from tunectl.bootloader.otherreaders import WITHOUT_V1, taking_v2
from tunectl.command import all_of, argv, as_data
from tunectl.cpulist import CpuSet
from tunectl.fix import NOTHING, REBOOT, Fix, in_turn, to_decide, to_type
from tunectl.host.cpusets import read_cpu_list
from tunectl.host.symbols import has_symbol
from tunectl.host.systemdconf import systemd_version
from tunectl.knobs.drivers.bootargs import loaded_by
from tunectl.knobs.row import Batch, Facts, Judgement, Knob, NextWord, Step, View, once
from tunectl.model import Outcome, Reading, State

_CPU = "sys/devices/system/cpu"
_CLOCK = "sys/devices/system/clocksource/clocksource0"
_TSC = "tsc"
_VERSION_2 = "sys/fs/cgroup/cgroup.controllers"
_BY_APIC, _SETS_APIC = "disable_cpu_apicid", "apic_set_disabled_cpu_apicid"  # the word, and the function that takes it
_APIC = re.compile(r"^processor\s*:\s*([0-9]+)$(?:\n.+)*?\napicid\s*:\s*([0-9]+)$", re.MULTILINE)
_MAKE_MENUS = ("grub", "suse-grub")
# What `sed` and a shell in single quotes take as it is, once its dots and slashes are escaped.
_PLAIN = re.compile(r"[\w.@:-]+(?:=[\w.@:/-]+)?")


class BootLines(NamedTuple):
    """The arguments that this boot had, and those that the next will have; None where that is not known."""

    this: tuple[Arg, ...]
    next: tuple[Arg, ...] | None


def boot_lines(view: View) -> BootLines:
    """Both lines. A line of this boot that cannot be read is empty."""
    upcoming = loaded_by(view).next
    point = upcoming.points[0] if upcoming and upcoming.points else None
    after = None if point is None or point.line is None else parse_cmdline(point.line)
    return BootLines(parse_cmdline(view.root.get_text("proc/cmdline")), after)


def next_words(view: View) -> tuple[NextWord, ...]:
    """What the next line has and this boot's had not, as far as the next is known, without what the host file asks for.

    What this boot had took nothing away that is there now, but a clock that somebody has chosen by hand since.
    """
    lines = boot_lines(view)
    clocked = _taking_the_clock(view, lines.next or ())
    asked = {(name.removeprefix("boot."), text) for name, text in view.texts.items() if name.startswith("boot.")}
    known = {arg for arg in lines.this if arg not in clocked}
    new = [arg for arg in kernel_args(lines.next or ()) if arg not in known and (arg.key, arg.value) not in asked]
    legacy = _taking_version_2(view, lines)
    new += [legacy] if legacy and legacy not in new else []
    if not new:
        return ()
    cores = [read_cpu_list(view.root, f"{_CPU}/cpu{cpu}/topology/thread_siblings_list") for cpu in view.scope.online]
    secondary = frozenset[int]().union(*(core - {min(core)} for core in cores if core))  # all but the first of a core
    of_apic: dict[int, int] = {}  # the CPU of each APIC ID; none where this kernel does not know the word for them
    if any(same_key(arg.key, _BY_APIC) for arg in new) and has_symbol(view.root, _SETS_APIC) is not False:
        of_apic = {int(apic): int(cpu) for cpu, apic in _APIC.findall(view.root.get_text("proc/cpuinfo"))}
    taken = _in_turn(
        lambda line: {
            arg: cpus for arg, cpus in taken_cpus(line, view.scope.present, secondary, of_apic).items() if arg in new
        },
        lines.next or (),
    )
    return tuple(
        NextWord(
            arg,
            taken.get(arg, frozenset()),
            arg in clocked,
            arg == legacy,
            place_of(view, str(arg)),
            removal_fix(view, *map(str, _together(arg, new, taken, clocked)), reboot=False),
        )
        for arg in dict.fromkeys(new)
    )


def _together(word: Arg, new: Sequence[Arg], taken: Mapping[Arg, CpuSet], clocked: Collection[Arg]) -> list[Arg]:
    """The words that have to go with this one: those that take the same CPU or the clock, each by itself."""
    cpus = taken.get(word, frozenset())
    return [
        arg
        for arg in dict.fromkeys(new)
        if arg == word or (word in clocked and arg in clocked) or cpus & taken.get(arg, frozenset())
    ]


def _in_turn(take: Callable[[Sequence[Arg]], Mapping[Arg, CpuSet]], line: Sequence[Arg]) -> Mapping[Arg, CpuSet]:
    """What the words take, also those that count only once another is out: it is not enough to take that one out."""
    found: dict[Arg, CpuSet] = {}
    while taken := take([arg for arg in line if arg not in found]):
        found |= taken
    return found


def _taking_the_clock(view: View, line: tuple[Arg, ...]) -> frozenset[Arg]:
    """The words of this line with which the TSC is not the clock any more; none where it is not the clock now."""
    if view.root.get(f"{_CLOCK}/current_clocksource") != _TSC:
        return frozenset()
    chosen_again = view.texts.get("clocksource.current") == _TSC  # at each boot, where the kernel has not given it up
    others = [] if chosen_again else view.root.get(f"{_CLOCK}/available_clocksource").split()
    others = [name for name in others if name != _TSC]
    return frozenset(_in_turn(lambda rest: dict.fromkeys(taking_tsc(rest, others), frozenset()), line))


def _taking_version_2(view: View, lines: BootLines) -> Arg | None:
    """The word of the next line with which systemd will not mount control groups version 2, as it did this time."""
    word = taking_v2(lines.next or ())
    if not word or taking_v2(lines.this) or not view.root.exists(_VERSION_2):
        return None
    return None if systemd_version(view.root) >= WITHOUT_V1 else word


def place_of(view: View, word: str) -> str:
    """Where a word of the next line stands, FILE:LINE with a leading slash; "" where no line is known."""
    return next((where for where in _places(view, word) if where.startswith("/")), "")


def _places(view: View, word: str) -> list[str]:
    """Each place where GRUB's settings give a word."""
    return [where for arg, where in _placed(view) if str(arg) == word]


@once
def _placed(view: View) -> tuple[tuple[Arg, str], ...]:
    """Each word of GRUB's settings, and where it stands."""
    return configured(view.root).placed if view.root.exists(MAIN) else ()


def given_at(view: View, key: str) -> tuple[str, ...]:
    """FILE:LINE of each line that gives this argument: of GRUB's settings, or of any file the boot loader reads."""
    loader, family, _ = loaded_by(view)
    if loader.name in _MAKE_MENUS:
        return tuple(dict.fromkeys(where for arg, where in _placed(view) if same_key(arg.key, key)))
    from tunectl.host.recording import expand  # only where a journal is gone

    word = re.compile(rf"(?<![^\s\"'=]){re.escape(key)}(?![^\s\"'=])")
    paths = dict.fromkeys(path for pattern in (family.files if family else ()) for path in expand(view.root, pattern))
    return tuple(
        f"/{path}:{number}"
        for path in paths
        for number, line in enumerate(view.root.get_text(path).split("\n"), start=1)
        if word.search(line) and not line.lstrip().startswith("#")
    )


def removal_fix(view: View, *words: str, reboot: bool) -> Fix:
    """How words go from the line of the next boot, and from this boot's with a `reboot`.

    An entry that somebody chose in the place of the right one is left as it is: the right one is chosen again.
    """
    end, upcoming = REBOOT if reboot else NOTHING, loaded_by(view).next
    made, others = _of_settings(view, words), bool(upcoming and upcoming.instead)
    if upcoming and upcoming.again:
        return in_turn(made, upcoming.again, end)
    if made and not others:
        return in_turn(made, end)
    known = upcoming.points[0].where if upcoming and upcoming.points else ""
    places = [known if others else place_of(view, word) or known for word in words]
    return in_turn(made, *map(by_hand_fix, words, places), end)


def _of_settings(view: View, words: Sequence[str]) -> Fix:
    """The command that takes words out of GRUB's settings and makes the menu again; nothing where none does."""
    # The menu may not be made from the settings, or not all of it (docs/boot-loaders.md, BLS).
    maker = making_menu(view.root) if loaded_by(view).loader.name in _MAKE_MENUS else None
    places = {word: list(dict.fromkeys(_places(view, word))) for word in words}
    scripts = [_script(view, word, place) for word in words for place in places[word]]
    if maker and all(places.values()) and all(scripts):
        edits = [argv("sudo", "sed", "-i", script, of=[file]) for script, file in filter(None, scripts)]
        return to_type(all_of(edits).then(maker))
    return NOTHING


def by_hand_fix(word: str, where: str = "") -> Fix:
    """How a word goes from a line that nobody makes from settings; `where` is a file of this host's, or nothing."""
    has_it = f" ({where})" if where.startswith("/") else ""
    said = f"take {as_data(word)} out of the kernel command line, where your boot loader has it{has_it}"
    return to_decide(said, before_boot=True)


def _script(view: View, word: str, place: str) -> tuple[str, str] | None:
    """(what `sed -i` is told, the file), so that it takes a word out of a line of shell, as often as it is there, and
    no part of another word; None where no pattern does."""
    file, _, number = place.rpartition(":")
    if not (_PLAIN.fullmatch(word) and number.isdecimal()):
        return None
    line = next(iter(view.root.get_text(file.lstrip("/")).split("\n")[int(number) - 1 :]), "")
    if re.search(r"\\\s", line):  # an escaped blank: without the word, the backslash would escape another one
        return None
    pattern = re.sub(r"[./]", r"\\\g<0>", word)
    if line.count(word) == 1:
        return f"{number}s/ *{pattern}//", file
    end = r"\([\x22\x27 ]\|$\)"
    within, first = f"s/ \\+{pattern}{end}/\\1/", f"s/\\([\\x22\\x27]\\|^[^=]*=\\){pattern}{end}/\\1\\2/"
    return (f"{number}{{:a;{within};ta;{first}}}", file) if word in line else None


_ON = re.compile(r"[yYtT1]|[oO][nN]")
_OFF = re.compile(r"[nNfF0]|[oO][fF]")


class SwitchFacts(NamedTuple):
    """The next boot, None where it is not known; and where the word stands that turns the switch off."""

    next: bool | None
    word: str
    place: str  # FILE:LINE with a leading slash, "" where no line is known
    fix: Fix  # takes the word out


class BootSwitch(NamedTuple):
    """One switch, by its key."""

    key: str

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading: what this boot has."""
        try:
            line = view.root.read_text("proc/cmdline")
        except OSError as error:
            yield Reading(knob.name, "", State.UNREADABLE, reason=f"/proc/cmdline: {error.strerror}", errno=error.errno)
            return
        lines = boot_lines(view)
        after, later = (None, "") if lines.next is None else self.is_on(lines.next)
        now, word = self.is_on(parse_cmdline(line))
        word = later if after is False else word
        place = place_of(view, word) if word else ""
        fix = removal_fix(view, word, reboot=not now) if word else NOTHING
        yield Reading(knob.name, "", State.READ, now, facts=SwitchFacts(after, word, place, fix))

    def is_on(self, line: Sequence[Arg]) -> tuple[bool, str]:
        """(is it on, the word that says otherwise): the last word that the kernel understands counts."""
        state, word = True, ""
        for arg in kernel_args(line):
            if arg.key == self.key and arg.value and (_ON.match(arg.value) or _OFF.match(arg.value)):
                state = bool(_ON.match(arg.value))
                word = "" if state else f"{arg.key}={arg.value}"
        return state, word

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """None: the word is the operator's own."""
        yield from ()

    def describe(self) -> tuple[str, ...]:
        """The command line."""
        return ("/proc/cmdline",)

    def reads(self) -> tuple[str, ...]:
        """What this boot had; the boot loader's files are those of the boot arguments."""
        return ("proc/cmdline",)


def judge_switch(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """On in this boot, and in the next as far as that is known."""
    found = reading.of_facts(SwitchFacts)
    if not desired or (reading.value and found.next is not False):
        return Judgement(Outcome.COMPLIANT, knob.codec.show(reading.value), knob.codec.show(desired))
    shown = knob.codec.show(reading.value), knob.codec.show(desired)
    if not reading.value and found.next:
        reason = f"this boot had {found.word}, and the next will not"
        return Judgement(Outcome.PENDING_REBOOT, *shown, reason, REBOOT, changeable=False)
    when = "in force now, but the next boot will have" if reading.value else "this boot had"
    reason = f"{when} {found.word}{f' ({found.place})' if found.place else ''}: {knob.why}"
    return Judgement(Outcome.DRIFTED, *shown, reason, found.fix, changeable=False)
