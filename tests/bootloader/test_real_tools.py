"""The written files as the distribution's own programs read them: bootctl, kernel-install, grub-mkconfig, sh."""

import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.bootloader.hosts import LINE, boot_findings, host, upcoming, wish
from tests.bootloader.test_grub import grub_mkconfig
from tests.bootloader.trees import write
from tests.hosts.boot_files import MACHINE_ID
from tests.trees import differences, picture
from tests.tuned import apply, restore
from tunectl.bootloader.entries import in_order, read_entries
from tunectl.bootloader.grubsettings import run_shell
from tunectl.bootloader.systemdboot import default_entry
from tunectl.bootloader.uki import read_images, read_sections
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome

STUB = Path("/usr/lib/systemd/boot/efi/linuxx64.efi.stub")
PLUGIN = "/usr/lib/kernel/install.d/90-loaderentry.install"
NEWER = "6.1.0-40-amd64"

needs_bootctl = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("bootctl") or not STUB.exists(),
    reason="needs root, and Debian's systemd-boot and systemd-boot-efi",
)
needs_kernel_install = pytest.mark.skipif(
    not shutil.which("kernel-install") or not Path(PLUGIN).exists(), reason="needs kernel-install"
)


def bootctl_list(boot: Path, mount: Path) -> list[dict[str, str]]:
    """`bootctl list` of a boot partition with these files, in the order of the menu."""
    mount.mkdir()
    script = 'mount -t tmpfs none "$1"; cp -r "$2/." "$1"; exec bootctl --esp-path="$1" list --json=pretty'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script, "sh", str(mount), str(boot)],
        env={**os.environ, "SYSTEMD_RELAX_ESP_CHECKS": "1", "SYSTEMD_RELAX_XBOOTLDR_CHECKS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"bootctl does not run here: {done.stderr.strip()[-200:]}")
    decoder, text, found = json.JSONDecoder(), done.stdout.strip(), []
    while text:  # one document after the other, or (systemd 254) an array of them
        document, end = decoder.raw_decode(text)
        found += document if isinstance(document, list) else [document]
        text = text[end:].strip()
    return [entry for entry in found if not entry["id"].startswith("auto-")]


@needs_bootctl
def test_bootctl_reads_what_apply_wrote(tmp_path: Path) -> None:
    tree = host(tmp_path, "systemd-boot")
    apply(tree)
    listed = bootctl_list(tree / "boot", tmp_path / "mount")
    assert [LINE in entry["options"] for entry in listed] == [True, True]
    default = upcoming(tree, "systemd-boot").points[0]
    assert (default.where, default.line) == (f"/boot/loader/entries/{listed[0]['id']}", listed[0]["options"])


@needs_bootctl
@pytest.mark.parametrize("seed", range(3))
def test_the_menu_has_systemds_order(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    files: dict[str, str] = {}
    for _ in range(30):
        version = chance.choice(
            ["6.1", "6.10", "6.9.0-3", "6.9.0-12", "6.1~rc3", "6.1.0^git2", "7a", "7", "007.1", "5-2"]
        )
        name = chance.choice(["alpha", "beta-1", "beta-12", "Zulu"]) + "-" + re.sub("[~^]", ".", version)
        counter = chance.choice(["", "", "+3", "+0-3", "+1-2"])
        text = f"title {name}\nversion {version}\nlinux /l\noptions id={name}\n"
        text += chance.choice(["", "", "sort-key debian\n", "sort-key arch\n"])
        text += chance.choice(["", f"machine-id {chance.choice('ab') * 32}\n"])
        if not any(path.startswith(f"boot/loader/entries/{name}.") or f"{name}+" in path for path in files):
            files[f"boot/loader/entries/{name}{counter}.conf"] = text
    root = write(tmp_path / "host", {**files, "boot/l": ""})
    entries = in_order(read_entries(root))
    listed = bootctl_list(tmp_path / "host/boot", tmp_path / "mount")
    assert [(entry.path.rpartition("/")[2], entry.line) for entry in entries] == [
        (entry["path"].rpartition("/")[2], entry["options"]) for entry in listed
    ]
    first = default_entry(root, entries)
    assert first
    assert first.line == listed[0]["options"]


def make_image(place: Path, sections: Mapping[str, str]) -> None:
    """A unified image: the real stub, with these sections added by objcopy."""
    place.parent.mkdir(parents=True, exist_ok=True)
    words = []
    for number, (name, text) in enumerate(sections.items()):
        part = place.with_suffix(name)
        part.write_text(text)
        words += [f"--add-section={name}={part}", f"--change-section-vma={name}={0x20000 + 0x1000 * number:#x}"]
    subprocess.run(["objcopy", *words, str(STUB), str(place)], check=True)
    for name in sections:
        place.with_suffix(name).unlink()


@needs_bootctl
def test_an_image_made_with_the_real_stub_is_read_as_bootctl_does(tmp_path: Path) -> None:
    root = Sysroot(str(tmp_path / "host"))
    release = 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12"\nVERSION_ID="12"\n'
    sections = {".osrel": release, ".uname": NEWER, ".cmdline": f"root=/dev/sda1 ro\n  {LINE}\n", ".linux": "MZ"}
    make_image(tmp_path / f"host/boot/EFI/Linux/{NEWER}.efi", sections)
    (image,) = read_images(root, ("boot",))
    (listed,) = bootctl_list(tmp_path / "host/boot", tmp_path / "mount")
    assert (image.id, image.title, image.sort_key) == (listed["id"], listed["title"], listed["sortKey"])
    assert image.line.split() == listed["options"].split() == ["root=/dev/sda1", "ro", *LINE.split()]
    assert read_sections(root, f"boot/EFI/Linux/{NEWER}.efi")[".uname"] == NEWER


def kernel_install(tree: Path, version: str) -> None:
    """The real kernel-install adds a kernel to a recorded host, by the plugin that writes entries."""
    conf = f"layout=bls\nMACHINE_ID={MACHINE_ID}\nBOOT_ROOT={tree}/boot\n"
    (tree / "etc/kernel/install.conf").write_text(conf)
    (tree / f"boot/{MACHINE_ID}/{version}").mkdir(parents=True)
    kernel = tree / "vmlinuz"
    kernel.write_text("kernel")
    done = subprocess.run(
        ["kernel-install", "add", version, str(kernel)],
        env={
            **os.environ,
            "KERNEL_INSTALL_CONF_ROOT": f"{tree}/etc/kernel",
            "KERNEL_INSTALL_PLUGINS": PLUGIN,
            "BOOT_ROOT": f"{tree}/boot",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@needs_kernel_install
def test_a_kernel_upgrade_before_the_reboot_keeps_the_arguments(tmp_path: Path) -> None:
    tree = host(tmp_path, "systemd-boot")
    before = picture(tree)
    apply(tree)
    kernel_install(tree, NEWER)
    entry = tree / f"boot/loader/entries/{MACHINE_ID}-{NEWER}.conf"
    assert LINE in entry.read_text()
    assert upcoming(tree, "systemd-boot").points[0].where == "/" + str(entry.relative_to(tree))
    assert {one.outcome for one in boot_findings(tree).values()} == {Outcome.PENDING_REBOOT}
    undone = restore(tree)
    assert undone.complete
    assert "isolcpus" not in entry.read_text()
    assert f"options    root=UUID=5f3c-0001 ro quiet systemd.machine_id={MACHINE_ID}\n" in entry.read_text()
    changed = [path for path in differences(before, tree) if path in before and not (tree / path).is_dir()]
    assert changed == []


@needs_kernel_install
def test_without_a_default_source_one_is_made_of_the_default_entry(tmp_path: Path) -> None:
    tree = host(tmp_path, "systemd-boot")
    (tree / "etc/kernel/cmdline").unlink()
    before = picture(tree)
    apply(tree)
    assert (tree / "etc/kernel/cmdline").read_text() == f"root=UUID=5f3c-0001 ro quiet {LINE}\n"
    wish(tree, knobs='"boot.tsc" = "unmanaged"\n')
    apply(tree)
    shorter = LINE.replace(" tsc=reliable", "")
    assert (tree / "etc/kernel/cmdline").read_text() == f"root=UUID=5f3c-0001 ro quiet {shorter}\n"
    wish(tree)
    apply(tree)
    kernel_install(tree, NEWER)
    text = (tree / f"boot/loader/entries/{MACHINE_ID}-{NEWER}.conf").read_text()
    assert f"options    root=UUID=5f3c-0001 ro quiet {LINE} systemd.machine_id={MACHINE_ID}\n" in text
    assert restore(tree).complete
    assert not (tree / "etc/kernel/cmdline").exists()
    changed = [path for path in differences(before, tree) if path in before and not (tree / path).is_dir()]
    assert changed == []


MAKER = """\
#!/bin/sh -e
# What 60-ukify.install and 90-uki-copy.install do together, for a systemd that has neither yet.
[ "$1" = add ] || exit 0
printf %s "$2" > "$KERNEL_INSTALL_STAGING_AREA/uname"
objcopy --add-section .osrel=/etc/os-release --change-section-vma .osrel=0x20000 \\
    --add-section .cmdline="$KERNEL_INSTALL_CONF_ROOT/cmdline" --change-section-vma .cmdline=0x30000 \\
    --add-section .uname="$KERNEL_INSTALL_STAGING_AREA/uname" --change-section-vma .uname=0x40000 \\
    --add-section .linux="$4" --change-section-vma .linux=0x50000 \\
    STUB "$KERNEL_INSTALL_BOOT_ROOT/EFI/Linux/$KERNEL_INSTALL_ENTRY_TOKEN-$2.efi"
"""


@needs_kernel_install
@needs_bootctl
def test_the_image_that_kernel_install_makes_of_the_edited_source_has_the_arguments(tmp_path: Path) -> None:
    tree = host(tmp_path, "uki")
    before = picture(tree)
    run = apply(tree)
    (command,) = [line.split() for line in run.applied.not_run if "kernel-install" in line]
    plugin = tmp_path / "90-uki.install"
    plugin.write_text(MAKER.replace("STUB", str(STUB)))
    plugin.chmod(0o755)
    boot = tree / "boot/efi"
    (tree / "etc/kernel/install.conf").write_text(f"layout=uki\nMACHINE_ID={MACHINE_ID}\nBOOT_ROOT={boot}\n")
    places = {"KERNEL_INSTALL_CONF_ROOT": f"{tree}/etc/kernel", "KERNEL_INSTALL_PLUGINS": str(plugin)}
    argv = [command[0], *command[1:-1], str(tree / command[-1].lstrip("/"))]
    done = subprocess.run(argv, env={**os.environ, **places}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (image,) = read_images(Sysroot(str(tree)), ("boot/efi",))  # the earlier one is no longer there
    assert image.line.endswith(f"ro quiet {LINE}")
    assert upcoming(tree, "uki").note == ""  # the image and its source agree
    (listed,) = bootctl_list(boot, tmp_path / "mount")
    assert (listed["id"], listed["options"].split()) == (image.id, image.line.split())
    (tree / "etc/kernel/install.conf").write_text("layout=uki\n")
    assert restore(tree).complete
    assert [path for path in differences(before, tree) if path.startswith("etc")] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
@pytest.mark.skipif(not shutil.which("grub-mkconfig"), reason="grub-common and grub2-common are not installed")
def test_grub_mkconfig_reads_an_edited_settings_file(on_disk: Path) -> None:
    tree = host(on_disk, "suse-grub")
    settings = tree / "etc/default/grub"
    settings.write_text(settings.read_text() + "GRUB_TERMINAL=console\nGRUB_DEFAULT=0\n")
    write(tree, {"boot/vmlinuz-6.1.0-39-amd64": "kernel", "boot/initrd.img-6.1.0-39-amd64": "initrd"})
    apply(tree)
    sourced = run_shell(Sysroot(str(tree)), (str(settings),))
    assert (sourced.problem, sourced.linux_default) == (None, f"splash=silent quiet mitigations=auto {LINE}")
    made = grub_mkconfig(Sysroot(str(tree)), on_disk)
    linux = [line for line in made.splitlines() if line.lstrip().startswith("linux")]
    assert [line.endswith(f" quiet mitigations=auto {LINE}") for line in linux if "single" not in line] == [True, True]
    assert all("isolcpus" not in line for line in linux if "single" in line)
