"""A host file that others may write: by hand `apply` refuses it, what systemd starts says so and goes on.

The host file asks for what this machine has already, so that no run here changes it.
"""

import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import TUNECTL
from tests.nobody import needs_root
from tests.ran import Ran

pytestmark = needs_root
NOBODY = 65534
SWAPPINESS = Path("/proc/sys/vm/swappiness")
CHOOSES = "who writes it chooses what apply writes as root"
Tunectl = Callable[..., Ran]


@pytest.fixture
def host_file(public: Path) -> Path:
    """Of root, with a profile of the site beside it."""
    last = max(os.sched_getaffinity(0))
    if not last:
        pytest.skip("needs two CPUs")
    (public / "site").mkdir()
    (public / "site/some.toml").write_text(
        f'[knobs."mm.swappiness"]\nvalue = {SWAPPINESS.read_text()}\nreason = "as it is"\n'
    )
    path = public / "site/host.toml"
    path.write_text(f'profile = "some.toml"\nisolated = "{last}"\nallow_split_siblings = true\n')
    return path


def words(host_file: Path, *command: str) -> list[str]:
    return ["--host", str(host_file), "--state", str(host_file.parent.parent / "state"), *command]


def by_nobody(path: Path) -> None:
    """Another user really writes there."""
    shell = ["sh", "-c", 'printf "# mine\\n" >> "$1"', "sh", str(path)]
    subprocess.run(shell, user=NOBODY, group=NOBODY, extra_groups=[], check=True, cwd="/")


def open_file(path: Path) -> None:
    path.chmod(0o666)
    by_nobody(path)


def open_profile(path: Path) -> None:
    open_file(path.parent / "some.toml")


def own_file(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)
    by_nobody(path)


def open_directory(path: Path) -> None:
    path.parent.chmod(0o777)
    swap = ["sh", "-c", 'cd "$1" && cp host.toml mine && mv -f mine host.toml', "sh", str(path.parent)]
    subprocess.run(swap, user=NOBODY, group=NOBODY, extra_groups=[], check=True, cwd="/")


@pytest.mark.parametrize("harm", [open_file, open_profile, own_file, open_directory])
def test_apply_by_hand_refuses_it_with_the_line_that_mends_it(
    host_file: Path, tunectl: Tunectl, harm: Callable[[Path], None]
) -> None:
    harm(host_file)
    done = tunectl(*words(host_file, "apply", "--yes"))
    assert done.code == 1, done
    assert CHOOSES in done.err
    assert "; nothing was changed" in done.err
    mends = done.err[done.err.index("sudo ch") :].rstrip().rstrip(")")
    assert all(command.startswith("sudo ch") for command in mends.split(" && "))
    subprocess.run(["sh", "-c", mends.replace("sudo ", "")], check=True)
    done = tunectl(*words(host_file, "apply", "--yes"))
    assert CHOOSES not in done.out + done.err


def test_a_host_file_of_root_is_not_spoken_of(host_file: Path, tunectl: Tunectl) -> None:
    for command in (("apply", "--yes"), ("verify",), ("plan",)):
        done = tunectl(*words(host_file, *command, "--format", "json"))
        assert not any(CHOOSES in note for note in done.json["notes"])


def test_what_systemd_starts_and_verify_say_it_and_go_on(host_file: Path, tunectl: Tunectl) -> None:
    open_file(host_file)
    started = {"INVOCATION_ID": "0" * 32}
    for command, env in ((("apply", "--yes", "--runtime"), started), (("verify",), {}), (("plan",), {})):
        done = tunectl(*words(host_file, *command, "--format", "json"), env=env)
        said = [note for note in done.json["notes"] if CHOOSES in note]
        wanted = (
            f"{host_file} may be written by others than root: {CHOOSES}; sudo chmod go-w {shlex.quote(str(host_file))}"
        )
        assert said == [wanted], command


def test_a_terminal_is_attended_whoever_started_it(host_file: Path) -> None:
    """A desktop's terminal is a service of systemd, too."""
    open_file(host_file)
    master, slave = pty.openpty()
    argv = [sys.executable, str(TUNECTL), *words(host_file, "apply", "--yes")]
    env = {**os.environ, "INVOCATION_ID": "0" * 32}
    done = subprocess.run(argv, stdin=slave, capture_output=True, text=True, env=env)
    os.close(master)
    os.close(slave)
    assert (done.returncode, CHOOSES in done.stderr) == (1, True)


def test_the_caller_of_sudo_may_keep_it_at_home(host_file: Path, tunectl: Tunectl) -> None:
    for path in (host_file.parent, host_file):
        os.chown(path, 1000, 1000)
    mine = tunectl(*words(host_file, "verify", "--format", "json"), env={"SUDO_UID": "1000"})
    assert not any(CHOOSES in note for note in mine.json["notes"])
    others = tunectl(*words(host_file, "apply", "--yes"), env={"SUDO_UID": "1001"})
    assert "keep it where only root writes, such as in /etc/tunectl" in others.err


def test_of_a_recorded_host_nobody_asks(lab4: Path, tunectl: Tunectl) -> None:
    path = lab4 / "etc/tunectl/host.toml"
    path.chmod(0o666)
    os.chown(path, NOBODY, NOBODY)
    done = tunectl("apply", "--yes", "--root", lab4)
    assert done.code in (0, 3, 4), done.err
    assert CHOOSES not in done.out + done.err
