"""Completion, asked by the shells themselves, and what the program answers them."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.cli.places import as_nobody, environment
from tests.conftest import TUNECTL
from tests.ran import Ran
from tunectl.cli.complete import is_safe, script
from tunectl.cli.main import COMMANDS, cli
from tunectl.cli.options import FORMATS
from tunectl.probe.loads import LOADS

Run = Callable[..., Ran]
EVIL = ["$(reboot)", "a;b", "e`x`", "x y", "--output=z", "*", "é", "a\x1b[2Jb", "a\nb", "'", '"', "~root", "a&b"]


def asked(tunectl: Run, line: str, shell: str = "fish", **env: str) -> list[str]:
    """The values that a shell is offered, after nothing was complained about."""
    done = tunectl(env={"_TUNECTL_COMPLETE": f"{shell}_complete", "_TUNECTL_LINE": line, **env})
    assert (done.code, done.err) == (0, "")
    rows = [row.split("\t") for row in done.out.splitlines() if row]
    assert all(len(row) == 3 for row in rows), rows
    return [value or kind for kind, value, _ in rows]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tunectl ", list(COMMANDS)),
        ("tunectl pro", ["propose", "probe"]),
        ("tunectl --format nagios ver", ["verify"]),
        ("tunectl verify --format ", ["text", "json", "junit", "nagios", "prometheus"]),
        ("tunectl verify --format=j", ["--format=json", "--format=junit"]),
        ("tunectl verify --fo", ["--format"]),
        ("tunectl --format ", list(FORMATS)),
        ("tunectl knobs mm.swapp", ["mm.swappiness"]),
        ("tunectl propose --profile low", ["low-latency", "file"]),
        ("tunectl service install ", ["monitor", "apply", "repair", "preflight"]),
        ("tunectl preflight --load ", [*LOADS, "all", "none"]),
        ("tunectl preflight --load memory,fi", ["memory,files"]),
        ("tunectl probe wake --mechanisms pipe,ti", ["pipe,timerfd"]),
        ("tunectl probe feed --tls k", ["ktls"]),
        ("tunectl probe hedge --stall co", ["common"]),
        ("tunectl probe contention --hand-over mu", ["mutex"]),
        ("tunectl report ", ["file"]),
        ("tunectl show --root ", ["dir"]),
        ("tunectl --host ", ["file"]),
        ("tunectl fleet re", ["record", "report"]),
        ("tunectl nothing ", []),
        ("tunectl verify --bogus ", []),
        ("tunectl 'verify", ["verify"]),
        ("tunectl 'unclosed ", []),
        ("", list(COMMANDS)),
    ],
)
def test_what_may_follow(tunectl: Run, line: str, expected: list[str]) -> None:
    assert asked(tunectl, line) == expected


def test_the_formats_are_those_of_all_commands() -> None:
    context = click.Context(cli)
    commands = [cli.get_command(context, name) for name in COMMANDS]
    params = [param for command in commands if command for param in command.params if param.name == "fmt"]
    assert set(FORMATS) == {choice for param in params for choice in getattr(param.type, "choices", ())}


def test_the_shipped_checks_are_offered(tunectl: Run) -> None:
    assert any(one.endswith("/checks/test_tick.py") for one in asked(tunectl, "tunectl check "))


def test_interfaces_are_those_of_the_host_that_is_asked_about(tunectl: Run, stock: Path) -> None:
    expected = sorted(one.name for one in (stock / "sys/class/net").iterdir())
    assert asked(tunectl, f"tunectl propose --root {stock} --nic ") == expected
    assert asked(tunectl, f"tunectl --root {stock} propose --nic ") == expected
    assert asked(tunectl, "tunectl propose --nic ", TUNECTL_ROOT=str(stock)) == expected
    assert asked(tunectl, "tunectl --root /nowhere propose --nic ") == []


def test_a_name_that_a_shell_would_read_otherwise_is_not_offered(tunectl: Run, tmp_path: Path) -> None:
    for name in (*EVIL, "eth0.5", "ok"):
        (tmp_path / "sys/class/net" / name).mkdir(parents=True)
    for shell in ("bash", "zsh", "fish"):
        assert asked(tunectl, f"tunectl propose --root {tmp_path} --nic ", shell) == ["eth0.5", "ok"]
    assert not any(map(is_safe, [*EVIL[:4], *EVIL[5:], "", "x" * 201]))


def test_declared_threads(tunectl: Run, tmp_path: Path) -> None:
    host_file = tmp_path / "etc/tunectl/host.toml"
    host_file.parent.mkdir(parents=True)
    rows = ('unit = "feed"', 'command = "md"\nthread = "rx"', 'command = "md"\nname = "$(reboot)"')
    tables = "".join(f"[[threads]]\ncpu = 2\n{row}\n" for row in rows)
    host_file.write_text(f'profile = "low-latency"\nisolated = "2"\n{tables}')
    assert asked(tunectl, f"tunectl threads unit --root {tmp_path} ") == ["feed.service", "rx"]
    assert asked(tunectl, f"tunectl threads unit --host {host_file} f") == ["feed.service"]
    assert asked(tunectl, f"tunectl threads unit --host {tmp_path} ") == []


def test_sessions_and_their_hosts(tunectl: Run, tmp_path: Path) -> None:
    for name, hosts in (("morning", '["tx-01", "tx-02"]'), ("noon", '["tx-02", "a b", "$(reboot)"]')):
        assert tunectl("fleet", "open", "--store", tmp_path, "--hosts", "-", "--name", name, stdin=hosts).code == 0
    assert sorted(asked(tunectl, f"tunectl fleet report --store {tmp_path} ")) == ["morning", "noon"]
    assert asked(tunectl, f"tunectl fleet history --store {tmp_path} ") == ["tx-01", "tx-02"]
    assert sorted(asked(tunectl, f"tunectl fleet record --store {tmp_path} ")) == ["morning", "noon"]
    assert asked(tunectl, f"tunectl fleet record --store {tmp_path} morning ") == ["tx-01", "tx-02"]
    assert asked(tunectl, f"tunectl fleet record {tmp_path}/noon ") == ["tx-02"]
    assert asked(tunectl, f"tunectl fleet report --store {tmp_path}/none ") == []


def test_bash_is_given_what_it_replaces(tunectl: Run) -> None:
    assert asked(tunectl, "tunectl verify --format=j", "bash", _TUNECTL_BREAKS=" =:") == ["json", "junit"]
    whole = asked(tunectl, "tunectl verify --format=j", "bash", _TUNECTL_BREAKS=" ")
    assert whole == ["--format=json", "--format=junit"]


def test_an_odd_place_is_no_reason_to_speak(tunectl: Run, tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text("not = [toml")
    (tmp_path / "host.toml").chmod(0)
    for env in ({"HOME": ""}, {"HOME": "/nowhere"}, {"TERM": "dumb"}, {"TUNECTL_HOST": f"{tmp_path}/host.toml"}):
        assert asked(tunectl, "tunectl ver", **env) == ["verify"]
        assert isinstance(asked(tunectl, "tunectl fleet report ", **env), list)
    assert asked(tunectl, "tunectl ver", "tcsh") == []
    assert asked(tunectl, "tunectl ver", TUNECTL_FORMAT="nagios") == ["verify"]


def test_it_needs_no_root(stock: Path) -> None:
    done = as_nobody(env={"_TUNECTL_COMPLETE": "bash_complete", "_TUNECTL_LINE": "tunectl knobs irq.aff"})
    assert (done.code, done.out, done.err) == (0, "plain\tirq.affinity\t\n", "")


def test_a_closed_pipe_is_no_reason_to_speak() -> None:
    env = environment({"_TUNECTL_COMPLETE": "fish_complete", "_TUNECTL_LINE": "tunectl "})
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, str(TUNECTL)], env=env, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert done.stderr == ""


def test_only_what_was_asked_for_is_imported() -> None:
    """A list of commands must not cost the import of any."""
    said = "import sys, tunectl.cli.main as m; m._completed(); print({'msgspec', 'rich'} & {*sys.modules})"
    env = environment({"_TUNECTL_COMPLETE": "fish_complete", "_TUNECTL_LINE": "tunectl "})
    done = subprocess.run([sys.executable, "-c", said], env=env, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_script_of_an_installation_that_is_not_in_path_names_it(tunectl: Run) -> None:
    done = tunectl(env={"_TUNECTL_COMPLETE": "bash_source", "PATH": "/usr/bin:/bin"})
    assert f" {TUNECTL} " in done.out
    assert "PROGRAM" not in script("bash") + script("zsh") + script("fish")


# ---- the shells


def needs(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}(1)")


def typed_into(argv: list[str], place: Path, setup: str, line: str) -> str:
    """The line as it stands after TAB: in front of it `said` is put, which prints each word between brackets."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(place)
        own = {"TERM": "dumb", "HOME": str(place), "PS1": "> ", "ZDOTDIR": str(place), "INPUTRC": "/dev/null"}
        os.execvpe(argv[0], argv, environment(own))
    try:
        os.write(fd, f"{setup}\nsaid() {{ printf '[%s]' \"$@\"; echo; }}; echo rea''dy\n".encode())
        _until(fd, r"\nready")
        os.write(fd, line.encode() + b"\t")
        _until_quiet(fd)
        os.write(fd, b"\x01said \x05\n")
        found = _until(fd, r"\n(\[[^\]\n]*\])?\[tunectl\].*\n")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(fd)
    return str(re.findall(r"\n((?:\[[^\]\n]*\])?\[tunectl\][^\r\n]*)", found)[-1])


def _until(fd: int, pattern: str, limit_s: float = 60) -> str:
    text, end = "", time.monotonic() + limit_s
    while not re.search(pattern, text.replace("\r", "")):
        assert time.monotonic() < end, text
        if select.select([fd], [], [], 1)[0]:
            text += os.read(fd, 65536).decode(errors="replace")
    return text.replace("\r", "")


def _until_quiet(fd: int) -> None:
    """Until the shell has drawn something, and then nothing for a second."""
    wait = 20.0
    while select.select([fd], [], [], wait)[0]:
        os.read(fd, 65536)
        wait = 1.5


LINES = [
    ("tunectl verif", "[tunectl][verify]"),
    ("tunectl verify --stri", "[tunectl][verify][--strict]"),
    ("tunectl verify --format=pro", "[tunectl][verify][--format=prometheus]"),
    ("tunectl knobs mm.swapp", "[tunectl][knobs][mm.swappiness]"),
    ("tunectl preflight --load memory,fi", "[tunectl][preflight][--load][memory,files]"),
    ("tunectl report aft", "[tunectl][report][after.json]"),
    ("tunectl propose --root evil --nic a", "[tunectl][propose][--root][evil][--nic][a]"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "after.json").touch()
    (tmp_path / "evil/sys/class/net/a$(touch owned)").mkdir(parents=True)
    return tmp_path


SHELLS = {
    "bash": (["bash", "--norc", "-i"], "script", ". ./script"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "_tunectl",
        "fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; bindkey -e; unsetopt zle_bracketed_paste",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("line", "expected"), LINES)
def test_a_shell_that_asks_at_its_prompt(place: Path, shell: str, line: str, expected: str) -> None:
    needs(shell)
    argv, name, setup = SHELLS[shell]
    (place / name).write_text(script(shell))
    assert typed_into(argv, place, setup, line) == expected
    assert not (place / "owned").exists()


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "sudo ", "FOO=1 "])
def test_bash_finds_the_installed_file_by_itself(place: Path, before: str) -> None:
    package = Path("/usr/share/bash-completion/bash_completion")
    if not package.exists():
        pytest.skip("needs bash-completion")
    path = place / "share/bash-completion/completions/tunectl"
    path.parent.mkdir(parents=True)
    path.write_text(script("bash"))
    setup = f"PS1='> '; export XDG_DATA_DIRS=$PWD/share:/usr/share; . {package}; sudo() {{ \"$@\"; }}"
    line = f"{before}tunectl verify --format=pro"
    assert typed_into(["bash", "--norc", "-i"], place, setup, line).endswith("[tunectl][verify][--format=prometheus]")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tunectl verif", ["verify\tObserve again and compare: each finding with its reason and fix."]),
        ("tunectl verify --format=pro", ["--format=prometheus"]),
        ("tunectl knobs mm.swapp", ["mm.swappiness"]),
        ("tunectl report aft", ["after.json"]),
        ("tunectl propose --root evil --nic a", []),
    ],
)
@pytest.mark.slow
def test_fish(place: Path, line: str, expected: list[str]) -> None:
    needs("fish")
    (place / "script").write_text(script("fish"))
    argv = ["fish", "--no-config", "-c", f'source script; complete -C "{line}"']
    done = subprocess.run(argv, cwd=place, env=environment({"HOME": str(place)}), capture_output=True, text=True)
    assert (done.stdout.splitlines(), done.stderr) == (expected, "")
    assert not (place / "owned").exists()
