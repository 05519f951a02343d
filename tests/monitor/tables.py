"""What is made of SOURCES and RULES: docs/reference/sources.md, Prometheus' rule for each kind of alert, with where
what to do is written, and in docs/alerts.md the section of each alert that this address leads to.

`python -m tests.monitor.tables` writes all.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from tunectl.monitor.receivers.naming import ANNOTATIONS, JOB, PREFIX
from tunectl.monitor.rules import RULES, Rule
from tunectl.monitor.sources import SOURCES
from tunectl.wording import plural

_ROOT = Path(__file__).parents[2]
READS = _ROOT / "docs/reference/sources.md"
ALERTS = _ROOT / "docs/alerts.md"
PROMETHEUS = _ROOT / "tunectl/shipped/prometheus/tunectl.rules.yml"
# The site's own address of docs/alerts.md is one external label of its Prometheus; without it, the page as installed.
INSTALLED = "file:///usr/share/doc/tunectl/alerts.md"
_BASE = f"{{{{ with $externalLabels.tunectl_runbooks }}}}{{{{ . }}}}{{{{ else }}}}{INSTALLED}{{{{ end }}}}"
# What has happened, and what a person does first; the alert itself names the CPU, the value and the fix.
_RUNBOOK = {
    "FrequencyDrop": (
        "CPUs are held below their base frequency. Every message takes longer, and often nothing else shows it.",
        "Trade on another host. Look for a failed fan, dust, a power cap or a hot aisle.",
    ),
    "ThermalThrottle": (
        "The hardware has slowed CPUs because they are too hot.",
        "Trade on another host. Look for a failed fan, dust or a hot aisle.",
    ),
    "TemperatureHigh": (
        "A thermal zone has reached a trip at which the kernel slows CPUs or stops the host.",
        "Look at fans and inlet air before the cores are slowed.",
    ),
    "CoolingActive": (
        "A cooling device lowers frequencies or forces CPUs to idle.",
        "Look at fans and inlet air.",
    ),
    "LatencySla": (
        "A window of messages was slower than `[monitor.sla]` promises ([Latency](#latency)).",
        "`tunectl preflight` says whether it is the host, `sudo tunectl probe jitter --attribute` why.",
    ),
    "InterruptOnIsolatedCpu": (
        "An interrupt came to an isolated CPU. Its thread lost 10 to 50 us, and the caches were cold after it.",
        "`sudo tunectl verify` names the interrupt's affinity and the fix.",
    ),
    "SmiOnHost": (
        "A system management interrupt stopped all CPUs, for tens or hundreds of us.",
        "Look at the BIOS and the BMC: USB legacy support, power capping, errors handled by firmware first.",
    ),
    "PcieErrors": (
        "A link had ten corrected errors in ten minutes. Each sends a packet again, and interrupts a CPU.",
        "Reseat the card and its riser after trading; `sudo dmesg | grep -i aer` names the link.",
    ),
    "MemoryErrors": (
        "Memory had ten corrected errors in ten minutes. Each interrupts CPUs, and the module may fail.",
        "Replace the module that the kernel's log or the BMC names.",
    ),
    "LinkFlap": (
        "A card's link went down. What was sent meanwhile is lost.",
        "Look at cable, transceiver and the switch's log.",
    ),
    "NicLoss": (
        "A card dropped packets for want of room: their reader was late, or the ring is too short.",
        "`tunectl preflight` says whether the host delays the reader. Make the ring longer.",
    ),
    "NicPaused": (
        "Pause frames hold the line: every packet behind them waits.",
        "Switch flow control off at both ends, and find out who is too slow.",
    ),
    "NicCorrupt": (
        "Packets arrived broken, and are lost.",
        "Clean or replace cable and transceiver.",
    ),
    "KnobDrift": (
        "Somebody changed what tunectl had set.",
        "`sudo tunectl verify` names who else sets it; `sudo tunectl apply` puts it back.",
    ),
    "ManagerStarted": (
        "A service runs that tunes the same settings. Each overwrites the other's.",
        "Stop the service, or leave these settings to it in the host file.",
    ),
    "DeviceChanged": (
        "A device has come or gone. Nobody has placed a new one's interrupts and queues.",
        "`sudo tunectl apply` places them.",
    ),
    "CpuOffline": (
        "A CPU went offline. A thread that was pinned to it runs elsewhere now.",
        "Find out who took it offline.",
    ),
    "ClockOffset": (
        "The clock is further off than `[clock]` allows, or was stepped: time stamps are wrong.",
        "`sudo tunectl check` says who steers the clock, and what is wrong ([clock.md](clock.md)).",
    ),
    "MonitorDisturbs": (
        "The monitor itself interrupts isolated CPUs.",
        "Stop it while you trade (`sudo systemctl stop tunectl-monitor`), and report it.",
    ),
    "FrequencyUnknown": (
        "Nobody can tell whether the CPUs are slow. On a virtual machine the alert stays.",
        "Give the monitor a sentinel (`[monitor.sentinel]`), or the base frequency (`[thermal]`).",
    ),
    "SourceLost": (
        "A source has no data. What it reads is not watched.",
        "`tunectl monitor --once -v` names the file and the reason; of `clock` and `latency` the daemon's log does.",
    ),
    "Throttled": (
        "The hardware's own counters say that CPUs are slowed for heat, and the monitor has not said so.",
        "Look for a failed fan, dust, a power cap or a hot aisle; read the BMC's event log.",
    ),
    "MonitorDown": (
        "For a minute Prometheus could not scrape the monitor: nobody watches this host.",
        "Run `systemctl status tunectl-monitor` on the host.",
    ),
    "MonitorStalled": (
        "The monitor's last cycle is more than a minute old, or the host's clock differs from Prometheus' clock.",
        "Run `systemctl status tunectl-monitor` on the host, and compare both clocks.",
    ),
    "MonitorBusy": (
        "For ten minutes the monitor has used more than 5 % of a CPU.",
        "Raise `interval_s` in `[monitor]`, or report it.",
    ),
    "AlertsWait": (
        "A receiver has not acknowledged an alert for more than two minutes. Nothing is lost yet.",
        "`journalctl -u tunectl-monitor` says why.",
    ),
    "AlertsLost": (
        "A receiver refused an alert, or more alerts waited than the delivery queue holds.",
        "`journalctl -u tunectl-monitor` names each lost alert. Tell its reader yourself.",
    ),
    "AlertsInMemory": (
        "Alerts wait that could not be saved. A restart of the monitor would lose them.",
        "Look whether the state directory is full, missing or not writable.",
    ),
}


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def sources() -> str:
    """The page of what the monitor reads and decides by: one row a source, one row a rule."""
    text = "# What the monitor reads\n\nGenerated by `python -m tests.monitor.tables` from the monitor's sources.\n\n"
    text += _row(("source", "whom reading it disturbs", "valid", "reads")) + "|---|---|---|---|\n"
    for source in SOURCES:
        reads = ", ".join(one if " " in one and not one.startswith("/") else f"`{one}`" for one in source.reads)
        text += _row((f"`{source.name}`", source.disturbs, source.valid, reads))
    text += "\n## What decides an alert\n\n"
    text += _row(("alert", "why", "decided by", "fires", "ends")) + "|---|---|---|---|---|\n"
    for rule in RULES:
        fires = "at once" if rule.bad == (1, 1) else f"{rule.bad[0]} of {rule.bad[1]} snapshots"
        ends = "when that is announced" if rule.lasts else f"after {plural(rule.good, 'good snapshot')}"
        name = f"{PREFIX}{rule.name}"
        link = f"[{name}](../alerts.md#{name.lower()})"
        text += _row((link, rule.why, rule.source_of_truth, fires, ends))
    return text


def kinds() -> str:
    """One rule of Prometheus for each of ours; the first has the labels and annotations of all."""
    shared = (
        " &labels",
        *(f"\n          {name}: {value}" for name, value in (("job", JOB), ("instance", _quoted("host")))),
        *(f'\n          {name}: ""' for name in ANNOTATIONS),
        "\n        annotations: &annotations",
        *(f"\n          {name}: {_quoted(name)}" for name in ANNOTATIONS),
        f"\n          {_runbook('{{ $labels.alertname | toLower }}')}\n",
    )
    return "".join(_kind(rule, "".join(shared) if rule is RULES[0] else _AS_FIRST) for rule in RULES)


_AS_FIRST = " *labels\n        annotations: *annotations\n"


def _with_runbooks(text: str) -> str:
    """Prometheus' own rules, each with the address of its section."""
    own = re.compile(r"(- alert: (\w+)\n(?:        .*\n)*        annotations:\n)(?: +runbook_url: .*\n)?")
    return own.sub(lambda rule: f"{rule[1]}          {_runbook(rule[2].lower())}\n", text)


def _runbook(anchor: str) -> str:
    return f"runbook_url: '{_BASE}#{anchor}'"


def sections() -> str:
    """A section an alert, ours first: what it means, and what to do."""
    ours = {f"{PREFIX}{rule.name}": rule.severity.value for rule in RULES}
    listed = PROMETHEUS.read_text().split("- alert: ")[1:]
    own = {one.partition("\n")[0]: one.partition("severity: ")[2].partition("\n")[0] for one in listed}
    text = ""
    for name, severity in {**ours, **{name: said for name, said in own.items() if name not in ours}}.items():
        means, do = _RUNBOOK[name.removeprefix(PREFIX)]
        text += f"\n### {name}\n\n{severity.capitalize()}. {means}\n\n**Do:** {do}\n"
    return text


def _kind(rule: Rule, rest: str) -> str:
    name = f"{PREFIX}{rule.name}"
    expr = f'topk by (host, subject) (1, tunectl_alert_info{{alertname="{name}"}})'
    return f"      - alert: {name}\n        expr: {expr}\n        labels:{rest}"


def _quoted(label: str) -> str:
    return f'"{{{{ $labels.{label} }}}}"'


def prometheus(text: str) -> str:
    """The shipped rules with those of each kind as they are now."""
    return _with_runbooks(_between(text, "      # <kinds>\n", kinds(), "      # </kinds>"))


def alerts(text: str) -> str:
    """The page with the section of each alert as it is now."""
    return _between(text, "<!-- alerts -->\n", sections(), "\n<!-- /alerts -->")


def _between(text: str, begin: str, new: str, end: str) -> str:
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    assert before
    assert after
    return before + begin + new + end + after


if __name__ == "__main__":
    READS.write_text(sources())
    PROMETHEUS.write_text(prometheus(PROMETHEUS.read_text()))
    ALERTS.write_text(alerts(ALERTS.read_text()))
