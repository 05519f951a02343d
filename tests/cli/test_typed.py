"""What a command prints to be typed next names the same host, and does what it says."""

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tunectl as tunectl_package
from tests.conftest import TUNECTL
from tests.ran import Ran
from tunectl.cli.command import Typed
from tunectl.fix import APPLY, to_decide
from tunectl.tuning.inspection import ADOPT

Run = Callable[..., Ran]


@pytest.mark.slow
def test_without_a_host_file_what_is_printed_can_be_typed_from_the_first_line(tunectl: Run, lab4: Path) -> None:
    root = lab4.rename(lab4.parent / "one host")
    (root / "etc/tunectl/host.toml").unlink()
    said = tunectl("preflight", "--window", 0.05, "--format", "json", env={"TUNECTL_ROOT": str(root)}).json
    propose, apply, reboot = (one["command"] for one in said["actions"] if "command" in one)
    assert (shlex.split(propose)[4], reboot) == ("propose", "sudo reboot")
    for words in map(shlex.split, (propose, apply)):  # sudo hands no environment on
        assert words[:2] == ["sudo", "tunectl"]
        done = tunectl(*words[2:], *(["--yes"] if words[-1] == "apply" else []))
        assert done.code in (0, 4), done
    assert (root / "etc/tunectl/host.toml").is_file()
    assert (root / "var/lib/tunectl/journal.jsonl").is_file()


@pytest.mark.parametrize("how", ["options", "environment"])
def test_the_host_file_and_the_state_are_words_of_what_is_printed(
    tunectl: Run, lab4: Path, tmp_path: Path, how: str
) -> None:
    host = tmp_path / "it's mine.toml"
    host.write_text((lab4 / "etc/tunectl/host.toml").read_text())
    named = {"root": str(lab4), "host": str(host), "state": str(tmp_path / "state")}
    options = [word for name, value in named.items() for word in (f"--{name}", value)]
    environment = {f"TUNECTL_{name.upper()}": value for name, value in named.items()}
    given = options if how == "options" else []
    done = tunectl("verify", "--format", "json", *given, env=environment if how == "environment" else {})
    fixes = {one["fix"] for one in done.json["findings"] if "tunectl apply" in one["fix"] or "apply" in one["fix"]}
    assert {tuple(shlex.split(fix)) for fix in fixes} == {("sudo", "tunectl", *options, "apply")}


def test_a_file_that_is_not_there_is_proposed_for_the_same_host(tunectl: Run, lab4: Path) -> None:
    (lab4 / "etc/tunectl/host.toml").unlink()
    line = tunectl("plan", "--root", lab4).err
    _, command, _ = line.split("`")
    assert tunectl(*shlex.split(command.removeprefix("sudo "))[1:]).code == 0
    assert tunectl("verify", "--root", lab4).code == 3


def test_how_to_go_back_names_the_same_host(tunectl: Run, lab4: Path) -> None:
    page = tunectl("apply", "--yes", "--root", lab4).out
    (going_back,) = [line.strip() for line in page.splitlines() if line.endswith(" restore")]
    assert going_back == f"sudo tunectl --root {shlex.quote(str(lab4))} restore"
    assert tunectl(*shlex.split(going_back)[2:]).code == 0
    assert not (lab4 / "var/lib/tunectl/journal.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "starts",
    [lambda patch: patch.setenv("PATH", "/usr/bin:/bin"), lambda patch: patch.delenv("SUDO_UID")],
    ids=["by sudo", "as root"],
)
def test_a_program_that_sudo_does_not_find_is_printed_with_its_path(
    tunectl: Run, lab4: Path, starts: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a checkout, which the README starts as .venv/bin/tunectl; activated, it is on its user's PATH only."""
    starts(monkeypatch)
    asked = ("preflight", "--window", 0.05, "--root", lab4)
    commands = [one.get("command", "") for one in tunectl(*asked, "--format", "json").json["actions"]]
    assert [one for one in commands if "tunectl" in one] == [f"sudo {TUNECTL} --root {lab4} apply"]
    page = tunectl(*asked).out.replace("\\\n", "")  # as a shell reads a line that goes on
    assert f"sudo {TUNECTL} --root {lab4} apply" in " ".join(page.split())


@pytest.mark.slow
def test_a_command_that_writes_on_the_host_is_said_with_sudo() -> None:
    """In every text that the product prints; a `#` begins a remark in a file that it writes."""
    places = sorted(Path(tunectl_package.__file__ or "").parent.rglob("*.py"))
    texts = [
        line
        for place in places
        for text in said_in(ast.parse(place.read_text()))
        for line in text.splitlines()
        if re.search(r"(^|[`:;&] ?|then )tunectl (apply|restore|propose --output)", line) and not line.startswith("#")
    ]
    assert texts == []


def said_in(tree: ast.Module) -> Iterator[str]:
    """Every text of a module that is no docstring."""
    docstrings = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for one in ast.walk(tree):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in docstrings:
            yield one.value


NAMED = ("--root", "/a b")
WORDS = "tunectl --root '/a b'"


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("sudo tunectl apply", f"sudo {WORDS} apply"),
        ("`tunectl restore` undoes; see tunectl's page", f"`{WORDS} restore` undoes; see tunectl's page"),
        ("tunectl verify, then sudo tunectl apply", f"{WORDS} verify, then sudo {WORDS} apply"),
        ("sudo tunectl apply --adopt", f"sudo {WORDS} apply --adopt"),
        ("report this to tunectl with a word", "report this to tunectl with a word"),
        ("ExecStart=/usr/bin/tunectl apply --yes", "ExecStart=/usr/bin/tunectl apply --yes"),
    ],
)
def test_only_commands_of_ours_get_the_options(said: str, typed: str) -> None:
    assert Typed(NAMED).text(said) == str(Typed(NAMED).fix(to_decide(said))) == typed
    assert Typed(NAMED).text(typed) == typed
    assert Typed(()).text(said) == said


def test_the_journal_is_not_given_up_for_want_of_a_host_file() -> None:
    assert str(Typed((), "/x").fix(to_decide(ADOPT))) == ADOPT
    assert str(Typed((), "/x y").fix(APPLY)) == "sudo tunectl propose --output '/x y' && sudo tunectl apply"


@pytest.mark.parametrize("option", ["--host", "--root", "--state"])
@pytest.mark.parametrize("before", [True, False])
def test_an_empty_name_stands_for_no_other_host(tunectl: Run, option: str, before: bool) -> None:
    done = tunectl(*([option, "", "verify"] if before else ["verify", option, ""]))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err == f"tunectl: {option}: is empty (leave it out for the default)\n"
