"""The keys of the host file, their types and their choices (docs/interface.md, "Host file").

Every table may be left out. What a value may be beyond its type, config.py says. schema.py makes a JSON Schema of this.
"""

import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tunectl.shapes import LIMITS, OF_HOST, SMIS

Value = bool | int | float | str  # of a knob
_Seconds = Annotated[float, Meta(gt=0, le=3600)]


class Sla(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[monitor.sla]: limits for any window of latency samples, wherever it begins; a limit left out is not judged."""

    window_s: Annotated[float, Meta(description="The window's length.")] = 10.0
    p99_9_ns: Annotated[float | None, Meta(description="The limit of the 99.9th percentile.")] = None
    max_ns: Annotated[float | None, Meta(description="The limit of the longest.")] = None
    socket: Annotated[
        str | None, Meta(description="A datagram socket to which an application sends its latencies.")
    ] = None
    socket_group: Annotated[
        str | None,
        Meta(description="The group that may send to it, where it is a path; without it, the monitor's own."),
    ] = None


class Sentinel(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[monitor.sentinel]: a resident `tunectl-probe sentinel` on a CPU the operator gives up for it."""

    cpu: Annotated[int, Meta(description="The CPU that is given up for it.")]


class Prometheus(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[monitor.prometheus]"""

    listen: Annotated[str | None, Meta(description="An address to serve the figures at, such as 127.0.0.1:9750.")] = (
        None
    )
    textfile: Annotated[
        str | None, Meta(description="A .prom file in the directory of node_exporter's textfile collector.")
    ] = None


class Webhook(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[[monitor.webhooks]]. A secret is in a file of its own, never in this one: everybody may read it."""

    url: Annotated[str, Meta(description="The address to post to; this or url_file.")] = ""
    format: Annotated[Literal["alertmanager", "json"], Meta(description="The form of what is posted.")] = "json"
    token_file: Annotated[str | None, Meta(description="A file with the secret, sent as Authorization: Bearer.")] = None
    url_file: Annotated[
        str | None, Meta(description="A file with the address, where that is a secret; only its owner may read it.")
    ] = None
    ca_file: Annotated[str | None, Meta(description="The certificates to trust.")] = None
    timeout_s: Annotated[_Seconds, Meta(description="How long to wait for an answer.")] = 5.0
    resend_s: Annotated[
        _Seconds,
        Meta(description="With alertmanager, how often a firing alert is sent again; less than its resolve_timeout."),
    ] = 60.0


class Hook(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[[monitor.hooks]]: a program, started without a shell; the alert is JSON on its standard input."""

    command: Annotated[list[str], Meta(description="The program and its arguments.")]
    timeout_s: Annotated[_Seconds, Meta(description="How long it may take.")] = 10.0


class Monitor(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[monitor]: how often, what is promised, and who is notified."""

    interval_s: Annotated[float, Meta(description="How often frequency and temperature are read.")] = 1.0
    drift_interval_s: Annotated[
        float, Meta(description="How often every knob is read again; an event reads them at once.")
    ] = 10.0
    log: Annotated[Literal["journal", "syslog", "none"], Meta(description="Where alerts are logged.")] = "journal"
    repair: Annotated[bool, Meta(description="Whether a drift asks for an apply.")] = False
    sla: Annotated[Sla, Meta(description="Limits for each window of an application's latencies.")] = Sla()
    sentinel: Annotated[Sentinel | None, Meta(description="A resident probe on a CPU that is given up for it.")] = None
    prometheus: Annotated[Prometheus, Meta(description="Where Prometheus finds the figures.")] = Prometheus()
    webhooks: Annotated[list[Webhook], Meta(description="Who is notified over HTTP.")] = []
    hooks: Annotated[
        list[Hook],
        Meta(description="Programs to start, without a shell, with the alert as JSON on their standard input."),
    ] = []

    @property
    def has_residents(self) -> bool:
        """Is there something that only one process can have?"""
        return self.sentinel is not None or self.sla.socket is not None


class Network(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[network]"""

    interfaces: Annotated[list[str], Meta(description="The network cards that carry market data.")] = []


# What no run can reach, by key of [budget] and [clock]: a limit there would permit everything.
CEILINGS = {
    "max_error_ns": 86_400e9,
    "due_to_book_p99_9_ns": 86_400e9,
    **{key: limit.ceiling for key, limit in LIMITS.items()},
}


def _limit(key: str, description: str) -> Meta:
    """Of a limit. What it may be says check_limit() of hostfile/budget.py with the file and the key, too."""
    least = "minimum" if key in OF_HOST else "exclusiveMinimum"
    return Meta(description=description, extra_json_schema={least: 0, "exclusiveMaximum": CEILINGS[key]})


class FeedBudget(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[budget.feed]: limits for `probe feed`. No profile has one: what a path of market data may take is the site's."""

    due_to_book_p99_9_ns: Annotated[
        float | None,
        _limit(
            "due_to_book_p99_9_ns",
            "The 99.9th percentile of the time from when a message is due until the book has it.",
        ),
    ] = None


class Budget(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[budget]: limits for each probed CPU, each in place of the profile's. A limit left out is the profile's."""

    max_ns: Annotated[float | None, _limit("max_ns", "The longest gap.")] = None
    p99_9_ns: Annotated[
        float | None, _limit("p99_9_ns", "The 99.9th percentile of a randomly timed message's wait.")
    ] = None
    interruptions_per_s: Annotated[
        float | None, _limit("interruptions_per_s", "How often the loop is interrupted.")
    ] = None
    stolen_ppm: Annotated[float | None, _limit("stolen_ppm", "The part of the time that is lost, in millionths.")] = (
        None
    )
    smis_per_s: Annotated[
        float | None,
        _limit(SMIS, "System management interrupts of the host, where they are counted; 0 permits none."),
    ] = None
    feed: Annotated[FeedBudget, Meta(description="What `probe feed` is judged by.")] = FeedBudget()


class Preflight(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[preflight]"""

    load: Annotated[
        list[str],
        Meta(
            description="Measure once more beside these loads on the housekeeping CPUs; never beside a running engine."
        ),
    ] = []
    feed: Annotated[
        bool, Meta(description="Run `probe feed` for a few seconds, too; never beside a running engine.")
    ] = False


class Report(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[report]: what becomes of the document of each `tunectl preflight --keep`, as the timer runs it."""

    keep: Annotated[
        int, Meta(ge=1, le=1000, description="How many of its documents this host keeps; one that waits stays.")
    ] = 30
    textfile: Annotated[
        str | None, Meta(description="A .prom file in the directory of node_exporter's textfile collector.")
    ] = None
    folder: Annotated[str | None, Meta(description="A folder of another host to hand each document to; or url.")] = None
    mount: Annotated[
        str | None,
        Meta(description="What must be mounted for that; without it the folder itself. / is a folder of this host's."),
    ] = None
    url: Annotated[
        str | None, Meta(description="An address to post each document to; {id} in it becomes the document's own.")
    ] = None
    token_file: Annotated[
        str | None, Meta(description="A file with the bearer token for it; only its owner may read it.")
    ] = None
    certificate_file: Annotated[str | None, Meta(description="This host's own certificate for it.")] = None
    key_file: Annotated[
        str | None, Meta(description="The certificate's key; only its owner may read it. By default in the same file.")
    ] = None
    ca_file: Annotated[str | None, Meta(description="The certificates to trust.")] = None
    timeout_s: Annotated[_Seconds, Meta(description="How long to wait for an answer.")] = 30.0


class Thermal(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[thermal]"""

    base_frequency_khz: Annotated[
        int | None, Meta(description="The base frequency, instead of what the host says.")
    ] = None
    min_ratio: Annotated[float, Meta(description="The least part of the base frequency that is enough.")] = 0.9


# How far a clock may be from UTC, by the rule that says so: RTS 25 (EU 2017/574), Annex, Tables 1 and 2, for algorithms
# at high frequency and for all others that no person confirms; SEC Rule 613 (CAT NMS Plan, 6.8) and FINRA Rule 4590.
CLOCK_RULES = {"rts25-high-frequency": 100e3, "rts25": 1e6, "cat": 50e6}


class Clock(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[clock]: how far the host's clock may be from UTC."""

    rule: Annotated[
        Literal["rts25-high-frequency", "rts25", "cat"],
        Meta(description="The rule that it has to keep: 100 µs, 1 ms or 50 ms."),
    ] = "rts25-high-frequency"
    max_error_ns: Annotated[
        float | None, _limit("max_error_ns", "A limit of the site's own, instead of the rule's.")
    ] = None

    @property
    def limit_ns(self) -> float:
        """The limit in force."""
        return CLOCK_RULES[self.rule] if self.max_error_ns is None else self.max_error_ns


class WaiverRow(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[[waivers]]"""

    knob: Annotated[str, Meta(description="The knob.")]
    reason: Annotated[str, Meta(description="Why the host may differ.")]
    until: Annotated[datetime.date, Meta(description="The last day on which the waiver holds, such as 2027-03-31.")]
    target: Annotated[
        str | int | None, Meta(description="One of its targets, or several by number, such as 2-3; without it, all.")
    ] = None


class ThreadRow(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[[threads]]: `unit` or `command` says which process, `thread` which of its threads (by default the first)."""

    cpu: Annotated[int, Meta(description="The isolated CPU it has for itself.")]
    unit: Annotated[str, Meta(description="The systemd unit whose process it belongs to; this or command.")] = ""
    command: Annotated[str, Meta(description="The name of the process it belongs to.")] = ""
    user: Annotated[
        str, Meta(description="Whose process the command is, by name or number: any user may take the name.")
    ] = ""
    thread: Annotated[str, Meta(description="The thread's own name; without it, the process's first thread.")] = ""
    name: Annotated[str, Meta(description="What findings call it.")] = ""
    policy: Annotated[
        Literal["other", "batch", "idle", "fifo", "rr", "deadline"], Meta(description="How it is scheduled.")
    ] = "other"
    priority: Annotated[int, Meta(description="The priority of fifo and rr.")] = 0
    locked_memory: Annotated[bool, Meta(description="Whether all its memory has to be locked.")] = True
    fed_by: Annotated[
        list[str],
        Meta(description="Interfaces and other declared threads that feed it; without it, all the network cards."),
    ] = []
    spins: Annotated[bool, Meta(description="Whether it never sleeps: it polls for what it waits for.")] = False


class HostFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The host file as written."""

    profile: Annotated[str, Meta(description="A profile that tunectl ships, or a path.")]
    isolated: Annotated[str, Meta(description="The isolated CPUs in the kernel's own grammar, such as 2-7 or 4-N.")]
    bootloader: Annotated[
        str, Meta(description="Who boots the host, where what is found there contradicts itself.")
    ] = ""
    isolation: Annotated[
        Literal["boot", "runtime", "both"],
        Meta(
            description="Whether CPUs are isolated by boot arguments, without a reboot by a control group, or by both."
        ),
    ] = "boot"
    allow_split_siblings: Annotated[
        bool, Meta(description="Whether one thread of a core may be isolated without its sibling.")
    ] = False
    network: Annotated[Network, Meta(description="The network cards.")] = Network()
    budget: Annotated[Budget, Meta(description="What the probe is judged by; a limit left out is the profile's.")] = (
        Budget()
    )
    thermal: Annotated[Thermal, Meta(description="What the clock is held to.")] = Thermal()
    clock: Annotated[Clock, Meta(description="How far the clock may be from UTC.")] = Clock()
    preflight: Annotated[Preflight, Meta(description="What preflight does beyond the usual.")] = Preflight()
    report: Annotated[Report, Meta(description="What becomes of the documents of the timer's preflights.")] = Report()
    monitor: Annotated[Monitor, Meta(description="The monitor's settings.")] = Monitor()
    knobs: Annotated[dict[str, Value], Meta(description="The site's own values over the profile's, by knob.")] = {}
    threads: Annotated[
        list[ThreadRow], Meta(description="The site's own trading threads, which tunectl check looks for.")
    ] = []
    waivers: Annotated[list[WaiverRow], Meta(description="What may differ, and why.")] = []
