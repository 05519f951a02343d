"""Does the next boot start our service: the target that it goes to, and words of the kernel's line."""

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.knobs.test_ourboot import AGAIN, NEVER, answered, shown
from tests.knobs.test_unitfile import INVOCATION, linked, of_the_service, typed, written
from tests.trees import write
from tests.tuned import apply, inspection_on
from tunectl.bootloader.cmdline import parse_cmdline
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.drivers.bootgoal import goal_files, goal_of, masking
from tunectl.knobs.drivers.unitfile import LINK, of_goal

NAME = "tunectl-apply.service"
DEFAULT = "etc/systemd/system/default.target"
OURS = "etc/systemd/system/trading.target"
LEAN = "[Unit]\nRequires=basic.target\nWants=ssh.service irqbalance.service\nAfter=basic.target\nAllowIsolate=yes\n"
REQUIRING = "[Unit]\nDescription=Trading\nRequires=multi-user.target gone.target\n"
TARGETS = {  # systemd's own, as far as they pull each other in
    "graphical": "[Unit]\nRequires=multi-user.target\nWants=display-manager.service\n",
    "multi-user": "[Unit]\nRequires=basic.target\n",
    "basic": "[Unit]\nRequires=sysinit.target\n",
    "rescue": "[Unit]\nRequires=sysinit.target rescue.service\n",
    "emergency": "[Unit]\nRequires=emergency.service\n",
}


@pytest.fixture
def tuned(applied4: Path) -> Path:
    """The recorded host with systemd's targets, applied in an earlier boot."""
    for name, text in TARGETS.items():
        write(applied4, f"usr/lib/systemd/system/{name}.target", text)
    (applied4 / "usr/lib/systemd/system/default.target").symlink_to("graphical.target")
    (applied4 / "proc/sys/kernel/random/boot_id").write_text("11111111-2222-3333-4444-555555555555\n")
    return applied4


def many(*steps: Callable[[Path], object]) -> Callable[[Path], object]:
    def harm(root: Path) -> None:
        for step in steps:
            step(root)

    return harm


def next_line(words: str) -> Callable[[Path], object]:
    """Words of the operator's own in the boot loader's settings."""
    return written("etc/default/grub", f'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX="{words} panic=10"\n')


def this_line(words: str) -> Callable[[Path], object]:
    def harm(root: Path) -> None:
        line = (root / "proc/cmdline").read_text().rstrip()
        write(root, "proc/cmdline", f"{line} {words}\n")

    return harm


def followed(root: Path, fix: str) -> None:
    """Types a fix; what systemctl does to links, and the boot loader's program, is done for them."""
    for command in fix.removesuffix(", then reboot").replace("; ", " && ").split(" && "):
        words = shlex.split(command)
        if words[1:3] == ["systemctl", "add-wants"]:
            linked(f"etc/systemd/system/{words[3]}.wants/{words[4]}", f"/etc/systemd/system/{words[4]}")(root)
        elif words[1:3] == ["systemctl", "set-default"]:
            linked(DEFAULT, f"/usr/lib/systemd/system/{words[3]}")(root)
        elif words[1:] != ["update-grub"]:
            typed(root, command)


LEFT_OUT = [
    pytest.param(linked(DEFAULT, "/lib/systemd/system/rescue.target"), "rescue.target", id="rescue"),
    pytest.param(linked(DEFAULT, "/etc/systemd/system/gone.target"), "gone.target", id="not there"),
    pytest.param(next_line("systemd.unit=rescue.target"), "/etc/default/grub:2", id="on the line"),
    pytest.param(next_line("systemd.unit=graphical.target emergency"), "emergency", id="a runlevel's word"),
    pytest.param(next_line("init=/bin/bash"), "init=/bin/bash", id="no systemd"),
    pytest.param(linked("etc/systemd/system/multi-user.target", "/dev/null"), "multi-user.target", id="masked between"),
    pytest.param(linked("etc/systemd/system/basic.target", "/dev/null"), "basic.target", id="masked before"),
    pytest.param(linked("etc/systemd/system/graphical.target", "/dev/null"), "graphical.target", id="masked"),
    pytest.param(linked(DEFAULT, "/dev/null"), DEFAULT, id="default.target masked"),
    pytest.param(next_line("systemd.mask=graphical.target"), "/etc/default/grub:2", id="masked by a word"),
    pytest.param(next_line("systemd.mask=basic.target"), "/etc/default/grub:2", id="masked before, by a word"),
    pytest.param(next_line("quiet single hpet=1 x-single"), "single (/etc/default/grub:2)", id="a bare word"),
    pytest.param(next_line("1 hpet=1 pti=1"), "1 (/etc/default/grub:2)", id="a digit, the first word"),
    pytest.param(next_line("hpet=1 1"), "1 (/etc/default/grub:2)", id="a digit"),
    pytest.param(next_line("systemd.run=/root/once"), "systemd.run=", id="a command"),
    pytest.param(next_line("systemd.volatile=state"), "/etc/default/grub:2", id="no journal"),
    pytest.param(next_line("systemd.volatile=Yes"), "/etc/default/grub:2", id="no unit"),
    pytest.param(next_line("systemd.volatile=no systemd.volatile"), "/etc/default/grub:2", id="a word alone"),
]
NOT_TRIED = [
    pytest.param(many(written(OURS, LEAN), linked(DEFAULT, f"/{OURS}")), f"/{DEFAULT}", id="its own"),
    pytest.param(written(DEFAULT, LEAN), f"/{DEFAULT}", id="a file of that name"),
    pytest.param(
        many(written(OURS, LEAN), next_line("systemd.unit=trading.target")), "/etc/default/grub:2", id="on the line"
    ),
    pytest.param(
        linked("etc/systemd/system/graphical.target.requires/gone.target", "../gone.target"),
        "/etc/systemd/system/graphical.target.requires/gone.target",
        id="a link to what is not there",
    ),
    pytest.param(
        written("etc/systemd/system/basic.target.d/x.conf", "[Unit]\nBindsTo=vault.mount\n"),
        "/etc/systemd/system/basic.target.d/x.conf:2",
        id="a drop-in on the way",
    ),
]


@pytest.mark.parametrize(("harm", "says"), LEFT_OUT)
def test_a_boot_that_leaves_the_service_out_is_named_and_its_fix_mends_it(
    tuned: Path, harm: Callable[[Path], object], says: str
) -> None:
    harm(tuned)
    found = of_the_service(tuned)
    assert (found.outcome, found.observed, says in found.reason) == ("drifted", "left out", True)
    followed(tuned, str(found.fix))
    assert of_the_service(tuned).outcome == "compliant"


@pytest.mark.parametrize(("harm", "says"), NOT_TRIED)
def test_a_way_that_no_boot_has_gone_is_not_known_before(
    tuned: Path, harm: Callable[[Path], object], says: str
) -> None:
    harm(tuned)
    found = of_the_service(tuned)
    assert (found.outcome, says in found.reason) == ("unreadable", True)
    followed(tuned, str(found.fix))
    assert of_the_service(tuned).outcome == "compliant"


def test_a_target_that_requires_more_than_systemds_own_leaves_a_decision(tuned: Path) -> None:
    many(written(OURS, REQUIRING), linked(DEFAULT, f"/{OURS}"))(tuned)
    found = of_the_service(tuned)
    assert (found.outcome, f"/{OURS}:3" in found.reason) == ("unreadable", True)
    assert found.fix.tasks
    assert not found.fix.is_typed


@pytest.mark.parametrize(("since", "is_known"), [(60, True), (-60, False)])
def test_a_way_that_this_boot_went_is_known(tuned: Path, since: int, is_known: bool) -> None:
    many(written(OURS, LEAN), linked(DEFAULT, f"/{OURS}"), answered(shown(NAME)))(tuned)
    booted_at = int(os.lstat(tuned / OURS).st_ctime) + since
    write(tuned, "proc/stat", f"cpu 1 2\nbtime {booted_at}\n")
    view = inspection_on(tuned).view()
    with view.root.one_look():
        assert of_goal(view, NAME) is not None
        view.root.live = True  # a recording keeps no times
        assert (of_goal(view, NAME) is None) is is_known


def test_a_boot_that_went_there_without_the_service_is_named_after_it(tuned: Path) -> None:
    many(written(OURS, LEAN), linked(DEFAULT, f"/{OURS}"), answered(shown(NAME, **NEVER)))(tuned)
    found = of_the_service(tuned)
    assert (found.outcome, found.observed, f"/{DEFAULT}" in found.reason) == ("drifted", "not run", True)
    assert str(found.fix) == f"sudo systemctl add-wants trading.target {NAME}; {AGAIN}"
    followed(tuned, str(found.fix))
    answered(shown(NAME))(tuned)
    assert of_the_service(tuned).outcome == "compliant"


@pytest.mark.parametrize("other", ["rd.systemd.unit=rescue.target", "systemd.unit=rescue.target-0"])
def test_a_fix_takes_no_part_of_another_word_out(tuned: Path, other: str) -> None:
    next_line(f"{other} systemd.unit=rescue.target")(tuned)
    followed(tuned, str(of_the_service(tuned).fix))
    assert (tuned / "etc/default/grub").read_text().endswith(f'="{other} panic=10"\n')


@pytest.mark.parametrize(
    "harm",
    [
        linked(DEFAULT, "/lib/systemd/system/multi-user.target"),
        linked(DEFAULT, "/usr/lib/systemd/system/graphical.target"),
        linked(DEFAULT, "/usr/lib/systemd/system/runlevel5.target"),  # where the link is all that a recording has
        many(written(OURS, LEAN.replace("basic", "multi-user")), linked(DEFAULT, f"/{OURS}")),
        many(written(OURS, LEAN), written(f"{OURS}.d/x.conf", f"[Unit]\nWants={NAME}\n"), linked(DEFAULT, f"/{OURS}")),
        many(written(OURS, LEAN), linked(DEFAULT, f"/{OURS}"), linked(f"{OURS}.requires/{NAME}", "../x")),
        many(written(OURS, LEAN), linked(DEFAULT, f"/{OURS}"), linked(f"{DEFAULT}.wants/multi-user.target", "../x")),
        many(written(OURS, LEAN), linked(DEFAULT, f"/{OURS}"), next_line("systemd.unit=multi-user.target")),
        many(written(OURS, f"{LEAN}Upholds={NAME}\n"), linked(DEFAULT, f"/{OURS}")),
        many(written(OURS, LEAN), linked(DEFAULT, f"/{OURS}"), next_line("systemd.wants=tunectl-apply")),
        next_line("systemd.unit=rescue.target 3"),
        next_line("systemd.wants=ssh.service rd.systemd.unit=rescue.target init=/lib/systemd/systemd"),
        next_line("systemd.mask=e2scrub_all.timer"),
        next_line("systemd.run=/root/once systemd.unit=multi-user.target"),
        linked("run/systemd/system/default.target", "/lib/systemd/system/rescue.target"),  # gone with the reboot
        linked("run/systemd/system/graphical.target", "/dev/null"),
        # systemd passes over these (tests below), and goes to what /usr/lib has
        linked(DEFAULT, "default.target"),
        linked(DEFAULT, "/etc/systemd/system/trading.service"),
        next_line("systemd.volatile=overlay"),
        next_line("systemd.volatile=state systemd.volatile=no"),
        many(next_line("systemd.volatile=yes"), written("usr/share/initramfs-tools/init", "#!/bin/sh\n")),
        written(f"{OURS}", REQUIRING),  # nothing requires it
        many(written(OURS, REQUIRING), linked("etc/systemd/system/graphical.target.wants/trading.target", "x")),
    ],
)
def test_a_boot_that_reaches_the_service_is_no_matter(tuned: Path, harm: Callable[[Path], object]) -> None:
    harm(tuned)
    assert of_the_service(tuned).outcome == "compliant"


def test_a_recording_without_targets_is_taken_for_a_usual_host(lab4: Path) -> None:
    apply(lab4)
    assert of_the_service(lab4).outcome == "compliant"


@pytest.mark.parametrize("word", ["systemd.mask=tunectl-apply.service", "systemd.mask=tunectl-apply"])
def test_a_mask_on_the_next_line_is_named_with_its_place_and_goes_by_its_fix(tuned: Path, word: str) -> None:
    next_line(word)(tuned)
    found = of_the_service(tuned)
    assert (found.outcome, found.observed) == ("drifted", "masked")
    assert f"{word} (/etc/default/grub:2)" in found.reason
    assert str(found.fix).endswith("update-grub")
    followed(tuned, str(found.fix))
    assert "panic=10" in (tuned / "etc/default/grub").read_text()
    assert of_the_service(tuned).outcome == "compliant"


def test_a_mask_on_this_boots_line_needs_an_apply_by_hand(tuned: Path) -> None:
    this_line(f"systemd.mask={NAME}")(tuned)
    linked(f"run/systemd/generator.early/{NAME}", "/dev/null")(tuned)  # systemd-debug-generator makes it
    found = of_the_service(tuned)
    assert (found.outcome, found.observed, str(found.fix)) == ("drifted", "not run", "sudo tunectl apply")
    assert f"systemd.mask={NAME}" in found.reason
    write(tuned, "proc/sys/vm/swappiness", "60\n")  # as every value is where nothing wrote it
    apply(tuned)
    assert of_the_service(tuned).outcome == "compliant"


def test_a_mask_that_stays_on_the_line_needs_a_reboot(tuned: Path) -> None:
    this_line(f"systemd.mask={NAME}")(tuned)
    next_line(f"systemd.mask={NAME}")(tuned)
    found = of_the_service(tuned)
    assert (found.observed, str(found.fix).endswith("sudo update-grub, then reboot")) == ("masked", True)


def test_a_boot_that_went_elsewhere_says_where(tuned: Path) -> None:
    (tuned / "run/systemd/units").mkdir(parents=True)
    this_line("systemd.unit=rescue.target")(tuned)
    found = of_the_service(tuned)
    assert (found.observed, "which had systemd.unit=rescue.target" in found.reason) == ("not run", True)
    linked(INVOCATION, "0123456789abcdef")(tuned)  # `systemctl restart`
    assert of_the_service(tuned).outcome == "compliant"


def test_the_service_is_disabled_where_no_link_wants_it(tuned: Path) -> None:
    """Then apply mends it, whatever the next boot goes to."""
    (tuned / LINK).unlink()
    assert of_the_service(tuned).observed == "disabled"


needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze") or not Path("/usr/lib/systemd/system/graphical.target").exists(),
    reason="systemd is not installed (Debian: systemd)",
)


@needs_systemd
@pytest.mark.parametrize(("word", "outcome"), [("", "compliant"), ("rescue", "drifted"), ("3", "compliant")])
def test_systemds_own_targets_lead_to_the_service(tuned: Path, word: str, outcome: str) -> None:
    """The files of the systemd that is installed here, not ours."""
    shutil.rmtree(tuned / "usr/lib/systemd/system")
    shutil.copytree("/usr/lib/systemd/system", tuned / "usr/lib/systemd/system", symlinks=True)
    next_line(f"quiet {word}")(tuned)
    assert of_the_service(tuned).outcome == outcome


@pytest.mark.parametrize("target", ["default.target", "/usr/lib/systemd/system/ssh.service", "/etc/x/nowhere.target"])
def test_a_default_target_that_is_none_is_passed_over(tuned: Path, target: str) -> None:
    linked(DEFAULT, target)(tuned)
    goal = goal_of(Sysroot(str(tuned)), ())
    assert goal is not None
    assert (goal.unit == "graphical.target") is not target.endswith("nowhere.target")


def test_a_recording_holds_what_leads_to_the_service(tuned: Path) -> None:
    """Targets and links, and no other unit's own file: that may hold what is nobody's business."""
    patterns: Sequence[str] = goal_files(NAME)
    assert "etc/systemd/system/*.target" in patterns
    assert not [one for one in patterns if one.endswith((".service", "/*")) and NAME not in one]


def test_a_name_without_a_suffix_is_a_services() -> None:
    assert masking(parse_cmdline("systemd.mask=a.timer systemd-mask=b systemd.mask=b"), "b.service") is not None
    assert masking(parse_cmdline("rd.systemd.mask=b.service"), "b.service") is None


@pytest.mark.parametrize(("entry", "fix"), [(0, ""), (1, "sudo grub-editenv - unset saved_entry && sudo update-grub")])
def test_a_recovery_entry_stays_as_it_is_and_the_right_one_is_chosen_again(tuned: Path, entry: int, fix: str) -> None:
    menu = tuned / "boot/grub/grub.cfg"
    menu.write_text(menu.read_text().replace("set default=0", 'load_env\nset default="${saved_entry}"'))
    write(tuned, "boot/grub/grubenv", f"# GRUB Environment Block\nsaved_entry={entry}\n".ljust(1024, "#"))
    found = of_the_service(tuned)
    assert (found.outcome, str(found.fix)) == ("drifted" if entry else "compliant", fix)


def test_a_word_of_an_entry_of_the_operators_own_is_named_with_its_line(tuned: Path) -> None:
    menu = tuned / "boot/grub/grub.cfg"
    text = menu.read_text()
    ours = (tuned / "etc/default/grub.d/99-tunectl.cfg").read_text().rpartition("} ")[2].rstrip('"\n')
    entry = text[text.index("menuentry") : text.index("}\n") + 2]
    entry = entry.replace("ro quiet", f"ro quiet {ours} systemd.mask={NAME}", 1)
    menu.write_text(text.replace("menuentry", "source $prefix/custom.cfg\nmenuentry", 1))
    write(tuned, "boot/grub/custom.cfg", entry)
    found = of_the_service(tuned)
    assert f"take systemd.mask={NAME} out of the kernel command line" in str(found.fix)
    assert "(/boot/grub/custom.cfg:1, entry" in str(found.fix)
