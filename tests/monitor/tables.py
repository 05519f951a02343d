"""What is made of SOURCES and RULES: the tables of docs/monitor.md, Prometheus' rule for each kind of alert, with where
what to do is written, and in docs/alerts.md the section of each alert that this address leads to.

`python -m tests.monitor.tables` writes all.
"""

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from tunectl.monitor.receivers.naming import ANNOTATIONS, JOB, PREFIX
from tunectl.monitor.rules import RULES, Rule
from tunectl.monitor.sources import SOURCES

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs/monitor.md"
ALERTS = _ROOT / "docs/alerts.md"
PROMETHEUS = _ROOT / "tunectl/shipped/prometheus/tunectl.rules.yml"
# The site's own address of docs/alerts.md is one external label of its Prometheus; without it, the page as installed.
INSTALLED = "file:///usr/share/doc/tunectl/alerts.md"
_BASE = f"{{{{ with $externalLabels.tunectl_runbooks }}}}{{{{ . }}}}{{{{ else }}}}{INSTALLED}{{{{ end }}}}"
# What a person does first about one of our own alerts; the alert itself names the CPU, the value and the fix.
_FIRST = {
    "FrequencyDrop": "Trade on another host. Look for a failed fan, dust, a power cap or a hot aisle.",
    "ThermalThrottle": "The same as for TunectlFrequencyDrop: the cores are slowed already.",
    "TemperatureHigh": "Look at fans and inlet air before the cores are slowed.",
    "CoolingActive": "Look at fans and inlet air: the device lowers clocks or idles CPUs because of them.",
    "LatencySla": "`tunectl preflight` says whether it is the host; `sudo tunectl probe jitter --attribute` why.",
    "InterruptOnIsolatedCpu": "`sudo tunectl verify` names the interrupt's affinity and the fix.",
    "SmiOnHost": "Look at the BIOS and the BMC: USB legacy support, power capping, errors handled by firmware first.",
    "PcieErrors": "Reseat the card and its riser after trading; `sudo dmesg | grep -i aer` names the link.",
    "MemoryErrors": "Replace the module that the kernel's log or the BMC names.",
    "LinkFlap": "Look at cable, transceiver and the switch's log.",
    "NicLoss": "`tunectl preflight` says whether the host holds the reader up; make the ring longer.",
    "NicPaused": "Switch flow control off at both ends, and find out who is too slow.",
    "NicCorrupt": "Clean or replace cable and transceiver.",
    "KnobDrift": "`sudo tunectl verify` names who else sets it; `sudo tunectl apply` puts it back.",
    "ManagerStarted": "Stop the other service, or leave these settings to it in the host file.",
    "DeviceChanged": "`sudo tunectl apply` places its interrupts and queues.",
    "CpuOffline": "Find out who took it offline. A thread that was pinned to it runs elsewhere now.",
    "ClockOffset": "`sudo tunectl check` says who steers the clock, and what is wrong ([clock.md](clock.md)).",
    "MonitorDisturbs": "Stop the monitor (`sudo systemctl stop tunectl-monitor`) while you trade, and report it.",
    "FrequencyUnknown": "Give the monitor a sentinel (`[monitor.sentinel]`), or the base frequency (`[thermal]`).",
    "SourceLost": "`tunectl monitor --once` names the file and the reason.",
}


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def sources() -> str:
    """One row a source."""
    text = _row(("source", "whom reading it disturbs", "valid", "reads")) + "|---|---|---|---|\n"
    for source in SOURCES:
        reads = ", ".join(one if " " in one and not one.startswith("/") else f"`{one}`" for one in source.reads)
        text += _row((f"`{source.name}`", source.disturbs, source.valid, reads))
    return text


def rules() -> str:
    """One row a rule; why it is there and what decides stands in the alert's own section."""
    text = _row(("alert", "severity", "fires", "over")) + "|---|---|---|---|\n"
    for rule in RULES:
        fires = "at once" if rule.bad == (1, 1) else f"{rule.bad[0]} of {rule.bad[1]} snapshots"
        over = "when that is announced" if rule.lasts else f"{rule.good} good snapshot{'s' if rule.good > 1 else ''}"
        link = f"[{rule.name}](alerts.md#{PREFIX.lower()}{rule.name.lower()})"
        text += _row((link, rule.severity.value, fires, over))
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
    text = ""
    for rule in RULES:
        text += f"\n### {PREFIX}{rule.name}\n\n{_FIRST[rule.name]}\n\nSeverity {rule.severity.value}: {rule.why}.\n"
        text += f"Decided by {rule.source_of_truth}.\n"
    kinds = {f"{PREFIX}{rule.name}" for rule in RULES}
    for own in PROMETHEUS.read_text().split("- alert: ")[1:]:
        if (name := own.partition("\n")[0]) not in kinds:
            said = dict(re.findall(r"(expr|severity|description): ((?:\|\n(?: {10}.*\n)+)|.*)", own))
            expr = textwrap.dedent(said["expr"].removeprefix("|\n")).strip()
            text += f"\n### {name}\n\n{said['description'][1:-1]}\n\n"
            text += f"Severity {said['severity']}. Prometheus decides:\n\n```\n{expr}\n```\n"
    return text


def _kind(rule: Rule, rest: str) -> str:
    name = f"{PREFIX}{rule.name}"
    expr = f'topk by (host, subject) (1, tunectl_alert_info{{alertname="{name}"}})'
    return f"      - alert: {name}\n        expr: {expr}\n        labels:{rest}"


def _quoted(label: str) -> str:
    return f'"{{{{ $labels.{label} }}}}"'


def page(text: str) -> str:
    """The page with both tables as they are now."""
    for name, table in (("sources", sources()), ("rules", rules())):
        text = _between(text, f"<!-- {name} -->\n", table, f"<!-- /{name} -->")
    return text


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
    PAGE.write_text(page(PAGE.read_text()))
    PROMETHEUS.write_text(prometheus(PROMETHEUS.read_text()))
    ALERTS.write_text(alerts(ALERTS.read_text()))
