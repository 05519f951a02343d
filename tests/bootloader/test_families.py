"""Every family of boot loaders, from a stock host to the next boot's line and back."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.bootloader.hosts import LINE, LOADERS, NEWEST, WORDS, boot_findings, host, upcoming, wish
from tests.hosts.boot_files import MACHINE_ID
from tests.trees import differences, picture
from tests.tuned import apply, inspection_on, restore
from tunectl.bootloader.families import FILES, detect
from tunectl.host.recording import record
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome

every_loader = pytest.mark.parametrize("loader", LOADERS)


def edited(tree: Path, before: dict[str, tuple[str, int, bytes | str]]) -> list[str]:
    """The files that gained the first of our words."""
    word = WORDS[0].encode()
    return [
        path
        for path in differences(before, tree)
        if not path.startswith("var/lib/tunectl/") and (tree / path).is_file() and word in (tree / path).read_bytes()
    ]


def put_in(place: Path, words: str) -> None:
    """What an operator does with an editor: words of his own behind `quiet`."""
    text = place.read_text()
    if place.name == "configuration":
        document = json.loads(text)
        options = document["user"]["kernel_options"]
        at = options.index("quiet") + 1
        options[at:at] = words.split()
        place.write_text(json.dumps(document, indent=2))
    else:
        place.write_text(text.replace("quiet", f"quiet {words}", 1))


ENTRIES = f"boot/loader/entries/{MACHINE_ID}"
STUB_ENTRIES = "boot/efi/loader/entries/Pop_OS"
EDITED = {
    "suse-grub": ["etc/default/grub"],
    "bls": [
        f"{ENTRIES}-5.14.0-70.el9.x86_64.conf",
        f"{ENTRIES}-{NEWEST}.conf",
        "etc/default/grub",
        "etc/kernel/cmdline",
    ],
    "systemd-boot": [f"{ENTRIES}-{NEWEST}.conf", f"{ENTRIES}-6.1.0-9-amd64.conf", "etc/kernel/cmdline"],
    "uki": ["etc/kernel/cmdline"],
    "kernelstub": [f"{STUB_ENTRIES}-current.conf", f"{STUB_ENTRIES}-oldkern.conf", "etc/kernelstub/configuration"],
    "rpm-ostree": ["boot/loader.0/entries/ostree-1.conf", "boot/loader.0/entries/ostree-2.conf"],
    "raspberry-pi": ["boot/firmware/cmdline.txt"],
}
PROGRAMS = {
    "suse-grub": "/usr/sbin/grub2-mkconfig -o /boot/grub2/grub.cfg",
    "uki": "/usr/bin/kernel-install add 6.1.0-39-amd64 /usr/lib/modules/6.1.0-39-amd64/vmlinuz",
}


@every_loader
def test_a_stock_host_is_configured_for_the_next_boot_and_restored_to_the_byte(loader: str, tmp_path: Path) -> None:
    tree = host(tmp_path, loader)
    assert detect(Sysroot(str(tree))).name == LOADERS[loader][1]
    assert {one.outcome for one in boot_findings(tree).values()} == {Outcome.DRIFTED}
    before = picture(tree)
    run = apply(tree)
    assert not [one for one in run.applied.results if one.result != "changed" and one.change.knob.startswith("boot.")]
    assert {name: one.outcome for name, one in boot_findings(tree).items() if one.outcome != "pending-reboot"} == {}
    assert edited(tree, before) == EDITED[loader]
    points = upcoming(tree, loader).points
    assert points
    assert all(LINE in (point.line or "") for point in points)
    assert [line for line in run.applied.not_run if "systemctl" not in line] == [
        program for name, program in PROGRAMS.items() if name == loader
    ]
    assert apply(tree).applied.results == []
    assert restore(tree).complete
    assert differences(before, tree) == {}


@every_loader
def test_the_host_file_changes_its_mind(loader: str, tmp_path: Path) -> None:
    tree = host(tmp_path, loader)
    before = picture(tree)
    apply(tree)
    wish(tree, "3", '"boot.tsc" = "unmanaged"\n')
    findings = boot_findings(tree)
    assert "as tunectl wrote it, and the host file no longer does" in findings["boot.tsc"].reason
    apply(tree)
    lines = [point.line or "" for point in upcoming(tree, loader).points]
    assert all(" isolcpus=managed_irq,domain,3 " in f"{line} " and "tsc=" not in line for line in lines)
    assert not edited(tree, before)
    wish(tree)
    assert restore(tree).complete
    assert differences(before, tree) == {}


@every_loader
def test_a_word_of_ours_that_goes_missing_is_found_and_put_back(loader: str, tmp_path: Path) -> None:
    tree = host(tmp_path, loader)
    before = picture(tree)
    apply(tree)
    for path in EDITED[loader]:
        whole = (tree / path).read_bytes()
        text = whole.replace(b" skew_tick=1", b"").replace(b'      "skew_tick=1",\n', b"")
        assert text != whole
        (tree / path).write_bytes(text)
        finding = boot_findings(tree)["boot.skew_tick"]
        default = any(path.rpartition("/")[2] in point.where for point in upcoming(tree, loader).points)
        assert (finding.outcome is Outcome.DRIFTED) is default
        if default:
            apply(tree)
            assert boot_findings(tree)["boot.skew_tick"].outcome is Outcome.PENDING_REBOOT
        (tree / path).write_bytes(whole)
    assert restore(tree).complete
    assert differences(before, tree) == {}


@every_loader
def test_the_operators_own_words_stay_where_they_are(loader: str, tmp_path: Path) -> None:
    tree = host(tmp_path, loader)
    for path in EDITED[loader]:
        put_in(tree / path, "console=tty0 skew_tick=0 console=ttyS1 tsc=unstable")
    before = picture(tree)
    apply(tree)
    for point in upcoming(tree, loader).points:
        assert "quiet console=tty0 skew_tick=1 console=ttyS1 tsc=unstable" in (point.line or "").replace("\n", " ")
        assert (point.line or "").count("skew_tick") == 1
        assert "nosoftlockup tsc=reliable" in (point.line or "")
    assert restore(tree).complete
    assert differences(before, tree) == {}


@every_loader
def test_what_the_operator_changes_after_apply_stays_and_ours_goes(loader: str, tmp_path: Path) -> None:
    tree = host(tmp_path, loader)
    originals = {path: (tree / path).read_bytes() for path in EDITED[loader]}
    apply(tree)
    for path in EDITED[loader]:
        put_in(tree / path, "debug")
    undone = restore(tree)
    assert undone.complete
    stand = {path: (tree / path).read_bytes() for path in EDITED[loader]}
    for path, original in originals.items():
        (tree / path).write_bytes(original)
        put_in(tree / path, "debug")
        assert (tree / path).read_bytes() == stand[path], path
    assert not list((tree / "var/lib").glob("tunectl/*.jsonl"))


@every_loader
def test_nothing_is_said_of_a_host_that_booted_with_it(loader: str, tmp_path: Path) -> None:
    tree = host(tmp_path, loader, tuned_boot=frozenset({2, 3}))
    assert {name: one for name, one in boot_findings(tree).items() if one.outcome is not Outcome.COMPLIANT} == {}
    assert not [change for change in inspection_on(tree).assess().changes if change.knob.startswith("boot.")]


@pytest.mark.parametrize("loader", [one for one in LOADERS if one != "uki"])  # an image is megabytes: not recorded
def test_a_recording_holds_the_boot_configuration(tmp_path: Path, loader: str) -> None:
    tree = host(tmp_path, loader)
    record(Sysroot(str(tree)), str(tmp_path / "host.tar.gz"), files=FILES)
    copy = tmp_path / "copy"
    copy.mkdir()
    subprocess.run(["tar", "xf", tmp_path / "host.tar.gz", "-C", copy], check=True)
    assert detect(Sysroot(str(copy))) == detect(Sysroot(str(tree)))
    assert upcoming(copy, loader) == upcoming(tree, loader)
