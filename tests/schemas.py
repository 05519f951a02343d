"""Documents beside the schemas that we publish, each read once: to check a schema takes longer than a document.

That each is one, and is what the product writes, tests/cli/test_manuals.py tells.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

SCHEMAS = Path(__file__).parent.parent / "docs" / "schema"


@cache
def _validator(name: str) -> Draft202012Validator:
    text = (SCHEMAS / f"tunectl.{name}-1.json").read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text), format_checker=FormatChecker())


def problems(name: str, document: object) -> list[str]:
    """Where the document is not as the schema tunectl.NAME/1 has it."""
    return [f"{error.json_path}: {error.message}" for error in _validator(name).iter_errors(document)]


def fits(name: str, document: object) -> Any:
    """The document, which is as the schema tunectl.NAME/1 has it."""
    assert problems(name, document) == []
    return document
