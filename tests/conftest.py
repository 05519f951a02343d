"""Fixtures for every test: recorded hosts, and the product called as a user calls it."""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import sections
from tests.hosts.builder import HostFactory
from tests.lab.sweep import forget_states
from tests.ran import Ran
from tests.starter import end_shared_starters, needs_own_interpreter, shared_starter

# The product starts hundreds of times here: compiled once, each start takes half as long. So does each worker, whose
# pytest rewrites six thousand assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
TUNECTL = Path(sysconfig.get_path("scripts")) / "tunectl"
# As for root by sudo, whose PATH has the program: what is printed names it by its name (tests/cli/test_typed.py).
os.environ.update(SUDO_UID="0", PATH=f"{TUNECTL.parent}:{os.environ['PATH']}")
# Shared machines stall for longer than any sensible deadline; speed is measured in tests/bench.
settings.register_profile("tunectl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("tunectl"), max_examples=10)
settings.load_profile("tunectl")
TESTS = Path(__file__).parent
MEMORY = Path("/dev/shm")
NOT_QUICK = ("slow", "long", "lab")
QUICK = pytest.StashKey[frozenset[str]]()  # the quick ring, as far as this run has collected it
LOW_LATENCY = 'profile = "low-latency"\nisolated = "2-3"\n'


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(20_000, 20, 20)  # the usual 700 objects cost a twentieth of all CPU time here
    os.umask(0o022)  # recorded hosts are for others to read, too
    hear_interrupts()
    write_to_memory()
    if config.getoption("-m") == "quick":
        settings.load_profile("quick")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    sections.show(terminalreporter)


def pytest_sessionfinish(session: pytest.Session) -> None:
    end_shared_starters()
    if not hasattr(session.config, "workerinput"):
        forget_states()


def pytest_collection(session: pytest.Session) -> None:
    """In a fresh clone no worker compiles what another has compiled: each begins at its own part of the modules.

    Side by side they would rewrite the same assertions at the same moment. What fails here fails in its collection.
    """
    worker = getattr(session.config, "workerinput", None)
    if not worker or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    names = [
        ".".join(path.relative_to(TESTS.parent).with_suffix("").parts) for path in sorted(TESTS.rglob("test_*.py"))
    ]
    begin = int(worker["workerid"].removeprefix("gw")) * len(names) // worker["workercount"]
    for name in names[begin:] + names[:begin]:
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before -m selects: a test is quick unless it says otherwise, so that nobody forgets.

    Of a test with several cases the first is quick, and every sixteenth after it. Those that pin threads come first,
    one after the other on one worker: on several they would wait for each other. Then the slow, so that none of them is
    the last that one worker still has.
    """
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not any(item.get_closest_marker(name) for name in NOT_QUICK):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        for item in cases[::16]:
            item.add_marker(pytest.mark.quick)
    if items:
        items[0].config.stash[QUICK] = frozenset(one.nodeid for one in items if one.get_closest_marker("quick"))
    items.sort(key=lambda item: (not is_pinned(item), item.get_closest_marker("slow") is None))


def pytest_collection_finish() -> None:
    """What was collected stays to the end: no collection of garbage, here or in a forked child, looks at it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """A worker that has nothing left takes from the other, instead of small portions for each in turn."""
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


def examples(count: int) -> int:
    """How many examples Hypothesis tries, for a test that needs another number than 100; the quick ring tries a tenth.

    Modules are imported after the profile is loaded.
    """
    assert settings.default
    return max(1, count * settings.default.max_examples // 100)


def in_quick_ring() -> bool:
    """Is this a run of the quick ring, which samples what README's command walks through?"""
    return settings.default is settings.get_profile("quick")


def hear_interrupts() -> None:
    """Ctrl-C reaches what tests start: a shell's background job inherits that it be ignored, and so would they."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def write_to_memory() -> None:
    """Recorded hosts are a million small files, which a disk takes longer to write and remove than the tests take."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir():
        return
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize >= 4 << 30 and not found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Test processes share the CPUs: what must not meet another's threads waits until those have ended.

    Around the whole of a test: fixtures of its module, too, pin threads.
    """
    if not is_pinned(item):
        return (yield)
    with (Path(tempfile.gettempdir()) / f"tunectl-tests-{os.getuid()}.cpus").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        return (yield)


def is_pinned(item: pytest.Item) -> bool:
    """Does it pin threads to CPUs of this machine?"""
    return any(item.get_closest_marker(name) for name in ("alone", "pins"))


@pytest.fixture(scope="session")
def host_root(tmp_path_factory: pytest.TempPathFactory) -> HostFactory:
    """Recorded hosts by name; see tests/hosts/builder.py."""
    return HostFactory(tmp_path_factory.mktemp("hosts"))


@pytest.fixture
def lab4(host_root: HostFactory, tmp_path: Path) -> Path:
    """A stock four-CPU host of one's own, with a host file that isolates CPUs 2-3."""
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, LOW_LATENCY)
    return root


def write_host_file(root: Path, text: str) -> Path:
    """The recorded host's own host file."""
    path = root / "etc/tunectl/host.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody may read, in memory as pytest's own, which are closed to others."""
    place = Path(tempfile.mkdtemp(prefix="tunectl-public-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="session")
def tunectl() -> Callable[..., Ran]:
    """Runs the installed program: `tunectl("verify", "--root", root)`. Environment variables go in as `env=`."""

    def run(*words: object, env: dict[str, str] | None = None, stdin: str | None = None) -> Ran:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("TUNECTL_", "COLUMNS"))}
        argv, environment = [str(TUNECTL), *map(str, words)], {**clean, **(env or {})}
        if needs_own_interpreter(environment):
            done = start(argv, environment, stdin)
        else:
            done = shared_starter().run(argv, environment, stdin)
        assert "Traceback" not in done.err, done.err
        return done

    return run


def start(argv: list[str], env: dict[str, str], stdin: str | None) -> Ran:
    """The program in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, *argv],
        env=env,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """An empty folder as tmp_path is, that another user may be let into and that is never in memory.

    grub-probe cannot make a disk of memory.
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        yield Path(place)
