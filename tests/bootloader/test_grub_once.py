"""GRUB boots an entry of ours once: what is written, what is refused, and GRUB itself on the result."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.bootloader import grub_emu
from tests.bootloader.onceparts import ID, MOUNTS, NAME, attended, block, enter, mounted, tried
from tests.bootloader.test_grub import grub_mkconfig
from tests.bootloader.test_nextboot import LiveTree
from tests.bootloader.trees import DEFAULTS, grub_cfg, grub_host, write
from tests.trees import differences, picture
from tests.tuned import restore
from tunectl.bootloader.cmdline import RULES
from tunectl.bootloader.family import Once
from tunectl.bootloader.grub import FAMILY, render_dropin
from tunectl.bootloader.grubsettings import DROPIN
from tunectl.bootloader.oneshot import refusals, tried_line
from tunectl.host.sysroot import Sysroot
from tunectl.tuning.commands import run_commands

CUSTOM = "boot/grub/custom.cfg"
OPERATORS = b"# mine, \xe4\nmenuentry 'Memtest' {\n\tlinux16 /memtest\n}"  # in latin-1, and without a last newline
GOES_ON = """\
### BEGIN /etc/grub.d/41_custom ###
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
### END /etc/grub.d/41_custom ###
"""


def the_once() -> Once:
    """The family's own."""
    assert FAMILY.once
    return FAMILY.once


once = the_once()
KERNEL_AND_INITRD = ("boot/vmlinuz-6.1.0-39-amd64", "boot/initrd.img-6.1.0-39-amd64")
END_OF_HEADER = "### END /etc/grub.d/00_header ###\n"
MINE = "### BEGIN /etc/grub.d/06_mine ###\ndefault=1\n### END /etc/grub.d/06_mine ###\n"


def menu(args: str = "console=ttyS0 quiet") -> str:
    """grub.cfg with the marks of grub-mkconfig, which goes on with custom.cfg."""
    head, entries, rest = grub_cfg(args=args).partition("set timeout_style=menu\n")
    made = f"### BEGIN /etc/grub.d/10_linux ###\n{entries}{rest}### END /etc/grub.d/10_linux ###\n"
    return f"### BEGIN /etc/grub.d/00_header ###\n{head}{END_OF_HEADER}{made}{GOES_ON}"


def a_host(below: Path, files: Mapping[str, str] | None = None) -> Sysroot:
    """A host on which nothing is refused, with these files in their places."""
    usual = {"boot/grub/grub.cfg": menu(), "boot/grub/grubenv": block(), MOUNTS: mounted()}
    usual |= dict.fromkeys(KERNEL_AND_INITRD, "not empty")
    return grub_host(below, {**usual, **(files or {})})


def test_the_default_entry_without_our_words(tmp_path: Path) -> None:
    line = "console=ttyS0 quiet"
    for given in (line, f"{line} isolcpus=2-3 nohz_full=2-3"):
        files = {"boot/grub/grub.cfg": menu(given), DROPIN: render_dropin(["isolcpus=2-3", "nohz_full=2-3"])}
        default = once.default(a_host(tmp_path, files), {})
        assert default
        assert default.line == f"root=UUID=5f3c ro {line}"
        assert default.loads == KERNEL_AND_INITRD


def test_the_entry_is_the_default_one_with_the_tried_line(tmp_path: Path) -> None:
    text = menu().replace("\tload_video\n", "\trecordfail\n\tsavedefault\n\tload_video\n", 1)
    root = a_host(tmp_path, {"boot/grub/grub.cfg": text})
    (custom,) = tried(root, FAMILY).writes
    assert (custom.kind, custom.path, custom.pristine) == ("edit", CUSTOM, None)
    assert custom.content.splitlines()[1:-1] == [
        f"menuentry 'tunectl tries {ID}' --id '{NAME}' {{",
        "\tload_video",
        "\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi",
        "\tsearch --no-floppy --fs-uuid --set=root 5f3c",
        "\techo\t'Loading Linux 6.1.0-39-amd64 ...'",
        "\tlinux\t/boot/vmlinuz-6.1.0-39-amd64 root=UUID=5f3c ro console=ttyS0 quiet isolcpus=2-3",
        "\tinitrd\t/boot/initrd.img-6.1.0-39-amd64",
        "}",
    ]


def test_a_title_with_braces(tmp_path: Path) -> None:
    root = a_host(tmp_path, {"boot/grub/grub.cfg": menu().replace("'Debian GNU/Linux'", "'Debian {12} GNU/Linux'", 1)})
    assert tried(root, FAMILY).writes[0].content.splitlines()[2] == "\tload_video"


def test_an_operators_custom_cfg_is_kept_to_the_byte(tmp_path: Path) -> None:
    root = a_host(tmp_path)
    place = tmp_path / CUSTOM
    place.write_bytes(OPERATORS)
    before = picture(tmp_path)
    enter(tmp_path, tried(root, FAMILY))
    assert place.read_bytes().startswith(OPERATORS + b"\n### BEGIN tunectl")
    assert restore(tmp_path).complete
    assert not differences(before, tmp_path)


def test_what_the_operator_adds_meanwhile_stays_and_our_entry_goes(tmp_path: Path) -> None:
    root = a_host(tmp_path, {CUSTOM: "# mine\n"})
    enter(tmp_path, tried(root, FAMILY))
    place = tmp_path / CUSTOM
    place.write_text(f"{place.read_text()}# and later\n")
    restore(tmp_path)
    assert place.read_text() == "# mine\n# and later\n"


def test_a_second_try_takes_the_place_of_the_first(tmp_path: Path) -> None:
    root = a_host(tmp_path, {CUSTOM: "# mine\n"})
    enter(tmp_path, tried(root, FAMILY))
    (custom,) = tried(root, FAMILY, "isolcpus=1").writes
    assert custom.content.count("menuentry") == 1
    assert custom.pristine == "# mine\n"


ARRAY = {"sys/dev/block/8:2/md/level": "raid1\n"}
HARD = {
    "no custom.cfg": {"boot/grub/grub.cfg": menu().replace(GOES_ON, "")},
    "no code for next_entry": {"boot/grub/grub.cfg": menu().replace('"${next_entry}"', '"${other}"')},
    "somebody's next_entry": {"boot/grub/grubenv": block(next_entry="osprober-efi-1")},
    "an earlier try of ours": {"boot/grub/grubenv": block(next_entry="A-tunectl-try-00000000")},
    "custom.cfg chooses": {CUSTOM: "set default=1\n"},
    "a script chooses": {"boot/grub/grub.cfg": menu() + "set default=1\n"},
    "a script before the entries chooses": {"boot/grub/grub.cfg": menu().replace(END_OF_HEADER, END_OF_HEADER + MINE)},
    "no environment block": {"boot/grub/grubenv": ""},
    "an environment block outside of the file": {"boot/grub/grubenv": block(env_block="512+1")},
    "the ESP has a menu of its own": {"boot/efi/EFI/debian/grub.cfg": "menuentry 'Own' {\nlinux /vmlinuz ro\n}\n"},
    "no grub.cfg that can be read as one": {"boot/grub/grub.cfg": menu() + "}\n"},
    "a recovery entry": {"boot/grub/grub.cfg": menu().replace('default="0"', 'default="1>1"')},
    "the default entry behind custom.cfg": {"boot/grub/grub.cfg": GOES_ON + menu().replace(GOES_ON, "")},
}
HELPED = {
    "superusers": {"boot/grub/grub.cfg": 'set superusers="root"\n' + menu()},
    "superusers in custom.cfg": {CUSTOM: 'set superusers="root"\n'},
    "LVM": {"sys/dev/block/8:2/dm/uuid": "LVM-abc\n"},
    "encryption": {"sys/dev/block/8:2/dm/uuid": "CRYPT-LUKS2-abc\n"},
    "RAID": ARRAY,
    "btrfs": {MOUNTS: mounted("btrfs")},
    "ZFS": {MOUNTS: mounted("zfs")},
    "read-only": {MOUNTS: mounted(options="ro")},
    "unknown mounts": {MOUNTS: ""},
    "a passphrase": {"etc/crypttab": "root UUID=1 none luks\n"},
    "a TPM": {"etc/crypttab": "# comment\n\nroot UUID=1 - tpm2-device=auto\n"},
    "a passphrase by the line": {"proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz cryptdevice=UUID=1:root ro\n"},
}
RIGHT = {
    "a key file": {"etc/crypttab": "swap /dev/sda3 /dev/urandom swap\nold UUID=1 none noauto\n"},
    "several paths to one disk": {"sys/dev/block/8:2/dm/uuid": "part2-mpath-3600\n"},
    "superusers, and an entry for everybody": {
        "boot/grub/grub.cfg": 'set superusers="root"\n' + menu().replace("--class os", "--class os --unrestricted", 1)
    },
    "a later mount over an earlier one": {MOUNTS: mounted("autofs") + mounted()},
    "/boot apart": {MOUNTS: mounted("btrfs") + "30 22 8:1 / /boot rw - ext4 /dev/sda1 rw\n"},
}


@pytest.mark.parametrize("name", HARD)
def test_what_no_operator_at_the_console_can_help(name: str, tmp_path: Path) -> None:
    assert False in attended(a_host(tmp_path, HARD[name]), FAMILY)


@pytest.mark.parametrize("name", HELPED)
def test_what_needs_somebody_at_the_console(name: str, tmp_path: Path) -> None:
    assert attended(a_host(tmp_path, HELPED[name]), FAMILY) == [True]


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_not_refused(name: str, tmp_path: Path) -> None:
    assert refusals(a_host(tmp_path, RIGHT[name]), FAMILY.once, "grub") == ()


def test_a_menu_that_was_not_made_since_is_refused_on_a_running_host(tmp_path: Path) -> None:
    root = a_host(tmp_path, {DROPIN: render_dropin(["isolcpus=2-3"])})
    for path in KERNEL_AND_INITRD:  # the sizes of a tree that only passes for a running host are not found
        Path(root.path(path)).unlink()
    assert attended(LiveTree(tmp_path), FAMILY) == [False]
    write(tmp_path, {"boot/grub/grub.cfg": menu("console=ttyS0 quiet isolcpus=2-3")})
    assert attended(LiveTree(tmp_path), FAMILY) == []


def test_an_entry_that_everybody_may_start_stays_so(tmp_path: Path) -> None:
    root = a_host(tmp_path, RIGHT["superusers, and an entry for everybody"])
    assert f"--id '{NAME}' --unrestricted {{" in tried(root, FAMILY).writes[0].content


def test_the_entry_is_chosen_by_its_file_and_unchosen_where_it_is_ours(tmp_path: Path) -> None:
    root = a_host(tmp_path, {"usr/bin/grub-editenv": ""})
    entry, edit = tried(root, FAMILY), "/usr/bin/grub-editenv /boot/grub/grubenv"
    assert run_commands(root, [entry.arm, entry.disarm]).not_run == []
    enter(tmp_path, entry)
    assert run_commands(root, [entry.arm]).not_run == [
        f"/usr/bin/grub-editenv /boot/grub/grubenv set next_entry={NAME}"
    ]
    write(tmp_path, {"boot/grub/grubenv": block(next_entry="somebody's")})
    assert run_commands(root, [entry.disarm]).not_run == []
    write(tmp_path, {"boot/grub/grubenv": block(next_entry=NAME)})
    assert once.armed(root) == NAME
    assert run_commands(root, [entry.disarm]).not_run == [f"{edit} unset next_entry"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
@pytest.mark.skipif(not shutil.which("grub-mkconfig"), reason="grub-common and grub2-common are not installed")
@pytest.mark.skipif(not grub_emu.PRESENT, reason="grub-emu is not installed")
@pytest.mark.parametrize("default", ["0", "saved", "1>2"])
def test_grub_itself_boots_the_entry_once(default: str, on_disk: Path) -> None:
    tree = on_disk / "host"
    quoted = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX dyndbg=\\"file a.c +p\\""\n'
    kernels = {f"boot/vmlinuz-{version}-amd64": "kernel" for version in ("6.1.0-39", "5.10.0-9")}
    settings = DEFAULTS.replace("DEFAULT=0", f"DEFAULT='{default}'") + "GRUB_TERMINAL=console\nGRUB_TIMEOUT=0\n"
    root = a_host(tree, {"etc/default/grub": settings, "etc/default/grub.d/20.cfg": quoted, **kernels})
    write(tree, {"boot/grub/grub.cfg": grub_mkconfig(root, on_disk)})
    before = grub_emu.run(tree / "boot/grub")
    assert before
    standing = once.default(root, {})
    assert standing
    wish = [("isolcpus", "2-3", RULES["isolcpus"])]
    line = tried_line(root, standing.line, wish, lambda key, one, other: one == other, ID)
    entry = once.entry(root, ID, line)
    enter(tree, entry)
    subprocess.run(["grub-script-check", str(tree / CUSTOM)], check=True)
    environment = str(tree / "boot/grub/grubenv")
    subprocess.run(["grub-editenv", environment, "set", f"next_entry={NAME}"], check=True)
    assert grub_emu.run(tree / "boot/grub") == [*before, "isolcpus=2-3", f"tunectl.try={ID}", "panic=30"]
    # GRUB clears it on a disk; grub-emu has none to write to.
    subprocess.run(["grub-editenv", environment, "unset", "next_entry"], check=True)
    assert grub_emu.run(tree / "boot/grub") == before
