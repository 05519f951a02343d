"""What udev's rules write: ATTR{} and SYSCTL{} they assign, and the programs that they run.

A rule is judged by what is known of a card beforehand: its name, driver and address. Any other condition may hold.
Source: udev(7).
"""

import re
from collections.abc import Iterator

from tunectl.host.jobs import Job
from tunectl.host.sysctld import Setting
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_in_force
from tunectl.host.udevrules import DIRECTORIES, Key, Rule, is_one_of, parse_rules
from tunectl.tuners.cards import Card, is_meant, read_cards
from tunectl.tuners.latewriters import settings_of
from tunectl.tuners.places import knob_at, places

# Where the attributes of a subsystem's devices are, as knobs know them.
_DEVICES = {"cpu": "/sys/devices/system/cpu/cpuN", "node": "/sys/devices/system/node/nodeN"}
_DEVICES |= {"workqueue": "/sys/devices/virtual/workqueue"}
_QUEUES = ("/sys/class/net/{card}/queues/rx-N", "/sys/class/net/{card}/queues/tx-N")
_OF_CARDS = {"net": ("/sys/class/net/{card}",), "queues": _QUEUES}
_PROGRAMS = frozenset({("RUN", ""), ("RUN", "program"), ("PROGRAM", ""), ("IMPORT", "program")})
_CONDITIONS = dict.fromkeys((("KERNEL", ""), ("NAME", ""), ("ENV", "INTERFACE")), "name")
_CONDITIONS |= dict.fromkeys((("DRIVERS", ""), ("ENV", "ID_NET_DRIVER")), "driver")
_CONDITIONS |= dict.fromkeys((("ATTR", "address"), ("ATTRS", "address")), "address")
_NAME = re.compile(r"\$(?:name|kernel|env\{INTERFACE\})|%k|%E\{INTERFACE\}")
_NUMBER = re.compile(r"%n|\$number")
_UDEVS_OWN = re.compile(r"\$\$|%%")


def read_udev_rules(root: Sysroot) -> tuple[Setting, ...]:
    """The assignments of all rules, in udev's order; what a later rule of as few conditions replaces does not win."""
    cards = read_cards(root)
    settings: list[Setting] = []
    later: dict[tuple[str, str], list[set[Key]]] = {}  # {(knob, card): the conditions of each rule that assigns it}
    rules = [
        rule for path in files_in_force(root, DIRECTORIES, ".rules") for rule in parse_rules(root.get_text(path), path)
    ]
    for rule in reversed(rules):
        conditions = {key for key in rule.keys if key.operator in ("==", "!=")}
        for setting in reversed(list(_of_rule(root, rule, cards))):
            replacing = later.setdefault((setting.knob, setting.instance), [])
            settings.append(setting._replace(wins=not any(other <= conditions for other in replacing)))
            replacing += [] if setting.named else [conditions]
    return tuple(reversed(settings))


def _of_rule(root: Sysroot, rule: Rule, cards: list[Card]) -> Iterator[Setting]:
    if any(key.name == "ACTION" and key.operator == "==" and key.value == "remove" for key in rule.keys):
        return
    subsystems = [key for key in rule.keys if key.name in ("SUBSYSTEM", "SUBSYSTEMS")]
    is_queues = any(key.value == "queues" for key in subsystems)  # they have names of their own
    asked = [key for key in rule.keys if not (is_queues and key.name == "KERNEL")]
    meant = [card for card in cards if False not in (_holds(card, key) for key in asked)]
    unsure = {card.name for card in meant if None in (_holds(card, key) for key in asked)}
    for key in rule.assigns:
        if key.name == "SYSCTL" and (knob := places().sysctls.get(key.attribute.replace("/", "."))):
            yield Setting(knob, key.attribute, key.value, f"/{rule.file}", rule.line, wins=True)
        elif key.name == "ATTR":
            yield from _of_attribute(rule, key, subsystems, meant)
    for key in rule.keys:
        if (key.name, key.attribute) in _PROGRAMS:
            command = _NUMBER.sub("$number", _UDEVS_OWN.sub(lambda sign: sign[0][0], key.value.replace('\\"', '"')))
            names = [card.name for card in meant] if meant and _NAME.search(command) else ["$kernel"]
            jobs = [Job(rule.file, rule.line, _NAME.sub(name, command)) for name in names]
            for setting in settings_of(root, jobs):
                yield setting._replace(named=setting.named or setting.instance in unsure)


def _of_attribute(rule: Rule, key: Key, subsystems: list[Key], meant: list[Card]) -> Iterator[Setting]:
    for subsystem, base in _DEVICES.items():
        if _is_about(subsystems, subsystem) and (knob := knob_at(f"{base}/{key.attribute}")):
            place = f"{base}/{key.attribute}"
            yield Setting(knob, place, key.value, f"/{rule.file}", rule.line, wins=True)
    for subsystem, bases in _OF_CARDS.items():
        for place in (f"{base}/{key.attribute}" for base in bases if _is_about(subsystems, subsystem)):
            if knob := knob_at(place.format(card="N")):
                for card in meant:
                    at = place.format(card=card.name)
                    yield Setting(knob, at, key.value, f"/{rule.file}", rule.line, wins=True, instance=card.name)


def _is_about(subsystems: list[Key], name: str) -> bool:
    return all(is_one_of(name, key.value) is (key.operator == "==") for key in subsystems)


def _holds(card: Card, key: Key) -> bool | None:
    """Does a condition of a rule hold for a card? None: it is about the card, and what it asks for is not known.

    What is no matter of cards holds.
    """
    what = _CONDITIONS.get((key.name, key.attribute))
    if key.operator not in ("==", "!=") or not what:
        return True
    holds = is_meant(card, what, key.value.split("|"))
    return holds if holds is None else holds is (key.operator == "==")
