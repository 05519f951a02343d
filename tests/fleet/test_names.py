"""A host's name never becomes a path, and never meets another host's file; the Ansible action has the same rule."""

import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunectl.fleet.names import file_name, host_name, is_text
from tunectl.wording import natural

ACTION = Path(__file__).parents[2] / "ansible/plugins/action/fleet_preflight.py"
ODD = (
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/",
    "a/b",
    "\x00",
    "a\nb",
    ".hidden",
    "%",
    "%2E",
    "~",
    "日本",
    "\udc80",
    "x" * 500,
)
names = st.sampled_from(ODD) | st.text(st.characters(), max_size=300)


@given(names)
def test_a_name_becomes_one_plain_file(name: str) -> None:
    made = file_name(name)
    assert os.path.basename(made) == made
    assert made.isascii()
    assert made.isprintable()
    assert not made.startswith(".")
    assert len(made) <= 255
    assert "~" in made or host_name(made) == name


@given(names, names)
def test_different_names_are_different_files(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)
    assert file_name("x" * 500 + one) != file_name("x" * 500 + other) or one == other


@given(
    st.text(st.characters(), max_size=60)
    | st.sampled_from(["a~b.json", "%zz.json", "%ff.json", ".json", "a", "A%2f.json"])
)
def test_a_file_of_another_name_is_no_hosts(file: str) -> None:
    found = host_name(file)
    assert found is None or file_name(found) == file


@pytest.mark.parametrize("name", ["tx-04", "tx-04.ny4.example.com", "10.1.2.3", "a_b"])
def test_a_usual_name_is_left_as_it_is(name: str) -> None:
    assert file_name(name) == f"{name}.json"


def test_the_order_people_expect() -> None:
    assert sorted(["tx-10", "tx-2", "b", "tx-2a", ""], key=natural) == ["", "b", "tx-2", "tx-2a", "tx-10"]


def test_text() -> None:
    assert is_text("日本")
    assert not is_text("\udc80")


@pytest.mark.slow
@given(names)
def test_the_ansible_action_has_the_same_rule(name: str) -> None:
    assert _action_names(name) == file_name(name)


def _action_names(name: str) -> str:
    """file_name() of the action plugin, which must not import tunectl: the controller's Ansible has its own Python."""
    if not hasattr(_action_names, "found"):
        pytest.importorskip("ansible")
        spec = importlib.util.spec_from_file_location("fleet_preflight", ACTION)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _action_names.found = module.file_name  # type: ignore[attr-defined]
    return str(_action_names.found(name))  # type: ignore[attr-defined]
