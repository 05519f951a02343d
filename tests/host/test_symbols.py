"""Which functions the kernel has, by a list that is read in parts."""

from pathlib import Path

import pytest

from tunectl.host.symbols import has_symbol
from tunectl.host.sysroot import Sysroot

_PART = 1 << 16
_LINE = "0000000000000000 T start_kernel\n"


def listing(tmp_path: Path, text: str) -> Sysroot:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/kallsyms").write_text(text)
    return Sysroot(str(tmp_path))


@pytest.mark.parametrize("before", range(_PART - 40, _PART + 1, 4))
def test_a_name_is_seen_wherever_the_parts_are_cut(tmp_path: Path, before: int) -> None:
    filler = (_LINE * (before // len(_LINE) + 1))[:before]
    root = listing(tmp_path, f"{filler}\n0000000000000000 T dl_server_start\n")
    assert has_symbol(root, "dl_server_start") is True
    assert has_symbol(root, "server_start") is False, "a name begins as asked, or is another"


def test_of_an_empty_or_absent_list_nothing_is_known(tmp_path: Path) -> None:
    assert has_symbol(Sysroot(str(tmp_path)), "dl_server_start") is None
    assert has_symbol(listing(tmp_path, ""), "dl_server_start") is None
