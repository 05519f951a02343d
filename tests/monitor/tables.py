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
# What a person does first about one of our own alerts; the alert itself names the CPU, the value and the fix.
_FIRST = {
    "FrequencyDrop": "Trade on another host. Look for a failed fan, dust, a power cap or a hot aisle.",
    "ThermalThrottle": "Trade on another host: the cores are slowed already. Look at fans, dust and inlet air.",
    "TemperatureHigh": "Look at fans and inlet air before the cores are slowed. The alert names the zone and its trip.",
    "CoolingActive": "Look at fans and inlet air. The alert names the device.",
    "LatencySla": "A window has broken `[monitor.sla]`. `tunectl preflight` says whether it is the host, "
    "`sudo tunectl probe jitter --attribute` why.",
    "InterruptOnIsolatedCpu": "`sudo tunectl verify` names the interrupt's affinity and the fix.",
    "SmiOnHost": "Look at the BIOS and the BMC: USB legacy support, power capping, errors handled by firmware first.",
    "PcieErrors": "Reseat the card and its riser after trading; `sudo dmesg | grep -i aer` names the link.",
    "MemoryErrors": "Replace the module that the kernel's log or the BMC names.",
    "LinkFlap": "Look at cable, transceiver and the switch's log.",
    "NicLoss": "Run `tunectl preflight`: it says whether the host holds the reader up. Make the ring longer.",
    "NicPaused": "Switch flow control off at both ends, and find out who is too slow.",
    "NicCorrupt": "Clean or replace cable and transceiver.",
    "KnobDrift": "`sudo tunectl verify` names who else sets it; `sudo tunectl apply` puts it back.",
    "ManagerStarted": "Stop the other service, or leave these settings to it in the host file.",
    "DeviceChanged": "`sudo tunectl apply` places its interrupts and queues.",
    "CpuOffline": "Find out who took it offline. A thread that was pinned to it runs elsewhere now.",
    "ClockOffset": "`sudo tunectl check` says who steers the clock, and what is wrong ([clock.md](clock.md)).",
    "MonitorDisturbs": "Stop the monitor (`sudo systemctl stop tunectl-monitor`) while you trade, and report it.",
    "FrequencyUnknown": "Give the monitor a sentinel (`[monitor.sentinel]`), or the base frequency (`[thermal]`). "
    "On a virtual machine the alert stays.",
    "SourceLost": "`tunectl monitor --once -v` names the file and the reason. For `clock` and `latency`, read the "
    "daemon's journal.",
}
# Prometheus' own alerts: what each means, and what to do.
_OWN = {
    "TunectlThrottled": (
        "the hardware's own counters rise: CPUs are slowed for heat, and the monitor has not said so",
        "Look for a failed fan, dust, a power cap or a hot aisle; read the BMC's event log.",
    ),
    "TunectlMonitorDown": (
        "for a minute Prometheus could not scrape the monitor: nobody watches this host",
        "Run `systemctl status tunectl-monitor` on the host.",
    ),
    "TunectlMonitorStalled": (
        "the monitor's last cycle is more than a minute old, or the host's clock differs from Prometheus' clock",
        "Run `systemctl status tunectl-monitor` on the host, and compare both clocks.",
    ),
    "TunectlMonitorBusy": (
        "for ten minutes the monitor has used more than 5 % of a CPU",
        "Raise `interval_s` in `[monitor]`, or report it.",
    ),
    "TunectlAlertsWait": (
        "a receiver has not acknowledged an alert for more than two minutes",
        "`journalctl -u tunectl-monitor` says why. Nothing is lost yet.",
    ),
    "TunectlAlertsLost": (
        "a receiver refused an alert, or more alerts waited than the delivery queue holds",
        "`journalctl -u tunectl-monitor` names each lost alert. Tell its reader yourself.",
    ),
    "TunectlAlertsInMemory": (
        "alerts wait that could not be saved: a restart of the monitor would lose them",
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
    text += _row(("alert", "severity", "decided by", "fires", "ends")) + "|---|---|---|---|---|\n"
    for rule in RULES:
        fires = "at once" if rule.bad == (1, 1) else f"{rule.bad[0]} of {rule.bad[1]} snapshots"
        ends = "when that is announced" if rule.lasts else f"after {plural(rule.good, 'good snapshot')}"
        link = f"[{rule.name}](../alerts.md#{PREFIX.lower()}{rule.name.lower()})"
        text += _row((link, rule.severity.value, rule.source_of_truth, fires, ends))
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
    text = "".join(_section(f"{PREFIX}{rule.name}", rule.severity.value, rule.why, _FIRST[rule.name]) for rule in RULES)
    ours = {f"{PREFIX}{rule.name}" for rule in RULES}
    for own in PROMETHEUS.read_text().split("- alert: ")[1:]:
        if (name := own.partition("\n")[0]) not in ours:
            text += _section(name, own.partition("severity: ")[2].partition("\n")[0], *_OWN[name])
    return text


def _section(name: str, severity: str, why: str, do: str) -> str:
    return f"\n### {name}\n\n{severity.capitalize()}: {why}.\n\n**Do:** {do}\n"


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
