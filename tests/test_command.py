"""A command is its words: whatever they hold, a shell starts the program with these words, and nothing else."""

import copy
import json
import pickle
import shutil
from collections.abc import Iterator

import pytest

from tests.typing_shell import HOSTILE, Typist, meant, typist
from tunectl import kinds
from tunectl.command import Command, all_of, argv, as_data, write

SHELLS = [shell for name in ("sh", "bash", "dash") if (shell := shutil.which(name))]


@pytest.fixture(scope="module")
def typing() -> Iterator[Typist]:
    with typist() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_each_word_arrives_as_it_is(typing: Typist, shell: str) -> None:
    commands = [
        argv("sudo", "systemctl", "disable", "--now", of=HOSTILE),
        write("0-1", *(f"/sys/{name}" for name in HOSTILE)),
        *(write(name, f"/sys/{name}", append=True) for name in HOSTILE),
        *(argv("sudo", "sed", "-i", f"3s/{name}//", of=[f"/etc/{name}"]) for name in HOSTILE),
        all_of(argv("sudo", "rm", of=[name]) for name in HOSTILE).then(argv("sudo", "reboot")),
    ]
    for command in commands:
        assert typing.types(command, shell) == meant(command), command
        assert command.isprintable()


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.startswith("-")])
def test_a_name_is_no_option(name: str) -> None:
    (step,) = argv("sudo", "rm", of=["/a", name]).steps
    assert step.words.index("--") < step.words.index(name)


def test_a_plain_command_is_as_a_person_writes_it() -> None:
    assert argv("sudo", "rm", of=["/etc/a.conf"]).then(argv("sudo", "reboot")) == "sudo rm /etc/a.conf && sudo reboot"
    assert write("0-3,7", "/proc/irq/7/smp_affinity_list") == "echo 0-3,7 | sudo tee /proc/irq/7/smp_affinity_list"
    assert write("", "/a", append=True) == "echo | sudo tee -a /a"
    assert argv("sudo", "sed", "-i", "3s/^/#/", "/etc/fstab") == "sudo sed -i '3s/^/#/' /etc/fstab"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_in_a_sentence_is_data(name: str) -> None:
    shown = as_data(name)
    assert shown.isprintable()
    assert shown == name or (shown[0], shown[-1]) == ("'", "'")
    assert "'" not in shown[1:-1].replace("\\\\", "").replace("\\'", "")


def test_what_it_is_goes_wherever_the_text_goes() -> None:
    command = kinds.move_thread(7, "0-1")
    for other in (copy.deepcopy(command), pickle.loads(pickle.dumps(command))):
        assert (other, other.steps, other.kind, other.arguments) == (
            command, command.steps, "move-thread", {"tid": 7, "cpus": "0-1"},
        )  # fmt: skip
    assert json.loads(json.dumps([command])) == ["sudo taskset -cp 0-1 7"]


def test_a_document_may_name_what_no_file_can_be_called() -> None:
    assert argv("tunectl", "compare", of=["\ud800"]).isprintable()


def test_the_options_that_name_the_host_are_words_once() -> None:
    words = ("tunectl", "--root", "/a b")
    once: Command = kinds.started(argv("sudo", "one").then(kinds.apply()), words)
    assert once == "sudo one && sudo tunectl --root '/a b' apply" == kinds.started(once, words)
