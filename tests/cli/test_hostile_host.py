"""A host on which every name is hostile, from end to end: what is printed of it is typed, and read as a sentence."""

import os
import re
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli import hostile_host
from tests.conftest import TUNECTL
from tests.ran import Ran
from tests.starter import shared_starter
from tests.typing_shell import Started, Typist, typist

COMMANDS = {
    "show": (),
    "plan": (),
    "verify": (),
    "check": ("--window", "1"),
    "preflight": ("--window", "1", "--duration", "0.1"),
    "propose": ("--nic", hostile_host.NIC),
}
JUDGING = ("plan", "verify", "check", "preflight")
SHELLS = [shell for name in ("sh", "bash", "dash") if (shell := shutil.which(name))]
SENTENCES = ("reason", "fix", "decide", "note", "notes", "detail")
AS_DATA = re.compile(r"(?<!\w)'(?:[^'\\]|\\.)*'")
TO_BE_TYPED = re.compile(r"touch PWNED|>PWNED")
Answers = Mapping[tuple[str, str], Ran]


@pytest.fixture(scope="module")
def typing() -> Iterator[Typist]:
    with typist() as made:
        yield made


@pytest.fixture(scope="module")
def hostile() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tunectl-hostile-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as place:
        yield hostile_host.build_hostile(Path(place) / hostile_host.PLACE)


@pytest.fixture(scope="module")
def answers(hostile: Path) -> Answers:
    """What each command says of it, by command and format."""
    return {
        (command, form): ask(
            command, *options, "--root", hostile, "--format", form, *(["-v"] if form == "text" else [])
        )
        for command, options in COMMANDS.items()
        for form in ("json", "text")
    }


def ask(*words: object) -> Ran:
    """The program, whose kernel is the recorded host's own."""
    given = {key: value for key, value in os.environ.items() if not key.startswith(("TUNECTL_", "COLUMNS"))}
    ran = shared_starter().run([str(TUNECTL), *map(str, words)], given, None, cwd="/", first=hostile_host.RUNNING)
    assert "Traceback" not in ran.err, ran.err
    return ran


def texts(field: object, key: str = "") -> Iterator[tuple[str, str]]:
    """(key, text) of every text of a document."""
    if isinstance(field, str):
        yield key, field
    elif isinstance(field, dict):
        for name, value in field.items():
            yield from texts(value, name)
    elif isinstance(field, list):
        for value in field:
            yield from texts(value, key)


def commands_of(answers: Answers) -> list[str]:
    """Every command of every document, each once."""
    found = (text for ran in answers.values() if ran.out.startswith("{") for text in texts(ran.json))
    return list(dict.fromkeys(text for key, text in found if key in ("command", "ends") and text))


def is_meant(word: str, root: Path) -> bool:
    """Is a word the whole name of something on the host, or plain?"""
    units = root / "etc/systemd/system"
    return (
        hostile_host.MARK not in word
        or word == str(root)
        or (word.startswith("/") and os.path.lexists(f"{root}{word}"))
        or ("/" not in word and os.path.lexists(units / word))
    )


@pytest.mark.slow  # a shell for each command
def test_each_command_is_typed_as_it_was_meant(answers: Answers, hostile: Path, typing: Typist) -> None:
    lines = commands_of(answers)
    named = [line for line in lines if hostile_host.MARK in line]
    assert {re.sub(r"sudo |echo \S+ \| ", "", line).split()[0] for line in named} >= {
        "tee", "sed", "systemctl", "rmdir", "tunectl",
    }  # fmt: skip
    for line in lines:
        started = [typing.types(line, shell) for shell in SHELLS]
        assert all(one == started[0] for one in started)
        words = [word for one in started[0] for word in one.words]
        assert words
        assert all(is_meant(word, hostile) for word in words), words


def test_apply_names_the_same_host(answers: Answers, hostile: Path, typing: Typist) -> None:
    (line,) = [line for line in commands_of(answers) if line.endswith(" apply")]
    assert typing.types(line) == [Started(("sudo", "tunectl", "--root", str(hostile), "apply"), "")]


@pytest.mark.parametrize("command", [*JUDGING, "show"])
def test_a_sentence_has_names_as_data(answers: Answers, hostile: Path, command: str) -> None:
    typed = [*sorted(commands_of(answers), key=len, reverse=True), shlex.quote(str(hostile))]
    for key, text in texts(answers[command, "json"].json):
        if key not in SENTENCES:
            continue
        for line in typed:
            text = text.replace(line, "")
        assert not TO_BE_TYPED.search(AS_DATA.sub("", text)), (key, text)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_is_printable_and_has_the_documents_commands(answers: Answers, command: str) -> None:
    page, document = answers[command, "text"], answers[command, "json"].json
    for line in [*page.out.splitlines(), *page.err.splitlines()]:
        assert line.isprintable()
    assert page.code == answers[command, "json"].code
    for action in document.get("actions", []):
        if hostile_host.MARK in action.get("command", ""):
            whole = re.sub(r" \\\n +", " ", page.out)  # a long command goes on in the next line
            assert any(line.endswith(action["command"]) for line in whole.splitlines()), action


def test_a_newline_in_a_threads_name_hides_no_thread(answers: Answers) -> None:
    reasons = [text for key, text in texts(answers["check", "json"].json) if key == "reason"]
    assert any(r"'\n>PWNED\n' (tid 702)" in reason for reason in reasons)


def test_a_proposal_is_a_host_file_that_names_the_card(answers: Answers) -> None:
    proposed = tomllib.loads(answers["propose", "json"].json["host_file"])
    assert proposed["network"]["interfaces"] == [hostile_host.NIC]


@pytest.mark.parametrize("option", ["--host", "--state"])
def test_what_a_hint_says_to_type_names_the_same_files(hostile: Path, typing: Typist, option: str) -> None:
    place = hostile.parent / f"{hostile_host.PLACE}.{option}"
    ran = ask("verify", "--root", hostile.parent / "none", option, place)
    assert ran.err.rstrip("\n").isprintable()
    for line in re.findall(r"`((?:sudo )?tunectl .*)`", ran.err):
        (started,) = typing.types(line)
        assert str(place) in started.words


def test_a_file_whose_name_has_a_newline_is_refused_in_one_line(tmp_path: Path) -> None:
    ran = ask("verify", "--root", f"{tmp_path}\ntouch PWNED")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
