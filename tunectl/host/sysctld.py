"""Which sysctls a site's sysctl.d files set at boot, and with which line. sysctl.d(5)."""

import fnmatch
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tunectl.fix import NOTHING, Fix
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import directories_of, files_in_force


class Assignment(NamedTuple):
    """One line of one file. A key with wildcards gives way to a key without."""

    key: str
    value: str
    line: int


class Setting(NamedTuple):
    """A knob of ours that a file (or a program itself) sets; `wins` where it is the one in force in the end.

    `value` is the text as the kernel would be given it; "" where the program decides when it writes.
    """

    knob: str
    key: str
    value: str
    path: str  # with a leading slash; or why a program writes it, where no file says so
    line: int  # 0: not a line of a file
    wins: bool
    ends: Fix = NOTHING  # what ends it, where taking the line out does not
    instance: str = ""  # the card that it is for; "" where it is for no card, or for any
    named: bool = False  # a program's text names it, or whom it is for is not known: whether it writes is not known

    @property
    def place(self) -> str:
        """`/etc/x.conf:7`; or why a program writes it."""
        return f"{self.path}:{self.line}" if self.line else self.path


def parse_sysctl_d(text: str) -> list[Assignment]:
    """The assignments of one file, keys written with dots. `-key = value` ignores errors; `-key` alone sets nothing."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        key, equals, value = bare.partition("=")
        if equals and not bare.startswith(("#", ";")):
            found.append(Assignment(normal_key(key.strip().removeprefix("-").strip()), value.strip(), number))
    return found


def normal_key(key: str) -> str:
    """`net/ipv4/conf/eth0.1/x` and `net.ipv4.conf.eth0/1.x` are one key: the first separator says which is which."""
    dot, slash = key.find("."), key.find("/")
    if slash >= 0 and (dot < 0 or slash < dot):
        return key.translate(str.maketrans("./", "/."))
    return key


def read_sysctl_settings(root: Sysroot, knob_of: Mapping[str, str]) -> list[Setting]:
    """Every line that sets a sysctl of `knob_of` ({sysctl: knob}), in the order of application. Never raises."""
    files = files_in_force(
        root, directories_of("sysctl.d")
    )  # /etc/sysctl.conf counts only through a link to it (99-sysctl.conf)
    assignments = [(path, line) for path in files for line in parse_sysctl_d(root.get_text(path))]
    found = []
    for path, line in assignments:
        for key, knob in knob_of.items():
            if fnmatch.fnmatchcase(key, line.key):
                found.append(Setting(knob, key, line.value, "/" + path, line.line, wins=False))
    # The last line for each key wins; a key spelled out beats one that only a pattern names, wherever it stands.
    wildcards = {("/" + path, line.line) for path, line in assignments if line.key not in knob_of}
    last: dict[str, Setting] = {}
    for setting in found:
        standing = last.get(setting.key)
        is_pattern = (setting.path, setting.line) in wildcards
        if not standing or not is_pattern or (standing.path, standing.line) in wildcards:
            last[setting.key] = setting
    return [setting._replace(wins=setting is last[setting.key]) for setting in found]


def last_wins(
    settings: list[Setting],
    replaces: Callable[[Setting, Setting], bool] = lambda later, earlier: later.knob == earlier.knob,
) -> list[Setting]:
    """Each setting wins that no later one replaces; of one knob the last does, unless `replaces` says otherwise."""

    def stands(number: int) -> bool:
        return not any(replaces(later, settings[number]) for later in settings[number + 1 :] if not later.named)

    return [setting._replace(wins=stands(number)) for number, setting in enumerate(settings)]
