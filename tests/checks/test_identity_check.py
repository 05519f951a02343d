"""Names that any user may take, played by a real one: nothing is hidden by them, and nothing is blamed for them."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.checking.fake_kernel import FakeKernel, Process
from tests.cli.places import IS_ROOT, as_nobody, environment, unprivileged
from tests.conftest import TUNECTL
from tests.ran import Ran
from tests.starter import NOBODY, shared_starter
from tunectl import installed
from tunectl.checking.runner import shipped_checks
from tunectl.host.openfiles import stop_of
from tunectl.host.procs import find_threads, hidden_threads, service_of, users_of
from tunectl.host.sysroot import Sysroot
from tunectl.model import Trading
from tunectl.tuners.find import read_programs

pytestmark = [
    pytest.mark.skipif(not IS_ROOT, reason="needs root, to become another user"),
    pytest.mark.skipif(bool(hidden_threads(Sysroot())), reason="not every thread can be seen here"),
]
HOST = Sysroot()
CPU = max(os.sched_getaffinity(0))
HOST_FILE = f'profile = "low-latency"\nisolated = "{CPU}"\nallow_split_siblings = true\n'
CHECKS = tuple(str(shipped_checks() / name) for name in ("test_threads.py", "test_tuners.py"))
_SAYS_SO = "import os, sys; {}; print(flush=True); sys.stdin.read()"
_NAMED = "open('/proc/self/comm', 'w').write('{}'); os.sched_setaffinity(0, {{{}}})"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody may look into; pytest's own are closed to others."""
    found = Path(tempfile.mkdtemp())
    found.chmod(0o755)
    (found / "host.toml").write_text(HOST_FILE)
    yield found
    shutil.rmtree(found)


@contextmanager
def started(argv: Sequence[str]) -> Iterator[int]:
    """The pid of a program that says a line once it is what it wants to be; ended with the test."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        line = child.stdout.readline()
        try:
            assert line, f"{argv} ended with {child.wait()}"
            yield child.pid
        finally:
            child.kill()


@contextmanager
def program_named(name: str, place: Path, *prefix: str) -> Iterator[int]:
    """The pid of a program with this name, of no other use than that it waits."""
    shutil.copy(shutil.which("cat") or "", place / name)
    with subprocess.Popen([*prefix, place / name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()  # it is executed, and has its name
        try:
            yield child.pid
        finally:
            child.kill()


def pinned(name: str, *prefix: str) -> list[str]:
    """A process that takes this name and sleeps on the CPU."""
    return [*prefix, sys.executable, "-c", _SAYS_SO.format(_NAMED.format(name, CPU))]


def as_root(*words: str) -> Ran:
    return shared_starter().run([str(TUNECTL), *words], environment(), None)


EVERYBODY = pytest.mark.parametrize("who", [as_root, as_nobody], ids=["root", "nobody"])


def checked(who: Callable[..., Ran], place: Path) -> dict[str, dict[str, Any]]:
    """The findings of `check` by target."""
    words = ("check", "--window", "0.5", *CHECKS, "--host", str(place / "host.toml"), "--format", "json")
    return {one["target"]: one for one in who(*words).json["findings"]}


@EVERYBODY
@pytest.mark.slow
@pytest.mark.alone  # of many that are pinned there the first five are named
@pytest.mark.parametrize("name", ["tunectl-probe", "ksoftirqd/3", "kworker/3:1"])
def test_a_thread_that_takes_a_name_is_found_all_the_same(place: Path, who: Callable[..., Ran], name: str) -> None:
    """nobody's own is his own: nobody is not deceived by what he names so himself."""
    with started(pinned(name, *unprivileged())) as pid:
        found = checked(who, place)[f"check.movable_threads[{CPU}]"]
    assert f"thread {name} (pid {pid}) is pinned here" in found["reason"], found
    assert found["outcome"] == "drifted"


def seen_by_root() -> set[int]:
    """The processes whose threads root sees, in a process that has started none of them."""
    script = "from tunectl.host.procs import *; print(*{pid for pid, _ in read_threads(Sysroot())})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return set(map(int, done.stdout.split()))


@pytest.mark.slow
def test_the_probe_is_known_by_who_runs_which_program() -> None:
    """Root's own is ours; a user's is somebody else's spinner, and root's of another program is no probe."""
    probe = [os.path.join(installed.scripts(), "tunectl-probe"), "sentinel", "--cpu", str(CPU)]
    with started(probe) as pid:
        assert pid not in seen_by_root()
        assert HOST.get(f"proc/{pid}/comm") == "tunectl-probe"
    for argv in ([*unprivileged(), *probe], pinned("tunectl-probe")):
        with started(argv) as pid:
            assert pid in seen_by_root()


@EVERYBODY
@pytest.mark.slow
@pytest.mark.alone  # one that is root's would be there before and gone after
@pytest.mark.parametrize("name", ["irqbalance", "tuned"])
def test_a_users_program_is_no_tuner(place: Path, who: Callable[..., Ran], name: str) -> None:
    target, words = f"check.other_tuners[{name}]", ("show", "--format", "json")
    before = checked(who, place).get(target), who(*words).json.get("managers")
    with program_named(name, place, *unprivileged()) as pid:
        assert f"/proc/{pid}/comm" not in who(*words).out
        assert who(*words).json.get("managers") == before[1]
        assert checked(who, place).get(target) == before[0]


@pytest.mark.slow
@pytest.mark.alone
def test_roots_own_program_is_one(place: Path) -> None:
    with program_named("irqbalance", place) as pid:
        for who in (as_root, as_nobody):
            assert f"/proc/{pid}/comm" in who("show", "--format", "json").out
        found = checked(as_root, place)["check.other_tuners[irqbalance]"]
        assert (found["outcome"], f"sudo kill {pid};" in found["fix"]) == ("drifted", True), found
        assert checked(as_nobody, place)["check.other_tuners[irqbalance]"]["outcome"] == "unreadable"


@pytest.mark.alone
def test_a_set_user_id_program_does_not_lend_its_user_a_name(place: Path) -> None:
    """As sudo does while it waits for a password: root by every user id, and named by the link that a user made."""
    source = place / "lends.c"
    source.write_text(
        "#include <unistd.h>\n#include <stdio.h>\n"
        'int main(void) { puts(setuid(0) ? "no" : "yes"); fflush(stdout); return getchar() < 0; }\n'
    )
    if subprocess.run(["cc", "-o", place / "lends", source], capture_output=True).returncode:
        pytest.skip("needs a C compiler")
    (place / "lends").chmod(0o4755)
    (place / "irqbalance").symlink_to("lends")
    argv = [*unprivileged(), str(place / "irqbalance")]
    if subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True).stdout != b"yes\n":
        pytest.skip("a set-user-ID program has no effect here (nosuid)")
    with started(argv) as pid:
        assert HOST.get(f"proc/{pid}/comm") == "irqbalance"
        assert users_of(HOST, pid) == {0}
        assert f"/proc/{pid}/comm" not in {path for one in read_programs(HOST) for path in one.evidence}


def test_a_declared_command_is_the_users_that_was_named() -> None:
    declared = Trading("rx", "", "tt-declared", "", CPU, "other", 0, False, ())
    with started(pinned("tt-declared")) as own, started(pinned("tt-declared", *unprivileged())) as others:
        assert {one.pid for one in find_threads(HOST, declared)} == {own, others}
        for user, pid in (("root", own), ("0", own), (str(NOBODY), others)):
            assert [one.pid for one in find_threads(HOST, declared._replace(user=user))] == [pid]
        assert find_threads(HOST, declared._replace(user="no such user")) == []


FEED = Trading("rx", "feed.service", "", "", 2, "other", 0, False, ())
_SYSTEMS = ("/system.slice/feed.service", "/isolated.slice/feed.service/rx", "/a.slice/a-b.slice/feed.service")
_OTHERS = (
    "/user.slice/user-1000.slice/user@1000.service/app.slice/feed.service",
    "/system.slice/run-by-nobody.service/feed.service",
    "/system.slice/docker-feed.scope/system.slice/feed.service",
    "/lxc.payload.one/system.slice/feed.service",
    *(f"/user.slice/user@1000.service/a{byte}0::/system.slice/feed.service" for byte in "\x0b\x0c\x1c\x85\r"),
)


@pytest.mark.parametrize(("group", "fits"), [*((one, True) for one in _SYSTEMS), *((one, False) for one in _OTHERS)])
def test_a_unit_is_the_systems_own(lab4: Path, group: str, fits: bool) -> None:
    """Below a service that was handed over, and in a container, others give groups their names."""
    files = {"cgroup": f"0::{group}\n"}
    with FakeKernel(lab4, range(4), processes=[Process(700, "rx", 2, "2", files=files)]):
        root = Sysroot(str(lab4))
        assert bool(find_threads(root, FEED)) == fits
        assert service_of(root, 700) == ("feed.service" if group.endswith("/feed.service") and fits else "")


@pytest.mark.parametrize(("user", "said"), [(0, "sudo kill 700"), (1000, "process 700 is uid 1000's to end")])
def test_root_is_told_to_end_what_is_its_own(lab4: Path, user: int, said: str) -> None:
    status = f"Name:\tperf\nUid:\t{user}\t{user}\t{user}\t{user}\n"
    with FakeKernel(lab4, range(4), processes=[Process(700, "perf", 0, "0", files={"status": status})]):
        assert stop_of(Sysroot(str(lab4)), 700) == said


@pytest.mark.parametrize(("users", "runs"), [("0\t0\t0\t0", True), ("1000\t1000\t1000\t1000", False), ("", True)])
def test_a_recording_is_judged_by_the_users_that_it_holds(lab4: Path, users: str, runs: bool) -> None:
    files = {"status": "Name:\tirqbalance\n" + (f"Uid:\t{users}\n" if users else "")}
    with FakeKernel(lab4, range(4), processes=[Process(700, "irqbalance", 0, "0-1", files=files)]):
        found = {one.name: one for one in read_programs(Sysroot(str(lab4)))}
    assert ("/proc/700/comm" in getattr(found.get("irqbalance"), "evidence", ())) == runs
