"""The udev rule that applies the host file again for a NIC that is plugged in or whose driver is loaded again.

Source: systemd.device(5), SYSTEMD_WANTS=; udev(7). What udev does not announce, a link that comes up, the monitor
hears (host/devices.py).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tunectl.bootloader.cmdline import Arg
from tunectl.command import argv, as_data
from tunectl.fix import APPLY, Fix, in_turn, to_decide, to_type
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import unit_directories
from tunectl.host.systemdunit import NULL, RELOAD
from tunectl.host.udevrules import DIRECTORIES, Rule, rules_against_units
from tunectl.knobs.drivers.bootgoal import barred
from tunectl.knobs.drivers.bootline import boot_lines
from tunectl.knobs.drivers.confined import UNSET, confined, starting
from tunectl.knobs.drivers.ourboot import UNKNOWN, Found
from tunectl.knobs.drivers.unitfile import LINK, ServiceFacts, mask_place, read_service, service_files, unmask_fix
from tunectl.knobs.drivers.unitfile import UNIT as APPLY_UNIT
from tunectl.knobs.row import Batch, Knob, Step, View, if_readable, missing, with_unseen
from tunectl.model import Reading, State

_RULES = "etc/udev/rules.d"
UDEVD = "systemd-udevd.service"
_STARTERS = (  # the daemon, and the sockets that have it started
    f"sysinit.target.wants/{UDEVD}",
    "sockets.target.wants/systemd-udevd-control.socket",
    "sockets.target.wants/systemd-udevd-kernel.socket",
)
RULE = f"{_RULES}/95-tunectl.rules"
UNIT = "etc/systemd/system/tunectl-reapply@.service"

# udev renames most NICs, and systemd waits for the name they keep: that one is announced by "move".
# A device's own path makes the instance, escaped by systemd: no name from the device reaches a command line.
_RULE = """\
# Written by `tunectl apply`; `tunectl restore` removes it.
# A NIC comes up with its driver's settings, and its interrupts with the default affinity.
ACTION=="add|move", SUBSYSTEM=="net", DEVPATH!="*/virtual/*", \\
  TAG+="systemd", ENV{SYSTEMD_WANTS}+="tunectl-reapply@.service"
"""


def render(invocation: Sequence[str]) -> str:
    """The unit. At boot, when every NIC is announced, it waits for the service that applies everything.

    An operator who disables that service (its unit stays, its link goes) wants a boot that applies nothing at all.
    """
    return f"""\
# Written by `tunectl apply`; `tunectl restore` removes it.
[Unit]
Description=Put the runtime settings of tunectl's host file in force again, for %f
Documentation=man:tunectl-apply(1)
After=tunectl-apply.service
# not where tunectl-apply.service was disabled: "|" makes one of the two enough
ConditionPathExists=|/{LINK}
ConditionPathExists=|!/{APPLY_UNIT}
CollectMode=inactive-or-failed

[Service]
Type=oneshot
# no environment has it apply another host file, or run other code
{UNSET}
# The driver goes on after the interface is announced: queues and interrupts follow.
ExecStartPre=/bin/sleep 2
{starting(invocation)} apply --yes --runtime --wait 120
# 4: everything is in force but what waits for the next boot
SuccessExitStatus=4
{confined(invocation)}
"""


class ReapplyRule:
    """The rule, and the unit that systemd starts because of it."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading, as for the service at boot; `outdated` also where the rule is not this version's, `masked`
        also where it is a link to /dev/null."""
        for directory in ("etc/udev", "etc/systemd/system"):
            if gone := missing(knob.name, view, directory):
                yield gone
                return
        if view.root.readlink(RULE).endswith("/dev/null"):  # in a recording it is relative
            why = f"/{RULE} is a link to /dev/null: udev reads no rule there"
            facts = ServiceFacts(in_turn(to_type(argv("sudo", "rm", f"/{RULE}")), APPLY))
            yield Reading(knob.name, "", State.READ, "masked", why, facts=facts)
            return
        reading = read_service(knob, view, UNIT, RULE, render)
        with view.root.noting() as denied:
            rule = view.root.get_text(RULE)
            found = None
            if reading.value == "enabled":  # the unit is as it should be
                found = Found("outdated") if rule != _RULE else _taken_back(view.root) or _without_udev(view)
        if found:
            reading = reading._replace(value=found.value, reason=found.reason, facts=ServiceFacts(found.fix))
        if reading.state is State.READ and reading.value not in ("enabled", "outdated", UNKNOWN):
            yield reading._replace(reason=with_unseen(reading.reason or knob.why, str(denied)))
        else:
            yield if_readable(reading, denied)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """The unit, then systemd is told, then the rule; udev notices by itself when its rules change."""
        for _, change in batch:
            text = render(view.invocation or ("/usr/bin/tunectl",))
            yield Step("file", UNIT, text, (change,), commands=("reload-systemd",))
            yield Step("file", RULE, _RULE, (change,))

    def describe(self) -> tuple[str, ...]:
        """The rule and the unit."""
        return ("/" + RULE, "/" + UNIT)

    def reads(self) -> tuple[str, ...]:
        """Both, whatever else configures the unit, and the rules that come before and after ours."""
        rules = (f"{directory}/*.rules" for directory in DIRECTORIES)
        units = (UDEVD, *_STARTERS, *(starter.partition("/")[2] for starter in _STARTERS[1:]))
        return (*service_files(UNIT, RULE), *rules, *(path for unit in units for path in unit_directories(unit)))


def _without_udev(view: View) -> Found | None:
    """Why nobody reads the rules in the next boot; None where udev starts, or that is not known."""
    root, args = view.root, boot_lines(view).next or ()
    bar = barred(root, UDEVD, args)
    if isinstance(bar, Arg):
        why = f"the next boot will have {mask_place(view, bar)}: nobody reads udev's rules then"
        return Found("overridden", why, unmask_fix(view, bar))
    links = list(filter(None, (next(filter(root.exists, unit_directories(starter)), "") for starter in _STARTERS)))
    # A link is a mask itself, or its unit is masked.
    dead = [
        link if root.readlink(link).endswith(NULL) else barred(root, link.rpartition("/")[2], args) for link in links
    ]
    masks = [str(mask) for mask in ([bar] if bar else dead)]
    if not masks or not all(masks):  # one is enough; and a recording may have none
        return None
    why = f"{', '.join(f'/{mask}' for mask in masks)}: by that {UDEVD} is masked, and nobody reads udev's rules"
    unmasked = argv("sudo", "rm", of=[f"/{mask}" for mask in masks])
    return Found("overridden", why, to_type(unmasked.then(RELOAD, argv("sudo", "systemctl", "start", UDEVD))))


def _taken_back(root: Sysroot) -> Found | None:
    """A rule by which udev had no unit of ours started for a card, or may not have when one is announced again."""
    against = list(rules_against_units(root, RULE.rpartition("/")[2]))
    records = _records(root) if against else []
    for rule, key in against:
        says = f"{rule} says {key}"
        announced = [(text, since) for text, since in records if root.live and root.lstat(rule.file).st_ctime < since]
        if any(not _has_unit(text) for text, _ in announced):
            why = f"{says}: udev had no unit started for a network card that was announced since"
            return Found("overridden", why, _without_fix(rule, str(key)))
        if not announced or len(announced) < len(records):
            why = f"{says}: whether it takes back what /{RULE} says shows when a network card is announced again"
            return Found(UNKNOWN, why, _without_fix(rule, str(key)))
    return None


def _records(root: Sysroot) -> list[tuple[str, float]]:
    """What udev remembers of each network card, and since when: its database, as sd_device(3) has it."""
    cards = (f"sys/class/net/{name}" for name in root.listdir("sys/class/net"))
    paths = [f"run/udev/data/n{root.get(f'{card}/ifindex')}" for card in cards if root.exists(f"{card}/device")]
    return [(root.get_text(path), root.lstat(path).st_mtime) for path in paths if root.exists(path)]


def _has_unit(record: str) -> bool:
    lines = record.split("\n")
    wanted = next((line for line in lines if line.startswith("E:SYSTEMD_WANTS=")), "")
    return UNIT.rpartition("/")[2] in wanted and "G:systemd" in lines and "E:SYSTEMD_READY=0" not in lines


def _without_fix(rule: Rule, key: str) -> Fix:
    """How one part of a rule goes; where the rule does nothing else, the rule."""
    place = f"/{rule.file}"
    if not rule.file.startswith("etc/"):
        name = rule.file.rpartition("/")[2]
        copy = f"put a copy of {as_data(place)} without {as_data(key)} into /{_RULES}"
        return to_decide(f"{copy}, which counts instead of {as_data(name)} of the package")
    if len(rule.assigns) == 1:
        lines = f"{rule.line},{rule.last}" if rule.last > rule.line else f"{rule.line}"
        return to_type(
            argv("sudo", "sed", "-i", f"{lines}s/^/#/", place).then(argv("sudo", "udevadm", "control", "--reload"))
        )
    why = "it does more than this, or other rules go by its place"
    return to_decide(f"decide what {as_data(rule)} shall do without {as_data(key)}: {why}")
