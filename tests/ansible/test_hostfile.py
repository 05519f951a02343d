"""The host file that the module writes, read back by tunectl's own reader."""

import datetime
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ansible.generate import PLACES, written
from tests.ansible.units import load
from tests.conftest import examples
from tunectl.hostfile.shape import (
    Budget,
    FeedBudget,
    Hook,
    HostFile,
    Monitor,
    Network,
    Preflight,
    Prometheus,
    Sentinel,
    Sla,
    Thermal,
    ThreadRow,
    WaiverRow,
    Webhook,
)
from tunectl.hostfile.toml import read_toml

hostfile = load("hostfile")
TEXT = st.text(st.characters(codec="utf-8"))
FULL = {
    "waivers": [
        {"knob": "irq.affinity", "target": "33", "reason": 'an "admin" queue\\', "until": "2027-03-31"},
        {"knob": "check.tick", "target": None, "reason": "known", "until": "2027-01-01"},
    ],
    "isolated": "proposal",
    "profile": "low-latency",
    "nic": "eth0",
    "count": 4,
    "renew": False,
    "allow_split_siblings": True,
    "bootloader": "bls",
    "isolation": "both",
    "network": {"interfaces": ["eth0", "eth1"]},
    "budget": {
        "max_ns": 50000.0,
        "p99_9_ns": 10000.5,
        "interruptions_per_s": None,
        "stolen_ppm": 1e300,
        "feed": {"due_to_book_p99_9_ns": 50000.0},
    },
    "preflight": {"load": ["memory"], "feed": True},
    "thermal": {"base_frequency_khz": 3500000, "min_ratio": 0.9},
    "monitor": {
        "interval_s": 1.0,
        "log": "journal",
        "repair": None,
        "sla": {"window_s": 10.0, "p99_9_ns": None, "max_ns": None, "socket": None},
        "sentinel": {"cpu": 1},
        "prometheus": {"listen": "127.0.0.1:9750", "textfile": None},
        "webhooks": [{"url": "https://example.com/", "format": "json", "token_file": "/etc/token"}],
        "hooks": [{"command": ["/usr/local/bin/page", "-q"], "timeout_s": 3.0}],
    },
    "knobs": {"cpuidle.max_latency_us": 1, "mm.swappiness": "unmanaged"},
    "threads": [
        {"cpu": 2, "command": "feedhandler", "policy": "fifo", "priority": 50, "fed_by": ["eth0"], "unit": None}
    ],
}


def test_tunectl_reads_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text(hostfile.render(FULL, "2-3"))
    assert read_toml(str(path), HostFile) == HostFile(
        profile="low-latency",
        isolated="2-3",
        allow_split_siblings=True,
        bootloader="bls",
        isolation="both",
        network=Network(["eth0", "eth1"]),
        budget=Budget(max_ns=50000, p99_9_ns=10000.5, stolen_ppm=1e300, feed=FeedBudget(50000)),
        preflight=Preflight(["memory"], True),
        thermal=Thermal(3500000, 0.9),
        monitor=Monitor(
            interval_s=1,
            log="journal",
            sla=Sla(window_s=10),
            sentinel=Sentinel(1),
            prometheus=Prometheus(listen="127.0.0.1:9750"),
            webhooks=[Webhook("https://example.com/", "json", "/etc/token")],
            hooks=[Hook(["/usr/local/bin/page", "-q"], 3)],
        ),
        threads=[ThreadRow(2, command="feedhandler", policy="fifo", priority=50, fed_by=["eth0"])],
        knobs={"cpuidle.max_latency_us": 1, "mm.swappiness": "unmanaged"},
        waivers=[
            WaiverRow("irq.affinity", 'an "admin" queue\\', datetime.date(2027, 3, 31), "33"),
            WaiverRow("check.tick", "known", datetime.date(2027, 1, 1)),
        ],
    )


def test_the_text_does_not_depend_on_the_order_of_the_values() -> None:
    assert hostfile.render(dict(reversed(FULL.items())), "2-3") == hostfile.render(FULL, "2-3")


def test_the_least_host_file() -> None:
    text = hostfile.render({"profile": "low-latency", "isolated": "proposal", "budget": {}, "knobs": None}, "2-3")
    assert text.splitlines()[1:] == ['profile = "low-latency"', 'isolated = "2-3"']


@settings(max_examples=examples(40))
@given(TEXT, TEXT, st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), TEXT, st.floats(allow_nan=False)))
def test_every_text_and_number_comes_back(text: str, key: str, value: Any) -> None:
    host = {"profile": "p", "network": {"interfaces": [text]}, "knobs": {key: value}}
    read = tomllib.loads(hostfile.render(host, text))
    assert (read["isolated"], read["network"]) == (text, {"interfaces": [text]})
    assert read["knobs"] == {key: value}


@pytest.mark.parametrize(
    ("host", "said"),
    [
        (
            {"waivers": [{"knob": "mm.ksm", "until": "soon"}]},
            "waivers.until: 'soon' is no date; what is right: 2027-03-31",
        ),
        ({"knobs": {"mm.ksm": object}}, "a type has no place in a host file"),
    ],
)
def test_what_toml_cannot_hold_is_named(host: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        hostfile.render(host, "2-3")


@pytest.mark.parametrize(
    ("name", "near"), [("budgt", "budget"), ("isolatd", "isolated"), ("wavers", "waivers"), ("nics", "nic")]
)
def test_a_variable_that_is_no_key_is_refused_with_the_nearest(name: str, near: str) -> None:
    right = [f"tunectl_host_{key}" for key in hostfile.OPTIONS]
    said = hostfile.unknown_variables([*right, f"tunectl_host_{name}"])
    assert said == [f"tunectl_host_{name}: did you mean tunectl_host_{near}?"]


def test_another_variable_is_refused_with_the_nearest_of_all() -> None:
    read = ["tunectl_tune_reboot", "tunectl_host_name"]  # the second is no key, whoever reads it
    said = hostfile.unknown_variables(["tunectl_tune_reboot", "tunectl_tune_reboott", "tunectl_host_name"], read)
    assert [line.split(": did you mean ")[0] for line in said] == ["tunectl_host_name", "tunectl_tune_reboott"]
    assert said[1].endswith("tunectl_tune_reboot?")


def test_every_key_is_right() -> None:
    assert hostfile.unknown_variables(f"tunectl_host_{key}" for key in hostfile.OPTIONS) == []


@pytest.mark.parametrize("path", PLACES, ids=lambda path: path.name)
def test_the_collection_has_the_products_own_keys(path: Path) -> None:
    assert path.read_text() == written(path), "run `python -m tests.ansible.generate`"
