"""Made-up menus as grub-mkconfig writes them, with what distributions and people add: the seed decides."""

import random

from tests.bootloader.trees import grub_cfg

Files = dict[str, str]  # names beside grub.cfg

_CUSTOM = """\
### BEGIN /etc/grub.d/41_custom ###
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
### END /etc/grub.d/41_custom ###
"""
_NAMES = (
    "0", "1", "2", "3", "1>0", "1>1", "1>2", "1>9", "99", "01", "0x1", "08", "2x", "", "no such entry", "more", "x-y",
    "gnulinux-simple-5f3c", "gnulinux-advanced-5f3c>gnulinux-5.10.0-advanced-5f3c", "Debian GNU/Linux", "E>>F", "id3",
)  # fmt: skip
# Lines of a section of somebody's own; some of them decide, some look as if they did.
_ADDED = (
    "set t='a b'\n",
    "set t=c\nexport t\n",
    'if [ -n "$next_entry" ]; then set t=d; fi\n',
    "insmod part_gpt\n",
    "function pick { set default=1; }\n",
    "if [ -n \"$extra_cmdline\" ]; then\n  submenu 'snapshot' { true; }\nfi\n",
    "if [ \"$grub_platform\" = x ]; then\n  menuentry 'more' { linux /k9; }\nfi\n",
    "set default=1\n",
    "if [ -s $prefix/grubenv ]; then set default=2; fi\n",
    "if [ -s $prefix/none ]; then true; else set default=2; fi\n",
    "if false; then true; elif true; then linux /kx own; boot; fi\n",
    "if [ a ]; then true; else menuentry '1st' { linux /k8; }; fi\n",
    "source $prefix/site.cfg\n",
    "source $prefix/missing.cfg\n",
    "unset t\n",
)


class Maker:
    """One configuration."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._kernels = 0

    def files(self) -> Files:
        """grub.cfg, grubenv perhaps, and what grub.cfg reads."""
        default = self._one((*_NAMES, *(("${saved_entry}",) * 9))).replace('"', "")
        menu = grub_cfg(default, "quiet " + self._one(("", "$t", '"$t"', "a=$t"))).replace("\tload_video\n", "")
        own, early = (
            f"### BEGIN /etc/grub.d/{name} ###\n{self._one(('', self._part()))}### END /etc/grub.d/{name} ###\n"
            for name in ("42_own", "01_own")
        )
        files = {
            "grub.cfg": menu.replace("### BEGIN /etc/grub.d/10", f"{early}### BEGIN /etc/grub.d/10") + _CUSTOM + own
        }
        for name in ("custom.cfg", "site.cfg"):
            if self._random.random() < 0.4:
                files[name] = self._part()
        if self._random.random() < 0.8:
            names = ("saved_entry", "next_entry", "prev_saved_entry", "t")
            lines = [f"{name}={self._one(_NAMES)}" for name in names if self._random.random() < 0.5]
            block = "\n".join(["# GRUB Environment Block", *lines, ""])
            files["grubenv"] = block + "#" * (1024 - len(block))
        return files

    def _one(self, choices: tuple[str, ...]) -> str:
        return self._random.choice(choices)

    def _part(self) -> str:
        made = [self._entry() if self._random.random() < 0.4 else self._one(_ADDED) for _ in range(3)]
        return "".join(made[: self._random.randint(0, 3)])

    def _entry(self) -> str:
        self._kernels += 1
        title = self._one(("'more'", "'E>F'", "1st", '"x-y"', "'more' --id id3"))
        line = f"linux /k{self._kernels} " + self._one(("quiet", "$t x", '"$t" $1', "a;"))
        block = self._one((line, line, f"set t=own\n  {line}", f"if true; then {line}; fi", "true"))
        entry = f"menuentry {title} --class x {{\n  {block}\n}}\n"
        return f"submenu 'sub' {{\n{entry}}}\n" if self._random.random() < 0.2 else entry


def made(seed: int) -> Files:
    """The files of one configuration."""
    return Maker(seed).files()
