"""tunectl threads unit: a drop-in that systemd itself reads as it is meant, and nothing else in it."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.places import complaint
from tests.cli.test_commands import valid
from tests.conftest import LOW_LATENCY, write_host_file
from tests.ran import Ran
from tests.trees import differences, picture
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdunit import in_force, read_unit

Run = Callable[..., Ran]
ANALYZE = shutil.which("systemd-analyze")
FEED = '[[threads]]\nname = "feed"\nunit = "feed"\ncpu = 2\npolicy = "fifo"\npriority = 50\n'
NAMED = '[[threads]]\nunit = "feed"\nthread = "rx"\ncpu = 2\npolicy = "rr"\npriority = 20\nlocked_memory = false\n'
BOOK = '[[threads]]\nunit = "feed"\nthread = "book"\ncpu = 3\nlocked_memory = false\n'
OWN = "[Service]\nExecStart=/bin/true\nCPUAffinity=0 1 2 3\nLimitMEMLOCK=64K\n"  # the operator's own unit


def declared(root: Path, text: str) -> Path:
    write_host_file(root, text if text.startswith("profile") else LOW_LATENCY + text)
    return root


def made(tunectl: Run, root: Path, name: str) -> str:
    done = tunectl("threads", "unit", name, "--root", root)
    assert (done.code, done.err) == (0, "")
    return done.out


def settings(root: Path, text: str, unit: str = "feed.service") -> dict[str, list[str]]:
    """What systemd would have in force: the operator's own unit, then this drop-in, as our reader joins them."""
    below = root / "etc/systemd/system"
    (below / f"{unit}.d").mkdir(parents=True, exist_ok=True)
    (below / unit).write_text(OWN)
    (below / f"{unit}.d" / "zz-tunectl-threads.conf").write_text(text)
    said = read_unit(Sysroot(str(root)), unit)
    return {key: [one.value for one in in_force(said, "Service", key)] for key in {one.key for one in said}}


def test_a_unit_that_is_the_thread_runs_as_declared(tunectl: Run, lab4: Path) -> None:
    found = settings(lab4, made(tunectl, declared(lab4, FEED), "feed"))
    assert found["CPUAffinity"] == ["2"]  # and not the operator's own 0 to 3 besides
    assert (found["CPUSchedulingPolicy"], found["CPUSchedulingPriority"]) == (["fifo"], ["50"])
    assert found["LimitMEMLOCK"][-1] == "infinity"
    assert "Slice" not in found


def test_threads_by_name_are_left_to_the_program(tunectl: Run, lab4: Path) -> None:
    text = made(tunectl, declared(lab4, NAMED + BOOK), "book")
    assert text.partition("\n#")[2] == made(tunectl, lab4, "rx").partition("\n#")[2]  # one unit, one drop-in
    found = settings(lab4, text)
    assert (found["CPUAffinity"], found["LimitRTPRIO"]) == (["0-1"], ["20"])
    assert "CPUSchedulingPolicy" not in found
    assert found["LimitMEMLOCK"] == ["64K"]  # nothing asks for more


@pytest.mark.parametrize("how", ['isolation = "runtime"\n', '[knobs]\n"cpuset.isolated" = "isolated"\n'])
def test_at_run_time_the_unit_lives_in_the_isolated_slice(tunectl: Run, lab4: Path, how: str) -> None:
    table, rest = (NAMED, how) if how.startswith("[") else (how, NAMED)
    found = settings(lab4, made(tunectl, declared(lab4, f"{LOW_LATENCY}{table}{rest}"), "rx"))
    assert (found["Slice"], found["CPUAffinity"]) == (["isolated.slice"], ["2"])


@pytest.mark.skipif(not ANALYZE, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("policy", ["other", "batch", "idle", "fifo", "rr", "deadline"])
def test_systemd_accepts_every_policy(tunectl: Run, lab4: Path, tmp_path: Path, policy: str) -> None:
    priority = "50" if policy in ("fifo", "rr") else "0"
    text = made(tunectl, declared(lab4, FEED.replace("fifo", policy).replace("50", priority)), "feed")
    assert complaints(tmp_path, text) == ""


@pytest.mark.skipif(not ANALYZE, reason="systemd-analyze is not installed")
@pytest.mark.parametrize(
    ("good", "bad"),
    [("CPUAffinity=2", "CPUAffinity=two"), ("Policy=fifo", "Policy=first"), ("Priority=50", "Priority=100")],
)
def test_systemd_would_have_said_so(tunectl: Run, lab4: Path, tmp_path: Path, good: str, bad: str) -> None:
    text = made(tunectl, declared(lab4, FEED), "feed")
    assert good in text
    assert "zz-tunectl-threads.conf" in complaints(tmp_path, text.replace(good, bad))


def complaints(place: Path, text: str) -> str:
    """What systemd-analyze says of a unit with this drop-in."""
    (place / "feed.service.d").mkdir()
    (place / "feed.service").write_text(OWN)
    (place / "feed.service.d/zz-tunectl-threads.conf").write_text(text)
    words = [str(ANALYZE), "verify", "--man=no", "--recursive-errors=no", str(place / "feed.service")]
    return subprocess.run(words, capture_output=True, text=True, env={"SYSTEMD_LOG_LEVEL": "warning"}).stderr


@pytest.mark.parametrize("unit", ["feed.slice", "feed.timer", "--help.service", "../../cron.service", "a b.service",
                                  "feed@", "feed\\nx.service", "f" * 248 + ".service"])  # fmt: skip
def test_what_is_no_service_gets_no_drop_in(tunectl: Run, lab4: Path, unit: str) -> None:
    declared(lab4, FEED.replace('unit = "feed"', f'unit = "{unit}"'))
    assert complaint(tunectl("threads", "unit", "feed", "--root", lab4), 2)


@pytest.mark.parametrize(
    ("text", "name", "named"),
    [
        (FEED, "rx", "'rx'"),
        ("", "rx", "'rx'"),
        (FEED.replace('unit = "feed"', 'command = "feedhandler"'), "feed", "unit"),
        (FEED.replace('unit = "feed"', 'command = "/usr/bin/feed"'), "feed", "command"),
        (FEED.replace('name = "feed"', 'name = "a\\n[Service]\\nExecStart=/bin/false"'), "a", "threads[0].name"),
        (NAMED.replace('"rx"', '"r\\u2028x"'), "rx", "threads[0].thread"),
    ],
)
def test_what_cannot_be_is_one_clear_line(tunectl: Run, lab4: Path, text: str, name: str, named: str) -> None:
    assert named in complaint(tunectl("threads", "unit", name, "--root", declared(lab4, text)), 2)


def test_the_longest_name_of_a_unit_fits(tunectl: Run, lab4: Path) -> None:
    name = f"{'f' * 247}.service"
    assert f"/{name}.d/" in made(tunectl, declared(lab4, FEED.replace('unit = "feed"', f'unit = "{name}"')), "feed")


def test_output_writes_it_and_overwrites_nothing(tunectl: Run, lab4: Path, tmp_path: Path) -> None:
    declared(lab4, FEED)
    before, path = picture(lab4), tmp_path / "feed.service.d/tunectl.conf"
    words = ("threads", "unit", "feed", "--root", lab4)
    shown = made(tunectl, lab4, "feed")
    done = valid("threads.unit", tunectl(*words, "--output", path, "--format", "json").out)
    assert path.read_text() == shown == done["text"]
    assert (done["written"], done["unit"], done["threads"]) == (str(path), "feed.service", ["feed"])
    assert done["path"] == "/etc/systemd/system/feed.service.d/zz-tunectl-threads.conf"
    assert complaint(tunectl(*words, "--output", path), 2) == (
        f"--output {path}: there is a file already (--force overwrites it)"
    )
    assert tunectl(*words, "--output", path, "--force").code == 0
    assert complaint(tunectl(*words, "--output", ""), 2).startswith("--output: expected the name of a file")
    assert not differences(before, lab4)


def test_a_name_that_would_turn_a_line_round_is_escaped_in_the_file_too(
    tunectl: Run, lab4: Path, tmp_path: Path
) -> None:
    declared(lab4, FEED.replace('name = "feed"', 'name = "a\\u202eb"'))
    path = tmp_path / "out.conf"
    assert tunectl("threads", "unit", "a\u202eb", "--root", lab4, "--output", path).code == 0
    assert "\u202e" not in path.read_text()
    assert "a\\u202eb" in path.read_text()


def test_what_keeps_the_unit_from_its_cpu_is_said(tunectl: Run, lab4: Path) -> None:
    kept = f'{LOW_LATENCY}{FEED}[knobs]\n"systemd.allowed_cpus" = "housekeeping"\n'
    text = made(tunectl, declared(lab4, kept), "feed")
    assert "Slice=" not in [line[:6] for line in text.splitlines()]
    assert "(systemd.allowed_cpus): without" in text
    (lab4 / "sys/devices/system/cpu/online").write_text("0-1,3\n")
    assert "CPU 2 is offline now" in made(tunectl, declared(lab4, FEED), "feed")
