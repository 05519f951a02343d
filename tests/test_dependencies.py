"""docs/dependencies.md, pyproject.toml, the constraints of CI and the lock of the packages say the same."""

import ast
import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tunectl.installed import DISTRIBUTION, EXTRAS

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OPTIONAL = PYPROJECT["project"]["optional-dependencies"]
PAGE = (ROOT / "docs/dependencies.md").read_text()


def requirements(texts: list[str]) -> dict[str, Requirement]:
    return {one.name: one for one in map(Requirement, texts) if one.name != DISTRIBUTION}


RUNTIME = {"": requirements(PYPROJECT["project"]["dependencies"])} | {
    extra: requirements(texts) for extra, texts in OPTIONAL.items() if extra != "test"
}
OF_A_HOST = {name: one for needed in RUNTIME.values() for name, one in needed.items()}


def pinned(path: str) -> dict[str, Version]:
    lines = re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / path).read_text(), re.MULTILINE)
    return {name: Version(version) for name, version in lines}


FLOOR, CEILING = pinned(".ci/constraints-floor.txt"), pinned(".ci/constraints-ceiling.txt")


def rows(heading: str) -> list[list[str]]:
    """The cells of each row below a heading, the head of the table left out."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines][1:]


def bound(requirement: Requirement, operator: str) -> Version | None:
    found = [Version(one.version) for one in requirement.specifier if one.operator == operator]
    return found[0] if found else None


def test_the_floor_is_what_pyproject_allows() -> None:
    assert {name: bound(one, ">=") for name, one in OF_A_HOST.items()} == FLOOR


def test_the_ceiling_is_what_the_packages_hold() -> None:
    """And what a controller needs besides: no trading host gets an engine for the fleet's store."""
    held = {name: version for name, version in CEILING.items() if name not in RUNTIME["fleet"]}
    assert pinned(".release/runtime.txt") == held
    assert OF_A_HOST.keys() <= CEILING.keys()
    for name, one in OF_A_HOST.items():
        assert CEILING[name] in one.specifier


def test_an_unfinished_interface_is_capped_above_the_ceiling() -> None:
    """0.23 is the first version above 0.22.0 that may break us; pyudev and prometheus-client have kept theirs."""
    capped = {name: bound(one, "<") for name, one in OF_A_HOST.items() if bound(one, "<")}
    assert capped == {name: Version(f"0.{CEILING[name].minor + 1}") for name in ("msgspec", "pyroute2")}


def test_the_page_has_what_a_host_needs() -> None:
    said = {(name, extra, Version(floor), Version(ceiling)) for name, extra, floor, ceiling, _ in rows("On a host")}
    assert said == {(name, extra, FLOOR[name], CEILING[name]) for extra, needed in RUNTIME.items() for name in needed}


def test_the_page_has_what_builds_and_tests_need() -> None:
    assert {row[0] for row in rows("To build")} == set(requirements(PYPROJECT["build-system"]["requires"]))
    assert {row[0] for row in rows("To test")} == set(requirements(OPTIONAL["test"]))
    assert all(row[-1] for heading in ("On a host", "To build", "To test") for row in rows(heading))


def test_the_extras_are_those_that_a_message_can_name() -> None:
    named = {(_distribution(module), extra) for module, extra in EXTRAS.items() if module != "markupsafe"}
    assert named == {(name, extra) for extra, needed in RUNTIME.items() if extra for name in needed}
    (ours,) = (one for one in map(Requirement, OPTIONAL["test"]) if one.name == DISTRIBUTION)
    assert ours.extras == {extra for extra in RUNTIME if extra}, "tests need all of them"


@pytest.mark.slow
def test_every_import_is_of_something_that_is_required() -> None:
    assert {_distribution(module) for module in _imported("tunectl", "checks")} == OF_A_HOST.keys()


def _imported(*folders: str) -> set[str]:
    """The top-level modules of others that our files import, wherever in a file."""
    found: set[str] = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        if path.name == "build_hook.py":  # no part of the wheel
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"tunectl"}


def _distribution(module: str) -> str:
    """`prometheus-client` for prometheus_client, as pyproject.toml writes it."""
    (name,) = set(_installed()[module])
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _installed() -> Mapping[str, list[str]]:
    """Module -> distributions: all that is installed is read for it."""
    return metadata.packages_distributions()
