"""Somebody has GRUB choose an entry that has not our arguments: what a finding says is typed, and mends it."""

import subprocess
from pathlib import Path

import pytest

from tests.bootloader.hosts import WORDS
from tests.bootloader.test_nextboot import LiveTree
from tests.bootloader.test_unknown import CUSTOM, ENTRY, tuned
from tests.bootloader.trees import DEFAULTS, grub_cfg
from tests.tuned import apply, inspection_on
from tunectl.bootloader.grubsettings import DROPIN
from tunectl.fix import APPLY
from tunectl.model import NEXT_BOOT, Finding, NextBoot, Outcome

LINE = " ".join(WORDS)
MENU, OTHER, BLOCK = "boot/grub/grub.cfg", "boot/grub/custom.cfg", "boot/grub/grubenv"
TAKE = f"take /{OTHER}:4 out, or have it name an entry that has the arguments"
UNSET = "sudo grub-editenv - unset next_entry"


def findings(tree: Path) -> dict[str, Finding]:
    """What verify says of each boot argument, of a tree that is taken for the running host."""
    every = inspection_on(LiveTree(tree)).assess().findings
    return {one.knob: one for one in every if one.knob.startswith("boot.")}


def update_grub(tree: Path, more: str = "") -> None:
    """What update-grub makes of the settings: our words, where our drop-in is there."""
    args = f"console=ttyS0 quiet {LINE if (tree / DROPIN).exists() else ''}"
    (tree / MENU).write_text(grub_cfg(args=args.strip()) + CUSTOM + more)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A Debian host, tuned and booted."""
    tree = tuned(tmp_path, "grub")
    (tree / "etc/default/grub").write_text(DEFAULTS)
    apply(tree)
    update_grub(tree)
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}
    return tree


def choose(tree: Path, how: str) -> None:
    if how == UNSET:
        (tree / BLOCK).write_text("# GRUB Environment Block\nnext_entry=1>1\n")
    else:
        (tree / OTHER).write_text(f"{ENTRY}set default=mine\n")


def follow(tree: Path, fix: str) -> None:
    """What the fix says, typed."""
    if fix.startswith(UNSET):
        (tree / BLOCK).write_text("# GRUB Environment Block\n")
    elif fix.startswith(TAKE):
        subprocess.run(["sed", "-i", "4d", str(tree / OTHER)], check=True)
    if fix.endswith(str(APPLY)):
        apply(tree)
        update_grub(tree)


@pytest.mark.parametrize("ours", [True, False], ids=["with our drop-in", "without our drop-in"])
def test_the_fix_of_each_argument_chooses_the_entry_again(tree: Path, ours: bool) -> None:
    choose(tree, UNSET)
    if not ours:
        (tree / DROPIN).unlink()
        update_grub(tree)
    found = findings(tree)
    fix = UNSET + ("" if ours else f" && {APPLY}")
    assert {(one.outcome, str(one.fix)) for one in found.values()} == {(Outcome.DRIFTED, fix)}
    assert len(found) == len(WORDS)
    follow(tree, str(found["boot.isolcpus"].fix))
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}


def unknown(tree: Path) -> Finding:
    """The one finding that the next boot is not known; what is in force now is right."""
    every = inspection_on(LiveTree(tree)).assess().findings
    (whole,) = (one for one in every if one.knob == NEXT_BOOT)
    arguments = [one for one in every if one.knob.startswith("boot.")]
    assert {(one.outcome, one.next) for one in arguments} == {(Outcome.COMPLIANT, NextBoot.UNKNOWN)}
    assert whole.outcome is Outcome.UNREADABLE
    return whole


def test_a_default_of_custom_cfg_is_one_finding_and_its_fix_ends_it(tree: Path) -> None:
    choose(tree, TAKE)
    assert str(unknown(tree).fix) == TAKE
    follow(tree, TAKE)
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}


def test_a_line_that_is_all_of_its_block_is_made_to_do_nothing(tree: Path) -> None:
    """GRUB takes an `if` without a command for a syntax error, and reads nothing of that file."""
    (tree / OTHER).write_text(f"{ENTRY}if [ -s $prefix/grubenv ]; then\n  set default=mine\nfi\n")
    assert str(unknown(tree).fix) == f"sudo sed -i '5s/.*/true/' /{OTHER}"
    subprocess.run(["sed", "-i", "5s/.*/true/", str(tree / OTHER)], check=True)
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}


def test_apply_writes_nothing_that_the_next_entry_would_not_read(tree: Path) -> None:
    (tree / DROPIN).unlink()
    update_grub(tree)
    choose(tree, UNSET)
    assert apply(tree).applied.results == []
    assert not (tree / DROPIN).exists()


SCRIPT = "etc/grub.d/42_vendor"
HEREDOC = f"#!/bin/sh\ncat <<EOF\n{ENTRY}set default=mine\nEOF\n"


def scripted(tree: Path, printed: str) -> None:
    """A script of /etc/grub.d, and what it printed into the menu."""
    (tree / SCRIPT).parent.mkdir(exist_ok=True)
    (tree / SCRIPT).write_text(HEREDOC)
    update_grub(tree, f"### BEGIN /{SCRIPT} ###\n{printed}### END /{SCRIPT} ###\n")


def test_a_script_that_chooses_is_named_with_what_it_printed(tree: Path) -> None:
    scripted(tree, f"{ENTRY}set default=mine\n")
    whole = unknown(tree)
    printed = (tree / MENU).read_text().split("\n").index("set default=mine") + 1
    assert f"/{MENU}:{printed}, printed by /{SCRIPT}," in whole.reason
    assert f"/{SCRIPT}" in str(whole.fix)
    assert str(whole.fix).endswith("then sudo update-grub")


def test_a_script_that_only_adds_an_entry_is_no_matter(tree: Path) -> None:
    scripted(tree, ENTRY)
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}


def test_what_somebody_wrote_behind_the_scripts_goes_with_update_grub(tree: Path) -> None:
    mark = "### BEGIN /etc/grub.d/41_custom ###\n### END /etc/grub.d/41_custom ###\n"
    update_grub(tree, f"{mark}{ENTRY}set default=mine\n")
    assert str(unknown(tree).fix).startswith("sudo update-grub; ")
    update_grub(tree)
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}
