"""Edits the words of command lines in place: ours merged in by key, and taken out again. Pure.

Everything else stays as it is: the order, the spaces between the words, repeatable keys. A command line may be spread
over several texts (the `options` lines of one boot entry); the kernel is given them one after the other.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from tunectl.bootloader.cmdline import Arg, Rule, lookup, parse_cmdline, same_key
from tunectl.errors import UsageError

# (key, value, rule): value is None or "" for a bare argument such as nosoftlockup.
Desired = tuple[str, str | None, Rule]
Same = Callable[[str, str, str], bool]
Lines = tuple[str, ...]

# As lib/cmdline.c splits: a quote anywhere in a word keeps the spaces up to the next one.
_WORD = re.compile(r'(?:[^\s"]|"[^"]*(?:"|\Z))+')
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:=/@%+-]*")


class Swap(NamedTuple):
    """A word of ours, and the operator's word that it replaced; None where it was added."""

    ours: str
    theirs: str | None


class _Word(NamedTuple):
    line: int
    start: int
    end: int
    text: str

    @property
    def arg(self) -> Arg:
        return parse_cmdline(self.text)[0]


def written(want: Desired) -> str:
    """The word of a desired argument. UsageError for one that would need quoting."""
    key, value, _ = want
    return checked(f"{key}={value}" if value else key)


def is_safe(word: str) -> bool:
    """Do a shell, GRUB and the kernel all read this word as it is written, inside quotes and outside?"""
    return _SAFE.fullmatch(word) is not None


def checked(word: str) -> str:
    """The word. UsageError for one that would need quoting."""
    if not is_safe(word):
        raise UsageError(
            f"boot argument '{word}' has a character that a shell or a boot loader would change",
            "letters, digits and _ . , : = / @ % + - are passed on as they are",
        )
    return word


def given(args: Sequence[Arg], want: Desired, same: Same) -> bool:
    """Do these arguments put the desired one in force, by the kernel's own rule?"""
    key, _, rule = want
    found = lookup(args, key, rule, partial(same, key))
    if found is None:
        return False
    values = [found.value, *(arg.value for arg in found.others)] if rule is Rule.EACH else [found.value]
    return any(is_value(one, want, same) for one in values)


def is_value(value: str | None, want: Desired, same: Same) -> bool:
    """Is this the desired value? An empty one is as good as none."""
    key, wanted, _ = want
    return same(key, value, wanted) if value and wanted else not value and not wanted


def merge(lines: Lines, desired: Iterable[Desired], same: Same) -> Lines:
    """The lines with every desired argument in force, as far as their own words decide that.

    An argument that is there with another value gets ours where it stands; what is missing goes to the end, before
    a `--`. Of a key that may be repeated (Rule.EACH) the others stay.
    """
    for want in desired:
        if not given(parse_cmdline(" ".join(lines)), want, same):
            lines = _put(lines, want)
    return lines


def _put(lines: Lines, want: Desired) -> Lines:
    key, _, rule = want
    words = _words(lines)
    mine = [word for word in words[: _end_of_kernels(words)] if same_key(word.arg.key, key)]
    valued = [word for word in mine if word.arg.value is not None]
    if rule is Rule.FIRST and valued:
        return _replace(lines, valued[0], written(want))
    if rule is Rule.LAST and mine:
        return _replace(lines, (valued or mine)[-1], written(want))
    return append(lines, written(want))


def _end_of_kernels(words: Sequence[_Word]) -> int:
    """Where the kernel's own words end: what is behind a `--` goes to init."""
    return next((n for n, word in enumerate(words) if word.text == "--"), len(words))


def append(lines: Lines, more: str) -> Lines:
    """The lines with `more` as the last of the kernel's own words."""
    words = _words(lines)
    end = _end_of_kernels(words)
    if end < len(words):
        return _replace(lines, words[end], f"{more} --")
    last = lines[-1].rstrip()
    return (*lines[:-1], f"{last} {more}{lines[-1][len(last) :]}" if last else more)


def swaps(before: Lines, after: Lines) -> tuple[Swap, ...]:
    """Which words of `after` are ours, and what each replaced."""
    old, new = (Counter(word.text for word in _words(lines)) for lines in (before, after))
    lost = list((old - new).elements())
    found = []
    for word in (new - old).elements():
        key = parse_cmdline(word)[0].key
        theirs = next((one for one in lost if same_key(parse_cmdline(one)[0].key, key)), None)
        if theirs is not None:
            lost.remove(theirs)
        found.append(Swap(word, theirs))
    return tuple(found)


def split(line: str) -> list[str]:
    """The words of a line as they are written; quotes keep their spaces."""
    return _WORD.findall(line)


def take_out(lines: Lines, ours: Iterable[Swap]) -> Lines:
    """The lines without our words, and with the operator's own back where ours had replaced them."""
    for swap in ours:
        word = next((word for word in _words(lines) if word.text == swap.ours), None)
        if word is not None:
            lines = _replace(lines, word, swap.theirs)
    return lines


def _words(lines: Lines) -> list[_Word]:
    return [
        _Word(number, match.start(), match.end(), match[0])
        for number, line in enumerate(lines)
        for match in _WORD.finditer(line)
    ]


def _replace(lines: Lines, word: _Word, text: str | None) -> Lines:
    line = lines[word.line]
    head, tail = line[: word.start], line[word.end :]
    if text is None:
        line = head.rstrip(" ") + tail if head.strip() else head + tail.lstrip(" ")
    else:
        line = head + text + tail
    return (*lines[: word.line], line, *lines[word.line + 1 :])
