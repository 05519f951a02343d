"""Configurations of GRUB by what they are about, with what boots."""

from tests.bootloader.grub_scripts import Files
from tests.bootloader.trees import grub_cfg

MENU = "menuentry 'first' --id one { linux /k1 quiet isolcpus=2-3; initrd /i; }\n"
OTHER = "menuentry 'other' --id two { linux /k2 quiet; initrd /i; }\n"
BLOCK = "# GRUB Environment Block\n"
HEADER = grub_cfg()
CUSTOM = "if [ -f  ${config_directory}/custom.cfg ]; then\n  source ${config_directory}/custom.cfg\nfi\n"

# name -> (files beside grub.cfg and itself, the image that boots; "" for none, and where that is not known before)
NAMED: dict[str, tuple[Files, str]] = {
    "an entry of custom.cfg that it makes the default": (
        {"grub.cfg": MENU + CUSTOM, "custom.cfg": OTHER + "set default=two\n"},
        "",
    ),
    "an entry of custom.cfg that nothing chooses": ({"grub.cfg": MENU + CUSTOM, "custom.cfg": OTHER}, "/k1"),
    "custom.cfg that is not there": ({"grub.cfg": MENU + CUSTOM}, "/k1"),
    "a menu in the place of the menu": ({"grub.cfg": MENU + "configfile $prefix/x.cfg\n", "x.cfg": OTHER}, ""),
    "grub-reboot": (
        {
            "grub.cfg": "load_env\nset default=$next_entry\n" + MENU + OTHER,
            "grubenv": BLOCK + "next_entry=two\n" + "#" * 900,
        },
        "/k2",
    ),
    "an entry of a file that a file reads": (
        {"grub.cfg": "set default=1\n. $prefix/x.cfg\n", "x.cfg": MENU + "source $prefix/y.cfg\n", "y.cfg": OTHER},
        "/k2",
    ),
    "a name with >": ({"grub.cfg": "set default='a>>b>two'\nsubmenu 'a>b' {\n" + MENU + OTHER + "}\n"}, "/k2"),
    "a title that begins with a number": ({"grub.cfg": "set default='1st'\n" + MENU + OTHER}, "/k2"),
    "a number past the end": ({"grub.cfg": "set default=7\n" + MENU + OTHER}, "/k1"),
    "fallback": ({"grub.cfg": "set fallback=1\nmenuentry 'none' { true; }\n" + OTHER}, ""),
    "a submenu that chooses": ({"grub.cfg": "submenu 's' {\n" + MENU + OTHER + "set default=two\n}\n"}, ""),
    "a loop": ({"grub.cfg": "for n in one two; do set default=$n; done\n" + MENU + OTHER}, ""),
    "a function": ({"grub.cfg": 'function pick {\n  set default="$1"\n}\npick two\n' + MENU + OTHER}, ""),
    "no entry loads a kernel": ({"grub.cfg": "menuentry 'a' { true; }\n"}, ""),
    "what grub-mkconfig writes": (
        {"grub.cfg": HEADER.replace("load_video\n", "true\n")},
        "/boot/vmlinuz-6.1.0-39-amd64",
    ),
}
