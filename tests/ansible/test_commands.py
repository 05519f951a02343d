"""The words that the module says to tunectl, held against tunectl's own commands."""

import importlib
from typing import Any

import click
import pytest

from tests.ansible.units import load

commands = load("commands")
EVERYTHING: dict[str, Any] = {
    "root": "/srv/host",
    "host_file": "/etc/other.toml",
    "state_dir": "/var/lib/other",
    "strict": True,
    "confirm_within": "10m",
    "id": "0123abcd",
    "runtime": True,
    "force": True,
    "salvage": True,
    "wait_s": 2.5,
    "duration_s": 30.0,
    "window_s": 1.0,
    "load": "memory",
    "feed": True,
    "paths": ["/srv/-check.py"],
    "cpus": "2-3",
    "threshold_ns": 200,
    "events": 10,
    "attribute": True,
    "nic": "eth0",
    "count": 4,
    "profile": "balanced-latency",
    "name": "monitor",
    "state": "present",
    "repair": True,
}
SHARED = ["--format", "json", "--quiet"]
NOTHING: dict[str, Any] = {key: False if value is True else None for key, value in EVERYTHING.items()}
NOTHING |= {"state": "present", "feed": None}


def words(command: str, check_mode: bool = False, candidate: str = "", **given: Any) -> list[str]:
    return list(commands.words(command, NOTHING | given, check_mode, candidate))


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (words("verify"), ["verify"]),
        (words("verify", strict=True, runtime=True), ["verify", "--strict"]),
        (words("apply", wait_s=2.0), ["apply", "--yes", "--wait", "2"]),
        (words("apply", check_mode=True, candidate="/tmp/x", wait_s=2.0), ["plan", "--candidate", "/tmp/x"]),
        (words("apply", candidate="/tmp/x"), ["apply", "--yes"]),
        (words("configure", candidate="/tmp/x"), ["plan", "--candidate", "/tmp/x"]),
        (words("apply", confirm_within="10m"), ["apply", "--yes", "--confirm-within", "10m"]),
        (words("apply", check_mode=True, confirm_within="10m"), ["plan"]),
        (words("confirm", wait_s=2.0), ["confirm", "--wait", "2"]),
        (words("confirm", check_mode=True, id="0123abcd"), ["show"]),
        (words("restore", check_mode=True, force=True), ["restore", "--dry-run", "--force"]),
        (words("preflight", duration_s=0.5), ["preflight", "--duration", "0.5"]),
        (words("preflight", load="memory,timers"), ["preflight", "--load", "memory,timers"]),
        (words("preflight", feed=True), ["preflight", "--feed"]),
        (words("preflight", feed=False), ["preflight", "--no-feed"]),
        (words("probe", duration_s=60.0, cpus="2"), ["probe", "jitter", "--duration", "60", "--cpus", "2"]),
        (words("service", name="monitor", repair=True), ["service", "install", "monitor", "--repair"]),
        (words("service", name="preflight", at="07:45"), ["service", "install", "preflight", "--at", "07:45"]),
        (words("service", name="preflight", at="07:45", state="absent"), ["service", "remove", "preflight"]),
        (words("service", name="repair", state="absent"), ["service", "remove", "repair"]),
        (words("service", check_mode=True, name="repair", state="absent"), ["service", "show", "repair"]),
    ],
)
def test_words(said: list[str], wanted: list[str]) -> None:
    assert said == [*wanted, *SHARED]


def test_what_is_shared_and_what_comes_last() -> None:
    said = words("check", root="/r", host_file="/h", state_dir="/s", paths=["/srv/-check.py"])
    assert said == ["check", *SHARED, "--root", "/r", "--host", "/h", "--state", "/s", "--", "/srv/-check.py"]
    assert words("confirm", id="0123abcd") == ["confirm", *SHARED, "--", "0123abcd"]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("command", [name for name in commands.SCHEMAS if name != "service"])
def test_tunectl_knows_every_option(command: str, check_mode: bool) -> None:
    said = commands.words(command, EVERYTHING, check_mode, "/tmp/candidate.toml")
    known: click.Command = importlib.import_module(f"tunectl.cli.{said[0]}").command
    if isinstance(known, click.Group):
        known = known.commands[said[1]]
    options = {option for parameter in known.params for option in parameter.opts}
    assert {word for word in said if word.startswith("--") and word != "--"} <= options


@pytest.mark.parametrize("command", commands.WRITES)
def test_nothing_writes_in_check_mode(command: str) -> None:
    said = commands.words(command, EVERYTHING, True, "/tmp/candidate.toml")
    assert said[0] in ("plan", "show") or said[:2] in (["restore", "--dry-run"], ["service", "show"])
