"""python -m tunectl.cli.manuals DIRECTORY | --docs DOCS"""

import datetime
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from tunectl import __version__
from tunectl.cli.complete import script
from tunectl.cli.manuals.documents import published, text_of
from tunectl.cli.manuals.hostfile import hostfile_page
from tunectl.cli.manuals.markdown import reference, schemas
from tunectl.cli.manuals.native import help_text, native_pages
from tunectl.cli.manuals.pages import Page, pages
from tunectl.cli.manuals.roff import man_page, title
from tunectl.errors import TunectlError
from tunectl.model import Document, HostId
from tunectl.report import render
from tunectl.shapes import fields_of
from tunectl.tuning.catalogue import catalogue

_USAGE = "usage: python -m tunectl.cli.manuals DIRECTORY, or --docs DOCS"
_COMPLETIONS = {
    "bash": "share/bash-completion/completions/tunectl",
    "zsh": "share/zsh/vendor-completions/_tunectl",
    "fish": "share/fish/vendor_completions.d/tunectl.fish",
}
Files = Iterator[tuple[str, str]]  # each path below the directory, and its text


def main(words: list[str]) -> int:
    """The exit code."""
    is_docs = words[:1] == ["--docs"]
    places = words[is_docs:]
    if len(places) != 1 or places[0].startswith("-") or not places[0]:
        click.echo(_USAGE, err=True)
        return 2
    try:
        for path, text in docs(Path(places[0])) if is_docs else files():
            place = Path(places[0], path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    except (TunectlError, OSError) as error:
        click.echo(f"tunectl.cli.manuals: {error}", err=True)
        return 1
    return 0


def files() -> Files:
    """Man pages and completions, as below /usr."""
    yield from man_pages()
    for shell, path in _COMPLETIONS.items():
        yield path, script(shell)


def man_pages() -> Files:
    """A page for each command, one for tunectl-probe, which is that of `tunectl probe`, too, and the host file's."""
    given = os.environ.get("SOURCE_DATE_EPOCH")  # where a build has to be reproducible
    when = datetime.datetime.fromtimestamp(int(given), datetime.UTC) if given else datetime.datetime.now(datetime.UTC)
    program, *experiments = native_pages(help_text())
    for page in (*pages(), hostfile_page()):
        also: list[Page] = []
        if title(page.name) == program.name:
            page, also = _both(program, page), [page._replace(options=()), *experiments]
        place = f"share/man/man{page.section}/{title(page.name)}.{page.section}"
        yield place, man_page(page, __version__, f"{when:%Y-%m-%d}", also)


def _both(program: Page, command: Page) -> Page:
    """Two things have one name: the program's page, with the command's rows."""
    said = "The command `tunectl probe` chooses CPUs and cases, starts this program and explains what it found."
    return command._replace(
        name=program.name,
        summary=program.summary,
        usage=(*program.usage, *command.usage),
        body=(*program.body, said),
        options=(),
        commands=program.commands,
        see_also=program.see_also,
    )


def docs(directory: Path) -> Files:
    """The generated pages of the documentation. Of the schemas in `directory`/schema, too."""
    identity = HostId("", "", "", "")  # the page of knobs is about no host
    body = fields_of(catalogue())
    yield "knobs.md", render(Document("knobs", identity, "", body), "markdown")
    yield "reference/commands.md", reference([*pages(), *native_pages(help_text())])
    for name, schema in published().items():
        yield f"schema/{name}", text_of(schema)
    yield "reference/schemas.md", schemas(directory / "schema")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
