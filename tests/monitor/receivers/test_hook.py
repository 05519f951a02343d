"""Hooks: no shell, the alert on standard input, a clean environment, an end in time."""

import json
from pathlib import Path

import pytest

from tests.monitor.receivers.samples import HOST, fired, over
from tests.probe.running import until_ended
from tunectl.address import DeliveryError
from tunectl.errors import UsageError
from tunectl.host.run import run
from tunectl.hostfile.shape import Hook
from tunectl.monitor.receivers.hook import open_hook
from tunectl.monitor.receivers.message import delivery_id


def program(place: Path, text: str) -> str:
    path = place / "hook.py"
    path.write_text(f"#!/usr/bin/python3\nimport json, os, subprocess, sys, time\n{text}\n")
    path.chmod(0o755)
    return str(path)


def failure(hook: Hook) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        open_hook(hook, HOST).deliver([fired()])
    return caught.value


def test_what_a_hook_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    out = tmp_path / "out"
    text = f"json.dump([json.load(sys.stdin), dict(os.environ), sys.argv[1:]], open({str(out)!r}, 'w'))"
    words = "$(touch x); `id` && *"
    hook = open_hook(Hook([program(tmp_path, text), words]), HOST)
    hook.deliver([fired()])
    document, environ, argv = json.loads(out.read_text())
    assert document["schema"] == "tunectl.alert/1"
    assert (document["rule"], document["status"], document["observed"]) == ("FrequencyDrop", "firing", 1_200_000)
    assert argv == [words]
    assert set(environ) - {"LC_CTYPE"} == {"PATH", "LC_ALL", "HOME", "TUNECTL_ALERT_ID"}
    assert environ["TUNECTL_ALERT_ID"] == delivery_id(fired(), HOST)
    hook.deliver([over(fired())])
    assert json.loads(out.read_text())[0]["status"] == "resolved"


@pytest.mark.parametrize(("status", "retry"), [(1, True), (75, True), (65, False)])
def test_what_a_status_means(tmp_path: Path, status: int, retry: bool) -> None:
    error = failure(Hook([program(tmp_path, f"sys.exit({status})"), "arg-s3cret"]))
    assert error.retry is retry
    assert str(error) == f"{tmp_path}/hook.py ended with status {status}"


@pytest.mark.slow
def test_a_hook_that_does_not_end_is_killed_with_all_it_started(tmp_path: Path) -> None:
    out = tmp_path / "pid"
    text = f"child = subprocess.Popen(['sleep', '60']); open({str(out)!r}, 'w').write(str(child.pid)); time.sleep(60)"
    for limit_s in (1, 5, 30):  # a busy machine may need longer until it has started anything
        error = failure(Hook([program(tmp_path, text)], timeout_s=limit_s))
        assert f"did not end within {limit_s} s" in str(error)
        if out.exists() and out.read_text():
            break
    assert until_ended(int(out.read_text()))


def test_a_hook_that_says_a_lot_and_reads_nothing(tmp_path: Path) -> None:
    text = "for _ in range(1000): sys.stdout.write('x' * 100_000); sys.stderr.write('y' * 1000)"
    open_hook(Hook([program(tmp_path, text)], timeout_s=60), HOST).deliver([fired(summary="z" * 500_000)])


@pytest.mark.parametrize("command", [["/nowhere/hook"], ["/etc/passwd"]])
def test_a_program_that_cannot_be_started(command: list[str]) -> None:
    assert f"cannot start {command[0]}" in str(failure(Hook(command)))


@pytest.mark.parametrize("command", [[], ["page-me"], ["./page-me"], ["/usr/bin/"]])
def test_a_command_without_a_whole_path(command: list[str]) -> None:
    with pytest.raises(UsageError, match=r"monitor\.hooks\[1\]\.command"):
        open_hook(Hook(command), HOST, 1)


def test_what_is_written_to_a_program_arrives() -> None:
    text = "line µ\n" * 50_000
    assert run(["cat"], stdin=text).stdout == text
    assert run(["cat"]).stdout == ""
    assert run(["sh", "-c", "echo out; echo err >&2"], capture=False)[2:4] == ("", "")
