"""The keys of the host file, their types and their choices (docs/interface.md, "Host file").

Every table may be left out. What a value may be beyond its type, config.py says. schema.py makes a JSON Schema of this.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

import msgspec

Value = bool | int | float | str  # of a knob
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]


class Sla(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[monitor.sla]: limits for each window of latency samples; a limit left out is not judged."""

    window_s: float = 10.0
    p99_9_ns: float | None = None
    max_ns: float | None = None
    socket: str | None = None  # a datagram socket to which an application sends its latencies


class Sentinel(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[monitor.sentinel]: a resident `tunectl-probe sentinel` on a CPU the operator gives up for it."""

    cpu: int


class Prometheus(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[monitor.prometheus]"""

    listen: str | None = None  # "127.0.0.1:9750"
    textfile: str | None = None  # a .prom file in node_exporter's textfile directory


class Webhook(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[[monitor.webhooks]]. The secret is in a file, never in this one."""

    url: str
    format: Literal["alertmanager", "json"] = "json"
    token_file: str | None = None  # sent as Authorization: Bearer
    ca_file: str | None = None
    timeout_s: _Seconds = 5.0
    resend_s: _Seconds = 60.0  # alertmanager: what fires is said again this often; below its resolve_timeout


class Hook(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[[monitor.hooks]]: a program, started without a shell; the alert is JSON on its standard input."""

    command: list[str]
    timeout_s: _Seconds = 10.0


class Monitor(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[monitor]: how often, what is promised, and who is notified."""

    interval_s: float = 1.0
    drift_interval_s: float = 10.0  # how often every knob is read again; an event reads them at once
    log: Literal["journal", "syslog", "none"] = "journal"
    repair: bool = False
    sla: Sla = Sla()
    sentinel: Sentinel | None = None
    prometheus: Prometheus = Prometheus()
    webhooks: list[Webhook] = []
    hooks: list[Hook] = []

    def without_residents(self) -> Monitor:
        """For a look beside the daemon: its sentinel and its socket are its own."""
        sla = msgspec.structs.replace(self.sla, socket=None)
        return msgspec.structs.replace(self, sentinel=None, sla=sla)

    @property
    def has_residents(self) -> bool:
        """Is there something that only one process can have?"""
        return self.sentinel is not None or self.sla.socket is not None


class Network(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[network]"""

    interfaces: list[str] = []


class Budget(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[budget]: limits for each probed CPU."""

    max_ns: float | None = None
    p99_9_ns: float | None = None
    interruptions_per_s: float | None = None
    stolen_ppm: float | None = None


class Thermal(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[thermal]"""

    base_frequency_khz: int | None = None
    min_ratio: float = 0.9


class WaiverRow(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[[waivers]]"""

    knob: str
    reason: str
    until: datetime.date
    target: str | int | None = None


class ThreadRow(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """[[threads]]: `unit` or `command` says which process, `thread` which of its threads (else the first)."""

    cpu: int
    unit: str = ""
    command: str = ""
    thread: str = ""
    name: str = ""
    policy: Literal["other", "batch", "idle", "fifo", "rr", "deadline"] = "other"
    priority: int = 0
    locked_memory: bool = True
    fed_by: list[str] = []


class HostFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The host file as written."""

    profile: str
    isolated: str
    bootloader: str = ""  # who boots this host, where the evidence contradicts itself
    isolation: Literal["boot", "runtime", "both"] = "boot"
    allow_split_siblings: bool = False
    network: Network = Network()
    budget: Budget = Budget()
    thermal: Thermal = Thermal()
    monitor: Monitor = Monitor()
    knobs: dict[str, Value] = {}
    threads: list[ThreadRow] = []
    waivers: list[WaiverRow] = []
