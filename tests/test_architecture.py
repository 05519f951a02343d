"""The rules of docs/architecture.md, "Never", kept by reading the imports of every module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tunectl"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "native" not in path.parts)


def name_of(path: Path) -> str:
    """`tunectl.host.run` for tunectl/host/run.py."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """The whole syntax tree of a file."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports, and every name it takes from one, wherever in the file."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(target: str) -> set[str]:
    """The modules of the package that import `target` or something below it."""
    return {
        name_of(path) for path in MODULES if any(one == target or one.startswith(target + ".") for one in imports(path))
    }


def calls(path: Path, *names: str) -> bool:
    """Does the file call one of these functions, as `open(...)` or `os.open(...)`?"""
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) in names for node in nodes(path))


def outside(found: set[str], *rooms: str) -> set[str]:
    """The modules that are in none of these rooms."""
    return {name for name in found if not any(name == room or name.startswith(room + ".") for room in rooms)}


def test_nothing_imports_the_command_line() -> None:
    assert not outside(importers("tunectl.cli"), "tunectl.cli")


@pytest.mark.parametrize(
    ("library", "rooms"),
    [
        ("click", ("tunectl.cli",)),
        ("rich", ("tunectl.cli", "tunectl.report.text")),
        ("subprocess", ("tunectl.host.run", "tunectl.probe.build_hook")),
        ("psutil", ("tunectl.host.procs",)),
        ("pyudev", ("tunectl.host.devices",)),
        ("pyroute2", ("tunectl.host.ethtool",)),
        (
            "msgspec",
            (
                "tunectl.tuning.profile",
                "tunectl.tuning.hostfile",
                "tunectl.tuning.threads",
                "tunectl.monitor.settings",
                "tunectl.probe.document",
                "tunectl.probe.shapes",
                "tunectl.fleet.documents",
                "tunectl.report.json",
            ),
        ),
        ("jinja2", ("tunectl.report.html",)),
        ("prometheus_client", ("tunectl.report.prometheus", "tunectl.monitor.sinks")),
        ("http.client", ("tunectl.monitor.sinks.http",)),
        ("ssl", ("tunectl.monitor.sinks.http",)),
    ],
)
def test_a_library_has_one_place(library: str, rooms: tuple[str, ...]) -> None:
    assert not outside(importers(library), *rooms)


def test_report_sees_only_the_model() -> None:
    allowed = (
        "tunectl.report",
        "tunectl.model",
        "tunectl.errors",
        "tunectl.cpulist",
        "tunectl.verdict",
        "tunectl.__version__",
    )
    for path in (PACKAGE / "report").rglob("*.py"):
        own = {one for one in imports(path) if one.startswith("tunectl.")}
        assert not outside(own, *allowed), path
        assert not set(imports(path)) & {"os", "pathlib", "socket", "subprocess", "time"}, path
        assert not calls(path, "open"), path


RULES = sorted(f"monitor/rules/{path.stem}" for path in (PACKAGE / "monitor" / "rules").glob("*.py"))
FLEET = [
    f"fleet/{path.stem}"
    for path in sorted((PACKAGE / "fleet").glob("*.py"))
    if path.stem not in ("store", "judge")  # judge compares times that documents hold; it asks no clock
]
PURE = [
    *("cpulist", "model", "verdict", "knobs/codecs", "tuning/plan", "tuning/propose"),
    *("tuners/conflicts", "tuners/places", "tuners/tunedvars", "host/shellvars", "host/inifiles", "tuning/fromtuned"),
    *("monitor/model", "monitor/alerts", "monitor/windows", *RULES, *FLEET),
]


@pytest.mark.parametrize("module", PURE)
def test_pure_modules_do_no_io(module: str) -> None:
    path = PACKAGE / f"{module}.py"
    forbidden = {
        "os",
        "io",
        "pathlib",
        "socket",
        "subprocess",
        "time",
        "datetime",
        "tunectl.host.sysroot",
        "tunectl.host.run",
    }
    assert not set(imports(path)) & forbidden
    assert not calls(path, "open", "print")


def test_the_fleet_knows_documents_and_no_host() -> None:
    for path in (PACKAGE / "fleet").glob("*.py"):
        own = {one for one in imports(path) if one.startswith("tunectl.")}
        probe = ("tunectl.probe.document", "tunectl.probe.shapes")
        assert not outside(own, "tunectl.fleet", *probe, "tunectl.errors", "tunectl.durable"), path
    assert not calls(PACKAGE / "fleet/judge.py", "datetime.now", "open")


def test_facts_do_not_know_policy() -> None:
    assert not {name for name in importers("tunectl.tuning") if name.startswith(("tunectl.knobs", "tunectl.host"))}


def test_host_files_are_opened_to_read_in_one_module_and_to_write_in_another() -> None:
    opening = {name_of(path) for path in MODULES if calls(path, "open", "os.open", "io.open")}
    own_files = {  # tunectl's own files, the operator's input and the user's output; none of them is the host's state
        "tunectl.tuning.journal",
        "tunectl.tuning.lock",
        "tunectl.tuning.profile",
        "tunectl.cli.main",
        "tunectl.cli.probe",
        "tunectl.monitor.repair",
        "tunectl.monitor.sinks.webhook",
        "tunectl.monitor.spool",
        "tunectl.monitor.state",
        "tunectl.probe.result",  # the operator's token
        "tunectl.durable",  # the files that the others replace, and directories to have them on disk
        "tunectl.host.cgroup",  # puts the probe into the partition it measures; it reads and writes no setting
    }
    assert opening - own_files == {"tunectl.host.sysroot", "tunectl.host.writable"}


def test_files_are_replaced_in_one_module() -> None:
    """Write beside, sync, rename, sync the directory: anybody may import it, so it imports nothing of ours."""
    replacing = {name_of(path) for path in MODULES if calls(path, "os.rename", "os.replace", "tempfile.mkstemp")}
    assert replacing - {"tunectl.monitor.spool"} == {"tunectl.durable"}  # a spool keeps its open file locked meanwhile
    assert not {one for one in imports(PACKAGE / "durable.py") if one.startswith("tunectl.")}


def test_only_apply_and_restore_hold_a_writable_root() -> None:
    holders = importers("tunectl.host.writable.WritableSysroot")
    assert holders <= {
        "tunectl.tuning.apply",
        "tunectl.tuning.restore",
        "tunectl.tuning.transaction",
        "tunectl.cli.apply",
        "tunectl.cli.restore",
    }
