"""What a transcript repeats is shown once: one record of each kind, one paragraph, no style sheet."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Fields whose words make a kind of their own.
_WORDS = ("type", "kind", "outcome", "result", "lifetime", "verdict", "health", "match", "state", "note", "reasons")
_NUMBERS = re.compile(r"[\d,.:-]+|\s+")


def short_json(text: str, *words: str) -> str:
    """A document with one record of each kind in each list, and how many more there are; a kind for each of `words`."""
    return f"{json.dumps(_short(json.loads(text), (*_WORDS, *words)), indent=1, ensure_ascii=False)}\n"


def _short(value: Any, words: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _short(each, words) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    first: dict[str, Any] = {}
    for each in value:
        first.setdefault(_kind(each, words), each)
    return [*(_short(each, words) for each in first.values()), *_more(len(value) - len(first))]


def _more(count: int) -> list[str]:
    return [f"... {count} more"] if count else []


def _kind(value: Any, words: Sequence[str]) -> str:
    """A record's fields, which of them say nothing, what its words are, and the kinds of records in its lists."""
    if isinstance(value, list):
        return str(sorted({_kind(each, words) for each in value if isinstance(each, dict)} or {str(value == [])}))
    if not isinstance(value, dict):
        return json.dumps(value)
    fields = {key: str(each) if key in words else _kind_of_field(each, words) for key, each in value.items()}
    return re.sub(r"\d+", "N", str(fields))


def _kind_of_field(value: Any, words: Sequence[str]) -> str:
    return _kind(value, words) if isinstance(value, list) else str(value in (None, "", {}))


def short_journal(text: str) -> str:
    """The first record of each kind in a journal, and how many more there are."""
    first: dict[tuple[str, str], str] = {}
    lines = text.splitlines()
    for line in lines:
        record = json.loads(line.partition(" ")[2])
        first.setdefault((record["type"], record.get("kind", "")), line)
    return "\n".join([*first.values(), *_more(len(lines) - len(first)), ""])


def new_paragraphs(texts: Iterable[str]) -> str:
    """Texts one after the other, without paragraphs that differ from an earlier one in numbers only."""
    seen: set[str] = set()
    made = []
    for text in texts:
        paragraphs = text.strip().split("\n\n")
        new = [each for each in paragraphs if _NUMBERS.sub("", each) not in seen]
        seen.update(_NUMBERS.sub("", each) for each in paragraphs)
        made += [*new, *_more(len(paragraphs) - len(new))]
    return "\n\n".join([*made, ""])
