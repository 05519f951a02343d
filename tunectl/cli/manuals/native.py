"""The page of tunectl-probe, from what the program itself prints for --help, and of `tunectl probe`, which it shares.

A man page's name has a hyphen where a command has a space: tunectl-probe(1) is both.
"""

import re
from collections.abc import Iterator

from tunectl.cli.manuals.pages import Item, Page
from tunectl.errors import TunectlError
from tunectl.host.run import run
from tunectl.probe.runner import find_program

_USAGE = re.compile(r"  tunectl-probe (\w+) \[OPTIONS\]")
_OPTION = re.compile(r"  (--\S+(?: [A-Z:,]+)?) +(.*)")
_MORE = re.compile(r" {10,}(.*)")


def help_text() -> str:
    """What tunectl-probe prints for --help. TunectlError where there is none."""
    done = run([str(find_program()), "--help"], timeout_s=20)
    if done.returncode:
        raise TunectlError(f"tunectl-probe --help ended with {done.returncode}")
    return done.stdout


def native_pages(text: str) -> Iterator[Page]:
    """The program's page, then one for each experiment."""
    head, *sections = re.split(r"\n(?=  tunectl-probe \w+ \[OPTIONS\]\n)", text)
    experiments = [_experiment(section.splitlines()) for section in sections]
    yield Page(
        "tunectl-probe",
        "measures how long a CPU is taken away from a thread",
        ("tunectl-probe EXPERIMENT [OPTIONS]", "tunectl-probe --version"),
        (
            " ".join(head.split()),
            "tunectl starts it; it needs no Python, and writes raw facts as JSON to standard output.",
        ),
        commands=tuple(Item(experiment.name.rpartition(" ")[2], experiment.summary) for experiment in experiments),
        exits=(Item("0", "done"), Item("1", "failed"), Item("2", "wrong usage")),
        see_also=(
            "tunectl",
            *(f"tunectl probe {name}" for name in ("jitter", "wake", "feed", "hedge", "contention", "selftest")),
        ),
    )
    yield from experiments


def _experiment(lines: list[str]) -> Page:
    match = _USAGE.match(lines[0])
    assert match, lines[0]
    options: list[Item] = []
    said: list[str] = []
    for line in lines[1:]:
        if option := _OPTION.match(line):
            options.append(Item(option[1], option[2]))
        elif (more := _MORE.match(line)) and options:
            options[-1] = options[-1]._replace(text=f"{options[-1].text} {more[1]}")
        elif line and not line.startswith(("SIGINT", "Exit status")):
            said.append(line.strip())
    name, text = match[1], " ".join(said).removeprefix(f"{match[1]}: ")
    ends = ("SIGINT and SIGTERM end the measuring and still give the result so far.",)
    body = (text, *(ends if any(line.startswith("SIGINT") for line in lines) else ()))
    first = re.split(r"[.;?](?= |$)", text, maxsplit=1)[0]
    return Page(f"tunectl-probe {name}", first[:1].upper() + first[1:], (lines[0].strip(),), body, tuple(options))
