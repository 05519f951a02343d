"""Made-up GRUB configurations, several files each: the seed decides."""

import random
from collections.abc import Callable

Files = dict[str, str]  # names beside grub.cfg

_NAMES = ("a", "b", "c")
_VALUES = ("", "x", "y z", "1", "0", "it", "2>1", "A", "x-y", " p ")
_TITLES = ("A", "B", "C d", "E>F", "1G", "H")


class Maker:
    """One configuration."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._files: Files = {}
        self._kernels = 0
        self._functions: list[str] = []

    def files(self) -> Files:
        """grub.cfg, grubenv perhaps, and what grub.cfg reads."""
        if self._random.random() < 0.7:
            names = ("saved_entry", "next_entry", "prev_saved_entry", *_NAMES)
            lines = [f"{name}={self._default()}" for name in names if self._random.random() < 0.4]
            block = "\n".join(["# GRUB Environment Block", *lines, ""])
            self._files["grubenv"] = block + "#" * (1024 - len(block))
        text = self._header() + self._body(3, 8) + self._entry(2) + self._body(2, 3)
        return {**self._files, "grub.cfg": text}

    def _one(self, choices: tuple[str, ...]) -> str:
        return self._random.choice(choices)

    def _default(self) -> str:
        first = self._one((*_TITLES, "0", "1", "2", "3", "99", "0x1", "01", "08", "2x", "-1", "id1", "id2", "id3", ""))
        first = first.replace(">", ">>")
        return first + (">" + self._one(("0", "1", "A", "B", "id2", "9")) if self._random.random() < 0.3 else "")

    def _header(self) -> str:
        return self._one(
            (
                "",
                "load_env\n",
                "if [ -s $prefix/grubenv ]; then\n  set have_grubenv=true\n  load_env\nfi\n"
                'if [ "${next_entry}" ] ; then\n   set default="${next_entry}"\n   set next_entry=\n'
                '   save_env next_entry\n   set boot_once=true\nelse\n   set default="${saved_entry}"\nfi\n',
                f'set default="{self._default()}"\n',
                "load_env -f $prefix/grubenv saved_entry\nset default=$saved_entry\n",
            )
        )

    def _word(self) -> str:
        name, value = self._one(_NAMES), self._one(_VALUES)
        return self._one(
            (
                f"${name}",
                f'"${name}"',
                f"${{{name}}}",
                f"'{value}'",
                f'"{value}-${name}"',
                f"k{name}=${name}",
                "w\\ w",
                '""',
            )
        )

    def _test(self) -> str:
        one, other = f'"${self._one(_NAMES)}"', f"'{self._one(_VALUES)}'"
        return self._one(
            (
                f"[ {one} = {other} ]",
                f"[ x{one} != x{other} ]",
                f"[ -n {one} ]",
                f"[ -z {one} -o {one} == {other} ]",
                f"[ {one} -a {other} ]",
                f"test ${self._one(_NAMES)}",
                f"[ 1{one} -lt 12 ]",
                f"[ ! ( {one} '<' {other} ) ]",
                f"[ -f $prefix/{self._one(('f0.cfg', 'grubenv', 'none'))} ]",
                "[ -d $prefix ]",
                "true",
                "false",
                f"! [ {one} ]",
                "[ $# -ge 1 ]",
            )
        )

    def _body(self, depth: int, most: int) -> str:
        makers: tuple[Callable[[int], str], ...] = (
            *((self._set,) * 4),
            *((self._if,) * 3),
            *((self._entry,) * 3),
            self._for,
            self._call,
            self._source,
            self._default_set,
            self._unset,
        )
        return "".join(self._random.choice(makers)(depth) for _ in range(self._random.randint(1, most)))

    def _set(self, depth: int) -> str:
        return self._one(("set ", "")) + f"{self._one(_NAMES)}={self._word()}\n"

    def _unset(self, depth: int) -> str:
        return f"{self._one(('unset', 'export', 'export'))} {self._one((*_NAMES, 'default'))}\n"

    def _default_set(self, depth: int) -> str:
        return f'set default="{self._default()}"\n'

    def _if(self, depth: int) -> str:
        if not depth:
            return self._set(depth)
        text = f"if {self._test()}; then\n{self._body(depth - 1, 2)}"
        if self._random.random() < 0.4:
            text += f"elif {self._test()} ; then\n{self._body(depth - 1, 2)}"
        if self._random.random() < 0.5:
            text += f"else\n{self._body(depth - 1, 2)}"
        return text + "fi\n"

    def _for(self, depth: int) -> str:
        if not depth:
            return self._set(depth)
        leave = (
            f"if {self._test()}; then {self._one(('break', 'continue'))}; fi\n" if self._random.random() < 0.5 else ""
        )
        return (
            f"for {self._one(_NAMES)} in {self._word()} m {self._word()}; do\n{leave}{self._body(depth - 1, 2)}done\n"
        )

    def _call(self, depth: int) -> str:
        if not self._functions:
            return self._set(depth)
        return f"{self._random.choice(self._functions)} {self._word()} {self._word()}\n"

    def _source(self, depth: int) -> str:
        if not depth or len(self._files) > 3:
            return self._set(depth)
        name = f"f{len(self._files)}.cfg"
        self._files[name] = ""  # its place is taken
        self._files[name] = self._body(depth - 1, 3)
        command = self._one(("source", "source", ".", "configfile"))
        path = self._one(("${prefix}", "$config_directory")) + f"/{self._one((name, name, name, 'missing'))}"
        return (
            f"if [ -f {path} ]; then\n  {command} {path}\nfi\n"
            if self._random.random() < 0.6
            else f"{command} {path}\n"
        )

    def _function(self) -> str:
        name = f"fun{len(self._functions)}"
        self._functions.append(name)
        inner = f'{self._one(_NAMES)}="$1"\nif {self._test()}; then return {self._one(("0", "1"))}; fi\n'
        return f"function {name} {{\n{inner}set {self._one(_NAMES)}=$2\n}}\n"

    def _entry(self, depth: int) -> str:
        title = f"'{self._one(_TITLES)}'"
        option = self._one(("", "--class x ", f"--id id{self._random.randint(1, 3)} ", "--unrestricted "))
        if depth and self._random.random() < 0.3:
            return f"submenu {option}{title} {{\n{self._body(depth - 1, 3)}{self._entry(0)}}}\n"
        if self._random.random() < 0.08:
            return f"menuentry {option}{title} {{\n  echo none\n}}\n"
        self._kernels += 1
        inner = f"if {self._test()}; then linux /other {self._word()}; fi\n" if self._random.random() < 0.3 else ""
        before = self._set(0) if self._random.random() < 0.4 else ""
        line = f"  linux /k{self._kernels} {self._word()} {self._word()} $1\n"
        return f"menuentry {title} {option}{{\n{before}{line}{inner}  initrd /i\n}}\n"


def made(seed: int) -> Files:
    """The files of one configuration; functions are only allowed at the top of grub.cfg."""
    maker = Maker(seed)
    head = "".join(maker._function() for _ in range(seed % 3))
    files = maker.files()
    return {**files, "grub.cfg": head + files["grub.cfg"]}
