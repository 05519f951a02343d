"""A lent tree comes back as its original is, whatever was done to it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trees import Lent, picture, write


def _replace_by_link(tree: Path) -> None:
    (tree / "etc/file").unlink()
    (tree / "etc/file").symlink_to("other")


def _replace_by_directory(tree: Path) -> None:
    (tree / "etc/link").unlink()
    write(tree, "etc/link/file", "")


@pytest.mark.parametrize(
    "act",
    [
        lambda tree: None,
        lambda tree: write(tree, "etc/file", "more"),
        lambda tree: (tree / "etc/file").chmod(0o600),
        lambda tree: (tree / "etc/deep").chmod(0o700),
        lambda tree: (tree / "etc/file").unlink(),
        lambda tree: write(tree, "etc/deep/new/file", "new"),
        lambda tree: shutil.rmtree(tree / "etc/deep"),
        lambda tree: (tree / "etc/deep").rename(tree / "deep"),
        lambda tree: (tree / "etc/deep/file").rename(tree / "etc/file"),
        _replace_by_link,
        _replace_by_directory,
    ],
)
def test_it_is_as_it_was(tmp_path: Path, act: Callable[[Path], object]) -> None:
    original = tmp_path / "original"
    for path in ("etc/file", "etc/other", "etc/deep/file"):
        write(original, path, path)
    (original / "etc/link").symlink_to("file")
    lent = Lent(original, tmp_path / "lent")
    for _ in range(2):
        tree = lent()
        assert picture(tree) == picture(original)
        act(tree)
    assert picture(lent()) == picture(original)
