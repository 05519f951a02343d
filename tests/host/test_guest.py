"""Which settings a virtual machine's guest does not own, by what its kernel shows; and whose it is, by DMI."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_commands import valid
from tests.conftest import LOW_LATENCY, write_host_file
from tests.hosts.builder import HostFactory
from tests.ran import Ran
from tunectl.host.guest import FIRMWARE, FREQUENCY, IDLE, Guest, read_guest
from tunectl.host.hardware import hypervisor_of
from tunectl.host.sysroot import Sysroot

Run = Callable[..., Ran]
DMI = "sys/class/dmi/id"
ALL = [FREQUENCY, IDLE, FIRMWARE]


def guest_of(root: Path) -> Guest | None:
    host = Sysroot(str(root))
    return read_guest(host, hypervisor_of(host, host.get_text("proc/cpuinfo")))


@pytest.mark.parametrize(
    ("name", "provider", "lacks"),
    [
        ("aws", "AWS", ALL),
        ("awslarge", "AWS", [FIRMWARE]),  # what its kernel shows is its own
        ("gcp", "Google Cloud", ALL),
        ("azure", "Azure", ALL),
        ("kvm", "", ALL),
        ("vm2", "", ALL),
        ("lab4", "", [FIRMWARE]),
    ],
)
def test_what_a_guest_does_not_own(host_root: HostFactory, name: str, provider: str, lacks: list[str]) -> None:
    guest = guest_of(host_root(name))
    assert guest is not None
    assert (guest.provider, [lack.what for lack in guest.lacks]) == (provider, lacks)
    assert bool(guest.evidence) is bool(provider)
    assert all(lack.documented is None or lack.documented.source for lack in guest.lacks)
    assert provider or not any(lack.documented for lack in guest.lacks)


@pytest.mark.parametrize("name", ["xeon2s", "epyc", "hybrid", "arm64"])
def test_bare_metal_owns_everything(host_root: HostFactory, name: str) -> None:
    assert guest_of(host_root(name)) is None


@pytest.mark.parametrize("type_", ["c7g.metal", "m7i.metal-24xl"])
def test_a_metal_instance_is_no_guest(host_root: HostFactory, tmp_path: Path, type_: str) -> None:
    """On aarch64 no flag of the CPU tells them apart."""
    root = host_root.fresh("arm64", tmp_path)
    (root / DMI).mkdir(parents=True, exist_ok=True)
    (root / DMI / "sys_vendor").write_text("Amazon EC2\n")
    (root / DMI / "product_name").write_text("c7g.xlarge\n")
    assert guest_of(root) is not None
    (root / DMI / "product_name").write_text(f"{type_}\n")
    assert guest_of(root) is None


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("azure", "chassis_asset_tag", "No Asset Tag"),  # Hyper-V of one's own
        ("azure", "sys_vendor", "Microsoft Corporation\x1b[31m"),
        ("gcp", "product_name", "Chromebook"),
        ("aws", "sys_vendor", "Amazon EC2 clone"),
    ],
)
def test_one_that_is_only_alike_is_nobodys(
    host_root: HostFactory, tmp_path: Path, name: str, file: str, text: str
) -> None:
    root = host_root.fresh(name, tmp_path)
    (root / DMI / file).write_text(f"{text}\n")
    guest = guest_of(root)
    assert guest is not None
    assert (guest.provider, guest.evidence) == ("", ())


def test_the_types_before_nitro_are_known_by_their_firmware(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("aws", tmp_path)
    (root / DMI / "sys_vendor").write_text("Xen\n")
    for version, provider in (("4.17.2", ""), ("4.11.amazon", "AWS")):
        (root / DMI / "bios_version").write_text(f"{version}\n")
        guest = guest_of(root)
        assert guest is not None
        assert guest.provider == provider


@pytest.mark.parametrize(
    ("word", "gone"),
    [
        ("idle=poll", IDLE),
        ("cpuidle.off=1", IDLE),
        ("intel_pstate=disable", FREQUENCY),
        ("cpufreq.off=1", FREQUENCY),
        ("acpi=off", FREQUENCY),
        ("module-blacklist=acpi_cpufreq", FREQUENCY),
    ],
)
def test_what_this_boot_did_without_is_nobody_elses_doing(
    host_root: HostFactory, tmp_path: Path, word: str, gone: str
) -> None:
    root = host_root.fresh("aws", tmp_path)
    path = root / "proc/cmdline"
    path.write_text(f"{path.read_text().strip()} {word}\n")
    guest = guest_of(root)
    assert guest is not None
    assert gone not in [lack.what for lack in guest.lacks]


def test_what_a_guest_cannot_have_is_unsupported_for_that_reason(
    tunectl: Run, host_root: HostFactory, tmp_path: Path
) -> None:
    root = host_root.fresh("aws", tmp_path)
    write_host_file(root, LOW_LATENCY)
    found: dict[str, dict[str, str]] = {}
    for one in valid("verify", tunectl("verify", "--root", root, "--format", "json").out)["findings"]:
        found.setdefault(one["knob"], one)
    for knob in ("cpufreq.governor", "cpuidle.max_latency_us"):
        assert found[knob]["outcome"] == "unsupported"
        assert "in this virtual machine of AWS" in found[knob]["reason"]


def test_what_it_has_is_judged_like_any_hosts(tunectl: Run, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("awslarge", tmp_path)
    write_host_file(root, LOW_LATENCY)
    findings = valid("verify", tunectl("verify", "--root", root, "--format", "json").out)["findings"]
    outcomes = {one["outcome"] for one in findings if one["knob"] in ("cpufreq.governor", "cpuidle.max_latency_us")}
    assert outcomes == {"drifted"}


def test_what_it_had_and_lost_with_its_machine_is_a_loss(tunectl: Run, host_root: HostFactory, tmp_path: Path) -> None:
    """An instance that was tuned and then moved to a smaller type: its state comes along, cpufreq does not."""
    old, new = (host_root.fresh(name, tmp_path) for name in ("awslarge", "aws"))
    for root in (old, new):
        write_host_file(root, LOW_LATENCY)
    tunectl("apply", "--yes", "--root", old)
    state = old / "var/lib/tunectl"
    done = tunectl("verify", "--root", new, "--state", state, "--format", "json")
    found = [one for one in valid("verify", done.out)["findings"] if one["knob"] == "cpufreq.governor"]
    assert [one["outcome"] for one in found] == ["drifted"]
    assert "in this virtual machine of AWS" in found[0]["reason"]
