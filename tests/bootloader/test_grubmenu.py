"""grub.cfg: GRUB's words, the menu, and the default entry."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.bootloader.trees import grub_cfg, write
from tests.nobody import needs_root
from tests.starter import NOBODY
from tunectl.bootloader.grubcfg import parse_grubenv
from tunectl.bootloader.grubmenu import SECOND_KERNEL, BootEntry, NoEntry, evaluate
from tunectl.bootloader.grubscript import expand_all, kernel_text, split_words

SIMPLE = BootEntry("Debian GNU/Linux", "/boot/vmlinuz-6.1.0-39-amd64", "root=UUID=5f3c ro console=ttyS0 quiet", False)
OLD = "menuentry 'old' {\n linux /boot/vmlinuz-5.10.0-9-amd64 old\n}\n"
ADVANCED = "Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux"


def boots(text: str, grubenv: str | None = None) -> BootEntry | str:
    """What GRUB boots by this grub.cfg, without the places; or why that is no Linux kernel, or not known."""
    block = {} if grubenv is None else {"boot/grub/grubenv": grubenv}
    with tempfile.TemporaryDirectory() as tree:
        found = evaluate(write(Path(tree), {"boot/grub/grub.cfg": text, **block}), "boot/grub/grub.cfg").entry
    return found._replace(at="", decided=None, entry=None) if isinstance(found, BootEntry) else found.why


def words(text: str, **variables: str) -> list[str]:
    return expand_all((word for word in split_words(text) if not word.mark), variables)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b\tc", ["a", "b", "c"]),
        ("a'b c'd \"e f\"", ["ab cd", "e f"]),
        ("'it'\\''s'", ["it's"]),
        ('"a\\"b\\$c\\d"', ['a"b$c\\d']),
        ("a\\ b \\$x", ["a b", "$x"]),
        ("a # comment\nb#c", ["a", "b#c"]),
        ("a \\\n b", ["a", "b"]),
        ("''", [""]),
        ("$none a", ["a"]),
        ('"$none" a', ["", "a"]),
        ("x$two y", ["xone", "two", "y"]),
        ("x$spaced.y", ["xmid.y"]),
        ('"x$two"', ["xone two"]),
        ("${two}", ["one", "two"]),
        ("$12", []),
        ("$1b", ["b"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text, two="one two", spaced=" mid ") == expected


def test_marks() -> None:
    marks = [(word.mark, word.at) for word in split_words("a {b;c}\n") if word.mark]
    assert marks == [("{", 2), (";", 4), ("}", 6), ("\n", 7)]


@pytest.mark.parametrize("text", ["$", "a$ b", '"a$"', "'a", '"a', "a\\", "${a", "${a b}"])
def test_what_is_no_word_to_grub_is_marked(text: str) -> None:
    assert "bad" in [word.mark for word in split_words(text)]


def test_kernel_text_is_what_grub_hands_over() -> None:
    assert kernel_text(["a=1", "b=c d", 'e="f', "g\\h"]) == 'a=1 "b=c d" e=\\"f g\\\\h'


@pytest.mark.parametrize(
    "default",
    ["0", "Debian GNU/Linux", "gnulinux-simple-5f3c", "", "99", "no such entry"],  # GRUB falls back to the first entry
)
def test_default_is_the_first_entry(default: str) -> None:
    assert boots(grub_cfg(default)) == SIMPLE


@pytest.mark.parametrize(
    "default",
    [
        "1>2",
        f"{ADVANCED} 5.10.0-9-amd64",
        "gnulinux-advanced-5f3c>gnulinux-5.10.0-advanced-5f3c",
        "1>gnulinux-5.10.0-advanced-5f3c",
    ],
)
def test_default_in_a_submenu(default: str) -> None:
    expected = BootEntry(f"{ADVANCED} 5.10.0-9-amd64", "/boot/vmlinuz-5.10.0-9-amd64", "root=UUID=5f3c ro old", False)
    assert boots(grub_cfg(default)) == expected


def test_a_submenu_alone_boots_its_first_entry() -> None:
    entry = boots(grub_cfg("1"))
    assert entry == SIMPLE._replace(title=f"{ADVANCED} 6.1.0-39-amd64")


def test_a_recovery_entry_is_told() -> None:
    entry = boots(grub_cfg("1>1"))
    assert isinstance(entry, BootEntry)
    assert entry.recovery
    assert entry.args == "root=UUID=5f3c ro single console=ttyS0"


def test_an_entry_without_a_kernel() -> None:
    entry = boots(grub_cfg("2"))
    assert entry == "the default entry 'Windows Boot Manager (on /dev/sda1)' boots no Linux kernel"


GRUBENV = "# GRUB Environment Block\nsaved_entry=1>2\n"


NEW_KERNEL, OLD_KERNEL = "/boot/vmlinuz-6.1.0-39-amd64", "/boot/vmlinuz-5.10.0-9-amd64"


@pytest.mark.parametrize(
    ("grubenv", "image"),
    [
        ("", NEW_KERNEL),
        (GRUBENV, OLD_KERNEL),
        (GRUBENV + "next_entry=0\n####", NEW_KERNEL),
        (GRUBENV + "prev_saved_entry=0\n####", OLD_KERNEL),
        (GRUBENV + "next_entry=\n####", OLD_KERNEL),
        (GRUBENV.replace("1>2", "gnulinux-advanced-5f3c>gnulinux-5.10.0-advanced-5f3c"), OLD_KERNEL),
        # GRUB refuses a block without its first line, or with a carriage return behind it.
        ("saved_entry=1>2\n", NEW_KERNEL),
        (GRUBENV.replace("\n", "\r\n"), NEW_KERNEL),
    ],
)
def test_saved_default(grubenv: str, image: str) -> None:
    # `default` is set before prev_saved_entry is looked at: it counts for the boot after this one.
    entry = boots(grub_cfg("${saved_entry}"), grubenv)
    assert isinstance(entry, BootEntry)
    assert entry.image == image


def test_grubenv() -> None:
    assert parse_grubenv("# GRUB Environment Block\na=b=c\nd=\nno equals\n=x\n####\n") == {"a": "b=c", "d": ""}


@pytest.mark.parametrize(
    "there",
    [
        ("boot/vmlinuz-6.1.0-39-amd64",),
        (),  # a recorded host has no kernels
        ("vmlinuz.old", "boot/config-5.10.0-9-amd64"),  # nor has this one's /boot
    ],
)
def test_a_kernel_is_taken_as_there_where_no_other_lies_beside_it(there: tuple[str, ...], tmp_path: Path) -> None:
    own = {"proc/cmdline": "root=UUID=5f3c"}
    files = {**own, "boot/grub/grub.cfg": grub_cfg() + OLD, **dict.fromkeys(there, "")}
    found = evaluate(write(tmp_path, files), "boot/grub/grub.cfg").entry
    assert isinstance(found, BootEntry)
    assert found.image == NEW_KERNEL


@pytest.mark.parametrize(("more", "known"), [("", True), ('set fallback="3"\n', False)])
def test_a_kernel_that_is_not_there_does_not_boot(more: str, known: bool, tmp_path: Path) -> None:
    """GRUB_FALLBACK has GRUB go on with another entry then."""
    own = {"proc/cmdline": "root=UUID=5f3c", "boot/vmlinuz-5.10.0-9-amd64": ""}
    menu = {"boot/grub/grub.cfg": grub_cfg().replace("set timeout_style", f"{more}set timeout_style")}
    found = evaluate(write(tmp_path, {**own, **menu}), "boot/grub/grub.cfg").entry
    assert isinstance(found, NoEntry)
    assert found.known is known


def test_a_kernel_of_another_device_is_taken_as_there(tmp_path: Path) -> None:
    text = "search --fs-uuid --set=root 1234\nmenuentry 'x' {\n linux /boot/vmlinuz-x a\n}\n"
    files = {"boot/grub/grub.cfg": text, "boot/vmlinuz-6.1.0-39-amd64": ""}
    assert isinstance(evaluate(write(tmp_path, files), "boot/grub/grub.cfg").entry, BootEntry)


def test_variables_in_a_kernel_line() -> None:
    text = 'set tuned_params="isolcpus=4-7 skew_tick=1"\n'
    text += "menuentry x {\n linux /k root=/dev/sda1 $vt_handoff $tuned_params\n}\n"
    assert boots(text) == BootEntry("x", "/k", "root=/dev/sda1 isolcpus=4-7 skew_tick=1", False)


def test_quotes_in_a_kernel_line() -> None:
    text = "menuentry 'x' {\n linux /k dyndbg=\"file a.c +p\" b='c d'\n}\n"
    entry = boots(text)
    assert isinstance(entry, BootEntry)
    assert entry.args == '"dyndbg=file a.c +p" "b=c d"'


UBUNTU = """\
menuentry 'Ubuntu' {
  gfxmode $linux_gfx_mode
  if [ "${initrdfail}" = 1 ]; then
    linux /k root=/dev/vda1 ro
    initrd /i
  else
    linux /k root=PARTUUID=1 ro $vt_handoff panic=-1
  fi
  initrdfail
}
"""


@pytest.mark.parametrize(("failed", "root"), [("", "PARTUUID=1 ro panic=-1"), ("1", "/dev/vda1 ro")])
def test_ubuntus_boot_without_an_initrd_is_tried_first(failed: str, root: str) -> None:
    """As cloud images have it: GRUB_FORCE_PARTUUID in /etc/default/grub.d/40-force-partuuid.cfg."""
    block = f"# GRUB Environment Block\ninitrdfail={failed}\n"
    handoff = "function gfxmode {\n  if [ $1 = keep ]; then set vt_handoff=vt.handoff=7; fi\n}\n"
    entry = boots(f"load_env\n{handoff}{UBUNTU}", block)
    assert isinstance(entry, BootEntry)
    assert entry.args == f"root={root}"


SNAPSHOT = 'if [ -n "$extra_cmdline" ]; then\n  submenu "Bootable snapshot #$snapshot_num" { true; }\nfi\n'
COUNTED = """\
if [ -n "${boot_counter}" -a "${boot_success}" = "0" ]; then
  if [ "${boot_counter}" = "0" ]; then
    set default=1
  fi
fi
"""


@pytest.mark.parametrize("section", [SNAPSHOT, COUNTED, "insmod part_gpt\nset root='hd0,gpt2'\n"])
def test_what_other_distributions_scripts_print(section: str) -> None:
    """SUSE's way into a snapshot, and Fedora's count of failed boots: neither says anything on a usual boot."""
    assert boots(f"load_env\nset default=0\n{section}{OLD}", GRUBENV) == BootEntry(
        "old", "/boot/vmlinuz-5.10.0-9-amd64", "old", False
    )


def test_a_boot_that_is_counted_is_not_known() -> None:
    why = boots(f"load_env\nset default=0\n{COUNTED}{OLD}", GRUBENV + "boot_counter=2\n")
    assert why == "which entry is the default depends on /boot/grub/grub.cfg:5"


@pytest.mark.parametrize(
    "text",
    [
        "set default=1\nset default=0\n",
        "if keystatus --shift; then set default=1; fi\n",
        "function f { set default=1; }\n",
        "if [ $grub_platform = efi ]; then menuentry 'a' { linux /k; }; fi\n",
        "for n in 1 0; do set default=$n; done\n",
        "search --set=default --label x\n",
        "set d=default\nset $d=1\n",
    ],
)
def test_a_default_that_depends_on_something_is_not_known(text: str) -> None:
    assert not isinstance(boots(text + OLD), BootEntry)


@pytest.mark.parametrize(("block", "args"), [("", "ro"), ("kernelopts=ro quiet\n", "ro quiet")])
def test_a_variable_that_the_environment_block_may_have(block: str, args: str) -> None:
    text = 'load_env\nif [ -z "${kernelopts}" ]; then\n  set kernelopts="ro "\nfi\n'
    text += "menuentry x { linux /k $kernelopts; }\n"
    assert boots(text, f"# GRUB Environment Block\n{block}") == BootEntry("x", "/k", args, False)


@pytest.mark.parametrize("name", ["root", "prefix", "chosen", "grub_cpu", "1"])
def test_a_variable_of_grubs_own_is_not_known(name: str) -> None:
    assert not isinstance(boots(f"submenu s {{ menuentry x {{ linux /k a=${name}; }}; }}\n"), BootEntry)


def test_variables_of_a_submenu_are_those_that_are_exported() -> None:
    text = "set a=x\nset b=y\nexport b\nsubmenu s { menuentry x { linux /k a=$a b=$b; }; }\n"
    assert boots(text) == BootEntry("s>x", "/k", "a= b=y", False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "there is no menu entry"),
        ("submenu x { true; }", "the submenu 'x' is empty"),
        ("submenu x { }", "a syntax error at /boot/grub/grub.cfg:1"),
        ("menuentry x {", "a syntax error at /boot/grub/grub.cfg:1"),
        ("menuentry x { linux }", "the default entry 'x' boots no Linux kernel"),
        ("}}}} fi fi else\nmenuentry x { linux }", "a syntax error at /boot/grub/grub.cfg:1"),
        ("true\nmenuentry { true; }", "there is no menu entry"),
    ],
)
def test_broken_files(text: str, reason: str) -> None:
    assert boots(text) == reason


def test_hostile_growth_is_bounded() -> None:
    doubling = "set a=xxxxxxxx\n" + "set a=$a$a\n" * 64 + "menuentry x { linux " + "$a " * 20000 + "}\n"
    assert "depends on a variable (/boot/grub/grub.cfg:66)" in str(boots(doubling))


def test_a_file_of_megabytes_is_not_followed() -> None:
    text = "menuentry 'Debian GNU/Linux' {\n\tlinux /boot/vmlinuz-6.1.0-39-amd64 quiet\n}\n#"
    most = 1 << 20
    assert isinstance(boots(text.ljust(most, "x")), BootEntry)
    assert boots(text.ljust(most + 1, "x")) == "/boot/grub/grub.cfg cannot be read (is larger than 1 MiB)"


@needs_root
def test_a_script_that_a_user_may_write_is_not_followed(tmp_path: Path) -> None:
    """GRUB runs it all the same, so nobody knows what boots."""
    root = write(tmp_path, {"boot/grub/grub.cfg": "source /srv/menu.cfg\n", "srv/menu.cfg": OLD})
    assert isinstance(evaluate(root, "boot/grub/grub.cfg").entry, BootEntry)
    os.chown(tmp_path / "srv/menu.cfg", NOBODY, -1)
    why = str(evaluate(root, "boot/grub/grub.cfg").entry)
    assert f"/srv/menu.cfg cannot be read (not followed, because /srv/menu.cfg belongs to UID {NOBODY}" in why
    (tmp_path / "srv/menu.cfg").unlink()
    (tmp_path / "srv/menu.cfg").symlink_to("/proc/kmsg")
    assert "cannot be read (not followed, because it is in /proc)" in str(evaluate(root, "boot/grub/grub.cfg").entry)


def test_a_second_kernel_of_an_entry_may_lose_its_arguments() -> None:
    """GRUB for BIOS loses them; tests/lab/test_grub_lab.py asks it."""
    entry = "menuentry 'a' {{\n  linux /k1 quiet\n  {}\n  initrd /i\n}}\n"
    assert SECOND_KERNEL in str(boots(entry.format("linux /k2 isolcpus=2-3")))
    assert "/boot/grub/grub.cfg:1" in str(boots("linux /k0\n" + entry.format("true")))
    assert "/boot/grub/grub.cfg:3" in str(boots(entry.format("if [ x = x ]; then linuxefi /k2 isolcpus=2-3; fi")))
