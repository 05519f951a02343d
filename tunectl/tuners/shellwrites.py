"""What the lines of a shell script write to the kernel: redirections, tee, dd, cp, and the programs that tune. Pure.

Nothing is ever executed. Variables, and the directory that a script changes to, are followed where the script itself
gives them a plain value or a list. A value that only the running script would know is "", and a place of that kind is
none. What a here-document holds is data, but for a shell that reads it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tunectl.host.inifiles import join_lines
from tunectl.tuners.shellflow import Flow
from tunectl.tuners.tools import TOOLS, Write

_KERNEL = ("/sys/", "/proc/")
_BREAKS = frozenset({";", "&", "&&", "|", "||", "(", ")", "{", "}", ";;", "|&"})
_WORDS = frozenset(
    {"then", "do", "else", "elif", "if", "while", "until", "!", "time", "exec", "command", "sudo", "nohup"}
)
_LEADING = frozenset(
    {"for", "done", "fi", "[", "[[", "test", "true", ":", "sleep", "set", "exit", "cd", "pushd", "popd"}
)
_DECLARING = frozenset({"export", "readonly", "local", "declare", "typeset"})
_OPENS, _CLOSES = ["("], [")"]  # commands that stand for the ends of a subshell
_SIGNS = re.compile(r"&>>?|>[>|&]?|<<<|<<|<[&>]?|&&|\|\||\|&|;;|[;|&()]")
_WITH_OPTIONS = frozenset({"nice", "ionice", "chrt", "taskset", "timeout", "env", "flock", "setsid", "sudo", "stdbuf"})
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
_WRITERS = frozenset({"tee", "dd", "cp", "install", "echo", "printf", *_SHELLS})
_ASSIGNMENT = re.compile(r"^([A-Za-z_]\w*)=(.*)$", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?[-=]([^{}$`]*))?\}|(\w+))")  # ${NAME}, ${NAME:-default}, $NAME
_HERE = re.compile(r"(?<!<)<<(-?)\s*(['\"]?)([A-Za-z_]\w*)\2")
_DIRECTORY = "PWD"
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"  # what only the running script knows, within a text
_INTO = (">", ">>", ">|", "&>", "&>>")
_BRACES = re.compile(r"\{[0-9]+\.\.[0-9]+\}|\{[0-9]+(?:,[0-9]+)+\}|\[[^]/]+\]\*?")
_MOST = 400  # lines of a script that are looked at, and what one word may be
_LONGEST = 4096  # characters of a word: a variable that is doubled again and again has no end


def writes_of(text: str, depth: int = 1) -> Iterator[Write]:
    """Every write of a script. Lines begin at 1."""
    for writes in commands_of(text, depth):
        yield from writes


def commands_of(text: str, depth: int = 1) -> Iterator[list[Write]]:
    """The writes of each simple command of a script, of what `sh -c` is given, too.

    An empty list is a command that does something else; what only leads the others (`for`, `test`, `sleep`) is none.
    """
    flow = Flow()
    found = list(_followed(text, depth, flow))
    yield from (writes for function, writes in found if not function or flow.is_called(function))


def _followed(text: str, depth: int, flow: Flow) -> Iterator[tuple[str, list[Write]]]:
    """(the function that it stands in, "" for none; its writes) of each command up to the end of the script."""
    known: dict[str, list[str]] = {}
    outside: list[dict[str, list[str]]] = []  # what was known before each subshell that is open
    for number, line in _lines(text):
        flow.new_line()
        for sign, command in _split(line):
            flow.step(sign, command)
            if command == _OPENS:
                outside.append(dict(known))
            elif command == _CLOSES:
                known = outside.pop() if outside else known
            else:
                yield from ((flow.function, some) for some in _of_simple(command, known, depth, number))
            if flow.ended:
                return


def _of_simple(command: list[str], known: dict[str, list[str]], depth: int, number: int) -> Iterator[list[Write]]:
    """The writes of one simple command; of a shell's script those of each of its commands."""
    bare = _without_prefixes(command)
    if depth and (inner := _given_to_shell(bare)) is not None:
        yield from ([one._replace(line=number) for one in some] for some in commands_of(inner, depth - 1))
        return
    writes = [one._replace(line=number) for one in _of_command(command, known, depth)]
    if writes or (bare and bare[0] not in _LEADING | _DECLARING and not _ASSIGNMENT.match(bare[0])):
        yield writes


def _given_to_shell(words: Sequence[str]) -> str | None:
    """The script of `sh -c SCRIPT`, or of `sh << END`, where that is the whole command."""
    if words and words[0].rpartition("/")[2] in _SHELLS and "|" not in words and "<<<" in words[:-1]:
        return words[words.index("<<<") + 1]
    found = len(words) > 2 and words[0].rpartition("/")[2] in _SHELLS and re.fullmatch(r"-\w*c", words[1])
    return words[2] if found and not any(word == "|" or word.startswith(_KERNEL) for word in words[3:]) else None


def script_of(command: str) -> str:
    """The file that a command line runs, itself or by an interpreter; "" where it names none."""
    for words in _commands(command):
        words = _without_prefixes(words)
        if words and words[0].rpartition("/")[2] in (*_SHELLS, "python3", "perl"):
            words = [word for word in words[1:] if not word.startswith("-")]
        if words and words[0].startswith("/"):
            return words[0]
    return ""


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of the first line, the line with those that go on); a here-document as `<<< 'its text'`."""
    lines = text.split("\n")[:_MOST]
    rest = enumerate(lines, 1)
    for line, first, last in join_lines(rest, "", comments="#"):
        if (here := _HERE.search(line)) and (end := _end_of(here, lines, last)) is not None:
            body = "\n".join(lines[last:end])
            line = f"{line[: here.start()]} <<< {shlex.quote(body)}{line[here.end() :]}"
            for _ in lines[last : end + 1]:
                next(rest)
        yield first, line


def _end_of(here: re.Match[str], lines: Sequence[str], start: int) -> int | None:
    """Where the line stands that ends a here-document; None: then it is none."""
    bare = (line.lstrip("\t") if here[1] else line for line in lines[start:])
    return next((start + number for number, line in enumerate(bare) if line == here[3]), None)


def _commands(line: str) -> list[list[str]]:
    """The simple commands of a line, each with its redirections; none where its quotes do not close."""
    return [words for _, words in _split(line) if words]


def _split(line: str) -> list[tuple[str, list[str]]]:
    """(the separator before it, a simple command); one without words stands between two separators."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&()<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    found: list[tuple[str, list[str]]] = [("", [])]
    for token in (sign for one in tokens for sign in _signs(one)):
        if token in ("(", ")"):
            found += [("", [token]), ("", [])]
        elif token in _BREAKS and token != "|":
            found.append((token, []))
        else:  # what is piped on is kept: `echo 1 | tee FILE` is one write
            found[-1][1].append(token)
    return found


def _signs(token: str) -> list[str]:
    """`);` is two signs."""
    return _SIGNS.findall(token) if token and not token.strip(";|&()<>") else [token]


def _of_command(words: list[str], known: dict[str, list[str]], depth: int) -> Iterator[Write]:
    pipeline: list[list[str]] = [[]]
    for word in words:
        pipeline = [*pipeline, []] if word == "|" else [*pipeline[:-1], [*pipeline[-1], word]]
    said = ""
    for part in pipeline:
        assigned = _assignments(part)
        part = _without_prefixes(part)
        if assigned:
            known |= {name: _expanded(value, known) for name, value in assigned}
        elif not part:
            continue
        elif part[0] == "for" and len(part) > 2 and part[2] == "in":
            values = (value for word in part[3:] for value in _expanded(word, known))
            known[part[1]] = [one for value in values for one in value.split()][:_MOST]
        elif part[0] in ("cd", "pushd", "popd") and len(pipeline) == 1:
            known[_DIRECTORY] = _directory(part, known)
        else:
            yield from _of_program(part, known, said, depth)
            said = _said(part, known)


def _assignments(words: Sequence[str]) -> list[tuple[str, str]]:
    """(name, value) of each variable, where a command does nothing else: `A=1 B=2`, `export A=1`."""
    rest = list(words)
    while rest and rest[0] in _WORDS:
        rest = rest[1:]
    if rest and rest[0] in _DECLARING:
        rest = [word for word in rest[1:] if _ASSIGNMENT.match(word)]
    found = [_ASSIGNMENT.match(word) for word in rest]
    return [(match[1], match[2]) for match in found if match] if all(found) else []


def _directory(words: Sequence[str], known: Mapping[str, Sequence[str]]) -> list[str]:
    """Where `cd WORD` leads; nowhere that is known for `cd -` and the like."""
    targets = [word for word in words[1:] if not word.startswith("-")]
    return list(_absolute(targets[0], known)) if targets else []


def _without_prefixes(words: Sequence[str]) -> list[str]:
    """The command itself, without words of the shell and programs that only start another."""
    rest = list(words)
    while rest:
        name = rest[0].rpartition("/")[2]
        if name in _WORDS or (_ASSIGNMENT.match(rest[0]) and len(rest) > 1 and not rest[1].startswith(">")):
            rest = rest[1:]
        elif name in _WITH_OPTIONS and (start := next((n for n, word in enumerate(rest) if n and _starts(word)), 0)):
            rest = rest[start:]
        else:
            return rest
    return rest


def _starts(word: str) -> bool:
    """Is it a program that this module knows, or a path of one?"""
    return word in TOOLS or word in _WRITERS or (word.startswith("/") and not word.startswith(_KERNEL))


def _expanded(word: str, known: Mapping[str, Sequence[str]]) -> list[str]:
    """What a word may be: a variable in it that holds a list makes it several."""
    found: list[str] = []
    waiting = [word]
    while waiting and len(found) < _MOST:
        one = waiting.pop()
        match = _VARIABLE.search(one)
        if match is None or len(one) > _LONGEST:
            found.append(one if match is None and len(one) <= _LONGEST else _UNKNOWN)
            continue
        values = _given(match, known)
        # A counter, such as $cpu in cpu$cpu/, stands for any number.
        if values is None or any("$" in value or "`" in value for value in values):
            values = [_UNKNOWN]
        waiting += [_with(one, match[0], value) for value in reversed(values[:64])]
    return found


def _with(word: str, variable: str, value: str) -> str:
    """The word with a value in each place of one variable."""
    return _VARIABLE.sub(lambda found: value if found[0] == variable else found[0], word)


def _value(word: str, known: Mapping[str, Sequence[str]]) -> str:
    """The text of a word, "" where only the running script knows it."""

    def text_of(match: re.Match[str]) -> str:
        values = _given(match, known)
        return values[0] if values and len(values) == 1 else "$"

    word = _VARIABLE.sub(text_of, word)
    return "" if any(sign in word for sign in ("$", "`", _UNKNOWN)) else word.strip()


def _given(match: re.Match[str], known: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
    """What a variable was given, or the default that stands with it; None where neither is known."""
    values = known.get(match[1] or match[3])
    return [match[2]] if match[2] is not None and values in (None, [""]) else values


def _said(words: Sequence[str], known: Mapping[str, Sequence[str]]) -> str:
    """What echo or printf write, or cat of a here-document."""
    if words[0].rpartition("/")[2] == "cat":
        return _here(words, known)
    if words[0].rpartition("/")[2] not in ("echo", "printf"):
        return ""
    stop = next((n for n, word in enumerate(words) if word.startswith((">", "<"))), len(words))
    texts = [word for word in words[1:stop] if word not in ("-n", "-e", "%s", "%s\\n", "--")]
    if stop < len(words) and texts and texts[-1] in ("1", "2") and len(texts) > 1:  # `echo x 2>`: a descriptor
        texts = texts[:-1]
    values = [_value(word, known).removesuffix("\\n") for word in texts]
    return " ".join(values) if all(values) else ""


def _here(words: Sequence[str], known: Mapping[str, Sequence[str]]) -> str:
    """What a command is given by `<<<`."""
    return next((_value(word, known) for before, word in pairwise(words) if before == "<<<"), "")


def _absolute(word: str, known: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What a word may be as a path: from the directory that the script went to, where it does not begin with `/`."""
    for one in _expanded(word, known):
        if one.startswith("/"):
            yield one
        elif not one.startswith(("-", _UNKNOWN)):  # an option, or who knows where
            yield from (posixpath.normpath(f"{base}/{one}") for base in known.get(_DIRECTORY, ()))


def _paths(word: str, known: Mapping[str, Sequence[str]]) -> Iterator[str]:
    found = (_BRACES.sub("N", one.replace(_UNKNOWN, "N")) for one in _absolute(word, known))
    for path in dict.fromkeys(found):
        if path.startswith(_KERNEL):
            yield path


def _of_program(words: list[str], known: Mapping[str, Sequence[str]], piped: str, depth: int) -> Iterator[Write]:
    name = words[0].rpartition("/")[2]
    own = _said(words, known)
    for before, target in pairwise(words):
        if before in _INTO:
            yield from (Write(0, path=path, key=path, value=own) for path in _paths(target, known))
    arguments = words[1 : next((n for n, word in enumerate(words) if word.startswith((">", "<", "&>"))), len(words))]
    piped = _here(words, known) or piped
    if name == "tee":
        yield from (Write(0, path=p, key=p, value=piped) for word in arguments for p in _paths(word, known))
    elif name == "dd":
        targets = [word.removeprefix("of=") for word in arguments if word.startswith("of=")]
        yield from (Write(0, path=p, key=p, value=piped) for word in targets for p in _paths(word, known))
    elif name in ("cp", "install") and arguments:
        yield from (Write(0, path=p, key=p) for p in _paths(arguments[-1], known))
    elif name in _SHELLS and depth and len(arguments) > 1 and arguments[0].startswith("-") and "c" in arguments[0]:
        yield from writes_of(arguments[1], depth - 1)
    elif tool := TOOLS.get(name):
        yield from tool([_value(word, known) or "$" for word in arguments])
