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
    found: list[tuple[Rule, Setting]] = []
    for path in files_in_force(root, DIRECTORIES, ".rules"):
        for rule in parse_rules(root.get_text(path), path):
            found += [(rule, setting) for setting in _of_rule(root, rule, cards)]
    return tuple(setting._replace(wins=_stands(found, number)) for number, (_, setting) in enumerate(found))


def _stands(assigned: list[tuple[Rule, Setting]], number: int) -> bool:
    rule, setting = assigned[number]
    later = (other for other, one in assigned[number + 1 :] if _target(one) == _target(setting) and not one.named)
    return not any(_conditions(other) <= _conditions(rule) for other in later)


def _target(setting: Setting) -> tuple[str, str]:
    return setting.knob, setting.instance


def _conditions(rule: Rule) -> set[Key]:
    return {key for key in rule.keys if key.operator in ("==", "!=")}


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
            for setting in _of_program(root, rule, key.value, meant):
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


def _of_program(root: Sysroot, rule: Rule, command: str, meant: list[Card]) -> Iterator[Setting]:
    """What the program of a rule writes or names, for each card that the rule may be about."""
    command = _NUMBER.sub("$number", _UDEVS_OWN.sub(lambda sign: sign[0][0], command.replace('\\"', '"')))
    names = [card.name for card in meant] if meant and _NAME.search(command) else ["$kernel"]
    yield from settings_of(root, [Job(rule.file, rule.line, _NAME.sub(name, command)) for name in names])


def _holds(card: Card, key: Key) -> bool | None:
    """Does a condition of a rule hold for a card? None: it is about the card, and what it asks for is not known.

    What is no matter of cards holds.
    """
    what = _CONDITIONS.get((key.name, key.attribute))
    if key.operator not in ("==", "!=") or not what:
        return True
    holds = is_meant(card, what, key.value.split("|"))
    return holds if holds is None else holds is (key.operator == "==")
