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
from tunectl.model import Finding, Outcome

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


@pytest.mark.parametrize("fix", [TAKE, UNSET])
@pytest.mark.parametrize("ours", [True, False], ids=["with our drop-in", "without our drop-in"])
def test_the_fix_of_each_argument_chooses_the_entry_again(tree: Path, fix: str, ours: bool) -> None:
    choose(tree, fix)
    if not ours:
        (tree / DROPIN).unlink()
        update_grub(tree)
    found = findings(tree)
    then = f"{' && ' if fix == UNSET else ', then '}{APPLY}"
    assert {(one.outcome, str(one.fix)) for one in found.values()} == {(Outcome.DRIFTED, fix + ("" if ours else then))}
    assert len(found) == len(WORDS)
    follow(tree, str(found["boot.isolcpus"].fix))
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}


def test_a_line_that_is_all_of_its_block_is_made_to_do_nothing(tree: Path) -> None:
    """GRUB takes an `if` without a command for a syntax error, and reads nothing of that file."""
    (tree / OTHER).write_text(f"{ENTRY}if [ -s $prefix/grubenv ]; then\n  set default=mine\nfi\n")
    (tree / BLOCK).write_text("# GRUB Environment Block\n")
    (fix,) = {str(one.fix) for one in findings(tree).values()}
    assert fix == f"sudo sed -i '5s/.*/true/' /{OTHER}"
    subprocess.run(["sed", "-i", "5s/.*/true/", str(tree / OTHER)], check=True)
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}


def test_apply_writes_nothing_that_the_next_entry_would_not_read(tree: Path) -> None:
    (tree / DROPIN).unlink()
    choose(tree, TAKE)
    assert apply(tree).applied.results == []
    assert not (tree / DROPIN).exists()


def test_an_entry_of_somebody_else_that_has_the_arguments_is_right(tree: Path) -> None:
    (tree / OTHER).write_text(ENTRY.replace("quiet", f"console=ttyS0 quiet {LINE}") + "set default=mine\n")
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}
    (tree / DROPIN).unlink()  # then only the entries of later kernels lack them, and apply mends that
    found = findings(tree)["boot.isolcpus"]
    assert "the next kernel's entry would not have it" in found.reason
    assert str(found.fix) == "sudo tunectl apply"


SCRIPT = "etc/grub.d/42_vendor"
HEREDOC = f"#!/bin/sh\ncat <<EOF\n{ENTRY}set default=mine\nEOF\n"


def scripted(tree: Path, text: str, printed: str) -> str:
    """A script of /etc/grub.d, what it printed into the menu, and the fix of a finding."""
    (tree / SCRIPT).parent.mkdir(exist_ok=True)
    (tree / SCRIPT).write_text(text)
    update_grub(tree, f"### BEGIN /{SCRIPT} ###\n{printed}### END /{SCRIPT} ###\n")
    (fix,) = {str(one.fix) for one in findings(tree).values()}
    return fix


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (HEREDOC, f"take /{SCRIPT}:6 out, or have it name an entry that has the arguments, then sudo update-grub"),
        ("#!/bin/sh\necho 'set default=mine'\n", f"take /{SCRIPT}:2 out"),
        ("#!/bin/sh\n# set default=mine\nprintf 'set default=%s\\n' mine\n", f"have /{SCRIPT} print nothing that"),
        ("#!/bin/sh\n[ a ] && echo set default=mine\n[ b ] || echo set default=mine\n", f"have /{SCRIPT} print noth"),
    ],
)
def test_a_script_that_update_grub_runs_is_mended_itself(tree: Path, text: str, fix: str) -> None:
    found = scripted(tree, text, f"{ENTRY}set default=mine\n")
    assert found.startswith(fix)
    assert found.endswith("then sudo update-grub")
    inside = "if true; then\nset default=mine\nfi\n"
    assert scripted(tree, text, f"{ENTRY}{inside}").startswith(f"have /{SCRIPT} print nothing that")
    assert f"from /{SCRIPT}, makes it the default" in findings(tree)["boot.isolcpus"].reason


def test_a_script_that_only_adds_an_entry_is_no_matter(tree: Path) -> None:
    assert scripted(tree, HEREDOC, ENTRY) == ""


def test_what_somebody_wrote_behind_the_scripts_goes_with_update_grub(tree: Path) -> None:
    mark = "### BEGIN /etc/grub.d/41_custom ###\n### END /etc/grub.d/41_custom ###\n"
    update_grub(tree, f"{mark}{ENTRY}set default=mine\n")
    (fix,) = {str(one.fix) for one in findings(tree).values()}
    assert fix.startswith(
        "sudo update-grub; it writes the menu anew, without what somebody wrote into it at /boot/grub"
    )
    update_grub(tree)
    assert {one.outcome for one in findings(tree).values()} == {Outcome.COMPLIANT}
