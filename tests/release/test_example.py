"""The example host file of the packages is one that tunectl accepts: as it stands, and with all that it offers."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.builder import HostFactory
from tests.ran import Ran

EXAMPLE = Path(__file__).parents[2] / ".release/host.toml.example"
OFFERED = re.compile(r"^#(?=\S)", re.MULTILINE)  # `#key = value`; in a sentence a space follows the #


@pytest.mark.parametrize(
    "text", [EXAMPLE.read_text(), OFFERED.sub("", EXAMPLE.read_text())], ids=["as-is", "all-of-it"]
)
def test_the_example_is_accepted(
    tunectl: Callable[..., Ran], host_root: HostFactory, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "host.toml"
    path.write_text(text)
    done = tunectl("verify", "--root", host_root("lab4"), "--host", path)
    assert done.code in (3, 4), done.err


def test_the_example_offers_what_it_explains() -> None:
    assert len(OFFERED.findall(EXAMPLE.read_text())) > 10
