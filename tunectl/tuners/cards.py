"""What an administrator has declared of a network card's settings, in each file that a distribution has for that.

Each reader goes by its owner's grammar and order, and gives a setting for each card that the file is for. Where a
condition of a file cannot be judged here, the setting is named only: whether the card gets it is not known.
Source: systemd.link(5), systemd.time(7); interfaces(5), and ethtool's hooks for ifupdown; nm-settings-keyfile(5),
nm-settings(5); Red Hat's sysconfig.txt; ifcfg(5) and ifcfg-ethernet of wicked; netplan's reference.
[Link] of systemd.network(5) and systemd.netdev(5) have no key of ours.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from tunectl.cpulist import format_cpumask, parse_spaced
from tunectl.errors import UsageError
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.inifiles import Option, continued_lines, parse_ini
from tunectl.host.jobs import Job
from tunectl.host.nics import read_driver
from tunectl.host.shellvars import assignments
from tunectl.host.sysctld import Setting
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import directories_of, files_in_force
from tunectl.host.systemdunit import YES
from tunectl.knobs import KNOBS
from tunectl.knobs.codecs import SWITCH
from tunectl.tuners.latewriters import settings_of
from tunectl.tuners.tools import net_settings

_NET = "sys/class/net"
_SWITCH = dict.fromkeys(YES, "1") | dict.fromkeys(("no", "off", "false", "0", "n", "f"), "0")
_LEFT_BEHIND = re.compile(r".*(?:~|\.(?:bak|orig|old|rpmnew|rpmorig|rpmsave|dpkg-\w+))")


class Card(NamedTuple):
    """A network card, with what conditions of its files ask for; "" where that is not known."""

    name: str
    address: str
    driver: str
    path: str  # as udev's ID_PATH has it: pci-0000:c1:00.0
    is_ethernet: bool
    database: str  # what udev remembers of it, without a leading slash
    link_file: str  # the name of the .link file that udev applied to it; "" where it does not say


def read_cards(root: Sysroot) -> list[Card]:
    """Every card of the host. Never raises."""
    cards = []
    for name in (name for name in root.listdir(_NET) if root.exists(f"{_NET}/{name}/device")):
        database = f"run/udev/data/n{root.get(f'{_NET}/{name}/ifindex')}"
        lines = root.get_text(database).split("\n")
        udev = dict(line.removeprefix("E:").partition("=")[::2] for line in lines if line.startswith("E:"))
        device = root.readlink(f"{_NET}/{name}/device").rpartition("/")[2]
        path = f"pci-{device}" if re.fullmatch(r"[0-9a-f]{4}:[0-9a-f:.]+", device) else ""
        card = Card(
            name,
            address=root.get(f"{_NET}/{name}/address").lower(),
            driver=read_driver(root, name),
            path=udev.get("ID_PATH", path),
            is_ethernet=root.get(f"{_NET}/{name}/type", "1") == "1",
            database=database,
            link_file=udev.get("ID_NET_LINK_FILE", "").rpartition("/")[2],
        )
        cards.append(card)
    return cards


def is_named(card: Card, patterns: Iterable[str]) -> bool | None:
    """Is it meant by these patterns of names? None: it has been renamed, and the kernel's first name may be meant."""
    listed = list(patterns)
    if any(fnmatchcase(card.name, pattern) for pattern in listed):
        return True
    is_renamed = not card.name.startswith("eth")
    may_be = any(fnmatchcase(f"eth{number}", pattern) for number in range(10) for pattern in listed)
    return None if may_be and is_renamed else False


def is_meant(card: Card, what: str, patterns: Sequence[str]) -> bool | None:
    """Does a card's "name", "address", "driver", "path" or "type" fit one of these patterns? None: it is not known."""
    if what == "name":
        return is_named(card, patterns)
    kind = "ether" if card.is_ethernet else ""
    value = {"address": card.address, "driver": card.driver, "path": card.path, "type": kind}[what]
    patterns = [pattern.lower() for pattern in patterns] if what == "address" else patterns
    return any(fnmatchcase(value, pattern) for pattern in patterns) if value else None


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    listed = list(verdicts)
    return False if False in listed else None if None in listed else True


# systemd's .link files: the first that matches a card is the only one for it.

_LINK_KNOBS = {
    "RxCoalesceSec": "net.rx_usecs",
    "TxCoalesceSec": "net.tx_usecs",
    "RxMaxCoalescedFrames": "net.rx_frames",
    "TxMaxCoalescedFrames": "net.tx_frames",
    "UseAdaptiveRxCoalesce": "net.adaptive_rx",
    "UseAdaptiveTxCoalesce": "net.adaptive_tx",
    "RxBufferSize": "net.rx_ring",
    "TxBufferSize": "net.tx_ring",
    "RxChannels": "net.rx_channels",
    "TxChannels": "net.tx_channels",
    "CombinedChannels": "net.combined_channels",
    "GenericReceiveOffload": "net.gro",
    "LargeReceiveOffload": "net.lro",
    "NTupleFilter": "net.ntuple",
    "ReceivePacketSteeringCPUMask": "net.rps_cpus",
}
_LINK_CONDITIONS = {"OriginalName": "name", "MACAddress": "address", "PermanentMACAddress": "address"}
_LINK_CONDITIONS |= {"Driver": "driver", "Path": "path", "Type": "type"}
_SECONDS = {"us": 1e-6, "usec": 1e-6, "µs": 1e-6, "ms": 1e-3, "msec": 1e-3, "": 1, "s": 1, "sec": 1}
_SECONDS |= {"second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60}


def read_link_files(root: Sysroot) -> tuple[Setting, ...]:
    """What udev's net_setup_link applies to each card when it appears. Never raises."""
    files: dict[str, list[tuple[str, Option]]] = {}  # the options of each file and of its drop-ins, with their file
    for path in files_in_force(root, directories_of("systemd/network"), ".link"):
        dropins = files_in_force(root, directories_of(f"systemd/network/{path.rpartition('/')[2]}.d"))
        files[path] = [(file, option) for file in (path, *dropins) for option in parse_ini(root.get_text(file))]
    return tuple(setting for card in read_cards(root) for setting in _of_link_files(root, card, files))


def _of_link_files(root: Sysroot, card: Card, files: Mapping[str, list[tuple[str, Option]]]) -> Iterator[Setting]:
    for path, options in files.items():
        conditions = {option.key: option.value for _, option in options if option.section == "Match" and option.value}
        verdict = _all(_holds(card, key, value) for key, value in conditions.items())
        if verdict is None:
            verdict = _was_applied(root, card, path, [file for file, _ in options])
        if not conditions or verdict is False:  # a file without conditions is ignored
            continue
        link = {option.key: (file, option) for file, option in options if option.section == "Link" and option.value}
        for key, (file, option) in link.items():
            if knob := _LINK_KNOBS.get(key):
                value, named = _of_link(root, key, option.value), verdict is None
                yield Setting(knob, key, value, f"/{file}", option.line, wins=True, instance=card.name, named=named)
        if verdict:
            return


def _was_applied(root: Sysroot, card: Card, path: str, files: Iterable[str]) -> bool | None:
    """Was a .link file the card's when udev chose one? None where it does not say, or a part of the file is newer.

    It tries the files in the order of their names, and takes the first that matches (src/udev/net/link-config.c,
    link_get_config). A recording keeps no times; a file that a package brought has an older one than its arrival.
    """
    name = path.rpartition("/")[2]
    if card.link_file <= name:
        return True if card.link_file == name else None
    try:
        chosen = root.lstat(card.database).st_mtime if root.live else 0.0
        return None if any(root.lstat(file).st_ctime >= chosen for file in files) else False
    except OSError:
        return None


def _holds(card: Card, key: str, value: str) -> bool | None:
    """Does one condition of [Match] hold for a card? None where that cannot be known."""
    what = _LINK_CONDITIONS.get(key)
    if not what:
        return None
    patterns = value.removeprefix("!").split()
    holds = is_meant(card, what, [pattern.replace("-", ":") for pattern in patterns] if what == "address" else patterns)
    if holds is None or (key == "PermanentMACAddress" and not holds):  # it may have been changed since
        return None
    return holds is not value.startswith("!")


def _of_link(root: Sysroot, key: str, text: str) -> str:
    """The value as the kernel would be given it; "" where it is none."""
    if key.endswith("Sec"):  # `50us`, `1ms 500us`; a bare number counts seconds
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)", text)
        if not parts or any(unit not in _SECONDS for _, unit in parts):
            return ""
        return str(round(sum(float(number) * _SECONDS[unit] for number, unit in parts) * 1e6))
    if key == "ReceivePacketSteeringCPUMask":
        special = {"all": read_scope_facts(root).present, "disable": frozenset[int]()}
        try:
            return format_cpumask(special[text] if text in special else parse_spaced(text))
        except UsageError:
            return ""
    if KNOBS[_LINK_KNOBS[key]].codec is SWITCH:
        return _SWITCH.get(text.lower(), "")
    return "hardware-max" if text == "max" else text


# ifupdown

_STANZAS = re.compile(r"iface|auto|mapping|source|source-dir(?:ectory)?|rename|template|no-\w[\w-]*|allow-\w[\w-]*")
_HOOKS = ("pre-up", "up", "post-up")
# What the hooks of Debian's ethtool and of ifupdown-ng make of an option's name: ethtool's word for the rest of it.
_IFUPDOWN = {
    "hardware-irq-coalesce-": "coalesce",
    "hardware-dma-ring-": "ring",
    "offload-": "features",
    "ethtool-coalesce-": "coalesce",
    "ethtool-dma-ring-": "ring",
    "ethtool-offload-": "features",
}
_IFACE = re.compile(r"\$(?:IFACE\b|\{IFACE\})")


def read_ifupdown(root: Sysroot) -> tuple[Setting, ...]:
    """Options and commands of /etc/network/interfaces, and of what it reads with `source`. Never raises."""
    stanzas = list(_stanzas(root, "etc/network/interfaces", set()))
    options = {stanza.name: stanza.options for stanza in stanzas}
    settings: list[Setting] = []
    for stanza in stanzas:
        inherited = options.get(stanza.inherits, []) if stanza.inherits else []
        pattern = stanza.name.lstrip("/")  # or a name, which means a card that is not here as well
        for name in [name for name in root.listdir(_NET) if fnmatchcase(name, pattern)] or [pattern]:
            for file, line, key, value in (*inherited, *stanza.options):
                settings += _of_option(root, name, file, line, key, value)
    return tuple(dict.fromkeys(settings))


class _Stanza(NamedTuple):
    name: str
    inherits: str
    options: list[tuple[str, int, str, str]]  # file, line, key, value


def _stanzas(root: Sysroot, path: str, seen: set[str]) -> Iterator[_Stanza]:
    if path in seen:
        return
    seen.add(path)
    stanza = _Stanza("", "", [])
    for line in continued_lines(root.get_named(path), comments="#"):
        key, value = [*line.text.split(None, 1), "", ""][:2]
        if not _STANZAS.fullmatch(key):
            stanza.options.append((path, line.first, key, value))
            continue
        words = value.split()
        inherits = words[words.index("inherits") + 1 :][:1] if "inherits" in words else []
        stanza = _Stanza(words[0] if words and key in ("iface", "template") else "", "".join(inherits), [])
        if stanza.name:
            yield stanza
        for more in _sourced(root, key, value) if key.startswith("source") else ():
            yield from _stanzas(root, more, seen)


def _sourced(root: Sysroot, key: str, value: str) -> list[str]:
    """The files of `source PATTERN` and `source-directory DIRECTORY`; a relative one is below /etc/network."""
    place = (value if value.startswith("/") else f"/etc/network/{value}").strip("/")
    if key != "source":
        return [f"{place}/{file}" for file in sorted(root.listdir(place)) if re.fullmatch(r"[\w-]+", file)]
    directory, _, name = place.rpartition("/")
    return [f"{directory}/{file}" for file in sorted(root.listdir(directory)) if fnmatchcase(file, name)]


def _of_option(root: Sysroot, card: str, file: str, line: int, key: str, value: str) -> Iterator[Setting]:
    if key in _HOOKS:
        yield from settings_of(root, [Job(file, line, _IFACE.sub(card, value))])
        return
    prefix = next((prefix for prefix in _IFUPDOWN if key.startswith(prefix)), "")
    if prefix:
        words = f"{key.removeprefix(prefix)} {value}"
        yield from _in_words_of_ethtool(card, _IFUPDOWN[prefix], words, key, file, line)
    elif key.endswith("-offload"):  # ifupdown2
        yield from _in_words_of_ethtool(card, "features", f"{key.removesuffix('-offload')} {value}", key, file, line)


def _in_words_of_ethtool(card: str, kind: str, words: str, key: str, file: str, line: int) -> Iterator[Setting]:
    for knob, _, text in net_settings(kind, words):
        yield Setting(knob, key, _SWITCH.get(text, text), f"/{file}", line, wins=True, instance=card)


# NetworkManager

_KEYFILES = tuple(f"{place}/NetworkManager/system-connections" for place in ("etc", "run", "usr/lib"))
_NM_KINDS = {"feature-": "features", "coalesce-": "coalesce", "ring-": "ring", "channels-": "channels"}


def read_keyfiles(root: Sysroot) -> tuple[Setting, ...]:
    """[ethtool] of NetworkManager's connections. Never raises."""
    settings: list[Setting] = []
    for path in files_in_force(root, _KEYFILES, ""):
        options = list(parse_ini(root.get_text(path), continued=False)) if not _LEFT_BEHIND.fullmatch(path) else []
        values = {(option.section, option.key): option.value for option in options}
        for card in read_cards(root):
            verdict = _is_connected(card, values)
            for option in options if verdict is not False else ():
                settings += _of_keyfile(card, option, path, named=verdict is None)
    return tuple(settings)


def _is_connected(card: Card, values: Mapping[tuple[str, str], str]) -> bool | None:
    """Is a connection for this card? None: for any that is free."""
    kind = values.get(("connection", "type"), "ethernet")
    name = values.get(("connection", "interface-name"), "")
    sections = ("ethernet", "802-3-ethernet")
    address = next((values[section, "mac-address"] for section in sections if (section, "mac-address") in values), "")
    if name or kind not in ("ethernet", "802-3-ethernet", "infiniband"):
        return name == card.name
    return is_meant(card, "address", address.split()) if address else None


def _of_keyfile(card: Card, option: Option, path: str, *, named: bool) -> Iterator[Setting]:
    prefix = next((prefix for prefix in _NM_KINDS if option.key.startswith(prefix)), "")
    if option.section == "ethtool" and prefix:
        words = f"{option.key.removeprefix(prefix)} {option.value}"
        settings = _in_words_of_ethtool(card.name, _NM_KINDS[prefix], words, option.key, path, option.line)
        yield from (setting._replace(named=named) for setting in settings)


# ifcfg files of Red Hat and of SUSE

_IFCFG = ("etc/sysconfig/network-scripts", "etc/sysconfig/network")
_DEVICE = re.compile(r"\$(?:DEVICE\b|\{DEVICE\})|\biface\b|%INTERFACE%")


def read_ifcfg(root: Sysroot) -> tuple[Setting, ...]:
    """ETHTOOL_OPTS and ETHTOOL_OPTIONS, and the scripts that SUSE's name. Never raises."""
    files = [f"{directory}/{file}" for directory in _IFCFG for file in sorted(root.listdir(directory))]
    jobs = []
    for path in (path for path in files if "/ifcfg-" in path and not _LEFT_BEHIND.fullmatch(path)):
        values = {assignment.name: assignment for assignment in assignments(root.get_text(path))}
        device = values["DEVICE"].value.strip("\"'") if "DEVICE" in values else path.rpartition("/ifcfg-")[2]
        for name, value in values.items():
            text = value.value.strip("\"'")
            if name == "ETHTOOL_OPTS" or name.startswith("ETHTOOL_OPTIONS"):
                jobs += [Job(path, value.line, f"ethtool {words}") for words in _DEVICE.sub(device, text).split(";")]
            elif name in ("PRE_UP_SCRIPT", "POST_UP_SCRIPT") and not text.startswith("systemd:"):
                script = text.rpartition(":")[2]
                place = script if script.startswith("/") else f"etc/sysconfig/network/scripts/{script}"
                jobs.append(Job(place.lstrip("/"), 0, ""))
    return tuple(settings_of(root, jobs))


# netplan: keys are read where they stand on lines of their own; no more of YAML is understood.

_NETPLAN = ("etc/netplan", "run/netplan", "usr/lib/netplan", "lib/netplan")
_NETPLAN_KNOBS = {"generic-receive-offload": "net.gro", "large-receive-offload": "net.lro"}
_NETPLAN_CONDITIONS = {"name": "name", "macaddress": "address", "driver": "driver"}
_YAML_KEY = re.compile(r"""( *)(?:"([^"]+)"|'([^']+)'|([\w.*-]+)):(?:\s+(.*))?$""")


def read_netplan(root: Sysroot) -> tuple[Setting, ...]:
    """The offloads of netplan's devices; the last file's value of a device counts. Never raises."""
    devices: dict[str, dict[str, tuple[str, str, int]]] = {}
    for path in files_in_force(root, _NETPLAN, ".yaml"):
        for name, key, value, line in _netplan_values(root.get_text(path)):
            devices.setdefault(name, {})[key] = (value, f"/{path}", line)
    cards = read_cards(root) if devices else []
    pairs = [(card, name) for name in devices for card in cards]
    return tuple(setting for card, name in pairs for setting in _of_netplan(card, name, devices[name]))


def _netplan_values(text: str) -> Iterator[tuple[str, str, str, int]]:
    """(device, key, value, line): `enp1s0`, `match.driver`, `ixgbe`, 5; without a device what stands in braces."""
    above: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _YAML_KEY.match(line.partition(" #")[0].rstrip())
        for key in _NETPLAN_KNOBS if "{" in line else ():
            if key in line:
                yield "", key, "", number
        if not match or line.lstrip().startswith("#"):
            continue
        indent, key = len(match[1]), match[2] or match[3] or match[4]
        above = [*(outer for outer in above if outer[0] < indent), (indent, key)]
        keys = [name for _, name in above]
        if keys[0] == "network" and len(keys) > 3 and match[5]:
            is_flow = match[5].startswith("{") and match[5].endswith("}")  # {macaddress: "52:54:00:12:34:56"}
            for part in match[5][1:-1].split(",") if is_flow else [f":{match[5]}"]:
                inner, _, value = part.partition(":")
                names = [*keys[3:], inner.strip("\"' ")] if is_flow else keys[3:]
                yield keys[2], ".".join(names), value.strip("\"' "), number


def _of_netplan(card: Card, name: str, values: Mapping[str, tuple[str, str, int]]) -> Iterator[Setting]:
    asked = {key.removeprefix("match."): value for key, (value, _, _) in values.items() if key.startswith("match.")}
    renamed = values.get("set-name", ("", "", 0))[0]
    verdicts = [
        *(is_meant(card, what, asked[key].split()) for key, what in _NETPLAN_CONDITIONS.items() if key in asked),
        None if not name else True if asked else card.name == name,
    ]
    verdict = True if renamed == card.name else _all(verdicts)
    for key, knob in _NETPLAN_KNOBS.items():
        if key in values and verdict is not False:
            value, path, line = values[key]
            text = _SWITCH.get(value.lower(), "")
            yield Setting(knob, key, text, path, line, wins=True, instance=card.name, named=verdict is None)
