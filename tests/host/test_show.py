"""The show and propose documents of every recorded host: their schemas, and the pages people see."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.builder import NAMES, HostFactory
from tests.ran import Ran
from tests.schemas import fits
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.topology import read_topology
from tunectl.model import Document
from tunectl.report import json as as_json
from tunectl.report.text import render
from tunectl.shapes import KernelClock, fields_of
from tunectl.tuners.find import read_programs
from tunectl.tuning.propose import propose, propose_body
from tunectl.tuning.show import Roles, roles_of_kernel, show_body


def documents(path: Path) -> dict[str, Document]:
    root = Sysroot(str(path))
    host, identity = read_topology(root), read_identity(root)
    proposal = propose(host)
    roles = Roles(proposal.isolated, "/etc/tunectl/host.toml")
    body = show_body(host, read_programs(root), roles, identity, {"drifted": 3})
    at = "2026-11-21T09:00:00Z"
    return {
        "show": Document("show", identity, at, fields_of(body)),
        "propose": Document("propose", identity, at, fields_of(propose_body(proposal))),
    }


@pytest.mark.parametrize("name", NAMES)
def test_they_satisfy_their_schemas(host_root: HostFactory, name: str) -> None:
    for kind, document in documents(host_root(name)).items():
        fits(kind, json.loads(as_json.render(document)))


@pytest.mark.parametrize("name", NAMES)
def test_the_page_fits_eighty_columns(host_root: HostFactory, name: str) -> None:
    for document in documents(host_root(name)).values():
        lines = render(document, width=80).split("\n")
        assert [line for line in lines if len(line) > 80] == []
        assert len(lines) < 80


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        (
            KernelClock(True, -1_500, 12.3456, 37, 16_000_000, 250_000),
            "  time        synchronised, offset -1.5 µs, frequency +12.346 ppm, wrong by 250 µs, by 16 ms at most, "
            "TAI offset 37 s\n",
        ),
        (None, ""),
    ],
)
def test_the_kernels_own_account_of_the_clock_is_shown(
    host_root: HostFactory, clock: KernelClock | None, said: str
) -> None:
    """Of a recorded host there is none."""
    shown = documents(host_root("lab4"))["show"]
    page = render(shown._replace(body={**shown.body, "kernel_clock": fields_of(clock)}), width=200)
    assert ("  time " in page) == (clock is not None)
    assert said in page
    assert shown.body["kernel_clock"] is None


def test_roles_without_a_host_file(host_root: HostFactory) -> None:
    stock = read_topology(Sysroot(str(host_root("lab4"))))
    assert roles_of_kernel(stock) == Roles()
    tuned = read_topology(Sysroot(str(host_root("lab4", tuned_boot=frozenset({2, 3})))))
    assert roles_of_kernel(tuned) == Roles(frozenset({2, 3}), "the kernel")


def test_names_that_others_chose_cannot_draw_on_the_terminal(host_root: HostFactory) -> None:
    show = documents(host_root("lab4"))["show"]
    body = {
        **show.body,
        "system": {**show.body["system"], "hostname": "a\x1b[31m\nb", "os": "\u202e", "model": "[never]"},
    }
    text = render(Document("show", show.host, "", body), width=80)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[never]" in text


def test_no_profile_touches_what_is_mitigated(tunectl: Callable[..., Ran], lab4: Path) -> None:
    findings = tunectl("verify", "--root", lab4, "--format", "json").json["findings"]
    assert "boot.mitigations" not in {finding["knob"] for finding in findings}
