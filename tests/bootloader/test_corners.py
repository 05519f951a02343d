"""What keeps a family from writing, which entries it leaves alone, and who decides where two match."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bootloader.hosts import LINE, NEWEST, boot_findings, host, upcoming, wish
from tests.bootloader.trees import write
from tests.hosts.boot_files import BLS_CFG, MACHINE_ID, image
from tests.ran import Ran
from tests.trees import differences, picture
from tests.tuned import apply, inspection_on, restore
from tunectl.bootloader.bls import expanded, listed
from tunectl.bootloader.entries import in_order, parse_entry, read_entries, version_key
from tunectl.bootloader.families import FAMILIES
from tunectl.bootloader.systemdboot import default_entry
from tunectl.bootloader.uki import kernel_of, read_images, read_sections
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot
from tunectl.host.writable import WritableSysroot
from tunectl.model import Outcome

ENTRIES = f"boot/loader/entries/{MACHINE_ID}"


def edit(tree: Path, path: str, change: Callable[[str], str]) -> None:
    place = tree / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(change(place.read_text() if place.exists() else ""))


@pytest.mark.parametrize(
    ("loader", "path", "change", "said"),
    [
        ("bls", f"{ENTRIES}-{NEWEST}.conf", lambda text: text.replace("root=", "$kernelopts root="), "as on RHEL 8"),
        ("bls", "etc/zipl.conf", lambda text: text, "zipl copies the entries"),
        ("bls", "etc/default/grub", lambda text: "GRUB_CMDLINE_LINUX=`cat x`\n", "is not one plain text in quotes"),
        ("bls", "etc/default/grub", lambda text: text.replace("quiet", "isolcpus=1 -- quiet"), "-- quiet"),
        ("rpm-ostree", "run/ostree/staged-deployment", lambda text: text, "reboot into it first"),
        ("raspberry-pi", "boot/firmware/config.txt", lambda text: text + "cmdline=other.txt\n", "read another file"),
        ("raspberry-pi", "boot/firmware/config.txt", lambda text: text + "os_prefix=v2/\n", "read another file"),
        ("raspberry-pi", "etc/kernel/postinst.d/z50-raspi-firmware", lambda text: text, "raspi-extra-cmdline"),
        ("kernelstub", "etc/kernelstub/configuration", lambda text: "{}", "not what kernelstub writes"),
        ("suse-grub", "etc/default/grub", lambda text: text.replace("quiet", "'quiet'"), ""),
        ("bls", f"{ENTRIES}-{NEWEST}.conf", lambda text: text.replace("quiet", "x" * 1900), "the kernel keeps 2047"),
        # It fits, but not behind the BOOT_IMAGE= that GRUB adds.
        ("bls", f"{ENTRIES}-{NEWEST}.conf", lambda text: text.replace("quiet", "x" * 1875), "the kernel keeps 2047"),
        ("bls", f"{ENTRIES}-{NEWEST}.conf", lambda text: text + "options debug\n", "has 2 lines of options"),
        ("bls", f"{ENTRIES}-{NEWEST}.conf", lambda text: text.replace("options", "#options"), "has 0 lines of options"),
        ("rpm-ostree", "boot/loader.0/entries/ostree-2.conf", lambda text: text + "options debug\n", "has 2 lines"),
    ],
)
def test_what_cannot_be_written_safely_is_left_alone_and_said(
    loader: str, path: str, change: Callable[[str], str], said: str, tmp_path: Path
) -> None:
    tree = host(tmp_path, loader)
    edit(tree, path, change)
    before = {
        name: what for name, what in picture(tree).items() if name.startswith(("boot", "etc/default/grub", "etc/kern"))
    }
    apply(tree)
    if said == "-- quiet":  # merged in front of what init gets
        assert "isolcpus=managed_irq,domain,2-3 nohz_full" in (tree / path).read_text().partition(" -- quiet")[0]
        return
    finding = boot_findings(tree)["boot.isolcpus"]
    assert finding.outcome is Outcome.DRIFTED
    assert said in finding.reason
    assert not [name for name in differences(before, tree) if name in before]


def test_without_a_source_an_image_is_not_made_of_the_running_line(tmp_path: Path) -> None:
    tree = host(tmp_path, "uki")
    (tree / "etc/kernel/cmdline").unlink()
    apply(tree)
    assert "would put this boot's own line into the image" in boot_findings(tree)["boot.isolcpus"].reason
    assert not (tree / "etc/kernel/cmdline").exists()


@pytest.mark.slow
@pytest.mark.parametrize("loader", ["bls", "systemd-boot", "uki"])
def test_a_source_that_cannot_be_read_is_said(loader: str, tunectl: Callable[..., Ran], tmp_path: Path) -> None:
    tree = host(tmp_path, loader)
    (tree / "etc/kernel/cmdline").unlink()
    (tree / "etc/kernel/cmdline").mkdir()
    for command in ("plan", "verify", "show"):
        assert tunectl(command, "--root", tree).code in (0, 3)
    assert f"cannot read {tree}/etc/kernel/cmdline: Is a directory" in boot_findings(tree)["boot.isolcpus"].reason


IMAGE = f"boot/efi/EFI/Linux/{MACHINE_ID}-{NEWEST}.efi"


def signed(data: bytes) -> bytes:
    """The image with a certificate table, as sbsign leaves it: the fifth data directory has a size."""
    optional = struct.pack("<H", 0x20B).ljust(108, b"\0") + struct.pack("<I", 16) + bytes(32) + struct.pack("<II", 1, 8)
    count = struct.unpack_from("<H", data, 0x46)[0]
    head = data[:0x54] + struct.pack("<H", len(optional)) + data[0x56:0x58] + optional
    return (head + data[0x58 : 0x58 + 40 * count]).ljust(4096, b"\0") + data[4096:]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tree: (tree / IMAGE).rename(tree / "boot/efi/EFI/Linux/arch-linux.efi"), "kernel-install did not make"),
        (lambda tree: (tree / f"usr/lib/modules/{NEWEST}/vmlinuz").unlink(), "or its kernel is not there"),
        (lambda tree: (tree / IMAGE).write_bytes(signed((tree / IMAGE).read_bytes())), "is signed, and nothing says"),
    ],
)
def test_an_image_that_kernel_install_cannot_make_anew_is_left_alone(
    change: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    tree = host(tmp_path, "uki")
    change(tree)
    before = picture(tree)
    run = apply(tree)
    assert said in boot_findings(tree)["boot.isolcpus"].reason
    assert not [line for line in run.applied.not_run if "kernel-install" in line]
    assert "etc/kernel/cmdline" not in differences(before, tree)


def test_a_signed_image_is_made_anew_where_kernel_install_signs(tmp_path: Path) -> None:
    tree = host(tmp_path, "uki")
    (tree / IMAGE).write_bytes(signed((tree / IMAGE).read_bytes()))
    edit(tree, "etc/kernel/uki.conf", lambda text: "[UKI]\nSecureBootPrivateKey=/etc/kernel/key.pem\n")
    apply(tree)
    assert LINE in (tree / "etc/kernel/cmdline").read_text()
    assert read_images(Sysroot(str(tree)), ("boot/efi",))[0].signed


def test_an_image_on_trial_has_its_name_without_the_counter(tmp_path: Path) -> None:
    tree = host(tmp_path, "uki")
    for name, exhausted in (("+2-1", False), ("+0-3", True)):
        place = next((tree / "boot/efi/EFI/Linux").iterdir())
        place.rename(place.with_name(f"{MACHINE_ID}-{NEWEST}{name}.efi"))
        (found,) = read_images(Sysroot(str(tree)), ("boot/efi",))
        assert (found.id, found.exhausted) == (f"{MACHINE_ID}-{NEWEST}.efi", exhausted)
        assert kernel_of(Sysroot(str(tree)), found) == f"usr/lib/modules/{NEWEST}/vmlinuz"


def test_rescue_entries_and_other_systems_stay(tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    (tree / "etc/machine-id").write_text(MACHINE_ID + "\n")
    other = f"boot/loader/entries/{'f' * 32}-6.9.conf"
    (tree / other).write_text("title Other\nversion 6.9\nlinux /vmlinuz\noptions quiet\n")
    (tree / "boot/loader/entries/memtest.conf").write_text("title Memtest\nefi /memtest.efi\noptions quiet\n")
    before = picture(tree)
    apply(tree)
    changed = [path for path in differences(before, tree) if path.startswith("boot/")]
    assert changed == [f"{ENTRIES}-5.14.0-70.el9.x86_64.conf", f"{ENTRIES}-{NEWEST}.conf"]


def test_a_rescue_entry_that_is_the_default_is_said(tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    edit(tree, "boot/grub2/grubenv", lambda text: f"# GRUB Environment Block\nsaved_entry={MACHINE_ID}-0-rescue\n")
    apply(tree)
    said = f"/{ENTRIES}-0-rescue.conf is a rescue entry, and the default"
    assert said in boot_findings(tree)["boot.isolcpus"].reason
    assert str(upcoming(tree, "bls").again) == f"fix that ({said})"  # of a word of it, too: nobody is told to edit it


def test_tuneds_variable_is_part_of_the_next_boots_line(tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    apply(tree)
    edit(tree, "boot/grub2/grubenv", lambda text: text.replace("\n", "\ntuned_params=isolcpus=1 skew_tick=0\n", 1))
    line = upcoming(tree, "bls").points[0].line or ""
    assert line.endswith(f"isolcpus=1 skew_tick=0 {LINE}")
    findings = boot_findings(tree)
    assert findings["boot.isolcpus"].outcome is Outcome.DRIFTED
    won = f"isolcpus=1 in /{ENTRIES}-{NEWEST}.conf, by a variable, wins: the kernel takes the first"
    assert won in findings["boot.isolcpus"].reason
    assert "remove that setting" in str(findings["boot.isolcpus"].fix)
    assert findings["boot.skew_tick"].outcome is Outcome.PENDING_REBOOT
    assert expanded("a $x b; c", {"x": "1 2"}) == "a 1 2 b"


def test_a_source_that_lost_the_arguments_is_drift_though_the_next_boot_has_them(tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    apply(tree)
    edit(tree, "etc/kernel/cmdline", lambda text: "root=UUID=5f3c-0001 ro quiet\n")
    finding = boot_findings(tree)["boot.nohz_full"]
    assert finding.outcome is Outcome.DRIFTED
    assert "the next kernel's entry would not have it: it is not in /etc/kernel/cmdline" in finding.reason
    apply(tree)
    assert boot_findings(tree)["boot.nohz_full"].outcome is Outcome.PENDING_REBOOT


def test_a_kernel_removed_since_is_not_brought_back(tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    apply(tree)
    (tree / f"{ENTRIES}-5.14.0-70.el9.x86_64.conf").unlink()
    undone = restore(tree)
    assert undone.complete
    assert not (tree / f"{ENTRIES}-5.14.0-70.el9.x86_64.conf").exists()
    assert [one.result for one in undone.outcome.results if "5.14.0" in one.path] == ["gone"]
    assert not list((tree / "var/lib").glob("tunectl/*"))


def test_a_file_we_made_that_the_operator_made_his_own_stays_his(tmp_path: Path) -> None:
    tree = host(tmp_path, "systemd-boot")
    (tree / "etc/kernel/cmdline").unlink()
    apply(tree)
    edit(tree, "etc/kernel/cmdline", lambda text: text.replace("quiet", "debug").replace(" tsc=reliable", ""))
    apply(tree)
    assert "debug isolcpus" in (tree / "etc/kernel/cmdline").read_text()
    assert restore(tree).complete
    assert (tree / "etc/kernel/cmdline").read_text() == "root=UUID=5f3c-0001 ro debug\n"


def test_any_byte_may_stand_around_our_words(tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    place = tree / f"{ENTRIES}-{NEWEST}.conf"
    place.write_bytes(
        place.read_bytes().replace(b"Red Hat", b"R\xf6t \xff H\xc3\xbct").replace(b"\nlinux", b"\r\nlinux")
    )
    before = picture(tree)
    apply(tree)
    assert b"R\xf6t \xff H\xc3\xbct" in place.read_bytes()
    assert restore(tree).complete
    assert differences(before, tree) == {}


@pytest.mark.slow
def test_two_that_match_stop_and_the_host_file_decides(tunectl: Callable[..., Ran], tmp_path: Path) -> None:
    tree = host(tmp_path, "suse-grub")
    edit(tree, "boot/efi/loader/loader.conf", lambda text: "timeout 3\n")
    edit(tree, "boot/efi/loader/entries/a.conf", lambda text: "title A\nversion 1\nlinux /l\noptions ro\n")
    edit(tree, "proc/cmdline", lambda text: text.replace("BOOT_IMAGE=", "x="))
    edit(tree, "proc/sys/kernel/bootloader_type", lambda text: "208\n")  # kexec: this boot does not tell
    before = picture(tree)
    planned = tunectl("plan", "--root", tree, "--format", "json").json
    assert any("more than one boot loader may boot this host" in note for note in planned["notes"])
    assert not [change for change in planned["changes"] if change["knob"].startswith("boot.")]
    wish(tree, head='bootloader = "systemd-boot"\n')
    planned = tunectl("plan", "--root", tree, "--format", "json").json
    assert planned["notes"] == ['boot loader: systemd-boot, by bootloader = "systemd-boot" in the host file']
    assert tunectl("apply", "--yes", "--root", tree).code == 4
    assert "isolcpus=" in (tree / "boot/efi/loader/entries/a.conf").read_text()
    shown = tunectl("show", "--root", tree, "--format", "json").json["bootloader"]
    assert (shown["name"], shown["supported"]) == ("systemd-boot", True)
    assert tunectl("restore", "--root", tree).code == 0
    wish(tree)
    assert differences(before, tree) == {}
    wish(tree, head='bootloader = "lilo"\n')
    with pytest.raises(UsageError, match="bootloader: there is no 'lilo'"):
        inspection_on(tree)


def test_which_entry_systemd_boot_boots(tmp_path: Path) -> None:
    tree = host(tmp_path, "systemd-boot")
    root = Sysroot(str(tree))
    entries = in_order(read_entries(root))
    older = f"{MACHINE_ID}-6.1.0-9-amd64.conf"

    def default() -> str:
        found = default_entry(root, entries)
        assert found
        return found.id

    assert default() == f"{MACHINE_ID}-{NEWEST}.conf"
    edit(tree, "boot/loader/loader.conf", lambda text: "timeout 3\ndefault  *-6.1.0-9-*\n")
    assert default() == older
    variable = "sys/firmware/efi/efivars/LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
    value = f"{MACHINE_ID}-{NEWEST}.conf\0"
    edit(tree, variable, lambda text: "\x07\0\0\0" + "".join(f"{char}\0" for char in value))
    assert default() == f"{MACHINE_ID}-{NEWEST}.conf"
    edit(tree, variable.replace("Default", "OneShot"), lambda text: "\x07\0\0\0" + "".join(f"{c}\0" for c in older))
    assert default() == older


@pytest.mark.parametrize(
    ("environment", "boots"),
    [
        ({}, "12b"),
        ({"saved_entry": "12a"}, "12a"),
        ({"saved_entry": "Title of 12a"}, "12a"),
        ({"saved_entry": "1"}, "12a"),
        ({"saved_entry": "1a"}, "12b"),  # a number only as a whole
        ({"saved_entry": "12a", "next_entry": "12b"}, "12b"),
        ({"saved_entry": "removed"}, "12b"),
        ({"saved_entry": "7"}, "12b"),
    ],
)
def test_which_entry_grub_boots(environment: dict[str, str], boots: str, tmp_path: Path) -> None:
    block = "".join(f"{name}={value}\n" for name, value in environment.items())
    text = "title Title of 12{0}\nlinux /l\noptions {0}\n"
    entries = {f"boot/loader/entries/12{name}.conf": text.format(name) for name in "ab"}
    files = {"boot/grub2/grubenv": f"# GRUB Environment Block\n{block}", **entries}
    menus: tuple[dict[str, str], ...] = ({}, {"boot/grub2/grub.cfg": BLS_CFG})
    for menu in menus:
        (point, *_) = FAMILIES["bls"].upcoming(write(tmp_path, {**files, **menu})).points
        assert point.where == f"/boot/loader/entries/{boots}.conf"


@pytest.mark.parametrize(
    ("older", "newer"),
    [("6.9", "6.10"), ("6.1~rc1", "6.1"), ("6.1", "6.1.1"), ("6.1", "6.1^post"), ("5.14.0-70.el9", "5.14.0-427.el9"),
     ("5.14.0-427.el9", "5.14.0-427.13.1.el9"), ("0-rescue", "5.14")],
)  # fmt: skip
def test_versions(older: str, newer: str) -> None:
    assert version_key(older) < version_key(newer)


@pytest.mark.parametrize(
    "names",
    [
        ("104a-5.14.0-162.el9_1.x86_64", "cd33-5.14.0-427.el9_4.x86_64"),  # a number is newer than letters
        ("cd33-6.1.0-1", "cd33-5.14.0-427.el9", "cd33-5.14.0-70.el9", "cd33-0-rescue"),
        ("a-1-5.2", "a-1-5+rt", "a-1-5", "a-1-5~rc1"),
        ("a-6.1.2-1", "a-6.1a-1"),  # where systemd-boot has the other first
    ],
)
def test_the_order_of_grubs_menu(names: tuple[str, ...]) -> None:
    entries = [entry for name in sorted(names) if (entry := parse_entry(f"x/{name}.conf", "linux /l\n"))]
    assert [entry.id.removesuffix(".conf") for entry in listed(entries)] == list(names)


@pytest.mark.parametrize("data", ["", "MZ", "MZ" + "\0" * 100, image({".cmdline": "a"})[:70], "#!/bin/sh\n" * 50])
def test_what_is_no_image_has_no_sections(data: str, tmp_path: Path) -> None:
    (tmp_path / "x.efi").write_bytes(data.encode("utf-8", "surrogateescape"))
    assert read_sections(Sysroot(str(tmp_path)), "x.efi") == {}


def test_only_the_first_profile_of_an_image_counts(tmp_path: Path) -> None:
    data = image({".osrel": "ID=x", ".cmdline": "first", ".profile": "ID=two", ".cmdlin2": "", ".uname": "second"})
    (tmp_path / "x.efi").write_bytes(data.encode("utf-8", "surrogateescape"))
    assert read_sections(Sysroot(str(tmp_path)), "x.efi") == {".osrel": "ID=x", ".cmdline": "first"}


class DyingRoot(WritableSysroot):
    """A host whose power goes with the n-th file that is replaced: before it is, or right after."""

    def __init__(self, root: str, number: int, after: bool) -> None:
        super().__init__(root)
        self.left = number
        self.after = after

    def replace_file(self, path: str, data: bytes, mode: int | None) -> None:
        self.left -= path.startswith(("boot", "etc/default/grub", "etc/kernel"))
        if self.left or self.after:
            super().replace_file(path, data, mode)
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_an_apply_that_dies_among_the_boot_files_is_undone(number: int, after: bool, tmp_path: Path) -> None:
    tree = host(tmp_path, "bls")
    before = picture(tree)
    root = DyingRoot(str(tree), number, after)
    with pytest.raises(KeyboardInterrupt):
        apply(root)
    if number == 2:  # and again, from where it stopped
        apply(tree)
        assert {one.outcome for one in boot_findings(tree).values()} == {Outcome.PENDING_REBOOT}
    assert restore(tree).complete
    assert differences(before, tree) == {}


@pytest.mark.parametrize("built", [False, True])
def test_an_image_that_was_not_built_again_is_named_with_the_command_that_does(built: bool, tmp_path: Path) -> None:
    """kernel-install failed, or somebody built an image from another line: `apply` has nothing to write."""
    tree = host(tmp_path, "uki")
    apply(tree)
    if built:
        line = (tree / "etc/kernel/cmdline").read_text()
        sections = {".osrel": "ID=arch\n", ".uname": NEWEST, ".cmdline": f"{line.strip()} systemd.machine_id=x"}
        (tree / IMAGE).write_bytes(image(sections).encode("utf-8", "surrogateescape"))
    inspection = inspection_on(tree)
    inspection.root.live = True  # a running host, as far as reading is concerned
    found = {one.knob: one for one in inspection.assess().findings}["boot.isolcpus"]
    command = f"sudo kernel-install add {NEWEST} /usr/lib/modules/{NEWEST}/vmlinuz"
    assert (found.outcome, str(found.fix)) == (("pending-reboot", "reboot") if built else ("drifted", command))
    assert (f"/{IMAGE} lacks isolcpus=managed_irq,domain,2-3" in found.reason) is not built
