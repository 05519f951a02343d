"""Which settings the scripts of /etc/grub.d hand on to the entries that they make of Linux kernels.

grub-mkconfig runs each that may be executed; 10_linux and what is copied from it make the entries. A script that does
not hand a variable on makes entries without what stands there, with the next kernel at the latest.
Source: grub-mkconfig, 10_linux (of 2.02 to 2.12).
"""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from tunectl.command import Command, argv
from tunectl.fix import Fix, to_decide, to_type
from tunectl.host.inifiles import Line, continued_lines
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

T = TypeVar("T")
_DIRECTORY = "etc/grub.d"
_MAIN = f"{_DIRECTORY}/10_linux"
FILES = (f"{_DIRECTORY}/[0-9][0-9]_linux*",)
# Not Xen's, nor the copies that grub-mkconfig passes over.
_SCRIPT = re.compile(r"[0-9]{2}_linux(?!_xen)\w*")
_CALL = re.compile(r"\w*linux_entry\s+(?!\()")
_QUOTED = re.compile(r'"([^"]*)"')
_VARIABLE = re.compile(r"\$\{?(\w+)")
_GIVEN = re.compile(r'^\s*args="?\$\{?4\b', re.MULTILINE)
_KERNEL_LINE = re.compile(r"linux\S*\s.*\broot=")
# What 10_linux itself has beside the two variables in the last word of the call that makes an entry.
_KNOWN = frozenset({"GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT", "GRUB_CMDLINE_LINUX_EXTRA", "init_path"})


class Withheld(NamedTuple):
    """A variable that entries do not get: who withholds it, as half a sentence, and how that ends."""

    why: str
    remedy: Fix


def withheld(root: Sysroot, variable: str, making_menu: Command) -> Withheld | None:
    """Why the entries that these scripts make do not get what stands in `variable`; None where they do.

    `making_menu`: the command that runs them. OSError for a script that may not be read.
    """
    names = sorted(filter(_SCRIPT.fullmatch, _known(root.names, _DIRECTORY) or ()))
    paths = [f"{_DIRECTORY}/{name}" for name in names]
    modes = {path: _known(root.checked_mode, path) or 0 for path in paths}
    run = [path for path in paths if modes[path] & 0o111]
    for path in run:
        if found := _of_script(f"/{path}", _known(root.read_text, path) or "", variable, making_menu):
            return found
    if not run and _MAIN in paths:
        why = f"/{_MAIN} may not be executed, so that it makes no entries"
        return Withheld(why, to_type(argv("sudo", "chmod", "+x", f"/{_MAIN}").then(making_menu)))
    return None


def _known(read: Callable[[str], T | None], path: str) -> T | None:
    """What a call says of a path; None where there is none. OSError, with the path as the host knows it, otherwise."""
    try:
        return read(path)
    except OSError as error:
        if error.errno in ABSENT_ERRNOS:
            return None
        raise OSError(error.errno, error.strerror, f"/{path}") from error


def _of_script(path: str, text: str, variable: str, making_menu: Command) -> Withheld | None:
    joined = ((line, line.text.strip()) for line in continued_lines(text, comments="#"))
    lines = [line._replace(text=bare) for line, bare in joined if bare]
    calls = [line for line in lines if _CALL.match(line.text)]
    if not calls:  # it makes its entries in another way, of its own
        return None
    shown = f"${{{variable}}}"
    if line := next((line for line in lines if _drops(line.text, variable)), None):
        why = f"{path}:{line.first} gives {variable} another value"
        return Withheld(why, to_type(argv("sudo", "sed", "-i", f"{line.first}s/^/: #/", of=[path]).then(making_menu)))
    without = [line for line in calls if _is_without(line.text, variable)]
    if without:
        why = f"{path}:{without[0].last} makes entries without {shown}"
        return Withheld(why, _handing_on_remedy(path, text, without, shown, making_menu))
    given = _GIVEN.search(text)
    if line := next((line for line in lines if given and _ignores_arguments(line.text)), None):
        why = f"{path}:{line.last} makes entries without the arguments that it is given"
        return Withheld(why, to_decide(f"have {path}:{line.last} hand ${{args}} on again, then {making_menu}"))
    if not any(variable in line.text for line in lines):
        return Withheld(f"{path} makes entries without {shown}", _handing_on_remedy(path, text, [], shown, making_menu))
    return None


def _handing_on_remedy(path: str, text: str, without: list[Line], shown: str, making_menu: Command) -> Fix:
    texts = text.split("\n")
    if without and all(texts[line.last - 1].endswith('"') for line in without):
        script = ";".join(f'{line.last}s/"$/ {shown}"/' for line in without)
        return to_type(argv("sudo", "sed", "-i", script, of=[path]).then(making_menu))
    return to_decide(f"have {path} give {shown} to the entries that it makes again, then {making_menu}")


def _drops(command: str, variable: str) -> bool:
    """Is it an assignment that does not keep what the variable has?"""
    if re.match(rf"unset\s+(?:-v\s+)?(?:\w+\s+)*{variable}\b", command):
        return True
    name, equals, value = command.removeprefix("export ").partition("=")
    return bool(equals) and name == variable and variable not in _VARIABLE.findall(value)


def _is_without(call: str, variable: str) -> bool:
    """Does a call that makes an entry do without the variable? Recovery entries never get all of them."""
    words = _QUOTED.findall(call)
    names = _VARIABLE.findall(words[-1]) if words else []
    return bool(words) and "recovery" not in call.lower() and variable not in names and set(names) <= _KNOWN


def _ignores_arguments(command: str) -> bool:
    """Is it a line of the entry that 10_linux writes, or an assignment, that leaves out what the call gave as args?"""
    if _KERNEL_LINE.match(command):
        return "args" not in _VARIABLE.findall(command)
    name, equals, value = command.partition("=")
    return name == "args" and bool(equals) and not _GIVEN.match(command) and "args" not in _VARIABLE.findall(value)
