"""The units that apply writes, read by their real reader, and the rule that starts one of them."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trees import write
from tests.tuned import apply, inspection_on, judged, verdict
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.drivers import exitlatency, hotplug
from tunectl.knobs.drivers.confined import UNSET
from tunectl.knobs.drivers.ourboot import UNKNOWN
from tunectl.knobs.drivers.unitfile import LINK, UNIT, render
from tunectl.model import Finding
from tunectl.units import units_of

needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed (Debian: systemd)"
)
WORDS = ("/bin/true", "--host", '/a "quoted" 100% $path.toml')


@needs_systemd
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tunectl-apply.service", render(WORDS)),
        ("tunectl-reapply@.service", hotplug.render(WORDS)),
        ("tunectl-latency.service", exitlatency.render(3)),
    ],
)
def test_systemd_accepts_the_unit(tmp_path: Path, name: str, text: str) -> None:
    unit = tmp_path / name
    unit.write_text(text)
    if "@" in name:  # a template is read as one of its instances
        unit = tmp_path / name.replace("@", "@sys-devices-pci0000:00-net-eth0")
        unit.symlink_to(name)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "tunectl-" in line]
    assert ours == []


def conditions(base: Path) -> list[str]:
    """The conditions of the hot-plug unit, for the files below `base`."""
    lines = [line for line in hotplug.render(WORDS).splitlines() if line.startswith("Condition")]
    return [line.replace("/etc/", f"{base}/etc/") for line in lines]


@needs_systemd
@pytest.mark.parametrize(
    ("there", "runs"),
    [((UNIT, LINK), True), ((UNIT,), False), ((), True)],
    ids=["enabled", "disabled by hand", "never asked for"],
)
def test_a_disabled_service_is_not_applied_by_hotplug_either(
    tmp_path: Path, there: tuple[str, ...], runs: bool
) -> None:
    """A boot announces every NIC: found in the lab, where a boot without the service was tuned all the same."""
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    done = subprocess.run(["systemd-analyze", "condition", *conditions(tmp_path)], capture_output=True, text=True)
    assert (done.returncode == 0) is runs, done.stderr


@pytest.mark.skipif(not shutil.which("udevadm"), reason="udevadm is not installed (Debian: udev)")
def test_udev_accepts_the_rule(tmp_path: Path) -> None:
    rule = tmp_path / "95-tunectl.rules"
    rule.write_text(hotplug._RULE)
    done = subprocess.run(["udevadm", "verify", "--no-style", str(rule)], capture_output=True, text=True)
    if "Unknown command" in done.stderr:  # udevadm verify came with systemd 254
        pytest.skip("this udevadm cannot verify rules")
    assert done.returncode == 0, done.stdout + done.stderr


def without(path: str, word: str) -> Callable[[Path], object]:
    """The file as an earlier version wrote it: without the lines that have the word."""

    def harm(root: Path) -> None:
        lines = (root / path).read_text().splitlines(keepends=True)
        (root / path).write_text("".join(line for line in lines if word not in line))

    return harm


@pytest.mark.parametrize(
    ("harm", "state"),
    [
        (lambda root: (root / hotplug.RULE).unlink(), "disabled"),
        (lambda root: (root / hotplug.UNIT).unlink(), "disabled"),
        (lambda root: (root / hotplug.RULE).write_text("# mine\n"), "outdated"),
        (lambda root: (root / hotplug.UNIT).write_text("[Service]\nExecStart=/bin/true\n"), "broken"),
        (lambda root: (root / hotplug.UNIT).write_text("[Service]\nExecStart=/a --host /b.toml apply\n"), "outdated"),
        (without(hotplug.UNIT, "Condition"), "outdated"),
    ],
)
def test_what_may_be_wrong_with_the_rule_and_its_unit(
    applied4: Path, harm: Callable[[Path], object], state: str
) -> None:
    harm(applied4)
    found = {one.target: one for one in inspection_on(applied4).assess().findings}["systemd.apply_on_hotplug"]
    assert (found.outcome, found.observed) == ("drifted", state)
    apply(applied4)
    assert verdict(applied4) != "drifted"


def test_a_service_of_an_earlier_version_is_written_anew(applied4: Path) -> None:
    fresh = (applied4 / UNIT).read_text()
    without(UNIT, "Before=")(applied4)
    found = {one.target: one for one in inspection_on(applied4).assess().findings}["systemd.apply_at_boot"]
    assert (found.outcome, found.observed) == ("drifted", "outdated")
    apply(applied4)
    assert (applied4 / UNIT).read_text() == fresh


DROP_IN = f"{UNIT}.d/override.conf"
INVOCATION = "run/systemd/units/invocation:tunectl-apply.service"


def of_the_service(root: Path) -> Finding:
    return judged(root, "systemd.apply_at_boot")["systemd.apply_at_boot"]


def linked(path: str, target: str) -> Callable[[Path], object]:
    def harm(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        (root / path).symlink_to(target)

    return harm


def written(path: str, text: str) -> Callable[[Path], object]:
    return lambda root: write(root, path, text)


def typed(root: Path, fix: str) -> None:
    """Types a fix, with the recorded host's root before every path; what only systemd could do is left out."""
    for command in fix.split(" && "):
        assert command.startswith("sudo ")
        words = shlex.split(command.removeprefix("sudo "))
        if words == ["tunectl", "apply"]:
            apply(root)
        elif words[0] != "systemctl":
            subprocess.run([str(root) + word if word.startswith("/") else word for word in words], check=True)


@pytest.mark.parametrize("name", ["a\x1b[31mb", "two\nlines", "caf\udce9", "100% 'of' \"it\" \\033 $x`y`\t", "a b'c"])
def test_a_drop_in_of_any_name_is_found_by_the_command_that_is_printed(applied4: Path, name: str) -> None:
    path = f"{UNIT}.d/{name}.conf"
    write(applied4, path, "[Service]\nNice=1\nUser=nobody\n")
    fix = str(of_the_service(applied4).fix)
    assert "\n" not in fix
    command = fix.partition(" && ")[0].removeprefix("sudo ").replace("/etc/systemd", f"{applied4}/etc/systemd")
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert of_the_service(applied4).outcome == "compliant"


STEERING = ("TUNECTL_HOST=/etc/tunectl/draft.toml", "TUNECTL_STATE=/x", "PYTHONPATH=/x", "LD_PRELOAD=/x.so")


@pytest.mark.parametrize("name", ["apply", "repair", "monitor"])
def test_no_environment_redirects_a_service_of_ours(name: str) -> None:
    """UnsetEnvironment= counts last: after the manager's, a drop-in's and a file's (systemd.exec(5))."""
    for unit in units_of(name, ("/usr/bin/tunectl",)):
        if "ExecStart=" in unit.text:
            line = next(line for line in unit.text.split("\n") if line.startswith("UnsetEnvironment="))
            assert {word.partition("=")[0] for word in STEERING} <= set(line.partition("=")[2].split())
            assert "PATH" not in line.partition("=")[2].split()
    assert UNSET in hotplug.render(("/usr/bin/tunectl",))


def of_the_rule(root: Path) -> Finding:
    return judged(root, "systemd.apply_on_hotplug")["systemd.apply_on_hotplug"]


UDEVD = "systemd-udevd.service"
SOCKETS = ("systemd-udevd-control.socket", "systemd-udevd-kernel.socket")


def with_udev(root: Path) -> None:
    """What a distribution has: the daemon and its two sockets, each wanted by a target."""
    for unit, target in ((UDEVD, "sysinit"), *((one, "sockets") for one in SOCKETS)):
        write(root, f"usr/lib/systemd/system/{unit}", "[Unit]\nDescription=udev\n")
        linked(f"usr/lib/systemd/system/{target}.target.wants/{unit}", f"../{unit}")(root)


def next_boots(words: str) -> Callable[[Path], object]:
    return written("etc/default/grub", f'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX="{words} panic=10"\n')


def linked_all(*paths: str) -> Callable[[Path], object]:
    """Each of these is a mask."""
    return lambda root: [linked(one, "/dev/null")(root) for one in paths]


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (linked(f"etc/systemd/system/{UDEVD}", "/dev/null"), f"/etc/systemd/system/{UDEVD}"),
        (next_boots(f"systemd.mask={UDEVD}"), f"will have systemd.mask={UDEVD} (/etc/default/grub:2)"),
        (next_boots("systemd.mask=systemd-udevd"), "will have systemd.mask=systemd-udevd (/etc/default/grub:2)"),
        (
            linked_all(
                f"etc/systemd/system/sysinit.target.wants/{UDEVD}", *(f"etc/systemd/system/{one}" for one in SOCKETS)
            ),
            f"sysinit.target.wants/{UDEVD}, /etc/systemd/system/{SOCKETS[0]}",
        ),
    ],
    ids=["masked", "by a word", "by a short word", "every way to start it"],
)
def test_a_udev_that_does_not_run_is_named_and_its_fix_mends_it(
    lab4: Path, harm: Callable[[Path], object], says: str
) -> None:
    with_udev(lab4)
    apply(lab4)
    assert of_the_rule(lab4).outcome == "compliant"
    harm(lab4)
    found = of_the_rule(lab4)
    assert (found.outcome, found.observed) == ("drifted", "overridden")
    assert says in found.reason
    for command in str(found.fix).split(" && "):
        if command != "sudo update-grub":
            typed(lab4, command)
    assert of_the_rule(lab4).outcome == "compliant"


@pytest.mark.parametrize(
    "harm",
    [
        linked_all(*(f"etc/systemd/system/{one}" for one in SOCKETS)),
        linked_all(f"etc/systemd/system/sysinit.target.wants/{UDEVD}"),  # the sockets have it started
        linked_all("etc/systemd/system/systemd-udev-settle.service"),
        next_boots("systemd.mask=systemd-udev-settle.service rd.systemd.mask=systemd-udevd.service"),
    ],
)
def test_a_udev_that_runs_all_the_same_is_no_matter(lab4: Path, harm: Callable[[Path], object]) -> None:
    with_udev(lab4)
    apply(lab4)
    harm(lab4)
    assert of_the_rule(lab4).outcome == "compliant"


SITE_RULE = "etc/udev/rules.d/99-quiet.rules"


@pytest.mark.parametrize(
    "text", ['SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}=""\n', 'SUBSYSTEM=="net", \\\n  ENV{SYSTEMD_WANTS}=""\n']
)
def test_a_rule_that_takes_ours_back_is_named_and_its_fix_mends_it(applied4: Path, text: str) -> None:
    write(applied4, SITE_RULE, f'# units start twice\n{text}SUBSYSTEM=="tty", ENV{{SYSTEMD_WANTS}}=""\n')
    found = of_the_rule(applied4)
    assert (found.outcome, f'/{SITE_RULE}:2 says ENV{{SYSTEMD_WANTS}}=""' in found.reason) == ("unreadable", True)
    typed(applied4, str(found.fix).removesuffix(" && sudo udevadm control --reload"))
    assert of_the_rule(applied4).outcome == "compliant"
    assert 'SUBSYSTEM=="tty", ENV' in (applied4 / SITE_RULE).read_text().splitlines()[-1]


def test_a_rule_that_does_more_or_is_a_packages_leaves_a_decision(applied4: Path) -> None:
    write(applied4, SITE_RULE, 'SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}="x.service", ENV{SEEN}="1"\n')
    assert str(of_the_rule(applied4).fix).startswith(f"decide what /{SITE_RULE}:1 shall do without")
    write(applied4, SITE_RULE, "")
    write(applied4, SITE_RULE.replace("etc", "usr/lib"), 'SUBSYSTEM=="net", ENV{SYSTEMD_WANTS}=""\n')
    assert of_the_rule(applied4).outcome == "compliant"  # the empty file of that name counts instead
    (applied4 / SITE_RULE).unlink()
    assert str(of_the_rule(applied4).fix).startswith("put a copy of /usr/lib/udev/rules.d/99-quiet.rules without")


@pytest.mark.parametrize(
    ("wanted", "since", "value"),
    [
        ("tunectl-reapply@.service", 60, None),
        ("tunectl-reapply@.service", -60, UNKNOWN),
        ("", 60, "overridden"),
        ("", -60, UNKNOWN),
    ],
)
def test_what_udev_remembers_of_a_card_says_what_a_rule_did(
    tmp_path: Path, wanted: str, since: int, value: str | None
) -> None:
    write(tmp_path, SITE_RULE, 'SUBSYSTEM=="net", ATTR{mtu}=="9000", ENV{SYSTEMD_WANTS}=""\n')
    write(tmp_path, "sys/class/net/eth0/ifindex", "2\n")
    (tmp_path / "sys/class/net/eth0/device").mkdir()
    write(tmp_path, "run/udev/data/n2", f"E:SYSTEMD_WANTS={wanted}\nG:systemd\nQ:systemd\n")
    announced = os.lstat(tmp_path / SITE_RULE).st_ctime + since
    os.utime(tmp_path / "run/udev/data/n2", (announced, announced))
    root = Sysroot(str(tmp_path))
    root.live = True  # a recording keeps no times
    found = hotplug._taken_back(root)
    assert (found and found.value) == value


def test_a_ban_that_its_unit_drops_is_not_for_apply_to_mend(lab4: Path) -> None:
    """A restart would bring it back without its list, for ever."""
    drop_in = "etc/systemd/system/irqbalance.service.d/site.conf"
    unit = "[Service]\nEnvironmentFile=-/etc/default/irqbalance\nExecStart=/usr/sbin/irqbalance\n"
    write(lab4, "etc/default/irqbalance", "#\n")
    write(lab4, "usr/lib/systemd/system/irqbalance.service", unit)

    def ban() -> Finding:
        findings = inspection_on(lab4).assess().findings
        return next(one for one in findings if one.target == "irqbalance.banned_cpus")

    apply(lab4)
    assert ban().outcome == "compliant"
    write(lab4, drop_in, "[Service]\nNice=5\nEnvironmentFile=\n")
    found = ban()
    assert (found.outcome, found.observed) == ("drifted", "")
    assert f"/{drop_in}:3 says EnvironmentFile=" in found.reason
    typed(lab4, str(found.fix))
    assert ban().outcome == "compliant"
    assert (lab4 / drop_in).read_text() == "[Service]\nNice=5\n"


def test_a_rule_that_is_a_link_to_nothing_is_masked_and_its_fix_mends_it(applied4: Path) -> None:
    """udev leaves such a file out, and what would be written there would go to a device."""
    linked(hotplug.RULE, "/dev/null")(applied4)
    found = {one.target: one for one in inspection_on(applied4).assess().findings}["systemd.apply_on_hotplug"]
    assert (found.outcome, found.observed) == ("drifted", "masked")
    assert f"/{hotplug.RULE} is a link to /dev/null" in found.reason
    typed(applied4, str(found.fix))
    assert verdict(applied4) != "drifted"
