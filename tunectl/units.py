"""tunectl's systemd units: what each file holds for one installation. Pure, but for the shipped templates it reads.

The apply service's text is the knob systemd.apply_at_boot's, so that `apply` and `service install` never disagree
but in the first line, which says who wrote it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tunectl.command import one_line
from tunectl.errors import UsageError
from tunectl.installed import read_shipped
from tunectl.knobs.drivers.confined import UNSET, confined, program_files, quoted, starting
from tunectl.knobs.drivers.unitfile import WRITTEN_BY_APPLY, render

DIRECTORY = "etc/systemd/system"
INSTALLED = "# Written by `tunectl service`; `tunectl service remove apply` removes it.\n"
MARKS = ("# Written by `tunectl service`", WRITTEN_BY_APPLY)

# name -> its files, the one to enable first
SERVICES = {
    "monitor": ("tunectl-monitor.service",),
    "apply": ("tunectl-apply.service",),
    "repair": ("tunectl-repair.path", "tunectl-repair.service"),
    "preflight": ("tunectl-preflight.timer", "tunectl-preflight.service", "tunectl-report.service"),
}
TIMER = f"{DIRECTORY}/tunectl-preflight.timer"
USUAL_TIME = "Mon..Fri 07:45"  # of preflight, in the host's own time zone
APPLY = "tunectl-apply.service"
RETURN, DEADLINE = "tunectl-return.service", "tunectl-deadline.service"
TRY_TIMER, TRY_SERVICE = "tunectl-try.timer", "tunectl-try.service"
OF_A_TRIAL = (RETURN, DEADLINE, TRY_TIMER, TRY_SERVICE)
# Places that PrivateTmp= and ProtectHome= would hide from the unit, were the program there.
_TEMPORARY = ("/tmp/", "/var/tmp/")  # noqa: S108
_WHEN = "OnCalendar="
_HOMES = ("/home/", "/root/", "/run/user/")


# What preflight may besides: the probe locks its memory and looks whether another holds the C-states; a NIC's clock
# (PTP_SYS_OFFSET wants it open for writing), and the MSRs, for which the kernel asks for CAP_SYS_RAWIO. The clock's own
# state it may read (adjtimex, which ProtectClock refuses); without CAP_SYS_TIME nobody sets it.
_MEASURING = """
CapabilityBoundingSet=CAP_IPC_LOCK CAP_SYS_RAWIO CAP_SYS_RESOURCE
DeviceAllow=/dev/cpu_dma_latency rw
DeviceAllow=char-ptp rw
DeviceAllow=char-cpu/msr r
RestrictSUIDSGID=yes
PrivateMounts=yes
SystemCallFilter=adjtimex clock_adjtime"""


class Unit(NamedTuple):
    """One unit file."""

    path: str  # below the root
    text: str


def units_of(
    name: str, invocation: Sequence[str], options: Sequence[str] = (), at: str = USUAL_TIME
) -> tuple[Unit, ...]:
    """The files of one service. `invocation` starts tunectl; `options` are further words of `tunectl monitor`, and `at`
    is when `tunectl preflight` runs (systemd.time(7)).
    """
    if name not in SERVICES:
        raise UsageError(f"there is no service '{name}'", "one of " + ", ".join(SERVICES))
    return tuple(_unit_of_service(file, invocation, options, at) for file in SERVICES[name])


def trial_units(
    invocation: Sequence[str], state: str, *, reaches: bool = False, measures: bool = False
) -> tuple[Unit, ...]:
    """What takes back a change that nobody confirms: at its deadline, and early in any other boot.

    Each is ours as a whole and lives as long as the change is not confirmed: `apply` writes them through the journal.
    `reaches`: the one that waits also asks another host whether it answers. `measures`: it also judges the boot as
    `tunectl preflight` does.
    """
    lines = confined(invocation)
    # Where the journal and the program lie, for RequiresMountsFor=.
    places = [state, *(file.rpartition("/")[0] or "/" for file in program_files(invocation))]
    needs = " ".join(map(quoted, dict.fromkeys(places)))
    values = {"START": starting(invocation), "UNSET": UNSET, "NEEDS": needs}
    waiting = _measuring(lines) if measures else _talking(lines) if reaches else lines
    return _unit(RETURN, {"CONFINED": lines, **values}), _unit(DEADLINE, {"CONFINED": waiting, **values})


def try_units(trial_id: str, seconds: int) -> tuple[Unit, ...]:
    """What boots a host again whose tried boot does not prove itself, by systemd alone."""
    values = {"ID": trial_id, "SECONDS": str(seconds), "UNSET": UNSET}
    return _unit(TRY_TIMER, values), _unit(TRY_SERVICE, values)


def _unit(file: str, values: Mapping[str, str]) -> Unit:
    """Our own text of a unit, each @KEY@ replaced."""
    text = read_shipped(f"systemd/{file}.in")
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return Unit(f"{DIRECTORY}/{file}", text)


def _unit_of_service(file: str, invocation: Sequence[str], options: Sequence[str], at: str) -> Unit:
    if file == "tunectl-apply.service":
        # By its first line a host on which only the service was installed is told from one that was tuned.
        return Unit(f"{DIRECTORY}/{file}", INSTALLED + render(tuple(invocation)).partition("\n")[2])
    words = "".join(f" {quoted(word)}" for word in options)
    home = "read-only" if _first_below(_HOMES, invocation) else "yes"
    tmp = "no" if _first_below(_TEMPORARY, invocation) else "yes"
    values = {"START": starting(invocation), "OPTIONS": words, "PROTECT_HOME": home, "PRIVATE_TMP": tmp}
    values |= {"UNSET": UNSET, "AT": one_line(at, "--at"), "CONFINED": confined(invocation)}
    return _unit(file, {**values, "MEASURING": _measuring(values["CONFINED"])})


def _talking(lines: str) -> str:
    """What is confined, but reaches other hosts, or an address of this one."""
    return lines.replace("AF_NETLINK", "AF_NETLINK AF_INET AF_INET6").replace("IPAddressDeny=any\n", "")


def _measuring(lines: str) -> str:
    return _talking(lines).replace("ProtectClock=yes\n", "") + _MEASURING


def _first_below(places: tuple[str, ...], invocation: Sequence[str]) -> str:
    """The first file of the program that lies in one of these places; "" where none does."""
    return next((file for file in program_files(invocation) if file.startswith(places)), "")


def warnings(name: str, invocation: Sequence[str]) -> list[str]:
    """What about this installation makes a bad service."""
    if program := _first_below((*_HOMES, *_TEMPORARY), invocation):
        who = "the service's own user may not be let in there" if name == "monitor" else "it runs as root from there"
        return [f"{program}: {who}, and the unit is less protected for it; install tunectl below /opt or /usr"]
    return []


def same(one: str, other: str) -> bool:
    """Are these the same unit, whoever of us wrote it?"""
    return ours(one) and one.partition("\n")[2] == other.partition("\n")[2]


def time_of(timer: str) -> str:
    """When a timer of ours starts preflight, by its text; "" where it does not say."""
    return next((line[len(_WHEN) :] for line in timer.splitlines() if line.startswith(_WHEN)), "")


def ours(text: str) -> bool:
    """Did tunectl write this unit?"""
    return text.startswith(MARKS)
