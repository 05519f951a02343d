"""Runs a grub.cfg as GRUB would, up to the kernel that boots if nobody touches the keyboard.

Where a condition depends on the machine, both ways are gone, and only what they have in common is certain. What cannot
be followed ends the run with Unfollowed: the next boot is not known then.
Source: grub-core/script/execute.c, normal/main.c, normal/menu.c, commands/configfile.c, commands/menuentry.c,
commands/loadenv.c; grub-mkconfig's 00_header, 10_linux and 41_custom.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Sequence

from tunectl.bootloader import grubcommands
from tunectl.bootloader.grubcommands import (
    EFFECTLESS,
    LEAVING,
    LOADERS,
    MKCONFIGS_FUNCTIONS,
    OTHER_LOADERS,
    assigned_by,
)
from tunectl.bootloader.grubdisk import OWN, PREFIX, Disk
from tunectl.bootloader.grubscript import Word, expand_all
from tunectl.bootloader.grubstate import Entry, Loaded, Origin, State, join
from tunectl.bootloader.grubsyntax import Command, For, If, Node, Nodes, Unfollowed, While, parse
from tunectl.command import as_data, quoted

Status = bool | str  # what a command comes to; a text: why that is not known

_MACHINES_OWN = re.compile(
    r"(grub|net|pxe|color|feature)_\w+|cmdpath|lang|lockdown|shim_lock|check_signatures|fw_path|\?"
)
_FEATURES = (
    "chainloader_bpb ntldr platform_search_hint default_font_path all_video_module menuentry_id menuentry_options "
    "200_final nativedisk_cmd timeout_style"
)
# When it takes the place of another, the other's arguments go, and the new ones with them (docs/kernel-facts.md).
SECOND_KERNEL = "a second kernel that it loads, whose arguments GRUB for BIOS loses"
_BLOCK = "# GRUB Environment Block\n"
IMPORTED = "blscfg"
_MAX_STEPS = 50_000
_MAX_DEPTH = 64
_MAX_VARIABLE = 1 << 14
_ASSIGNMENT = re.compile(r"([^=]*)=(.*)", re.DOTALL)
_SPECIAL = re.compile(r"\d.*|[#*@]")


class Halt(Exception):  # noqa: N818 - how a script ends, not an error
    """The script has booted a kernel, or left GRUB: nothing behind it counts."""

    def __init__(self, loaded: Loaded | None, at: str) -> None:
        super().__init__(at)
        self.loaded = loaded
        self.at = at


class _Leave(Exception):  # noqa: N818 - a signal inside this module
    """`return`, `break` or `continue`."""

    def __init__(self, command: str, levels: int, status: Status) -> None:
        super().__init__(command)
        self.command = command
        self.levels = levels
        self.status = status


class Script:
    """GRUB at work: its state, and what it can do to it."""

    def __init__(self, disk: Disk, platform: str = "", without: tuple[str, ...] = (), *, imports: bool = False) -> None:
        """With `imports`, blscfg puts one entry into the menu that stands for all that it shows (IMPORTED)."""
        values = {f"feature_{name}": "y" for name in _FEATURES.split()}
        values |= {"prefix": PREFIX, "root": OWN} | ({"grub_platform": platform} if platform else {})
        self.state = State(values)
        self.show_menu: Callable[[str], None] = lambda at: None  # what `configfile` does with the entries it made
        self._disk = disk
        self._without = without  # variables of environment blocks that are taken as not there
        self._params: tuple[str, ...] | None = None  # None outside of functions and entries
        self._loops = 0  # that `break` could leave: those of this function or entry
        self._steps = 0
        self._depth = 0
        self._commands: dict[str, Callable[[Command, list[str]], Status]] = {
            **dict.fromkeys(("source", "."), self._source),
            **dict.fromkeys(("[", "test"), self._test),
            **dict.fromkeys(("return", "break", "continue"), self._leave),
            **dict.fromkeys(("menuentry", "submenu"), self._menuentry),
            **dict.fromkeys(LOADERS + OTHER_LOADERS, self._load),
            **dict.fromkeys(LEAVING, self._left),
            **dict.fromkeys(("initrd", "initrd16", "initrdefi"), self._initrd),
            "boot": self._boot,
            "configfile": self._configfile,
            "eval": self._eval,
            "export": self._export,
            "false": lambda node, texts: False,
            "load_env": self._load_env,
            "save_env": lambda node, texts: f"what `save_env` can do at {node.at}",
            "set": self._set,
            "setparams": self._setparams,
            "shift": self._shift,
            "true": lambda node, texts: True,
            "unset": self._unset,
        }
        if imports:
            self._commands["blscfg"] = self._blscfg

    def run_file(self, path: str) -> None:
        """The commands of a file, by the name that GRUB knows it by. Halt and Unfollowed as they come."""
        found = self._disk.read(path)
        if found is None:
            return
        values = self.state.values
        before = {name: values.get(name) for name in ("config_file", "config_directory")}
        values |= {"config_file": path, "config_directory": path.rpartition("/")[0]}
        self._nested(lambda: self._nodes(parse(*found)))
        for name, value in before.items():
            self.state.unset(name)
            if value is not None:
                self.state.values[name] = value

    def run_entry(self, entry: Entry) -> None:
        """The block of an entry, in the present state."""
        self._with_params(entry.args, entry.body)

    def _with_params(self, params: Sequence[str], body: Nodes) -> Status:
        before = self._params, self._loops
        self._params, self._loops = tuple(params), 0
        try:
            return self._nested(lambda: self._nodes(body))
        except _Leave as leave:
            return leave.status
        finally:
            self._params, self._loops = before

    def _nested(self, run: Callable[[], Status]) -> Status:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Unfollowed("a script that calls itself without end")
        try:
            return run()
        finally:
            self._depth -= 1

    def _nodes(self, nodes: Nodes) -> Status:
        status: Status = True
        for node in nodes:
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise Unfollowed(f"a script that runs without end, at {node.at}")
            status = self._node(node)
            if isinstance(status, str):
                self.state.doubt("?", status)
            else:
                self.state.set("?", "0" if status else "1", Origin(node.at))
        return status

    def _node(self, node: Node) -> Status:
        if isinstance(node, Command):
            return self._command(node)
        if isinstance(node, If):
            return self._if(node.branches, node.otherwise)
        if isinstance(node, While):
            return self._while(node)
        if isinstance(node, For):
            return self._for(node)
        self.state.functions[node.name] = node.body
        return True

    def _if(self, branches: tuple[tuple[Nodes, Nodes], ...], otherwise: Nodes) -> Status:
        if not branches:
            return self._nodes(otherwise)
        condition, body = branches[0]
        verdict = self._nodes(condition)
        if isinstance(verdict, str):
            return self._either(verdict, lambda: self._nodes(body), lambda: self._if(branches[1:], otherwise))
        return self._nodes(body) if verdict else self._if(branches[1:], otherwise)

    def _either(self, why: str, one: Callable[[], Status], other: Callable[[], Status]) -> Status:
        """Both ways from here. Where one of them boots or leaves, it is not known what happens."""
        before = self.state
        ends: list[State] = []
        for way in (one, other):
            self.state = before.copy()
            try:
                way()
            except (Halt, _Leave) as end:
                raise Unfollowed(f"it depends on {why}") from end
            ends.append(self.state)
        joined = join(ends[0], ends[1], why)
        if joined is None:
            raise Unfollowed(f"it depends on {why}")
        self.state = joined
        return why

    def _while(self, node: While) -> Status:
        while (verdict := self._condition(node)) is node.wanted:
            if self._turn(node.body):
                break
        if isinstance(verdict, str):
            raise Unfollowed(f"a loop at {node.at} that depends on {verdict}")
        return True

    def _condition(self, node: While) -> Status:
        self._loops += 1
        try:
            return self._nodes(node.condition)
        except _Leave as leave:
            if leave.command == "return":
                raise
            raise Unfollowed(f"`{leave.command}` in the condition of a loop at {node.at}") from leave
        finally:
            self._loops -= 1

    def _for(self, node: For) -> Status:
        for text in self._texts(node.words, node.at):
            self.state.set(node.name, text, Origin(node.at))
            if self._turn(node.body):
                break
        return True

    def _turn(self, body: Nodes) -> bool:
        """One turn of a loop; True to leave it."""
        self._loops += 1
        try:
            self._nodes(body)
        except _Leave as leave:
            if leave.command == "return":
                raise
            if leave.levels > 1:
                raise _Leave(leave.command, leave.levels - 1, leave.status) from leave
            return leave.command == "break"
        finally:
            self._loops -= 1
        return False

    def _doubt(self, word: Word) -> str:
        """Why the text of a word is not known; "" where it is."""
        for part in word.parts:
            if not part.variable:
                continue
            if why := self.state.doubts.get(part.text, ""):
                return why
            if part.text == "@" and part.quoted and len(self._params or ()) > 1:
                return 'the words of "$@"'
            if part.text not in self.state.values and _MACHINES_OWN.fullmatch(part.text):
                return f"${part.text}, which each machine sets"
        return ""

    def _expand(self, words: Sequence[Word]) -> list[str]:
        params = {str(n): text for n, text in enumerate(self._params or (), 1)}
        if self._params is not None:
            params |= {"#": str(len(self._params)), "*": " ".join(self._params), "@": " ".join(self._params)}
        return expand_all(words, ChainMap(params, self.state.values))

    def _texts(self, words: Sequence[Word], at: str) -> list[str]:
        """The texts of words that have to be known."""
        for word in words:
            if why := self._doubt(word):
                raise Unfollowed(f"a command at {at} that depends on {why}")
        return self._expand(words)

    def _command(self, node: Command) -> Status:
        if why := self._doubt(node.words[0]):
            raise Unfollowed(f"a command at {node.at} that depends on {why}")
        name = next(iter(self._expand(node.words[:1])), "")
        words = node.words
        if name == "!":
            return _inverted(self._command(node._replace(words=words[1:]))) if len(words) > 1 else False
        why = next(filter(None, map(self._doubt, words[1:])), "")
        if name in LOADERS + OTHER_LOADERS:
            return self._load(node, self._expand(words), why)
        if (known := self._commands.get(name)) and not (why and name in EFFECTLESS):
            return self._doubtful(node, name, why) if why else known(node, self._expand(words))
        if name in EFFECTLESS:
            return self._assign_all(node, name, why)
        if name in self.state.functions:
            return self._with_params(self._texts(words[1:], node.at), self.state.functions[name])
        if "=" in name:
            return self._assign(node, name, words[0])
        if not name or name in MKCONFIGS_FUNCTIONS:
            return f"the command `{as_data(name)}` at {node.at}"
        raise Unfollowed(f"the command `{as_data(name)}` at {node.at}")

    def _doubtful(self, node: Command, name: str, why: str) -> Status:
        """A command some of whose words are not known."""
        if name in ("[", "test"):
            return why
        if name == "set":
            target = node.words[1].parts[0]
            assigned = _ASSIGNMENT.match(target.text)
            if assigned and not target.variable:
                self.state.doubt(assigned[1], why)
                return True
        if name in ("menuentry", "submenu"):  # something is there, and nobody knows its name
            self._add(Entry(f"the {name} at {node.at}", "", name == "submenu", (), node.block or (), "", node.at, why))
            return True
        raise Unfollowed(f"the command `{as_data(name)}` at {node.at} depends on {why}")

    def _assign_all(self, node: Command, name: str, why: str) -> Status:
        """A command that shows, loads or looks for something. What it finds is not known."""
        found = f"what `{as_data(name)}` finds at {node.at}"
        texts = self._expand(node.words)
        for variable in assigned_by(texts):
            if why:
                raise Unfollowed(f"the command `{as_data(name)}` at {node.at} depends on {why}")
            if variable == "root" and any(self._disk.is_own(text) for text in texts[1:]):
                self.state.set("root", OWN, Origin(node.at))
            else:
                self.state.doubt(variable, found)
        return found

    def _set(self, node: Command, texts: list[str]) -> Status:
        if len(texts) < 2:
            return True
        return self._assign(node, texts[1], node.words[1]) if "=" in texts[1] else False

    def _assign(self, node: Command, text: str, word: Word) -> Status:
        match = _ASSIGNMENT.fullmatch(text)
        assert match
        if _SPECIAL.fullmatch(match[1]):
            return False
        if len(match[2]) > _MAX_VARIABLE:
            raise Unfollowed(f"a value that grows without end, at {node.at}")
        sources = [
            self.state.origins[part.text] for part in word.parts if part.variable and part.text in self.state.origins
        ]
        origin = next((source for source in sources if source.variable), Origin(node.at))
        self.state.set(match[1], match[2], origin)
        return True

    def _unset(self, node: Command, texts: list[str]) -> Status:
        if len(texts) > 1:
            self.state.unset(texts[1])
        return len(texts) > 1

    def _export(self, node: Command, texts: list[str]) -> Status:
        self.state.exported |= dict.fromkeys(texts[1:], "")
        return len(texts) > 1

    def _setparams(self, node: Command, texts: list[str]) -> Status:
        self._params = tuple(texts[1:])
        return True

    def _shift(self, node: Command, texts: list[str]) -> Status:
        count = int(texts[1]) if len(texts) > 1 and texts[1].isdecimal() and len(texts[1]) < 5 else 1
        if self._params is None or count > len(self._params):
            return self._params is None
        self._params = self._params[count:]
        return True

    def _leave(self, node: Command, texts: list[str]) -> Status:
        """As script/execute.c has it: `return` fails outside of functions, the others do nothing outside of loops."""
        value = grubcommands.number(texts[1]) if len(texts) > 1 else None
        if texts[0] != "return":
            if self._loops:
                raise _Leave(texts[0], min(value or 1, self._loops), True)
            return True
        if self._params is None:
            return False
        last: Status = self.state.doubts.get("?") or self.state.values.get("?", "0") == "0"
        raise _Leave("return", 1, last if value is None else value == 0)

    def _test(self, node: Command, texts: list[str]) -> Status:
        try:
            found = grubcommands.is_true(texts[1:], self._about_file)
        except Unfollowed as hidden:
            if hidden.errno is not None:
                raise
            return hidden.why
        return f"a test at {node.at} that is not followed" if found is None else found

    def _about_file(self, kind: str, path: str) -> bool:
        size = self._disk.size(self._path(path))
        if size is None or kind == "-e":
            return size is not None
        return size == -1 if kind == "-d" else size >= (kind == "-s")

    def _path(self, path: str) -> str:
        """The name of a file with its device."""
        if not path.startswith("/"):
            return path
        if why := self.state.doubts.get("root"):
            raise Unfollowed(f"{quoted(path)} is on a device that depends on {why}")
        root = self.state.values.get("root", "")
        return path if root == OWN else f"({root}){path}"

    def _source(self, node: Command, texts: list[str]) -> Status:
        if len(texts) != 2:
            return False
        try:
            path = self._path(texts[1])
            self._disk.locate(path)
        except Unfollowed as hidden:
            if hidden.errno is None:
                raise Unfollowed(f"`{as_data(texts[0])}` at {node.at}: {hidden.why}") from hidden
            raise
        self.run_file(path)
        return True

    def _configfile(self, node: Command, texts: list[str]) -> Status:
        """A file with a menu of its own: nothing that it sets comes back, but its menu is shown at once."""
        before = self.state
        self.state = before.inner()
        self._source(node, texts)
        if self.state.entries:
            self.show_menu(node.at)
        self.state = before
        return True

    def _eval(self, node: Command, texts: list[str]) -> Status:
        return self._nested(lambda: self._nodes(parse(node.at, " ".join(texts[1:]))))

    def _load_env(self, node: Command, texts: list[str]) -> Status:
        path, names = _load_env_words(texts[1:])
        found = self._disk.read(self._path(path) if path else f"{self.state.values.get('prefix', '')}/grubenv")
        if found is None or not found[1].startswith(_BLOCK):
            return False
        where, text = found
        for name, value in parse_grubenv(text).items():
            if name not in self._without and (not names or name in names):
                self.state.set(name, value, Origin(where, name))
        return True

    def _menuentry(self, node: Command, texts: list[str]) -> Status:
        options, args = _options(texts[1:])
        if not args or not args[0] or node.block is None:
            if node.block is None:
                raise Unfollowed(f"the command `{as_data(texts[0])}` at {node.at}, without a block")
            return False
        file = node.at.rpartition(":")[0]
        title = args[0]
        self._add(
            Entry(title, options.get("--id", title), texts[0] == "submenu", tuple(args), node.block, file, node.at)
        )
        return True

    def _blscfg(self, node: Command, texts: list[str]) -> Status:
        self._add(Entry("", IMPORTED, False, (), (), node.at, node.at))
        return True

    def _add(self, entry: Entry) -> None:
        self.state.entries = (*self.state.entries, entry)

    def _load(self, node: Command, texts: list[str], why: str = "") -> Status:
        if len(texts) < 2 and not why:
            return False
        if texts[0] in LOADERS and not why and self._lacks(texts[1], "vmlinuz"):
            return False
        before = self.state.loaded
        if before and before.command.startswith("linux") and texts[0].startswith("linux"):
            why = why or f"{SECOND_KERNEL} ({node.at})"
        self.state.loaded = Loaded(texts[0], tuple(texts[1:]), why)
        return True

    def _initrd(self, node: Command, texts: list[str]) -> Status:
        """GRUB goes on without one that is not there, and the kernel finds no root file system."""
        lacking = next((text for text in texts[1:] if self._lacks(text, "init")), "")
        if lacking and self.state.loaded:
            self.state.loaded = self.state.loaded._replace(doubt=f"{quoted(lacking)} ({node.at}), which is not there")
        return not lacking

    def _lacks(self, path: str, kind: str) -> bool:
        """Is the file certainly not there? Where its device is not known, it is taken as there."""
        try:
            return self._disk.lacks(self._path(path), kind)
        except Unfollowed:
            return False

    def _boot(self, node: Command, texts: list[str]) -> Status:
        if self.state.loaded is None:
            return False
        raise Halt(self.state.loaded, node.at)

    def _left(self, node: Command, texts: list[str]) -> Status:
        if "--is-supported" in texts:
            return f"what `{as_data(texts[0])}` finds at {node.at}"
        raise Halt(None, node.at)


def parse_grubenv(text: str) -> dict[str, str]:
    """The variables of a grubenv block, as load_env sets them: `name=value` lines, `#` ends and fills the block.

    A file whose first line is another than GRUB's sets nothing: load_env refuses it (lib/envblk.c, grub_envblk_open()).
    """
    if not text.startswith(_BLOCK):
        return {}
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value.replace("\\\\", "\\") for name, equals, value in pairs if equals and name}


def _inverted(status: Status) -> Status:
    return status if isinstance(status, str) else not status


def _load_env_words(words: list[str]) -> tuple[str, list[str]]:
    """(the file that load_env is told to read, the variables that it may set; none: every one)."""
    path, names, rest = "", [], list(words)
    while rest:
        word = rest.pop(0)
        if word in ("-f", "--file"):
            path = rest.pop(0) if rest else ""
        elif word.startswith("--file="):
            path = word.removeprefix("--file=")
        elif not word.startswith("-"):
            names.append(word)
    return path, names


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options of a menuentry that take a value, and its other words."""
    options: dict[str, str] = {}
    args, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in ("--class", "--users", "--hotkey", "--id"):
            options[name] = value if equals else rest.pop(0) if rest else ""
        elif word != "--unrestricted":
            args.append(word)
    return options, args
