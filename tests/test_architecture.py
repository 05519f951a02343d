"""The rules of docs/architecture.md, "Never", kept by reading the imports of every module."""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tunectl"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "native" not in path.parts)

# From the lowest to the highest: a room may import rooms of the lines above its own, and none of its own line.
ROOMS: tuple[tuple[str, ...], ...] = (
    ("errors", "durable"),
    ("command", "cpulist", "installed", "address"),
    ("kinds", "post"),
    ("fix",),
    ("model",),
    ("shapes",),
    ("verdict", "wording", "work"),
    ("report",),
    ("host",),
    ("probe", "bootloader"),
    ("experiments",),
    ("documents",),
    ("compare",),
    ("fleet",),
    ("knobs",),
    ("units", "tuners"),
    ("hostfile",),
    ("tuning",),
    ("monitor", "checking"),
    ("preflight",),
    ("cli",),
    ("__main__",),
)

# What reads the documents of every measurement stands above all that measure, though it lies in probe/.
DOCUMENTS = ("tunectl.probe.document", "tunectl.probe.doubt")


def name_of(path: Path) -> str:
    """`tunectl.host.run` for tunectl/host/run.py."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree; nearly every test asks for all of them."""
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module a file imports, and every name it takes from one, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return frozenset(found)


def imported_when_loaded(path: Path) -> set[str]:
    """The modules of the package that a file imports outside its functions, those for type checking included."""
    known = {name_of(each) for each in MODULES}
    found: set[str] = set()
    todo: list[ast.AST] = [parsed(path)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            wholes = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(whole if whole in known else node.module for whole in wholes)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo += ast.iter_child_nodes(node)
    return found & known


def room_of(module: str) -> str:
    """`host` for `tunectl.host.run`; "" for the package itself, which has the version and imports nothing."""
    if module.startswith(DOCUMENTS):
        return "documents"
    return module.split(".")[1] if "." in module else ""


def importers(target: str) -> set[str]:
    """The modules of the package that import `target` or something below it."""
    return {
        name_of(path) for path in MODULES if any(one == target or one.startswith(target + ".") for one in imports(path))
    }


def calls(path: Path, *names: str) -> bool:
    """Does the file call one of these functions, as `open(...)` or `os.open(...)`?"""
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) in names for node in ast.walk(parsed(path)))


def outside(found: set[str], *rooms: str) -> set[str]:
    """The modules that are in none of these rooms."""
    return {name for name in found if not any(name == room or name.startswith(room + ".") for room in rooms)}


def test_nothing_imports_the_command_line() -> None:
    assert not outside(importers("tunectl.cli"), "tunectl.cli", "tunectl.__main__")


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
                "tunectl.cli",
                "tunectl.fleet",
                "tunectl.host.recording",
                "tunectl.host.secrets",
                "tunectl.hostfile",
                "tunectl.monitor",
                "tunectl.probe",
                "tunectl.experiments",
                "tunectl.report.json",
                "tunectl.shapes",
                "tunectl.tuning",
            ),
        ),
        ("jinja2", ("tunectl.report.html",)),
        ("duckdb", ("tunectl.fleet.ask", "tunectl.fleet.engine")),
        ("prometheus_client", ("tunectl.report.prometheus", "tunectl.monitor.receivers")),
        ("http.client", ("tunectl.post",)),
        ("ssl", ("tunectl.post",)),
    ],
)
def test_a_library_has_one_place(library: str, rooms: tuple[str, ...]) -> None:
    assert not outside(importers(library), *rooms)


def test_every_finding_says_what_it_costs() -> None:
    """A row of the table cannot be without a severity; whatever else makes findings names it, too."""
    without = {
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding"
        and not any(one.arg in ("severity", None) for one in node.keywords) and len(node.args) < 10
    }  # fmt: skip
    # The monitor's conditions have severities of their own, as alerts do; the other asks whether an outcome fails.
    assert {one.partition(":")[0] for one in without} == {"tunectl.monitor.document", "tunectl.report.nagios"}


def test_report_sees_only_the_model() -> None:
    allowed = (
        "tunectl.report",
        "tunectl.command",
        "tunectl.kinds",
        "tunectl.fix",
        "tunectl.model",
        "tunectl.shapes",
        "tunectl.errors",
        "tunectl.installed",
        "tunectl.cpulist",
        "tunectl.verdict",
        "tunectl.wording",
        "tunectl.__version__",
    )
    for path in (PACKAGE / "report").rglob("*.py"):
        own = {one for one in imports(path) if one.startswith("tunectl.")}
        assert not outside(own, *allowed), path
        assert not imports(path) & {"os", "pathlib", "socket", "subprocess", "time"}, path
        assert not calls(path, "open"), path


RULES = sorted(f"monitor/rules/{path.stem}" for path in (PACKAGE / "monitor" / "rules").glob("*.py"))
FLEET = [
    f"fleet/{path.stem}"
    for path in sorted((PACKAGE / "fleet").glob("*.py"))
    # judge compares times that documents hold; it asks no clock. Sessions are files in store, columns in the others.
    if path.stem not in ("store", "spread", "judge", "ask", "clickhouse", "engine", "keep")
]
PURE = [
    *(
        "cpulist",
        "model",
        "verdict",
        "wording",
        "work",
        "hostfile/budget",
        "probe/budget",
        "preflight/headline",
        "preflight/gate",
        "preflight/thermal",
        "knobs/codecs",
    ),
    *("tuning/plan", "tuning/propose"),
    *("tuners/conflicts", "tuners/places", "tuners/programs", "tuners/tools", "tuners/tunedvars"),
    *("host/shellvars", "host/inifiles", "tuning/fromtuned"),
    *("monitor/model", "monitor/alerts", "monitor/sources/windows", "monitor/sources/datagram", *RULES, *FLEET),
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
    assert not imports(path) & forbidden
    assert not calls(path, "open", "print")


def test_the_fleet_knows_documents_and_no_host() -> None:
    for path in (PACKAGE / "fleet").glob("*.py"):
        own = {one for one in imports(path) if one.startswith("tunectl.")}
        probe = ("tunectl.probe.document", "tunectl.probe.doubt", "tunectl.shapes", "tunectl.compare")
        ground = ("command", "errors", "durable", "installed", "kinds", "fix", "verdict", "wording", "model")
        to_servers = ("tunectl.address", "tunectl.post")
        assert not outside(own, "tunectl.fleet", *probe, *to_servers, *(f"tunectl.{one}" for one in ground)), path
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


def test_host_files_are_opened_to_read_in_one_module_and_to_write_in_another() -> None:
    opening = {name_of(path) for path in MODULES if calls(path, "open", "os.open", "io.open")}
    own_files = {  # tunectl's own files, the operator's input and the user's output; none of them is the host's state
        "tunectl.tuning.journal",
        "tunectl.installed",  # reads what pip says of our own files
        "tunectl.host.lockfile",  # of the state directories
        "tunectl.cli.main",
        "tunectl.cli.start",  # reads how large our own process is, before anything is imported
        "tunectl.fleet.keep",  # rows on their way into the fleet's store
        "tunectl.fleet.spread",  # /dev/null, for what libc says when a query is at the end of its memory
        "tunectl.fleet.clickhouse",  # the same, and a table on its way out
        "tunectl.monitor.repair",
        "tunectl.address",  # the operator's secrets
        "tunectl.monitor.database",
        "tunectl.durable",  # replaces and reads them whole
        "tunectl.host.tracefs",  # a trace of our own, gone at the end; it reads and writes no setting
        "tunectl.host.cgroup",  # puts the probe into the partition it measures; it reads and writes no setting
        "tunectl.host.reaper",  # a program of its own, without packages; it reads who its children are
        "tunectl.probe.build_hook",  # reads the program that it has just built, on no host
    }
    assert opening - own_files == {"tunectl.host.sysroot", "tunectl.host.named", "tunectl.host.writable"}
    assert importers("tunectl.host.named") == {"tunectl.host.sysroot"}  # the same module's, on its own for its size


def test_files_are_replaced_in_one_module() -> None:
    """Write beside, sync, rename, sync the directory: anybody may import it, so it imports nothing of ours."""
    replacing = {name_of(path) for path in MODULES if calls(path, "os.rename", "os.replace", "tempfile.mkstemp")}
    # The database sets a damaged file aside; the build hook's archive is on no host.
    assert replacing - {"tunectl.monitor.database", "tunectl.probe.build_hook"} == {"tunectl.durable"}
    assert not {one for one in imports(PACKAGE / "durable.py") if one.startswith("tunectl.")}


def test_only_apply_and_restore_hold_a_writable_root() -> None:
    holders = importers("tunectl.host.writable.WritableSysroot")
    assert holders <= {
        "tunectl.tuning.apply",
        "tunectl.tuning.restore",
        "tunectl.tuning.transaction",
        "tunectl.tuning.takeback",
        "tunectl.tuning.confirming",
        "tunectl.tuning.tryboot",
        "tunectl.tuning.repairing",
        "tunectl.cli.apply",
        "tunectl.cli.confirm",
        "tunectl.cli.deadline",
        "tunectl.cli.restore",
    }


def test_no_import_cycle() -> None:
    graph = {name_of(path): imported_when_loaded(path) - {name_of(path)} for path in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_arrow_to_a_higher_room() -> None:
    """Imports inside functions count, too: an arrow is no better for being drawn late."""
    level = {"": -1, **{room: number for number, rooms in enumerate(ROOMS) for room in rooms}}
    wrong = [
        f"{name_of(path)} -> {other}"
        for path in MODULES
        for other in imports(path)
        if other.split(".")[0] == "tunectl"
        and room_of(other) != (own := room_of(name_of(path)))
        and level.get(room_of(other), -1) >= level[own]
    ]
    assert not wrong


def test_every_room_has_its_place() -> None:
    assert {room_of(name_of(path)) for path in MODULES} - {""} == {room for rooms in ROOMS for room in rooms}


# What is written for people to read. Whatever a program asks has a field of its own; a Fix has no methods of a str.
PROSE = frozenset(
    {"reason", "fix", "label", "note", "problem", "refusal", "obstacle", "summary", "headline", "why", "advice"}
)
LOOKING = frozenset(
    {"startswith", "endswith", "split", "rsplit", "splitlines", "partition", "rpartition", "removeprefix"}
    | {"removesuffix", "find", "index", "count", "replace", "lower", "search", "match", "fullmatch", "findall", "sub"}
)
# A text that is cut where it is long, or not there; the kernel's word for a row; and what is still to be done.
LOOKED_INTO = {
    ("tunectl.cpulist", "why"),
    ("tunectl.hostfile.config", "row.reason"),
    ("tunectl.host.interrupts", "label"),
    ("tunectl.monitor.interrupt_table", "row.label"),
    ("tunectl.compare.cases", "case.reason"),
    ("tunectl.experiments.link", "why"),
}


def prose_in(*nodes: ast.expr) -> set[str]:
    """Those of these expressions that are prose by their name."""
    names = [node for node in nodes if isinstance(node, ast.Attribute | ast.Name)]
    return {ast.unparse(one) for one in names if (one.attr if isinstance(one, ast.Attribute) else one.id) in PROSE}


def looks_into(node: ast.AST) -> set[str]:
    """The prose that this asks something: by a method of a str, a pattern, `in` or a part of it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (*LOOKING, "strip"):
        return prose_in(node.func.value, *node.args)
    if isinstance(node, ast.Compare) and any(isinstance(one, ast.In | ast.NotIn) for one in node.ops):
        return prose_in(*node.comparators)
    return prose_in(node.value) if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) else set()


def test_what_people_read_is_read_by_no_program() -> None:
    looked = {
        (name_of(path), prose)
        for path in MODULES
        if room_of(name_of(path)) not in ("report", "cli")
        for node in ast.walk(parsed(path))
        for prose in looks_into(node)
    }
    assert looked == LOOKED_INTO


@pytest.mark.parametrize(
    "text",
    [
        "one.reason.startswith('x')",
        "'x' in fix",
        "LIMIT.search(a.b.reason)",
        "problem[2:]",
        "(label).partition(':')[0]",
    ],
)
def test_such_a_program_would_be_seen(text: str) -> None:
    assert {one for node in ast.walk(ast.parse(text)) for one in looks_into(node)}
