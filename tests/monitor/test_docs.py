"""The monitor's pages say what its tables say, and the example of docs/monitor.md is a host file that is accepted."""

import re
from pathlib import Path

from tests.monitor.tables import ALERTS, PROMETHEUS, READS, alerts, prometheus, sources
from tunectl.cli.monitor import command
from tunectl.hostfile.shape import HostFile, Monitor
from tunectl.hostfile.toml import read_toml
from tunectl.monitor.receivers.naming import ANNOTATIONS, LABELS, PREFIX
from tunectl.monitor.rules import RULES

PAGE = Path(__file__).parents[2] / "docs/monitor.md"
TEXT = PAGE.read_text()


def test_what_the_monitor_reads_is_that_of_the_code() -> None:
    assert sources() == READS.read_text(), "python -m tests.monitor.tables"


def test_each_kind_of_alert_has_its_rule_in_prometheus() -> None:
    text = PROMETHEUS.read_text()
    assert prometheus(text) == text, "python -m tests.monitor.tables"
    assert alerts(ALERTS.read_text()) == ALERTS.read_text(), "python -m tests.monitor.tables"


def test_an_alert_is_called_in_prose_what_alertmanager_calls_it() -> None:
    """What has a name without the prefix, alerts.md says at its top, by an example."""
    bare = re.compile(rf"(?<![\w=#])(?!SourceLost\[latency)(?:{'|'.join(rule.name for rule in RULES)})\b")
    pages = [path for path in PAGE.parent.rglob("*.md") if path.name != "schemas.md"]
    found = {
        path.name: bare.findall(re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE))
        for path in pages
    }
    assert {name: names for name, names in found.items() if names} == {}
    assert f"without `{PREFIX}`: `SourceLost[latency]`" in ALERTS.read_text().partition("## Each alert")[0]


def test_each_label_and_annotation_is_explained() -> None:
    names = PAGE.with_name("receivers.md").read_text().partition("## Names")[2].partition("\n## ")[0]
    cells = " ".join(line.split("|")[1] for line in names.splitlines() if line.startswith("|"))
    assert set(re.findall(r"`(\w+)`", cells)) == {*LABELS, *ANNOTATIONS, "job", "instance"}


def test_the_example_is_a_host_file(tmp_path: Path) -> None:
    found = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert found
    path = tmp_path / "host.toml"
    path.write_text(f'profile = "low-latency"\nisolated = "2-3"\n{found[1]}')
    monitor = read_toml(str(path), HostFile).monitor
    assert monitor.prometheus.listen == "127.0.0.1:9750"
    assert monitor.webhooks[0].format == "alertmanager"
    for name in Monitor.__struct_fields__:
        assert re.search(rf"^(\[+monitor\.{name}\]+|{name} =)", found[1], re.MULTILINE), name


def test_every_option_is_named() -> None:
    for option in ("--once", "--watch", "--repair", "--duration", "--interval"):
        assert option in TEXT
        assert any(option in parameter.opts for parameter in command.params)
