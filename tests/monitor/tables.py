"""What is made of SOURCES and RULES: the tables of docs/monitor.md, and Prometheus' rule for each kind of alert.

`python -m tests.monitor.tables` writes both.
"""

from collections.abc import Iterable
from pathlib import Path

from tunectl.monitor.receivers.naming import ANNOTATIONS, JOB
from tunectl.monitor.rules import RULES, Rule
from tunectl.monitor.sources import SOURCES

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs/monitor.md"
PROMETHEUS = _ROOT / "tunectl/shipped/prometheus/tunectl.rules.yml"


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
    """One row a rule."""
    text = _row(("alert", "severity", "why", "what decides", "fires", "over")) + "|---|---|---|---|---|---|\n"
    for rule in RULES:
        fires = "at once" if rule.bad == (1, 1) else f"{rule.bad[0]} of {rule.bad[1]} snapshots"
        over = "when that is announced" if rule.lasts else f"{rule.good} good snapshot{'s' if rule.good > 1 else ''}"
        text += _row((f"**{rule.name}**", rule.severity.value, rule.why, rule.source_of_truth, fires, over))
    return text


def kinds() -> str:
    """One rule of Prometheus for each of ours; the first has the labels and annotations of all."""
    shared = (
        " &labels",
        *(f"\n          {name}: {value}" for name, value in (("job", JOB), ("instance", _quoted("host")))),
        *(f'\n          {name}: ""' for name in ANNOTATIONS),
        "\n        annotations: &annotations",
        *(f"\n          {name}: {_quoted(name)}" for name in ANNOTATIONS),
        "\n",
    )
    return "".join(_kind(rule, "".join(shared) if rule is RULES[0] else _AS_FIRST) for rule in RULES)


_AS_FIRST = " *labels\n        annotations: *annotations\n"


def _kind(rule: Rule, rest: str) -> str:
    expr = f'topk by (host, subject) (1, tunectl_alert_info{{alertname="{rule.name}"}})'
    return f"      - alert: {rule.name}\n        expr: {expr}\n        labels:{rest}"


def _quoted(label: str) -> str:
    return f'"{{{{ $labels.{label} }}}}"'


def page(text: str) -> str:
    """The page with both tables as they are now."""
    for name, table in (("sources", sources()), ("rules", rules())):
        text = _between(text, f"<!-- {name} -->\n", table, f"<!-- /{name} -->")
    return text


def prometheus(text: str) -> str:
    """The shipped rules with those of each kind as they are now."""
    return _between(text, "      # <kinds>\n", kinds(), "      # </kinds>")


def _between(text: str, begin: str, new: str, end: str) -> str:
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    assert before
    assert after
    return before + begin + new + end + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    PROMETHEUS.write_text(prometheus(PROMETHEUS.read_text()))
