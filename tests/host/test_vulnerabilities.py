"""What the kernel says of the CPU's flaws is reported, and nothing is done about it unasked."""

from __future__ import annotations

from collections.abc import Callable

from tests.hosts.builder import HostFactory
from tests.ran import Ran

Run = Callable[..., Ran]


def test_show_tells_what_is_mitigated(tunectl: Run, host_root: HostFactory) -> None:
    text = tunectl("show", "--root", host_root("lab4"), env={"COLUMNS": "120"}).out
    assert "against 1 of 2 flaws of this CPU; vulnerable: mmio_stale_data" in text
    found = tunectl("show", "--root", host_root("lab4"), "--format", "json").json["drivers"]["vulnerabilities"]
    assert {"name": "meltdown", "state": "Not affected"} in found
    assert "mitigations" not in tunectl("show", "--root", host_root("arm64")).out


def test_no_profile_touches_them(tunectl: Run, lab4: object) -> None:
    findings = tunectl("verify", "--root", lab4, "--format", "json").json["findings"]
    assert "boot.mitigations" not in {finding["knob"] for finding in findings}
