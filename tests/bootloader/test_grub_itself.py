"""What we say that GRUB boots next, against GRUB: grub-emu runs the same configuration."""

import tempfile
from pathlib import Path

import pytest

from tests.bootloader import grub_emu
from tests.bootloader.grub_named import MENU, NAMED
from tests.bootloader.grub_scripts import Files, made
from tests.bootloader.trees import write
from tunectl.bootloader.grubmenu import BootEntry, NoEntry, evaluate
from tunectl.bootloader.grubscript import kernel_text
from tunectl.host.sysroot import Sysroot

pytestmark = pytest.mark.skipif(not grub_emu.PRESENT, reason="grub-emu is not installed")


def agree(files: Files, directory: Path) -> BootEntry | NoEntry:
    """What we foretell, after GRUB was asked the same: it may not say otherwise."""
    write(directory, {f"boot/grub/{name}": text for name, text in files.items()})
    ours = evaluate(Sysroot(str(directory)), "boot/grub/grub.cfg").entry
    theirs = grub_emu.run(directory / "boot/grub")
    if isinstance(ours, BootEntry):
        assert theirs is not None
        assert (ours.image, ours.args) == (theirs[0], kernel_text(theirs[1:]))
    elif ours.known:
        assert theirs is None
    return ours


@pytest.mark.parametrize("name", NAMED)
def test_a_named_configuration(name: str, on_disk: Path) -> None:
    files, image = NAMED[name]
    found = agree(files, on_disk)
    assert (found.image if isinstance(found, BootEntry) else "") == image


def test_a_script_that_grub_refuses_is_not_known(on_disk: Path) -> None:
    found = agree({"grub.cfg": "set a=1>2\n" + MENU}, on_disk)
    assert isinstance(found, NoEntry)
    assert (found.known, found.why) == (False, "a syntax error at /boot/grub/grub.cfg:1")


def _try_all(seeds: range) -> None:
    known = 0
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            files = made(seed)
            try:
                found = agree(files, Path(place))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {files}") from error
            known += isinstance(found, BootEntry) or found.known
    assert known > len(seeds) // 3, "what grub-mkconfig writes is known"


def test_made_up_configurations() -> None:
    _try_all(range(5))


@pytest.mark.slow
def test_more_made_up_configurations() -> None:
    _try_all(range(5, 80))


@pytest.mark.long
def test_a_thousand_made_up_configurations() -> None:
    _try_all(range(80, 1080))
