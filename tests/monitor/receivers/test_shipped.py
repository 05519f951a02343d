"""What is shipped for Prometheus, Alertmanager and Grafana, read by their own programs; and nobody asks for a metric
that is not there."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.monitor.receivers.samples import DROP, HOST, status
from tests.monitor.receivers.test_prometheus import names, shown
from tests.monitor.tables import ALERTS, INSTALLED
from tests.report.documents import document
from tunectl.monitor.model import Alert
from tunectl.monitor.receivers.naming import ANNOTATIONS, PREFIX
from tunectl.monitor.receivers.webhook import posted
from tunectl.monitor.rules import RULES as KINDS
from tunectl.report import render

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "tunectl" / "shipped"
RULES = SHIPPED / "prometheus" / "tunectl.rules.yml"
ALERTMANAGER = SHIPPED / "alertmanager" / "alertmanager.yml"
FLEET_RULES = SHIPPED / "prometheus" / "tunectl.fleet.rules.yml"
DASHBOARD = SHIPPED / "grafana" / "tunectl.json"
FLEET = SHIPPED / "grafana" / "tunectl-fleet.json"
RECORDED = re.compile(r"\b[a-z_]+:tunectl_[a-z0-9_]+:[a-z0-9_]+")
METRIC = re.compile(r"\btunectl_[a-z0-9_]+")
VARIABLES = {"$__rate_interval": "1m", "$__interval": "1m", "$instance": ".*"}


def tool(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian package: {package})")
    return found


def alerts() -> list[str]:
    return re.findall(r"- alert: (\w+)", RULES.read_text())


def asking() -> str:
    """The rules without their addresses, which ask Prometheus for a setting of its own."""
    return re.sub(r".*runbook_url: .*\n", "", RULES.read_text())


def checked(*words: object) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dashboard(path: Path = DASHBOARD) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(path.read_text())
    return made


def expressions(path: Path = DASHBOARD) -> Iterator[str]:
    """Every expression of a dashboard, its variables filled in as Grafana does."""
    made = dashboard(path)
    found = [target["expr"] for panel in made["panels"] for target in panel.get("targets", ())]
    for expr in [*found, *(each["expr"] for each in made["annotations"]["list"])]:
        for name, value in VARIABLES.items():
            expr = expr.replace(name, value)
        assert "$" not in expr
        yield expr


def test_promtool_takes_the_rules() -> None:
    promtool = tool("promtool", "prometheus")
    assert checked(promtool, "check", "rules", RULES, FLEET_RULES).count("SUCCESS") == 2
    checked(promtool, "check", "config", SHIPPED / "prometheus" / "prometheus.yml")


@pytest.mark.slow
def test_each_rule_fires_and_is_silent() -> None:
    cases = Path(__file__).with_name("rules.test.yml")
    assert "SUCCESS" in checked(tool("promtool", "prometheus"), "test", "rules", cases)
    text = cases.read_text()
    kinds = {f"{PREFIX}{rule.name}" for rule in KINDS}
    assert kinds < set(alerts())
    for alert in set(alerts()) - kinds:
        about = re.findall(rf"alertname: {alert}\b(.*)", text)
        assert len(about) >= 2, alert
        assert "" in about, f"{alert} is never seen to fire"


@pytest.mark.slow
def test_what_is_recorded_of_a_fleet_is_one_series_a_host_a_verdict_or_a_cause() -> None:
    cases = Path(__file__).with_name("fleet.test.yml")
    assert "SUCCESS" in checked(tool("promtool", "prometheus"), "test", "rules", cases)


def test_the_dashboard_of_a_fleet_asks_for_what_is_recorded_and_nothing_else() -> None:
    """Of ten thousand hosts a series a CPU is a million."""
    recorded = set(re.findall(r"record: (\S+)", FLEET_RULES.read_text()))
    asked = "\n".join(expressions(FLEET))
    assert set(RECORDED.findall(asked)) <= recorded
    assert METRIC.findall(RECORDED.sub("", asked)) == []
    of_hosts = [expr for expr in expressions(FLEET) if re.search(r"\binstance(_verdict|_severity)?:", expr)]
    assert [expr for expr in of_hosts if not re.match(r"(topk|bottomk|count)\b", expr)] == []


def test_what_is_recorded_of_a_fleet_is_exported() -> None:
    """By the monitor, or by preflight in its textfile."""
    text = render(document("preflight"), "prometheus")
    known = names(shown(status())) | set(METRIC.findall(text))
    rules = re.sub(r"#.*", "", FLEET_RULES.read_text())
    assert set(METRIC.findall(RECORDED.sub("", rules))) - known == set()
    labels = {key for _, pairs in shown(status()) for key, _ in pairs} | set(re.findall(r"[{,](\w+)=", text))
    listed = re.findall(r"by \(([a-z_, ]+)\)", rules) + re.findall(r"(\w+)=~?\"", rules)
    assert {label for each in listed for label in each.split(", ")} - labels - {"instance", "job"} == set()


def test_every_rule_has_a_severity_and_words() -> None:
    rules = RULES.read_text().split("- alert: ")[1:]
    for rule in rules:
        name = rule.partition("\n")[0]
        assert "severity:" in rule or name in {f"{PREFIX}{each.name}" for each in KINDS}
        assert "annotations: *annotations" in rule or ("summary:" in rule and "description:" in rule)


def test_every_alert_has_our_prefix_and_leads_to_its_own_section() -> None:
    rules = RULES.read_text().split("- alert: ")[1:]
    headings = {line.removeprefix("### ") for line in ALERTS.read_text().splitlines() if line.startswith("### Tunectl")}
    assert headings == set(alerts())
    assert all(name.startswith(PREFIX) for name in alerts())
    assert all("runbook_url:" in rule or "annotations: *annotations" in rule for rule in rules)


def both_ways() -> Iterator[tuple[Alert, dict[str, str], dict[str, str]]]:
    """An alert of each kind, with the labels and the annotations that our own webhook gives it."""
    subjects = itertools.cycle(("package0", "cpu3", "irq42", "thermal_zone3", 'application "x" \\ {{ $labels.host }}'))
    for rule, subject in zip(KINDS, subjects, strict=False):
        knob = {"subject": "irq.affinity"} if rule.name == "KnobDrift" else {}
        alert = replace(DROP, rule=rule.name, severity=rule.severity, **{"subject": subject, **knob})
        made: Any = posted(alert, HOST)
        yield alert, made["labels"], made["annotations"]


def test_prometheus_gives_an_alert_the_labels_and_the_words_of_the_webhook(tmp_path: Path) -> None:
    """Every kind of the product's table; what the exporter says of it goes through the shipped rule."""
    every = list(both_ways())
    target = {"instance": "10.0.0.4:9750", "job": "hosts"}
    series = [
        "{" + ", ".join(f"{key}={json.dumps(value)}" for key, value in {**dict(pairs), **target}.items() if value) + "}"
        for name, pairs in shown(status(firing=tuple(alert for alert, _, _ in every)))
        if name == "tunectl_alert_info"
    ]
    assert len(series) == len(KINDS)
    expected = [
        {
            "eval_time": "15s",
            "alertname": (name := labels.pop("alertname")),
            "exp_alerts": [
                {
                    "exp_labels": labels,
                    "exp_annotations": {each: said[each] for each in ANNOTATIONS}
                    | {"runbook_url": f"{INSTALLED}#{name.lower()}"},
                }
            ],
        }
        for _, labels, said in every
    ]
    test = {
        "interval": "15s",
        "input_series": [{"series": f"tunectl_alert_info{each}", "values": "1 1 stale"} for each in series],
        "alert_rule_test": [*expected, *({**each, "eval_time": "30s", "exp_alerts": []} for each in expected)],
    }
    path = tmp_path / "kinds.test.yml"
    path.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "15s", "tests": [test]}))
    assert "SUCCESS" in checked(tool("promtool", "prometheus"), "test", "rules", path)


def test_amtool_takes_the_example() -> None:
    checked(tool("amtool", "prometheus-alertmanager"), "check-config", ALERTMANAGER)


def test_amtool_routes_each_kind_by_its_severity() -> None:
    """The labels of both ways are the same, so one route is right for both; `info` is for nobody."""
    routes = [tool("amtool", "prometheus-alertmanager"), "config", "routes", "test", f"--config.file={ALERTMANAGER}"]
    _, labels, _ = next(both_ways())
    for severity, receiver in {"critical": "desk", "warning": "desk", "info": "nobody"}.items():
        words = [f"{key}={value}" for key, value in {**labels, "severity": severity}.items()]
        checked(*routes, f"--verify.receivers={receiver}", *words)


@pytest.mark.parametrize(("board", "least"), [(DASHBOARD, 25), (FLEET, 15)], ids=["host", "fleet"])
def test_every_expression_of_the_dashboard_parses(tmp_path: Path, board: Path, least: int) -> None:
    promtool = tool("promtool", "prometheus")
    rules = [{"record": f"e{number}", "expr": expr} for number, expr in enumerate(expressions(board))]
    assert len(rules) > least
    path = tmp_path / "dashboard.yml"  # JSON is YAML
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in checked(promtool, "check", "rules", path)


@pytest.mark.parametrize("path", [RULES, DASHBOARD], ids=["rules", "dashboard"])
def test_every_metric_that_is_asked_for_is_exported(path: Path) -> None:
    asked = set(METRIC.findall(asking() if path == RULES else "\n".join(expressions())))
    assert asked - names(shown(status())) - {"tunectl_samples"} == set()
    assert len(asked) >= 7


@pytest.mark.parametrize("name", ["tunectl_cpu_frequency_stale_hertz", "tunectl_samples", "tunectl_monitor_info"])
def test_every_metric_that_is_only_talked_of_is_exported(name: str) -> None:
    assert name in names(shown(status()))


@pytest.mark.parametrize("board", [DASHBOARD, FLEET], ids=["host", "fleet"])
def test_the_dashboard_is_one_that_grafana_provisions(board: Path) -> None:
    made = dashboard(board)
    assert made["uid"] == board.stem
    assert "id" not in made
    ids = [panel["id"] for panel in made["panels"]]
    assert len(ids) == len(set(ids))
    for panel in made["panels"]:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
        assert panel["type"] == "row" or panel["datasource"]["uid"] == "${datasource}"
    cells = [
        (x, y)
        for panel in made["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"


def test_no_label_is_asked_for_that_is_not_there() -> None:
    """A misspelt label is no error anywhere: the panel is empty, or its legend is."""
    labels = {key for _, pairs in shown(status()) for key, _ in pairs} | {"instance", "job"}
    text = DASHBOARD.read_text() + asking()
    asked = set(re.findall(r"\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}", text))
    asked |= {label for listed in re.findall(r"by \(([a-z_, ]+)\)", text) for label in listed.split(", ")}
    assert asked <= labels
