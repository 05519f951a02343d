"""Configurations of GRUB by what they are about, with what boots."""

from tests.bootloader.grub_scripts import Files
from tests.bootloader.trees import grub_cfg

MENU = "menuentry 'first' --id one { linux /k1 quiet isolcpus=2-3; initrd /i; }\n"
OTHER = "menuentry 'other' --id two { linux /k2 quiet; initrd /i; }\n"
BLOCK = "# GRUB Environment Block\n"
HEADER = grub_cfg().partition("### BEGIN")[0]
CUSTOM = "if [ -f  ${config_directory}/custom.cfg ]; then\n  source ${config_directory}/custom.cfg\nfi\n"

# name -> (files beside grub.cfg and itself, the image that boots, or "" for none)
NAMED: dict[str, tuple[Files, str]] = {
    "an entry of custom.cfg that it makes the default": (
        {"grub.cfg": MENU + CUSTOM, "custom.cfg": OTHER + "set default=two\n"},
        "/k2",
    ),
    "an entry of custom.cfg that nothing chooses": ({"grub.cfg": MENU + CUSTOM, "custom.cfg": OTHER}, "/k1"),
    "custom.cfg that is not there": ({"grub.cfg": MENU + CUSTOM}, "/k1"),
    "a menu in the place of the menu": ({"grub.cfg": MENU + "configfile $prefix/x.cfg\n", "x.cfg": OTHER}, "/k2"),
    "configfile keeps its variables": (
        {"grub.cfg": MENU + OTHER + "configfile $prefix/x.cfg\n", "x.cfg": "set default=two\n"},
        "/k1",
    ),
    "an entry that reads a menu": (
        {"grub.cfg": "menuentry 'more' { configfile $prefix/x.cfg; }\n" + MENU, "x.cfg": OTHER + MENU},
        "/k2",
    ),
    "grub-reboot": (
        {
            "grub.cfg": "load_env\nset default=$next_entry\n" + MENU + OTHER,
            "grubenv": BLOCK + "next_entry=two\n" + "#" * 900,
        },
        "/k2",
    ),
    "a file that sources a file": (
        {"grub.cfg": MENU + ". $prefix/x.cfg\n", "x.cfg": "source $prefix/y.cfg\n", "y.cfg": OTHER + "default=1\n"},
        "/k2",
    ),
    "a name with >": ({"grub.cfg": "set default='a>>b>two'\nsubmenu 'a>b' {\n" + MENU + OTHER + "}\n"}, "/k2"),
    "a title that begins with a number": ({"grub.cfg": "set default='1st'\n" + MENU + OTHER}, "/k2"),
    "a number past the end": ({"grub.cfg": "set default=7\n" + MENU + OTHER}, "/k1"),
    "fallback": ({"grub.cfg": "set fallback=1\nmenuentry 'none' { true; }\n" + OTHER}, "/k2"),
    "a variable that a submenu does not get": (
        {"grub.cfg": "set w=two\nexport v\nset v=two\nsubmenu 's' {\n" + MENU + OTHER + 'set default="$w"\n}\n'},
        "/k1",
    ),
    "an exported variable": (
        {"grub.cfg": "set v=two\nexport v\nsubmenu 's' {\n" + MENU + OTHER + 'set default="$v"\n}\n'},
        "/k2",
    ),
    "a function with a parameter": (
        {"grub.cfg": 'function pick {\n  set default="$1"\n}\npick two\n' + MENU + OTHER},
        "/k2",
    ),
    "a loop": (
        {
            "grub.cfg": 'for n in one two three; do\n  if [ "$n" = two ]; then set default=$n; break; fi\ndone\n'
            + MENU
            + OTHER
        },
        "/k2",
    ),
    "while": (
        {"grub.cfg": 'set default=one\nwhile [ "$default" = one ]; do set default=two; done\n' + MENU + OTHER},
        "/k2",
    ),
    **{
        f"`{word}` where there is nothing to leave": ({"grub.cfg": f"{word}\nset default=two\n{MENU}{OTHER}"}, "/k2")
        for word in ("return", "break", "continue", "eval return", "return 1")
    },
    "`break` in an entry": (
        {"grub.cfg": "menuentry 'x' --id x {\n  break\n  linux /kx a\n}\n" + "set default=x\n" + MENU},
        "/kx",
    ),
    "`break` in a function leaves no loop of the caller": (
        {
            "grub.cfg": "function leave {\n  break\n}\n"
            + "for n in one two; do\n  leave\n  set default=$n\ndone\n"
            + MENU
            + OTHER
        },
        "/k2",
    ),
    "`break` of more loops than there are": (
        {"grub.cfg": "for n in one; do\n  break 5\ndone\nset default=two\n" + MENU + OTHER},
        "/k2",
    ),
    "`return` in a loop of a function": (
        {"grub.cfg": "function pick {\n  for n in two one; do set default=$n; return; done\n}\npick\n" + MENU + OTHER},
        "/k2",
    ),
    "no entry loads a kernel": ({"grub.cfg": "menuentry 'a' { true; }\n"}, ""),
    "what grub-mkconfig writes": (
        {"grub.cfg": HEADER.replace("load_video\n", "true\n")},
        "/boot/vmlinuz-6.1.0-39-amd64",
    ),
}
