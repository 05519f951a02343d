"""Boot entries between two applies and a restore: kernels installed, entries renamed by boot counting."""

import json
from pathlib import Path

import pytest

from tests.bootloader.hosts import NEWEST, boot_findings, host, wish
from tests.hosts.boot_files import MACHINE_ID
from tests.trees import differences, picture
from tests.tuned import apply, restore
from tunectl.model import Outcome

ENTRIES = f"boot/loader/entries/{MACHINE_ID}"


def entry(tree: Path, name: str = NEWEST) -> Path:
    return tree / f"{ENTRIES}-{name}.conf"


@pytest.mark.parametrize("loader", ["bls", "systemd-boot"])
@pytest.mark.parametrize("removed", [False, True])
def test_an_entry_made_of_ours_loses_our_words_though_a_later_apply_changed_them(
    loader: str, removed: bool, tmp_path: Path
) -> None:
    tree = host(tmp_path, loader)
    original = entry(tree).read_text()
    apply(tree)
    upgraded = entry(tree, "6.1.0-40-amd64")
    upgraded.write_text(entry(tree).read_text())
    if removed:
        entry(tree).unlink()
    wish(tree, "3", '"boot.tsc" = "unmanaged"\n')
    apply(tree)
    assert "isolcpus=managed_irq,domain,3 " in upgraded.read_text()
    assert restore(tree).complete
    assert upgraded.read_text() == original


def test_what_only_a_removed_entry_had_is_no_longer_asked_for(tmp_path: Path) -> None:
    tree = host(tmp_path, "systemd-boot")
    apply(tree)
    entry(tree, "6.1.0-9-amd64").unlink()
    wish(tree, knobs='"boot.tsc" = "unmanaged"\n')
    assert "boot.tsc" in boot_findings(tree)
    apply(tree)
    assert "boot.tsc" not in boot_findings(tree)
    assert apply(tree).applied.results == []


@pytest.mark.parametrize("again", [False, True])
def test_boot_counting_renames_an_entry_and_its_own_words_come_back(again: bool, tmp_path: Path) -> None:
    tree = host(tmp_path, "systemd-boot")
    entry(tree).write_text(entry(tree).read_text().replace("quiet", "quiet skew_tick=0"))
    original = entry(tree).read_text()
    entry(tree).rename(entry(tree, f"{NEWEST}+3"))
    apply(tree)
    entry(tree, f"{NEWEST}+3").rename(entry(tree, f"{NEWEST}+2-1"))
    assert {one.outcome for one in boot_findings(tree).values()} == {Outcome.PENDING_REBOOT}
    if again:
        wish(tree, "3")
        apply(tree)
    entry(tree, f"{NEWEST}+2-1").rename(entry(tree))
    assert restore(tree).complete
    assert entry(tree).read_text() == original


def test_deployments_that_came_since_lose_our_words(tmp_path: Path) -> None:
    tree = host(tmp_path, "rpm-ostree")
    entries = tree / "boot/loader.0/entries"
    before = {path.name: path.read_text() for path in entries.iterdir()}
    apply(tree)
    for name in before:
        (entries / name).rename(entries / name.replace("ostree-", "ostree-1"))
    assert restore(tree).complete
    assert {path.name: path.read_text() for path in entries.iterdir()} == {
        name.replace("ostree-", "ostree-1"): text for name, text in before.items()
    }


def test_an_indented_line_of_options_is_the_one_that_is_edited(tmp_path: Path) -> None:
    tree = host(tmp_path, "systemd-boot")
    text = entry(tree).read_text().replace("options ", "  options ").replace("quiet", "quiet isolcpus=1")
    entry(tree).write_text(text)
    before = picture(tree)
    apply(tree)
    assert entry(tree).read_text().count("options") == entry(tree).read_text().count("isolcpus=") == 1
    assert {one.outcome for one in boot_findings(tree).values()} == {Outcome.PENDING_REBOOT}
    assert restore(tree).complete
    assert differences(before, tree) == {}


def test_kernelstubs_other_values_keep_their_characters(tmp_path: Path) -> None:
    tree = host(tmp_path, "kernelstub")
    place = tree / "etc/kernelstub/configuration"
    document = json.loads(place.read_text())
    document["user"]["esp_path"] = "/boot/é中"
    place.write_text(json.dumps(document, indent=2, ensure_ascii=False))
    before = picture(tree)
    apply(tree)
    assert json.loads(place.read_text())["user"]["esp_path"] == "/boot/é中"
    assert restore(tree).complete
    assert differences(before, tree) == {}
