"""Documents as files that were read."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compare.reading import Read
from tunectl.probe.document import ProbeFile, read_document


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes a document into a file of that name, and reads it."""

    def made(name: str, body: dict[str, Any]) -> ProbeFile:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(body))
        return read_document(path)

    return made
