"""The rules of docs/architecture.md, "Never", kept by reading the imports of every module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tunectl"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "native" not in path.parts)


def name_of(path: Path) -> str:
    """`tunectl.host.run` for tunectl/host/run.py."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports, and every name it takes from one, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
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
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func) in names for node in ast.walk(ast.parse(path.read_text()))
    )


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
                "tunectl.hostfile",
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
    *(
        "cpulist",
        "model",
        "verdict",
        "preflight/gate",
        "preflight/thermal",
        "knobs/codecs",
        "tuning/plan",
        "tuning/propose",
    ),
    *("tuners/conflicts", "tuners/lines", "tuners/places", "tuners/tunedvars", "tuning/fromtuned"),
    *("monitor/model", "monitor/alerts", "monitor/sources/windows", *RULES, *FLEET),
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
        assert not outside(own, "tunectl.fleet", "tunectl.probe.document", "tunectl.probe.shapes", "tunectl.errors"), (
            path
        )
    assert not calls(PACKAGE / "fleet/judge.py", "datetime.now", "open")


@pytest.mark.parametrize("policy", ["tunectl.tuning", "tunectl.hostfile"])
def test_facts_do_not_know_policy(policy: str) -> None:
    facts = ("tunectl.knobs", "tunectl.host", "tunectl.probe", "tunectl.bootloader")
    assert importers(policy) == outside(importers(policy), *facts)


def test_the_host_file_is_read_below_everything_that_acts_on_it() -> None:
    above = {f"tunectl.{room}" for room in ("cli", "preflight", "monitor", "checking", "tuning", "report", "fleet")}
    for path in (PACKAGE / "hostfile").glob("*.py"):
        own = set(imports(path))
        assert own == outside(own, *above), path


def test_host_files_are_opened_in_one_module() -> None:
    opening = {name_of(path) for path in MODULES if calls(path, "open", "os.open", "io.open")}
    own_files = {  # tunectl's own files, the operator's input and the user's output; none of them is the host's state
        "tunectl.tuning.journal",
        "tunectl.tuning.lock",
        "tunectl.hostfile.toml",
        "tunectl.cli.main",
        "tunectl.cli.probe",
        "tunectl.monitor.repair",
        "tunectl.monitor.sinks.textfile",
        "tunectl.monitor.sinks.webhook",
        "tunectl.monitor.spool",
        "tunectl.monitor.state",
        "tunectl.probe.result",  # the operator's token
        "tunectl.host.durable",  # directories, to have them on disk
        "tunectl.host.cgroup",  # puts the probe into the partition it measures; it reads and writes no setting
    }
    assert opening - own_files <= {"tunectl.host.sysroot", "tunectl.host.recording"}


def test_only_apply_and_restore_hold_a_writable_root() -> None:
    holders = importers("tunectl.host.sysroot.WritableSysroot")
    assert holders <= {
        "tunectl.tuning.apply",
        "tunectl.tuning.restore",
        "tunectl.tuning.transaction",
        "tunectl.cli.apply",
        "tunectl.cli.restore",
    }
