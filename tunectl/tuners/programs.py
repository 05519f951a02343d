"""What the text of a program names of ours, line by line. Pure: nothing is executed, and nothing is followed.

A simple command on one line that plainly says what it writes, where and which value (`echo never > /sys/…`,
`ethtool -C eth0 rx-usecs 50`) is a write. Any other line whose words name one of our settings beside something that
writes is named, and what it does is not known: variables, conditions, loops and functions are the program's own matter.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from tunectl.host.inifiles import continued_lines
from tunectl.tuners.places import knobs_at, write_at
from tunectl.tuners.tools import TOOLS, Write

_BREAKS = frozenset({";", "&", "&&", "|", "||", "|&", ";;", "(", ")", "{", "}"})
_SIGNS = re.compile(r"&>>?|>[>|&]?|<<<|<<|<[&>]?|&&|\|\||\|&|;;|[;|&()]")
# Words of the shell before a command, programs that only start another, and what does nothing by itself.
_WORDS = frozenset({"then", "do", "else", "elif", "if", "while", "until", "!", "time", "exec", "command", "nohup"})
_STARTERS = frozenset(
    {"nice", "ionice", "chrt", "taskset", "timeout", "env", "flock", "setsid", "sudo", "stdbuf", "numactl"}
)
_DECLARING = frozenset({"export", "readonly", "local", "declare", "typeset"})
_LEADING = frozenset({"for", "done", "fi", "[", "[[", "test", "true", ":", "sleep", "set", "exit", "cd", *_DECLARING})
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
_WRITERS = frozenset({"tee", "dd", "cp", "install", "echo", "printf"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OURS = ("/sys/", "/proc/")
_INTO = (">", ">>", ">|", "&>", "&>>")
_CARD = re.compile(r"/sys/class/net/([^/*?\[$]+)/")
_UNKNOWN = re.compile(r"[$`]")
# A place of the kernel's as it stands in any text, with what only the running program knows in it.
_PLACE = re.compile(r"/(?:sys|proc)/(?:[\w.*?,:+@-]|\[[^\]\s]*\]|\$\w+|\$?\{[^}\s]*\}|/)+")
_IS_TARGET = re.compile(r"(?:>>?\|?|\btee\b(?:\s+-a)?|\bof=|\b(?:cp|install|mv|write)\b.*)\s*[\"']?$")
_IS_KEPT = re.compile(r"(?:=|\bin\b.*|\b(?:cd|pushd)\b|\bfind\b|\bxargs\b|\w\s)\s*[\"'(]?$")
# The program writes to what it has in a variable, or relative to where it went.
_WRITES_ELSEWHERE = re.compile(r"(?:(?<!\d)(?<!-)>>?\|?|\btee\b(?:\s+-a)?|\bof=)\s*[\"']?(?:\$|[A-Za-z.])")
_OPENS_TO_WRITE = re.compile(r"""write|['"](?:w|a|r\+)b?['"]|>|\bsystem\b|\bsubprocess\b""")
# A function, a here-document or an end: what stands behind one of these may never be run.
_ASIDE = re.compile(r"\w\s*\(\)|^\s*(?:function|case)\b|<<|^exit\b|^exec\s+[^\d<>&\s]")
_SUBSTITUTION = re.compile(r"\$\(\(?([^()`]*)\)?\)|`([^`]*)`")
_IS_TOOL = re.compile(r"""\b([A-Za-z_]\w*)=["']?(?:/[\w/.-]*/)?([\w-]+)["']?\s*$""", re.MULTILINE)
_TOKENS = re.compile(r"""['"]([^'"]*)['"]|([A-Za-z_]\w*)""")  # of other languages: a quoted text, or a name
_MAY_NAME = re.compile("|".join(("/sys/", "/proc/", *map(re.escape, TOOLS))))  # most lines need no closer look
_SHELLS_OWN = re.compile(r"#!.*\b(?:ba|da|k|z)?sh\b")
_MOST = 2000  # lines of a program that are looked at
_NEAR = 200  # characters before a place that say what is done with it


def read_program(text: str) -> Iterator[Write]:
    """The writes of a whole program, and what else of it names ours; the first line is 1."""
    if text.startswith("#!") and not _SHELLS_OWN.match(text):
        yield from _of_another_language(text)
        return
    elsewhere = bool(_WRITES_ELSEWHERE.search(text))
    for variable, tool in _IS_TOOL.findall(text):
        if tool in TOOLS:  # where the program has it in a variable, `$ETHTOOL -C` is read as `$/ethtool -C`
            text = re.sub(rf"[\"']?\$(?:{variable}\b|\{{{variable}\}})[\"']?", f"$/{tool}", text)
    aside = False
    for line in list(continued_lines(text, "", comments="#"))[:_MOST]:
        for write in read_line(line.text, elsewhere) if _MAY_NAME.search(line.text) else ():
            yield write._replace(line=line.first, named=write.named or aside)
        aside = aside or bool(_ASIDE.search(line.text))


def _of_another_language(text: str) -> Iterator[Write]:
    for number, line in enumerate(text.split("\n")[:_MOST], 1) if _OPENS_TO_WRITE.search(text) else ():
        if not line.lstrip().startswith("#"):
            words = [word for quoted, bare in _TOKENS.findall(line) for word in quoted.split() or [f"${bare}"]]
            yield from (write._replace(line=number) for write in (*_places(line, anywhere=True), *_tools(words)))


def read_line(line: str, elsewhere: bool | None = None) -> Iterator[Write]:
    """What one line of a shell writes or names. `elsewhere`: the program writes where only it knows."""
    for writes in commands_of(line, elsewhere):
        yield from writes


def commands_of(line: str, elsewhere: bool | None = None) -> Iterator[list[Write]]:
    """The same for each command of the line; an empty list is one that does something else."""
    elsewhere = bool(_WRITES_ELSEWHERE.search(line)) if elsewhere is None else elsewhere
    while match := _SUBSTITUTION.search(line):
        yield from (writes for writes in commands_of(match[1] or match[2] or "", elsewhere) if writes)
        line = f"{line[: match.start()]}$_{line[match.end() :]}"
    commands = split_commands(line)
    if commands is None:  # its quotes do not close here
        yield [*_places(line, kept=elsewhere), *_tools(line.split())]
        return
    for whole, piped in commands:
        words = _without_prefixes(whole)
        assigned = takewhile(_assigns, whole)
        if kept := list(_places(" ".join(assigned), kept=elsewhere)):
            yield kept
        if script := _given_to_shell(words):
            yield from commands_of(script)
        elif words and _assigns(words[0]):
            continue
        elif _UNKNOWN.search(" ".join(words)) or words[:1] in (["for"], ["case"], ["cd"], ["pushd"], ["find"]):
            named = [*_places(" ".join(words), kept=elsewhere), *_tools(words)]
            yield from [named] if named or words[0] not in _LEADING else []
        elif words:
            writes = list(_of_plain(words, piped))
            yield from [writes] if writes or words[0] not in _LEADING else []


def _assigns(word: str) -> bool:
    return word in _DECLARING or bool(_ASSIGNMENT.match(word))


def split_commands(line: str) -> list[tuple[list[str], str]] | None:
    """(words with redirections, what is given through a pipe) of each simple command; None for an open quote."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&()<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    tokens: list[str] = []
    try:
        for token in lexer:  # `);` is two signs
            tokens += _SIGNS.findall(token) if token and not token.strip(";|&()<>") else [token]
    except ValueError:
        return None
    commands, words, piped = [], list[str](), ""
    for token in [*tokens, ";"]:
        if token not in _BREAKS:
            words.append(token)
            continue
        if words:
            commands.append((words, piped))
        piped = _said(words) if token == "|" else ""
        words = []
    return commands


def programs_of(command: str) -> Iterator[str]:
    """The files that a command line runs, by themselves or by an interpreter, without a leading slash."""
    for whole, _ in split_commands(command) or []:
        words = _without_prefixes(whole)
        if script := _given_to_shell(words):
            yield from programs_of(script)
            continue
        if words and words[0].rpartition("/")[2] in (*_SHELLS, "python3", "perl"):
            words = [word for word in words[1:] if not word.startswith("-")]
        if words and words[0].startswith("/"):
            yield words[0].lstrip("/")


def _without_prefixes(words: Sequence[str]) -> list[str]:
    rest = list(words)
    while rest:
        name = rest[0].rpartition("/")[2]
        if name in _WORDS or (_ASSIGNMENT.match(rest[0]) and len(rest) > 1 and not rest[1].startswith(">")):
            rest = rest[1:]
        elif name in _STARTERS and (start := next((n for n, word in enumerate(rest) if n and _starts(word)), 0)):
            rest = rest[start:]
        else:
            return rest
    return rest


def _starts(word: str) -> bool:
    """Is it a program that this module knows, or a path of one?"""
    name = word.rpartition("/")[2]
    return name in TOOLS or name in _WRITERS | _SHELLS or (word.startswith("/") and not word.startswith(_OURS))


def _given_to_shell(words: Sequence[str]) -> str:
    """The script of `sh -c SCRIPT`."""
    is_shell = len(words) > 2 and words[0].rpartition("/")[2] in _SHELLS and re.fullmatch(r"-\w*c", words[1])
    return words[2] if is_shell else ""


def _said(words: Sequence[str]) -> str:
    """What a plain echo or printf writes."""
    if not words or words[0].rpartition("/")[2] not in ("echo", "printf"):
        return ""
    stop = _redirection(words)
    texts = [word for word in words[1:stop] if word not in ("-n", "-e", "%s", "%s\\n", "--")]
    if stop < len(words) and len(texts) > 1 and texts[-1] in ("1", "2"):  # `echo x 2>`: a descriptor
        texts = texts[:-1]
    return "" if any(map(_UNKNOWN.search, texts)) else " ".join(word.removesuffix("\\n") for word in texts)


def _redirection(words: Sequence[str]) -> int:
    """Where the first redirection stands; the number of the words without one."""
    return next((n for n, word in enumerate(words) if word.startswith((">", "<", "&>"))), len(words))


def _of_plain(words: list[str], piped: str) -> Iterator[Write]:
    """The writes of a command without anything that only the running program knows."""
    name = words[0].rpartition("/")[2]
    given = words[1 : _redirection(words)]
    targets = [(target, _said(words)) for before, target in pairwise(words) if before in _INTO]
    piped = next((target for before, target in pairwise(words) if before == "<<<"), piped)
    if name == "tee":
        targets += [(word, piped) for word in given]
    elif name == "dd":
        targets += [(word.removeprefix("of="), piped) for word in given if word.startswith("of=")]
    elif name in ("cp", "install", "mv"):
        targets += [(word, "") for word in given[-1:]]
    elif tool := TOOLS.get(name):
        yield from tool(given)
    for path, value in targets:
        if path.startswith(_OURS):
            knob, text = write_at(path, value)
            yield Write(0, path, knob, text, instance=_card_of(path), named=not value or "{" in path)


def _tools(words: Sequence[str]) -> Iterator[Write]:
    """What a tool that is named would write, by those of its words that are there."""
    for number, word in enumerate(words):
        if tool := TOOLS.get(word.rpartition("/")[2]):
            yield from (write._replace(named=True) for write in tool(list(words[number + 1 :])))


def _places(text: str, *, kept: bool = False, anywhere: bool = False) -> Iterator[Write]:
    """The places of ours in a text that are written there; `kept`: or that are kept for a write elsewhere."""
    for match in _PLACE.finditer(text):
        before = text[max(0, match.start() - _NEAR) : match.start()]
        if anywhere or _IS_TARGET.search(before) or (kept and _IS_KEPT.search(before)):
            place = match[0].rstrip("/.,:")
            yield from (Write(0, place, knob, instance=_card_of(place), named=True) for knob in knobs_at(place))


def _card_of(path: str) -> str:
    card = _CARD.match(path)
    return card[1] if card else ""
