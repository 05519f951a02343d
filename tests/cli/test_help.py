"""Help: every command has examples that its own parser takes, and no line is cut or broken at 80 columns."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.ran import Ran
from tunectl import __version__
from tunectl.cli.helped import Example, Family, Helped, summary_of
from tunectl.cli.main import cli
from tunectl.cli.manuals.pages import contexts

Run = Callable[..., Ran]


ALL = {ctx.command_path: ctx for ctx in contexts(click.Context(cli, info_name="tunectl", **cli.context_settings))}
EXAMPLES = [(path, one) for path, ctx in ALL.items() if isinstance(ctx.command, Helped) for one in ctx.command.examples]


def parse(words: list[str]) -> None:
    """What the program does with these words, up to where the command would begin."""
    ctx = cli.make_context("tunectl", words)
    while isinstance(ctx.command, click.Group):
        name, command, rest = ctx.command.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
        assert command is not None
        ctx = command.make_context(name, rest, parent=ctx)


def words_of(line: str) -> list[str]:
    """A line's words after `sudo tunectl`, up to where the shell would send the output."""
    words = shlex.split(line)
    words = words[words[0] == "sudo" :]
    end = next((at for at, word in enumerate(words) if word in ("<", ">", "|")), len(words))
    return words[:end]


@pytest.mark.parametrize("path", ALL)
def test_every_command_has_an_example_of_itself(path: str) -> None:
    command = ALL[path].command
    assert isinstance(command, Helped)
    assert any(one.line.removeprefix("sudo ").startswith(path) for one in command.examples)


TAKES: dict[str, Callable[[list[str]], object]] = {"tunectl": parse, "systemctl": list, "mkdir": list}


@pytest.mark.parametrize(("path", "example"), EXAMPLES, ids=lambda one: one if isinstance(one, str) else one.line)
def test_each_example_is_taken_by_the_parser(
    path: str, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (program, *words) = words_of(example.line)
    TAKES[program](words)
    assert len(example.line) <= 76


def test_a_wrong_example_would_be_found() -> None:
    for line in ("tunectl verify --stric", "tunectl nothing", "tunectl service install monitr", "tunectl fleet open"):
        with pytest.raises(click.UsageError):
            parse(words_of(line)[1:])


@pytest.mark.parametrize("path", ALL)
def test_help_fits_eighty_columns_and_is_whole(tunectl: Run, path: str) -> None:
    done = tunectl(*path.split()[1:], "--help", env={"COLUMNS": "80"})
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "…" not in done.out
    command = ALL[path].command
    assert isinstance(command, Helped)
    assert all(f"    {one.line}\n" in f"{done.out}\n" for one in command.examples)
    if isinstance(command, Family):
        listed = " ".join(done.out.split())
        assert all(f"{name} {summary}" in listed for name, summary in command.summaries(ALL[path]))
        assert not any(summary.endswith("...") for _, summary in command.summaries(ALL[path]))


def test_a_summary_is_the_whole_first_sentence() -> None:
    made = click.Command("x", help=f"{'A long line ' * 20}ends here. This is more.\n\nAnd this.")
    assert summary_of(made) == f"{'A long line ' * 20}ends here."
    assert summary_of(click.Command("x")) == ""


@pytest.mark.slow
def test_as_a_module_it_is_the_same_program() -> None:
    for words, code in (("--version", 0), ("verify --bogus", 2), ("knobs mm.swappiness", 0)):
        argv = [sys.executable, "-m", "tunectl", *words.split()]
        done = subprocess.run(argv, capture_output=True, text=True, cwd="/")
        assert done.returncode == code
        assert "Traceback" not in done.stderr
    assert subprocess.check_output([sys.executable, "-m", "tunectl", "--version"], text=True).split()[1] == __version__
