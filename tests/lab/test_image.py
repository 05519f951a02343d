"""Which image and which machine the lab asks for."""

import shutil
from pathlib import Path

import pytest

from . import firmware, image, machine
from .machine import Machine
from .platforms import PLATFORMS, VARIABLE, Platform, chosen
from .shell import LabError


def test_the_platform_is_chosen_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert chosen().name == "bookworm"
    monkeypatch.setenv(VARIABLE, "rt")
    assert chosen().kernel == "linux-image-rt-amd64"
    monkeypatch.setenv(VARIABLE, "sid")
    with pytest.raises(LabError, match="the lab can be bookworm, trixie"):
        chosen()


def test_platforms_share_an_image_where_only_the_machine_differs() -> None:
    usual = Platform("usual", "")
    others = [Platform("newer", "", suite="trixie"), Platform("other", "", kernel="linux-image-rt-amd64")]
    assert len({image.recipe(one) for one in (usual, *others)}) == 3
    assert image.recipe(Platform("larger", "", machine=Machine(sockets=2))) == image.recipe(usual)
    kernels = {"linux-image-rt-amd64", "linux-image-amd64"}
    assert kernels & set(image.packages(others[1])) == {"linux-image-rt-amd64"}


def test_an_image_is_named_by_what_its_own_loader_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(image.DEBIAN, tmp_path / "debian")
    monkeypatch.setattr(image, "HERE", tmp_path)
    monkeypatch.setattr(image, "DEBIAN", tmp_path / "debian")
    for name in ("image.py", "foreign.py"):
        (tmp_path / name).write_text("")
    before = {name: image.recipe(one) for name, one in PLATFORMS.items()}
    (tmp_path / "debian/finish-esp.sh").write_text("true")
    changed = {name for name, one in PLATFORMS.items() if image.recipe(one) != before[name]}
    assert changed == {name for name, one in PLATFORMS.items() if one.uefi}


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
def test_each_platform_has_what_its_image_is_made_with(platform: Platform) -> None:
    assert all(path.exists() for path in image.scripts(platform))
    assert platform.machine.cpus % platform.machine.nodes == 0


def test_the_mirrors_list_is_shortened_to_what_was_chosen(tmp_path: Path) -> None:
    lists = tmp_path / "var/lib/apt/lists"
    lists.mkdir(parents=True)
    (tmp_path / "debootstrap").mkdir()
    (tmp_path / "debootstrap/debpaths").write_text("apt /archives/apt.deb\nlibc6 /archives/libc6.deb\n")
    entries = [f"Package: {name}\nVersion: 1\nDepends: apt\n\n" for name in ("apt", "apt-utils", "libc6", "zsh")]
    (lists / "mirror_main_binary-arm64_Packages").write_text("".join(entries))
    image.shorten_list(tmp_path)
    assert (lists / "mirror_main_binary-arm64_Packages").read_text() == entries[0] + entries[2]


def test_the_firmware_has_each_cpu_once() -> None:
    text = firmware.source(Machine(sockets=3, cores=2, threads=2))
    scopes = [line.split(".")[-1] for line in text.splitlines() if line.strip().startswith("Scope (\\_SB")]
    assert scopes == [f"C{cpu:03X})" for cpu in range(12)]
    assert "C00B, 0x80)" in text
    assert "each CPU\n" not in text.partition("DefinitionBlock")[2]


def test_nodes_share_cpus_and_memory_between_them(tmp_path: Path) -> None:
    words = " ".join(Machine(sockets=2, cores=2, threads=2, nodes=2, memory_mib=2048).words())
    assert "-smp 8,sockets=2,cores=2,threads=2 -m 2048" in words
    assert "id=node1,size=1024M -numa node,nodeid=1,cpus=4-7,memdev=node1" in words
    assert "-numa" not in " ".join(Machine().words())
    assert machine.argv(Machine(), tmp_path, None, tmp_path, "raw", 1)[0] == "qemu-system-x86_64"
