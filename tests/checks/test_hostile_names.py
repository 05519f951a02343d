"""A host on which every name that a user chooses is hostile: what is printed of it is typed, and nothing else runs."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.checking.fake_kernel import Process
from tests.checks.conftest import Judge
from tests.report.documents import HOST
from tests.trees import write
from tests.typing_shell import HOSTILE, Typist, meant, typist
from tunectl.command import Command, argv, as_data
from tunectl.command import write as command_write
from tunectl.fix import Fix, to_type
from tunectl.host.occupants import Occupant
from tunectl.host.openfiles import stop_of
from tunectl.host.procs import Thread
from tunectl.host.swap import read_starters
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdunit import read_unit, taking_out
from tunectl.model import Document, Finding, Outcome, Trading
from tunectl.preflight.beside import Beside
from tunectl.preflight.gate import NO_PROBLEM
from tunectl.preflight.unproved import to_prove
from tunectl.report import render
from tunectl.report.actions import actions_of, todo

ISOLATED = {2, 3}
AS_TEXT = [name for name in HOSTILE if not re.search("[\ud800-\udfff]", name)]  # a fake kernel writes UTF-8
NO_UNIT = [name for name in AS_TEXT if "\n" not in name and "\\" not in name]  # a unit may have a backslash
IN_A_FILE_NAME = [name for name in AS_TEXT if "\n" not in name]


@pytest.fixture(scope="module")
def typing() -> Iterator[Typist]:
    with typist() as made:
        yield made


def hold(typing: Typist, fixes: Iterable[Fix], name: str) -> list[Command]:
    """The commands of these fixes, each typed; a name that stands anywhere else is data."""
    commands = []
    for task in (task for fix in fixes for task in fix.tasks):
        sentences = [task.note]
        if isinstance(task.text, Command):
            assert typing.types(task.text) == meant(task.text)
            commands.append(task.text)
        else:
            sentences.append(task.text)
        for sentence in sentences:
            assert as_data(name) == name or name not in sentence.replace(as_data(name), "")
    return commands


def in_group(group: str) -> dict[str, str]:
    return {"cgroup": f"0::/{group}\n"}


@pytest.mark.parametrize("name", NO_UNIT)
@pytest.mark.parametrize("ends", ["", ".service", ".scope"])
def test_a_control_group(lab4: Path, judge: Judge, typing: Typist, name: str, ends: str) -> None:
    group = f"{name}{ends}"
    write(lab4, f"sys/fs/cgroup/{group}/cpuset.cpus", "2\n")
    busy = Process(700, name[:15], cpu=2, allowed="2", busy=0.9, files=in_group(group))
    found = judge(lab4, ISOLATED, "test_threads.py", processes=[busy])
    (command,) = hold(typing, [found["check.movable_threads[2]"].fix], name)
    (step,) = command.steps
    assert step.words[-1] == f"/sys/fs/cgroup/{group}/cpuset.cpus"  # no unit can have such a name


@pytest.mark.parametrize("name", NO_UNIT)
def test_who_a_service_is(lab4: Path, typing: Typist, name: str) -> None:
    write(lab4, "proc/700/cgroup", f"0::/system.slice/{name}.service\n")
    stop = stop_of(Sysroot(str(lab4)), 700)
    assert isinstance(stop, Command)
    assert typing.types(stop) == meant(stop)
    assert stop == "sudo kill 700"


@pytest.mark.parametrize("name", IN_A_FILE_NAME)
def test_a_trace_instance(lab4: Path, judge: Judge, typing: Typist, name: str) -> None:
    for file, text in {"current_tracer": "nop\n", "set_event": "", "tracing_on": "1\n", "kprobe_events": ""}.items():
        write(lab4, f"sys/kernel/tracing/{file}", text)
        write(lab4, f"sys/kernel/tracing/instances/{name}/{file}", text)
    write(lab4, f"sys/kernel/tracing/instances/{name}/set_event", "sched:sched_switch\n")
    (command,) = hold(typing, [judge(lab4, ISOLATED, "test_residue.py")["check.tracing"].fix], name)
    assert command.steps[0].words == ("sudo", "rmdir", f"/sys/kernel/tracing/instances/{name}")


@pytest.mark.parametrize("name", IN_A_FILE_NAME)
def test_a_drop_in_and_a_swap_unit(lab4: Path, typing: Typist, name: str) -> None:
    unit, root = "irqbalance.service", Sysroot(str(lab4))
    write(lab4, f"etc/systemd/system/{unit}.d/{name}.conf", "[Service]\nEnvironment=\n")
    write(lab4, f"etc/systemd/system/{name}.swap", "[Swap]\nWhat=/dev/sda2\n")
    write(lab4, f"etc/systemd/system/swap.target.wants/{name}.swap", "")
    said = [one for one in read_unit(root, unit) if name in one.file]
    (command,) = hold(typing, [taking_out(said, unit)], name)
    assert command.steps[0].words[-1] == f"/etc/systemd/system/{unit}.d/{name}.conf"
    hold(typing, [one.ends for one in read_starters(root)], name)


@pytest.mark.parametrize("name", AS_TEXT)
def test_threads(lab4: Path, judge: Judge, typing: Typist, name: str) -> None:
    """Declared ones that nobody can tell apart, a stranger beside them, and who sends interrupts."""
    both = [
        Process(700, "engine", cpu=2, allowed="2", busy=0.4),
        Process(701, name[:15], cpu=2, allowed="2", busy=0.4, of=700),
        Process(702, name[:15], cpu=3, allowed="0-3", busy=0.4),
    ]
    declared = Trading("engine", "", "engine", "", 2, "other", 0, False, ())
    found = [
        finding
        for check in ("test_threads.py", "test_trading.py", "test_ipis.py", "test_cores.py")
        for finding in judge(lab4, ISOLATED, check, trading=[declared], processes=both).values()
    ]
    hold(typing, [finding.fix for finding in found if finding.fix], name[:15])


@pytest.mark.parametrize("name", IN_A_FILE_NAME)
def test_a_list_of_them_on_a_page(typing: Typist, name: str) -> None:
    """Of many commands that differ in a plain word the page makes a loop; of others it does not."""
    for words in (["a", "b", "c", "d"], ["a", name, "c", "d"]):
        commands = [command_write("0-1", f"/sys/fs/cgroup/{name} {word}/cpuset.cpus") for word in words]
        commands += [argv("sudo", "rmdir", of=[word, f"/{name}"]) for word in words]
        found = [
            Finding("check.a", str(place), Outcome.DRIFTED, fix=to_type(command))
            for place, command in enumerate(commands)
        ]
        page = render(
            Document("check", HOST, "", {"verdict": "drifted", "findings": found}, tuple(found)), "text", width=80
        )
        lines = [line for one in todo(actions_of(found)) for line in one.typed]
        whole = re.sub(r" \\\n +", " ", page)  # a long command goes on in the next line
        assert all(line in whole for line in lines)
        started = [each for line in lines for each in typing.types(line)]
        assert started == [each for command in commands for each in meant(command)]


@pytest.mark.parametrize("name", AS_TEXT)
def test_who_keeps_the_probe_from_an_isolated_cpu(name: str) -> None:
    thread = Thread(700, 700, name, "R", 0, 2, 0.0, 0.0, 0)
    beside = Beside(2, (Occupant(thread, "").shown,), 1.0, False, 0, 0, 0.0, 0.0)
    (fix,) = to_prove(True, NO_PROBLEM, None, [beside])
    assert as_data(name) == name or name not in str(fix).replace(as_data(name), "")
