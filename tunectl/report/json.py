"""JSON, as docs/interface.md describes it: a header that every document has, then the body."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tunectl import __version__
from tunectl.model import Document, Finding
from tunectl.report.findings import finding_body
from tunectl.shapes import Header, host_of, plain

# A run of the probe may list four million gaps: a line each and no blank, or the document is three times as long.
_TRIPLE = re.compile(r"\n +\[\n +(\d+),\n +(\d+),\n +(\d+)\n +\]")
_ROWS = 200  # of a list, in one piece
_LONG = 1 << 20  # a document that is not is one piece
_TERMINAL = re.compile("[\x7f-\x9f]")  # control characters that JSON allows as they are, and terminals obey


def render(document: Document, *, width: int = 0, colour: bool = False) -> str:
    """One JSON object, indented by two. Infinity and NaN, which JSON cannot write, become null."""
    return "".join(pieces(document))


def pieces(document: Document) -> Iterator[str]:
    """The same in pieces, for a document that is larger than what it is made of."""
    header = plain(Header(f"tunectl.{document.name}/1", __version__, host_of(document.host), document.at))
    said, opening = "", "{"
    for key, value in {**header, **document.body, **header}.items():  # the header comes first, and wins
        if isinstance(value, list) and len(value) > _ROWS:
            head = f"\n  {json.dumps(key)}: ["
            for at in range(0, len(value), _ROWS):
                rows = _dump({key: value[at : at + _ROWS]})[1 + len(head) : -len("\n  ]\n}")]
                yield f"{',' if at else said + opening + head}{rows}"
            said = "\n  ]"
        else:
            said += opening + _dump({key: value})[1:-2]
        opening = ","
        if len(said) > _LONG:
            yield said
            said = ""
    yield said + "\n}\n"


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body with its findings, on any level, as plain dictionaries."""
    return {
        key: [finding_body(item) if isinstance(item, Finding) else item for item in value]
        if key == "findings"
        else _plain(value)
        if isinstance(value, Mapping)
        else value
        for key, value in body.items()
    }


def _dump(body: Mapping[str, Any]) -> str:
    value = _plain(body)
    try:
        (text := _dumped(value)).encode()
    except ValueError:  # a NaN, or a lone surrogate: rare, so only then is every value looked at
        return _dumped(_safe(value))
    return text


def _dumped(value: Any) -> str:
    # The json module indents in Python code, which would take five times as long as everything else here.
    # Each form of a large document is gone before the next but one is made.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, check_circular=False)
    text = _TRIPLE.sub(r"\n[\1,\2,\3]", msgspec.json.format(text, indent=2))
    if text.isascii() and "\x7f" not in text:
        return text
    return _TERMINAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _safe(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):  # "\udc80" alone is no character, and strict readers refuse its JSON escape too
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_safe(key): _safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(item) for item in value]
    return value
