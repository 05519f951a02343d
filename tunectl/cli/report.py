"""tunectl report"""

import os
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec
from msgspec import Meta

from tunectl.cli.command import can_draw, check_output, emit, open_root, tunectl_command, write_whole
from tunectl.cli.helped import OK, Example
from tunectl.cli.options import Options
from tunectl.compare.compared import compared
from tunectl.durable import read_regular
from tunectl.errors import TunectlError, UsageError
from tunectl.host.identity import read_identity
from tunectl.model import Document, HostId
from tunectl.probe.document import LARGEST, ProbeFile, read_document
from tunectl.probe.doubt import doubt_of_go
from tunectl.shapes import Comparison, Preflight, now_utc

_PAGE = b"<!doctype html>"


class Written(msgspec.Struct, frozen=True):
    """What `tunectl report -o FILE` wrote."""

    written: Annotated[str, Meta(description="Full path of the page.")]
    bytes: Annotated[int, Meta(ge=1)]
    sources: Annotated[list[str], Meta(min_length=1)]
    note: Annotated[str, Meta(description="Why two results of one probe were not compared; else empty.")]


@tunectl_command(
    formats=("text", "json", "html"),
    examples=(
        Example("A page of one result:", "tunectl report after.json -o report.html"),
        Example("A page of two, which are compared:", "tunectl report before.json after.json -o report.html"),
    ),
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="OUT.html", help="Write the page there.")
def command(options: Options, files: tuple[Path, ...], output: str | None) -> int:
    """One self-contained HTML page with plots, of the results of probes and preflights.

    Two results of the same probe are compared: the first is before, the second after.
    """
    if not output and options.fmt != "html":
        raise UsageError("report: where to?", "-o OUT.html, or --format html for the page on stdout")
    if output:
        _check_output(output, files)
    can_draw("html")
    read = [read_document(path) for path in files]
    comparison, note = _compared(read)
    identity = read_identity(open_root(options))
    if not output:
        emit(options, "report", identity, _body(read, comparison))
        return OK
    page = page_of(read, comparison, identity)
    write_whole(output, page)
    if options.fmt != "html":
        paths = [probe_file.path for probe_file in read]
        emit(options, "report", identity, Written(os.path.abspath(output), len(page.encode()), paths, note))
    return OK


def page_of(read: list[ProbeFile], comparison: Comparison | None, identity: HostId) -> str:
    """The HTML page of these files."""
    from tunectl.report import render

    return render(Document("report", identity, now_utc(), _body(read, comparison)), "html")


def _body(read: list[ProbeFile], comparison: Comparison | None) -> dict[str, Any]:
    """What the page is made of; of every knob why it matters and who says so, which no document has."""
    from tunectl.knobs import KNOBS

    facts = {knob.name: (knob.why, knob.source) for knob in KNOBS.values()}
    files = [{**vars(probe_file), "doubt": _doubt(probe_file)} for probe_file in read]
    return {"files": files, "compare": comparison, "facts": facts}


def _check_output(output: str, files: tuple[Path, ...]) -> None:
    """An older page may be overwritten; any other file there is somebody's work."""
    check_output(output)
    if any(os.path.realpath(output) == os.path.realpath(path) for path in files):
        raise UsageError(f"--output {output}: is one of the files to be read")
    if not os.path.exists(output):
        return
    try:
        start = read_regular(output, LARGEST)[: len(_PAGE)]
    except OSError as error:
        raise TunectlError(f"cannot read {output}: {error.strerror}") from error
    if start.lower() != _PAGE:
        raise UsageError(f"--output {output}: there is a file already that is not an HTML page", "name another")


def _doubt(file: ProbeFile) -> str:
    return doubt_of_go(file.result) if isinstance(file.result, Preflight) else ""


def _compared(read: list[ProbeFile]) -> tuple[Comparison | None, str]:
    """The comparison of two results of the same probe, or None; and why not, where one could be expected."""
    if len({type(probe_file.measured) for probe_file in read}) != 1 or len(read) != 2 or read[0].measured is None:
        return None, ""
    try:
        return compared(read[0], read[1]), ""
    except TunectlError as error:
        return None, f"not compared: {error.message}"
