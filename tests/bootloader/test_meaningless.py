"""Arguments that a machine's kernel makes nothing of: `tsc=` where there is no TSC."""

from pathlib import Path

import pytest

from tests.bootloader.hosts import WORDS, boot_findings, host, upcoming, wish
from tests.trees import differences, picture, write
from tests.tuned import apply, inspection_on, restore
from tunectl.model import Outcome

ARM = "CPU implementer\t: 0x41\n"
REST = " ".join(word for word in WORDS if not word.startswith("tsc="))
LACKS = "x86 alone knows tsc=: the kernel of this machine (aarch64) makes nothing of it"
on_some = pytest.mark.parametrize("loader", ["raspberry-pi", "bls", "uki"])


def without_tsc(tree: Path) -> Path:
    """The machine is aarch64's, as its kernel shows it."""
    write(tree, "proc/sys/kernel/arch", "aarch64\n")
    return tree


def next_lines(tree: Path, loader: str) -> list[str]:
    """What the next boot has."""
    return [point.line or "" for point in upcoming(tree, loader).points]


@on_some
def test_it_is_unsupported_and_never_written(loader: str, tmp_path: Path) -> None:
    tree = without_tsc(host(tmp_path, loader))
    finding = boot_findings(tree)["boot.tsc"]
    assert (finding.outcome, finding.reason) == (Outcome.UNSUPPORTED, LACKS)
    apply(tree)
    lines = next_lines(tree, loader)
    assert lines
    assert all(REST in line and "tsc=" not in line for line in lines)
    outcomes = {one.outcome for name, one in boot_findings(tree).items() if name != "boot.tsc"}
    assert outcomes == {Outcome.PENDING_REBOOT}
    assert apply(tree).applied.results == []


@on_some
def test_what_an_earlier_version_wrote_is_taken_out(loader: str, tmp_path: Path) -> None:
    tree = host(tmp_path, loader)
    before = picture(without_tsc(host(tmp_path / "again", loader)))
    apply(tree)
    assert all("tsc=reliable" in line for line in next_lines(tree, loader))
    finding = boot_findings(without_tsc(tree))["boot.tsc"]
    assert (finding.outcome, finding.observed, finding.desired) == (Outcome.DRIFTED, "reliable", None)
    assert finding.reason == f"the boot configuration still asks for tsc, as tunectl wrote it, and {LACKS}"
    changes = inspection_on(tree).assess().changes
    assert [(one.target, one.desired) for one in changes if one.knob == "boot.tsc"] == [("boot.tsc", None)]
    assert [one.change.target for one in apply(tree).applied.results if one.result != "changed"] == []
    assert all(REST in line and "tsc=" not in line for line in next_lines(tree, loader))
    assert boot_findings(tree)["boot.tsc"].outcome is Outcome.UNSUPPORTED
    assert restore(tree).complete
    assert differences(before, tree) == {}


def test_the_operators_own_word_is_left_alone(tmp_path: Path) -> None:
    tree = without_tsc(host(tmp_path, "raspberry-pi"))
    place = tree / "boot/firmware/cmdline.txt"
    place.write_text(place.read_text().replace("console=tty1", "console=tty1 tsc=unstable"))
    apply(tree)
    assert all(REST in line and " tsc=unstable " in line for line in next_lines(tree, "raspberry-pi"))
    assert boot_findings(tree)["boot.tsc"].outcome is Outcome.UNSUPPORTED


@pytest.mark.parametrize(("cpuinfo", "outcome"), [("", Outcome.DRIFTED), (ARM, Outcome.UNSUPPORTED)])
def test_where_nobody_says_what_machine_it_is_nothing_is_known(cpuinfo: str, outcome: Outcome, tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    (tree / "proc/sys/kernel/arch").unlink(missing_ok=True)
    write(tree, "proc/sys/kernel/osrelease", "6.12.1\n")
    write(tree, "proc/cpuinfo", cpuinfo)
    assert boot_findings(tree)["boot.tsc"].outcome is outcome


@pytest.mark.parametrize("key", ["intel_pstate", "amd_pstate"])
def test_what_a_site_asks_of_x86_alone(key: str, tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    wish(tree, knobs=f'"boot.{key}" = "passive"\n')
    assert boot_findings(tree)[f"boot.{key}"].outcome is Outcome.DRIFTED
    finding = boot_findings(without_tsc(tree))[f"boot.{key}"]
    assert finding.outcome is Outcome.UNSUPPORTED
    assert finding.reason.startswith(f"x86 alone knows {key}=")
