"""Which image the lab asks for."""

import pytest

from . import image
from .shell import LabError


def test_each_suite_and_each_kernel_has_an_image_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUNECTL_LAB_SUITE", raising=False)
    monkeypatch.delenv("TUNECTL_LAB_KERNEL", raising=False)
    names = {image.recipe()}
    monkeypatch.setenv("TUNECTL_LAB_SUITE", "bookworm")
    assert image.recipe() in names
    monkeypatch.setenv("TUNECTL_LAB_SUITE", "trixie")
    names.add(image.recipe())
    monkeypatch.setenv("TUNECTL_LAB_KERNEL", "linux-image-rt-amd64")
    names.add(image.recipe())
    assert len(names) == 3
    assert {"linux-image-rt-amd64", "linux-image-amd64"} & set(image.packages()) == {"linux-image-rt-amd64"}


def test_a_suite_that_the_lab_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNECTL_LAB_SUITE", "sid")
    with pytest.raises(LabError, match="bookworm or trixie"):
        image.recipe()
