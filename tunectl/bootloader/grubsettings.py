"""GRUB's settings as grub-mkconfig sees them: /etc/default/grub, then /etc/default/grub.d/*.cfg, later over earlier.

They are evaluated without a shell. Where they are more than assignments, and to read back what was written, a real `sh`
is asked, on a live host only: update-grub, which tunectl runs as well, sources the very same files. The files of a
recorded host are never run.
Source: grub-mkconfig of Debian's grub-common (the directory of drop-ins is Debian's addition); 10_linux for the order.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tunectl import kinds
from tunectl.bootloader import grubmakers
from tunectl.bootloader.cmdline import Arg, parse_cmdline
from tunectl.bootloader.family import Point
from tunectl.bootloader.grubmakers import Withheld, withheld
from tunectl.bootloader.grubmenu import Menu, evaluate
from tunectl.bootloader.grubscript import MAX_EXPANDED, Word, expand, kernel_text, split_words
from tunectl.command import Command, as_data
from tunectl.errors import TunectlError, words_of
from tunectl.host import shellvars
from tunectl.host.shellvars import SH, Piece, Value, Variables
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

MAIN = "etc/default/grub"
DIRECTORY = "etc/default/grub.d"
DROPIN = f"{DIRECTORY}/99-tunectl.cfg"  # ours
GRUB_CFG = "boot/grub/grub.cfg"
GRUB2_CFG = "boot/grub2/grub.cfg"  # SUSE's and Red Hat's name for it
GRUBENVS = ("boot/grub/grubenv", "boot/grub2/grubenv")
DEFAULT_GRUBENV = dict(zip((GRUB_CFG, GRUB2_CFG), GRUBENVS, strict=True))
# As shell patterns. What grub.cfg reads stands beside it; but user.cfg holds a password.
FILES = (MAIN, f"{DIRECTORY}/*.cfg", "boot/grub/[!u]*.cfg", "boot/grub2/[!u]*.cfg", *GRUBENVS, *grubmakers.FILES)
LINUX = "GRUB_CMDLINE_LINUX"
DEFAULT = "GRUB_CMDLINE_LINUX_DEFAULT"

# grub-mkconfig sets these itself before it reads the files, so their values are not in the files.
_MKCONFIGS_OWN = re.compile(r"GRUB_(DEVICE(_BOOT)?(_(PART)?UUID)?|FS|DISABLE_OS_PROBER|EARLY_INITRD_LINUX_STOCK)")
_TIMEOUT_S = 20
# `set -e` as grub-mkconfig has it; what a file prints must not be taken for a value.
_SCRIPT = (
    'set -e; for file do . "$file" >&2; done; '
    'printf "%s\\0%s\\0." "${GRUB_CMDLINE_LINUX}" "${GRUB_CMDLINE_LINUX_DEFAULT}"'
)


class Placed(NamedTuple):
    """An argument, and where it is written: `/etc/default/grub:6`."""

    arg: Arg
    where: str


class Configured(NamedTuple):
    """What the files give to every normal entry. With a `problem`, the two variables are not to be relied on."""

    linux: str = ""
    linux_default: str = ""
    files: tuple[str, ...] = ()
    problem: str | None = None
    placed: tuple[Placed, ...] = ()
    default_set_at: str = ""  # where GRUB_CMDLINE_LINUX_DEFAULT was assigned last
    errno: int | None = None  # of a file that could not be read
    cut_at: str = ""  # where a ';' or a brace ends GRUB's linux command
    withheld: Withheld | None = None  # why no entry gets GRUB_CMDLINE_LINUX_DEFAULT, which then counts as empty

    @property
    def args(self) -> tuple[Arg, ...]:
        """The arguments as the kernel will split them, GRUB's own reading of the line included."""
        return tuple(placed.arg for placed in self.placed)

    @property
    def line(self) -> str:
        """`GRUB_CMDLINE_LINUX GRUB_CMDLINE_LINUX_DEFAULT`, in 10_linux's order."""
        return f"{self.linux} {self.linux_default}".strip()

    @property
    def point(self) -> Point:
        """The line that entries made from the files will have."""
        words = (f'"{arg}"' if any(map(str.isspace, str(arg))) else str(arg) for arg in self.args)
        line = None if self.problem else " ".join(words)
        return Point(", ".join(self.files) or "/etc/default/grub", line, self.problem or "", self.errno)

    def lacking(self, line: str) -> list[Arg]:
        """The arguments that a line has not."""
        return list(Counter(self.args) - Counter(parse_cmdline(line)))


def configured(root: Sysroot, without_ours: bool = False, *, overlay: Mapping[str, str] | None = None) -> Configured:
    """The configuration as the files stand; with `overlay`, as it would be with these files ({path: text}) in place.

    A `problem` says which file cannot be read, or `needs a shell: FILE:LINE` where it depends on a command; on a
    live host a shell is then asked, unless there is an overlay.
    """
    texts = dict(overlay or {})
    with root.noting() as denied:
        paths = set(settings_files(root, without_ours=without_ours)) | texts.keys()
    if denied:
        return Configured(problem=f"cannot read {denied}", errno=denied.errno)
    order = sorted(paths, key=lambda path: (path != MAIN, os.fsencode(path)))
    read: list[tuple[str, str]] = []
    for path in order:
        try:
            read.append(("/" + path, texts[path] if path in texts else root.read_text(path)))
        except OSError as error:
            if error.errno not in ABSENT_ERRNOS:  # a dangling link is skipped, as `[ -e ]` does
                return Configured(problem=f"cannot read {as_data(f'/{path}')}: {error.strerror}", errno=error.errno)
    variables = evaluate_settings(read, read_sh(root))
    files = tuple(name for name, _ in read)
    unknown = variables.unknown(LINUX) or variables.unknown(DEFAULT)
    problem = variables.problem or (f"needs a shell: {as_data(unknown)}" if unknown else None)
    if problem and root.live and overlay is None:
        return source_live(root, without_ours=without_ours)
    return _settings_of(root, variables, files, problem)


def evaluate_settings(files: Iterable[tuple[str, str]], sh: str = "") -> Variables:
    """The variables that these (name, text) leave. GRUB_* is empty where neither they nor grub-mkconfig set it."""
    return shellvars.evaluate(files, lambda name: name.startswith("GRUB_") and not _MKCONFIGS_OWN.fullmatch(name), sh)


def read_sh(root: Sysroot) -> str:
    """The shell that /bin/sh is, `dash` or `bash`: grub-mkconfig is a script for it. "" where nothing says."""
    return root.readlink(SH).rpartition("/")[2]


def settings_files(root: Sysroot, *, without_ours: bool = False) -> tuple[str, ...]:
    """The files grub-mkconfig sources, in its order (dash sorts a glob by bytes)."""
    names = sorted((n for n in root.listdir(DIRECTORY) if n.endswith(".cfg") and n[0] != "."), key=os.fsencode)
    paths = [MAIN, *(f"{DIRECTORY}/{name}" for name in names)]
    return tuple(path for path in paths if root.exists(path) and not (without_ours and path == DROPIN))


def _settings_of(root: Sysroot, variables: Variables, files: tuple[str, ...], problem: str | None) -> Configured:
    """The two variables as a Configured, every argument with its place; what no entry gets counts as empty."""
    try:
        lost = {name: withheld(root, name, making_menu(root)) for name in (LINUX, DEFAULT)}
    except OSError as error:
        return Configured(files=files, problem=f"cannot read {error.filename}: {error.strerror}", errno=error.errno)
    values = [() if lost[name] else variables.values.get(name, ()) for name in (LINUX, DEFAULT)]
    line: Value = (*values[0], Piece(" ", ""), *values[1])
    placed, cut_at = ((), "") if problem else _placed(root, line)
    texts = ["" if lost[name] else variables.text(name) for name in (LINUX, DEFAULT)]
    assigned = variables.assigned.get(DEFAULT, "")
    return Configured(texts[0], texts[1], files, problem, placed, assigned, cut_at=cut_at, withheld=lost[DEFAULT])


def _placed(root: Sysroot, line: Value) -> tuple[tuple[Placed, ...], str]:
    """(the arguments with their places, where something ends them; "" where nothing does).

    10_linux writes the line into grub.cfg as it is, so GRUB reads it once more.
    """
    cut_at = ""
    text = "".join(piece.text or "" for piece in line)
    words: list[Word] = []
    for word in split_words(text):
        if word.mark:  # a ";" or a brace ends GRUB's linux command
            cut_at = _where(line, word.at)
            break
        words.append(word)
    menu = read_menu(root) if "$" in text else None  # TuneD's $tuned_params is set in grub.cfg
    variables = menu.variables if isinstance(menu, Menu) else {}
    result: list[Placed] = []
    room = MAX_EXPANDED
    for word in words:
        where = _where(line, word.at)
        names = [part.text for part in word.parts if part.variable]
        source = f"${names[0]} of /{menu_path(root)}, from {as_data(where)}" if names else where
        given = kernel_text(expand(word, variables))
        room -= len(given)
        if room < 0:
            break
        result += [Placed(arg, source) for arg in parse_cmdline(given)]
    return tuple(result), cut_at


def _where(line: Value, at: int) -> str:
    for piece in line:
        at -= len(piece.text or "")
        if at < 0:
            return piece.where
    return ""


def menu_path(root: Sysroot) -> str:
    """The grub.cfg of this host: GRUB is `grub` or `grub2`, depending on the distribution."""
    return GRUB2_CFG if root.exists(GRUB2_CFG) and not root.exists(GRUB_CFG) else GRUB_CFG


def generator(root: Sysroot) -> str:
    """The program that makes grub.cfg from the settings."""
    return "grub2-mkconfig" if menu_path(root) == GRUB2_CFG else "update-grub"


def making_menu(root: Sysroot) -> Command:
    """The command to type for that."""
    return kinds.make_grub2_menu() if generator(root) == "grub2-mkconfig" else kinds.update_grub()


def read_menu(root: Sysroot, without: tuple[str, ...] = ()) -> Menu | OSError:
    """What GRUB makes of grub.cfg, `without` some variables of its environment block; or why it cannot be read."""
    try:
        return evaluate(root, menu_path(root), without)
    except OSError as error:
        return error


def source_live(root: Sysroot, without_ours: bool = False) -> Configured:
    """What a real shell makes of the files. Only on a live host, and only files that only root may write.

    For the read-back after writing: equal to configured(), or the evaluation here was wrong.
    """
    paths = settings_files(root, without_ours=without_ours)
    files = tuple("/" + path for path in paths)
    if not root.live:
        return Configured(files=files, problem="needs a shell, and files of a recorded host are never run")
    for path in paths:
        try:
            root.check_named(path)
        except OSError as error:
            return Configured(files=files, problem=f"needs a shell, and {as_data(f'/{path}')}: {error.strerror}")
    return run_shell(root, files)


def run_shell(root: Sysroot, files: tuple[str, ...]) -> Configured:
    """Sources files by absolute path with sh. The caller has made sure that they may be run."""
    from tunectl.host.run import run  # subprocess is not cheap to import, and rarely needed

    try:
        done = run(("/bin/sh", "-c", _SCRIPT, "tunectl", *files), timeout_s=_TIMEOUT_S)
    except TunectlError as error:
        return Configured(files=files, problem=error.message)
    linux, _, rest = done.stdout.partition("\0")
    default, _, end = rest.partition("\0")
    if done.returncode or end != ".":
        said = words_of(done.stderr) or f"exit status {done.returncode}"
        return Configured(files=files, problem=f"sh cannot read {', '.join(map(as_data, files))}: {said}")
    where = "the settings in " + ", ".join(map(as_data, files))
    values: dict[str, Value] = {LINUX: (Piece(linux, where),), DEFAULT: (Piece(default, where),)}
    return _settings_of(root, Variables(values, {DEFAULT: where}, None), files, None)
