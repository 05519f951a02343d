"""What cannot be read or followed is not known, and a source that lost our words is drift: the whole product."""

from pathlib import Path

import pytest

from tests.bootloader.hosts import LINE, WORDS, boot_findings, host, wish
from tests.bootloader.test_nextboot import LiveTree
from tests.bootloader.trees import grub_cfg, grub_host
from tests.hosts.builder import build, named
from tests.nobody import as_nobody, needs_root, open_to_all
from tests.trees import write
from tests.tuned import apply, inspection_on
from tunectl.bootloader.family import Upcoming
from tunectl.bootloader.grub import render_dropin
from tunectl.bootloader.grubsettings import DROPIN
from tunectl.bootloader.nextboot import next_boot
from tunectl.cpulist import CpuSet
from tunectl.host.ask import ANSWERS, KARGS
from tunectl.model import NextBoot, Outcome

ISOLATED = frozenset({2, 3})
ENTRIES = "boot/loader/entries"
# loader -> what has to be readable, so that the next boot is known
SOURCES = (
    *(("grub", path) for path in ("boot/grub/grub.cfg", "boot/grub", "etc/default/grub", "etc/default/grub.d")),
    ("suse-grub", "boot/grub2/grub.cfg"),
    *(("bls", path) for path in (ENTRIES, "etc/kernel/cmdline", "boot/grub2/grubenv")),
    *(("systemd-boot", path) for path in (ENTRIES, "boot", "boot/loader/loader.conf", "etc/kernel/cmdline")),
    ("kernelstub", "etc/kernelstub/configuration"),
    ("raspberry-pi", "boot/firmware/cmdline.txt"),
)


def tuned(below: Path, loader: str) -> Path:
    """A host that booted with everything that it is asked for, and is configured for it, and open to everybody."""
    if loader == "grub":
        tree = build(below / loader, named("lab4", tuned_boot=ISOLATED))
        wish(tree)
    else:
        tree = host(below, loader, tuned_boot=ISOLATED)
    apply(tree)
    # What apply wrote at run time needs no second look here: only the next boot counts.
    open_to_all(below)
    return tree


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize(("loader", "path"), SOURCES)
def test_what_this_user_may_not_read_is_not_known(loader: str, path: str, public: Path) -> None:
    tree = tuned(public, loader)
    (tree / path).chmod(0o700 if (tree / path).is_dir() else 0o600)
    ran = as_nobody(tree, "verify")
    assert (ran.code, ran.json["verdict"]) == (0, "compliant")  # what is in force now is
    findings = {one["target"]: one for one in ran.json["findings"]}
    finding = findings["boot.isolcpus"]
    assert (finding["outcome"], finding["next"]) == ("compliant", "unknown")
    assert "Permission denied" in finding["next_from"]
    assert path in finding["next_from"]
    assert finding["points"]["next_boot"] == "unknown"
    whole = findings["nextboot"]
    assert (whole["outcome"], whole["fix"]) == ("unreadable", "run tunectl as root: this user may not read it all")
    assert as_nobody(tree, "verify", "--strict").code == 1


@needs_root
def test_plan_needs_no_root_where_this_user_may_not_read_the_menu(public: Path) -> None:
    """grub-mkconfig leaves grub.cfg to root alone: umask 077 since CVE-2021-3981, Debian 12's, too."""
    tree = build(public / "grub", named("lab4"))
    wish(tree)
    open_to_all(public)
    (tree / "boot/grub/grub.cfg").chmod(0o600)
    ran = as_nobody(tree, "plan")
    assert (ran.code, ran.json["reboot_required"]) == (3, True)
    assert "grub.cfg: Permission denied" in ran.json["try_refused"]


@needs_root
@pytest.mark.parametrize("loader", sorted({loader for loader, _ in SOURCES}))
def test_a_host_that_everybody_may_read_is_compliant(loader: str, public: Path) -> None:
    ran = as_nobody(tuned(public, loader), "verify")
    assert (ran.code, ran.json["verdict"]) == (0, "compliant")


def _without(text: str) -> str:
    return " ".join(word for word in text.split(" ") if not word.startswith("nohz_full"))


@pytest.mark.parametrize(
    ("loader", "path"),
    [
        ("bls", "etc/kernel/cmdline"),
        ("bls", "etc/default/grub"),
        ("systemd-boot", "etc/kernel/cmdline"),
        ("uki", "etc/kernel/cmdline"),
        ("kernelstub", "etc/kernelstub/configuration"),
        ("rpm-ostree", "boot/loader/entries/ostree-2.conf"),
        ("raspberry-pi", "boot/firmware/cmdline.txt"),
        ("suse-grub", "etc/default/grub"),
        ("grub", "etc/default/grub"),
    ],
)
def test_a_source_that_lost_a_word_is_drift_and_apply_mends_it(loader: str, path: str, tmp_path: Path) -> None:
    tree = tuned(tmp_path, loader)
    assert boot_findings(tree)["boot.nohz_full"].outcome is Outcome.COMPLIANT
    place = tree / path
    if path.endswith("configuration"):
        place.write_text(place.read_text().replace('"nohz_full=2-3",', ""))
    else:
        place.write_text(_without(place.read_text()))
    finding = boot_findings(tree)["boot.nohz_full"]
    assert finding.outcome is Outcome.DRIFTED
    assert str(finding.fix) == "sudo tunectl apply"
    assert path in finding.reason
    apply(tree)
    assert boot_findings(tree)["boot.nohz_full"].outcome is Outcome.COMPLIANT


@pytest.mark.parametrize(
    ("answer", "booted", "outcome", "following"),
    [
        (LINE, frozenset(), Outcome.PENDING_REBOOT, NextBoot.SAME),
        (LINE, ISOLATED, Outcome.COMPLIANT, NextBoot.SAME),
        ("ro quiet", ISOLATED, Outcome.DRIFTED, NextBoot.OTHER),
        ("", ISOLATED, Outcome.COMPLIANT, NextBoot.UNKNOWN),  # an older recording
        ("", frozenset(), Outcome.DRIFTED, NextBoot.UNKNOWN),
    ],
)
def test_rpm_ostree_is_asked_what_a_staged_deployment_boots_with(
    answer: str, booted: CpuSet, outcome: Outcome, following: NextBoot, tmp_path: Path
) -> None:
    tree = host(tmp_path, "rpm-ostree", tuned_boot=booted)
    write(tree, KARGS.needs, "")
    write(tree, f"{ANSWERS}/{KARGS.name}", answer and f"root=UUID=5f3c {answer}\n")
    finding = boot_findings(tree)["boot.nohz_full"]
    assert (finding.outcome, finding.next) == (outcome, following)


OURS = {DROPIN: render_dropin(WORDS), "boot/grub/grub.cfg": grub_cfg(args=f"console=ttyS0 quiet {LINE}")}
VENDOR = "etc/default/grub.d/zzz-vendor.cfg"


def live(tree: Path, files: dict[str, str]) -> Upcoming:
    """The next boot of a host that is taken for the running one."""
    grub_host(tree, files)
    return next_boot(LiveTree(tree))


def test_settings_that_lost_our_words_are_seen_before_update_grub_runs(tmp_path: Path) -> None:
    menu, settings = live(tmp_path / "a", {**OURS, VENDOR: 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'}).points
    assert LINE in (menu.line or "")
    assert settings.line == "console=ttyS0 quiet"
    _, settings = live(tmp_path / "b", {"boot/grub/grub.cfg": OURS["boot/grub/grub.cfg"]}).points
    assert "isolcpus" not in (settings.line or "")
    # The nearest innocent host: the vendor's file adds to what was set.
    added = {VENDOR: 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT"\n'}
    assert all(LINE in (point.line or "") for point in live(tmp_path / "c", {**OURS, **added}).points)


def test_grub_reboot_into_recovery_names_next_entry_and_its_fix(tmp_path: Path) -> None:
    block = "# GRUB Environment Block\nnext_entry=1>1\n"
    found = live(tmp_path, {**OURS, "boot/grub/grubenv": block})
    assert "isolcpus" not in (found.points[0].line or "")
    assert "a recovery entry, and next_entry in /boot/grub/grubenv decides that (grub-reboot sets it)" in found.problem
    assert str(found.fix) == "sudo grub-editenv - unset next_entry"
    innocent = live(tmp_path, {**OURS, "boot/grub/grubenv": block.replace("1>1", "1>0")})
    assert innocent.problem == ""
    assert LINE in (innocent.points[0].line or "")


def test_a_saved_recovery_entry_is_taken_out_with_it(tmp_path: Path) -> None:
    block = "# GRUB Environment Block\nnext_entry=1>1\nsaved_entry=1>1\n"
    menu = OURS["boot/grub/grub.cfg"].replace('default="0"', 'default="${saved_entry}"')
    found = live(tmp_path, {**OURS, "boot/grub/grub.cfg": menu, "boot/grub/grubenv": block})
    assert str(found.fix) == "sudo grub-editenv - unset next_entry && sudo grub-editenv - unset saved_entry"


CUSTOM = "if [ -f ${config_directory}/custom.cfg ]; then\n  source ${config_directory}/custom.cfg\nfi\n"
ENTRY = "menuentry 'mine' {\n  linux /boot/vmlinuz-6.1.0-39-amd64 root=UUID=5f3c ro quiet\n}\n"


def test_an_entry_of_custom_cfg_that_grub_set_default_chose(tmp_path: Path) -> None:
    files = {**OURS, "boot/grub/grub.cfg": OURS["boot/grub/grub.cfg"].replace('"0"', '"${saved_entry}"') + CUSTOM}
    block = {"boot/grub/grubenv": "# GRUB Environment Block\nsaved_entry=mine\n"}
    found = live(tmp_path, {**files, **block, "boot/grub/custom.cfg": ENTRY})
    assert found.points[0].where == "/boot/grub/custom.cfg:1, entry 'mine'"
    assert "isolcpus" not in (found.points[0].line or "")
    assert str(found.fix) == "sudo grub-editenv - unset saved_entry"


DEFAULT = "set default=mine\n"


def beside(text: str) -> dict[str, str]:
    """Our menu, which goes on with a custom.cfg of this text."""
    menu = OURS["boot/grub/grub.cfg"] + CUSTOM
    return {**OURS, "boot/grub/grub.cfg": menu, "boot/grub/custom.cfg": text}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ENTRY + DEFAULT, 4),
        (f"{ENTRY}if keystatus --shift; then\n  {DEFAULT}fi\n", 5),
        (f"function pick {{\n  {DEFAULT}}}\npick\n", 2),
        ("set fallback=1\n", 1),
        ("saved_entry=mine\n", 1),
        ("linux /boot/vmlinuz quiet\nboot\n", 1),
        ("blscfg\n", 1),
        ("search --label x --set=root\nsource /x.cfg\n", 2),
        ("configfile (hd0,gpt7)/grub/grub.cfg\n", 1),
        ("while true; do true; done\n", 1),
        ("set name=default\nset $name=mine\n", 2),
        ("submenu 'more' {\n  menuentry 'x' { linux /k; }\n}\nexit\n", 4),
    ],
)
def test_a_line_that_may_decide_what_boots_is_named(text: str, line: int, tmp_path: Path) -> None:
    """What grub-mkconfig does not write there is not followed: one finding, its place, and how it ends."""
    for found in (live(tmp_path, beside(text)), next_boot(grub_host(tmp_path, beside(text)))):
        assert found.points[0].line is None
        assert f"/boot/grub/custom.cfg:{line}" in found.points[0].why
        assert "/boot/grub/custom.cfg" in str(found.points[0].fix)


@pytest.mark.parametrize("text", ["set default=$(date)\n", "source $prefix/custom.cfg\n", "if true; then\nfi\n"])
def test_a_script_that_grub_does_not_read_to_its_end_is_not_known(text: str, tmp_path: Path) -> None:
    found = live(tmp_path, beside(text))
    assert found.points[0].line is None
    assert "/boot/grub/custom.cfg" in found.points[0].why


@pytest.mark.parametrize(
    "text",
    [
        "insmod part_gpt\nset gfxmode=auto\nterminal_output gfxterm\n",
        "if keystatus --shift; then set timeout=-1; else set timeout=0; fi\n",
        "if [ $grub_platform = efi ]; then\n  menuentry 'Firmware' { fwsetup; }\nfi\n",
        "search --label x --set=root\nbackground_image /x.png\n",
        "surprise me\n",
        "source $prefix/missing.cfg\n",
        "menuentry 'other' { configfile (hd0,gpt7)/grub/grub.cfg; }\n",
        "menuentry 'rescue' { chainloader /x.efi; }\n",
    ],
)
def test_what_does_not_decide_the_boot_is_silent(text: str, tmp_path: Path) -> None:
    found = live(tmp_path, beside(text))
    assert found.problem == ""
    assert LINE in (found.points[0].line or "")


def test_custom_cfg_beside_blscfg_that_names_the_default(tmp_path: Path) -> None:
    tree = tuned(tmp_path, "bls")
    place = tree / "boot/grub2/custom.cfg"
    place.write_text(ENTRY)
    assert boot_findings(tree)["boot.isolcpus"].outcome is Outcome.COMPLIANT
    place.write_text(ENTRY + "set default=mine\n")
    finding = boot_findings(tree)["boot.isolcpus"]
    assert (finding.outcome, finding.next) == (Outcome.COMPLIANT, NextBoot.UNKNOWN)
    assert "/boot/grub2/custom.cfg:4" in finding.next_from
    assert "/boot/grub2/custom.cfg:4" in str(boot_findings(tree)["nextboot"].fix)
    place.write_text("surprise me\n")
    assert boot_findings(tree)["boot.isolcpus"].next is NextBoot.SAME


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("quiet", "quiet"), ()),
        (("isolcpus=managed_irq,domain,2-3 ", ""), ("lacks isolcpus=managed_irq,domain,2-3 (",)),
        (("tsc=reliable", "tsc=reliable notsc"), ("still has notsc, which the settings do not give",)),
        (("skew_tick=1", "hpet=1"), ("lacks skew_tick=1 (", "still has hpet=1")),
    ],
)
def test_a_recorded_menu_that_differs_from_the_settings_is_a_note(
    change: tuple[str, str], said: tuple[str, ...], tmp_path: Path
) -> None:
    tree = tuned(tmp_path, "grub")
    menu = tree / "boot/grub/grub.cfg"
    menu.write_text(menu.read_text().replace(*change, 1))
    notes = inspection_on(tree).notes()
    assert {one.outcome for one in boot_findings(tree).values()} == {Outcome.COMPLIANT}
    assert len(notes) == bool(said)
    assert all(text in notes[0] for text in said)
