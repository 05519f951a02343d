"""The units that apply writes, read by their real reader, and the rule that starts one of them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trees import write
from tests.tuned import apply, inspection_on, judged, verdict
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdunit import Said
from tunectl.knobs.drivers import allowlists, confined, dropins, exitlatency, hotplug
from tunectl.knobs.drivers.confined import UNSET
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


HARM = [
    pytest.param(
        written(DROP_IN, "[Service]\nNice=5\nExecStart=\nExecStart=/bin/true\n"),
        ("overridden", f"/{DROP_IN}:4 says ExecStart=/bin/true"),
        id="another command",
    ),
    pytest.param(written(DROP_IN, "[Service]\nExecStart=\n"), ("overridden", f"/{DROP_IN}:2"), id="no command"),
    pytest.param(
        written("run/systemd/system/tunectl-.service.d/x.conf", "[Service]\nUser=nobody\n"),
        ("overridden", "tunectl-.service.d/x.conf:2 says User=nobody"),
        id="another user, for every unit of ours",
    ),
    pytest.param(
        written(DROP_IN, "[Unit]\nConditionPathExists=/never \\\n  there\n"),
        ("conditional", f"/{DROP_IN}:2"),
        id="a condition",
    ),
    pytest.param(written(DROP_IN, "[Unit]\nAssertPathExists=/no\n"), ("conditional", "Assert"), id="an assertion"),
    pytest.param(linked(UNIT, "/dev/null"), ("masked", f"/{UNIT} masks it"), id="masked"),
    pytest.param(
        linked("etc/systemd/system.control/tunectl-apply.service", "/dev/null"), ("masked", "control"), id="control"
    ),
    pytest.param(
        written("run/systemd/transient/tunectl-apply.service", "[Service]\nExecStart=/bin/true\n"),
        ("overridden", "/run/systemd/transient/tunectl-apply.service"),
        id="another file",
    ),
    pytest.param(
        linked(f"{UNIT}.requires/gone.service", "../gone.service"),
        ("overridden", ".requires/gone.service"),
        id="requires",
    ),
    pytest.param(linked(LINK, "/dev/null"), ("disabled", ""), id="its link is a mask"),
    pytest.param(lambda root: (root / "run/systemd/units").mkdir(parents=True), ("not run", ""), id="did not run"),
]


@pytest.mark.parametrize(("harm", "found"), HARM)
def test_a_service_that_would_not_run_is_named_and_its_fix_mends_it(
    applied4: Path, harm: Callable[[Path], object], found: tuple[str, str]
) -> None:
    (applied4 / "proc/sys/kernel/random/boot_id").write_text("11111111-2222-3333-4444-555555555555\n")
    harm(applied4)
    finding = of_the_service(applied4)
    assert (finding.outcome, finding.observed) == ("drifted", found[0])
    assert found[1] in finding.reason
    if str(finding.fix).startswith("decide"):
        assert "tunectl-.service.d" in str(finding.fix)
        return
    typed(applied4, str(finding.fix))
    if found[0] == "not run":  # what `systemctl restart` does
        linked(INVOCATION, "0123456789abcdef")(applied4)
    assert of_the_service(applied4).outcome == "compliant"


@pytest.mark.parametrize(
    "harm",
    [
        written(DROP_IN, "[Service]\nNice=5\nUser=root\nProtectSystem=full\n"),
        written(DROP_IN, "[Service]\nExecStart=/bin/true\n"),  # a second command of a oneshot service
        written(DROP_IN, "[Service]\nExecStart=\nExecStart=-/usr/bin/tunectl apply --yes --runtime\n"),
        written(DROP_IN, "[Unit]\nConditionPathExists=/etc/systemd\n"),
        written(DROP_IN, "[Unit]\nConditionPathExists=/no\nConditionPathExists=\n"),
        written("usr/lib/systemd/system/tunectl-apply.service", "[Service]\nExecStart=/bin/true\n"),
        linked("run/systemd/system/tunectl-apply.service", "/dev/null"),
        linked(INVOCATION, "0123456789abcdef"),
        linked(f"{UNIT}.requires/basic.target", "/usr/lib/systemd/system/basic.target"),
        linked(f"{UNIT}.wants/gone.service", "../gone.service"),
    ],
)
def test_a_drop_in_that_keeps_the_service_running_is_no_matter(applied4: Path, harm: Callable[[Path], object]) -> None:
    harm(applied4)
    assert of_the_service(applied4).outcome == "compliant"


# Keys that systemd 252 does not know yet.
NEWER = {
    *("CoredumpReceive", "ExecReloadPost", "LogFilterPatterns", "MemoryPressureThresholdSec", "MemoryPressureWatch"),
    *("MemoryZSwapMax", "RestartMaxDelaySec", "RestartMode", "RestartSteps", "PrivatePIDs", "PrivateBPF"),
    *("RootEphemeral", "WantsMountsFor"),
    # keys of 252 that a later one may have dropped
    *("CPUShares", "StartupCPUShares", "BlockIOAccounting", "BlockIOWeight", "StartupBlockIOWeight", "MemoryLimit"),
}
HARMFUL = """\
[Service]
Type=simple
RemainAfterExit=no
Restart=always
ExecStart=/sbin/sysctl -w vm.swappiness=60
ExecStartPre=/bin/false
ExecStartPre=/no/true
ExecStartPre=/bin/sleep infinity
ExecStartPost=/sbin/sysctl -w vm.swappiness=60
ExecStartPost=-/sbin/sysctl -w vm.swappiness=60
ExecStartPre=/usr/bin/mytool
ExecStartPre=@/bin/false false-
ExecStartPre=-/bin/sleep infinity
ExecStartPre=sleep 100
ExecStart=-/sbin/sysctl -w vm.swappiness=60
ExecStopPost=/sbin/sysctl -w vm.swappiness=60
ExecCondition=/bin/false
TimeoutStartSec=1us
TimeoutStartSec=89
TimeoutStartSec=1min 29s
TimeoutStartSec=soon
TimeoutSec=1
SuccessExitStatus=
SuccessExitStatus=1
User=nobody
Group=nogroup
DynamicUser=yes
DynamicUser=
WorkingDirectory=/no
RootDirectory=/no
RootImage=/no.img
Environment=A=b "LD_BIND_NOT=1"
Environment=LD_BIND_NOT=1
Environment=PATH=/tmp
Environment="A
PassEnvironment=PYTHONCASEOK
UnsetEnvironment=PATH
EnvironmentFile=/etc/default/tunectl
CapabilityBoundingSet=
CapabilityBoundingSet=~CAP_SYS_ADMIN
CapabilityBoundingSet=~cap_net_admin CAP_SYS_BOOT
SystemCallFilter=~write
SystemCallFilter=~@swap @mount
RestrictAddressFamilies=none
RestrictAddressFamilies=~AF_NETLINK
RestrictNamespaces=yes
RestrictNamespaces=~mnt net
ReadOnlyPaths=/sys /proc
ReadWritePaths=/no
ReadWritePaths=
BindReadOnlyPaths=/sys
InaccessiblePaths=/etc/tunectl
InaccessiblePaths=-/srv /sys
InaccessiblePaths=-/
InaccessiblePaths=-/mnt/../etc
ReadOnlyPaths=/srv
ReadOnlyPaths=-/mntx
TemporaryFileSystem=/etc
ProcSubset=pid
ProtectKernelTunables=yes
ProtectControlGroups=strict
PrivateDevices=yes
PrivateNetwork=yes
PrivateUsers=self
DevicePolicy=strict
DeviceAllow=
UMask=0777
StandardInput=tty
StandardOutput=file:/no/log
MemoryMax=1M
MemoryMax=255M
TasksMax=511
TasksMax=1%
LimitNOFILE=3
CPUAffinity=4000
PAMName=login
[Unit]
BindsTo=no.service
Requisite=no.service
Requires=nonexistent.service
Requires=basic.target nonexistent.service
Conflicts=multi-user.target
After=graphical.target
After=irqbalance.service
Before=systemd-sysctl.service
Before=sysinit.target
DefaultDependencies=no
JobTimeoutSec=1
SuccessAction=reboot
RefuseManualStart=yes
RequiresMountsFor=/no
"""
HARMLESS = """\
[Service]
Type=oneshot
RemainAfterExit=yes
Restart=on-failure
RestartSec=5
ExecStartPre=/bin/sleep 5
ExecStartPre=-/usr/bin/echo now
ExecStartPre=-/bin/false
ExecStartPre=@-/bin/false no
ExecStartPre=+-/usr/bin/mytool --now
ExecStartPre=-/no/such/program
ExecStartPre=true
ExecCondition=-/bin/false
ExecStartPost=-/bin/false
ExecStartPost=/bin/true
ExecReload=/bin/false
ExecStartPre=
TimeoutStartSec=90
TimeoutStartSec=1min 30s
TimeoutStartSec=1h30min
TimeoutStartSec=infinity
TimeoutStartSec=0
TimeoutStopSec=1
TimeoutStopFailureMode=abort
RuntimeMaxSec=1
SuccessExitStatus=0 4
User=root
Group=0
DynamicUser=no
WorkingDirectory=/etc
WorkingDirectory=-/no
Environment=LANG=C "A=b c"
Environment=MYTUNECTL_ROOT=/x
Environment=TUNECTL_ROOT=/tmp/x
Environment=TUNECTL_HOST=/tmp/x.toml
Environment=A=b "PYTHONPATH=/tmp/x"
Environment=LD_PRELOAD=/tmp/x.so
PassEnvironment=TUNECTL_HOST
UnsetEnvironment=
Environment=
EnvironmentFile=
UnsetEnvironment=LANG
CapabilityBoundingSet=~
CapabilityBoundingSet=CAP_SYS_TIME
CapabilityBoundingSet=~CAP_SYS_BOOT CAP_SYS_MODULE
SystemCallFilter=
SystemCallFilter=@clock
SystemCallFilter=~@reboot @swap @obsolete
SystemCallArchitectures=native
SystemCallArchitectures=x86
SystemCallArchitectures=
RestrictAddressFamilies=
RestrictAddressFamilies=AF_INET AF_INET6
RestrictAddressFamilies=~AF_PACKET
RestrictNamespaces=
RestrictNamespaces=no
RestrictNamespaces=net
RestrictNamespaces=~user
DeviceAllow=/dev/null rw
ReadWritePaths=/etc -/no
ReadOnlyPaths=
ReadOnlyPaths=-/srv -/mnt/data
InaccessiblePaths=-/srv/ -/home/trader
ProcSubset=all
ProtectProc=default
ProtectSystem=full
ProtectSystem=strict
MemoryDenyWriteExecute=yes
ProtectClock=yes
DevicePolicy=closed
ProtectHome=read-only
ProtectControlGroups=no
PrivateNetwork=false
PrivateDevices=off
NoNewPrivileges=yes
LockPersonality=true
UMask=0022
StandardOutput=journal
StandardError=append:/etc/tunectl.log
SyslogIdentifier=tuning
LogLevelMax=debug
Nice=-5
CPUWeight=10
IOWeight=10
CPUAffinity=0
Slice=housekeeping.slice
OOMScoreAdjust=-900
MemoryMax=256M
MemoryMax=infinity
TasksMax=512
TasksMax=15%
MemoryMax=50%
LimitNOFILE=1024:4096
LimitCORE=0
X-Site=yes
[Unit]
Description=Ours
Documentation=man:tunectl(8)
After=network-online.target openibd.service
Before=trading.service
Wants=network-online.target
PartOf=trading.target
OnFailure=mail@%n.service
Requires=basic.target
Conflicts=shutdown.target
JobTimeoutSec=10min
StartLimitIntervalSec=0
RefuseManualStart=no
X-Site=yes
[Install]
WantedBy=graphical.target
[X-Site]
User=nobody
"""


def alone(text: str) -> list[tuple[str, str]]:
    """(section, line) of each line that stands below a section's name."""
    section, found = "", []
    for line in text.splitlines():
        if line.startswith("["):
            section = line
        else:
            found.append((section, line))
    return found


@pytest.mark.slow
def test_every_line_that_may_keep_the_service_from_its_work_is_named_and_its_fix_mends_it(applied4: Path) -> None:
    for section, line in alone(HARMFUL):
        write(applied4, DROP_IN, f"{section}\n{line}\n")
        found = of_the_service(applied4)
        assert (found.outcome, found.observed) == ("drifted", "overridden"), line
        assert f"/{DROP_IN}:2 says {line}" in found.reason
        typed(applied4, str(found.fix))
        assert (applied4 / DROP_IN).read_text() == f"{section}\n"
        assert of_the_service(applied4).outcome == "compliant"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("ReadWritePaths=\nProtectSystem=no\n", "compliant"),
        ("ReadWritePaths=\nProtectSystem=no\nProtectSystem=strict\n", "drifted"),
        ("ReadWritePaths=\nProtectSystem=full\n", "drifted"),  # /etc is read-only then
        ("ReadWritePaths=\nProtectSystem=yes\n", "drifted"),  # and then /usr and /boot
        ("ReadWritePaths=\nProtectSystem=\n", "drifted"),
        ("ReadWritePaths=/no\nProtectSystem=no\n", "drifted"),  # systemd cannot mount it
        ("ReadWritePaths=\nReadWritePaths=/var\n", "drifted"),
        ("ExecStart=\nExecStart=/usr/bin/tunectl apply --runtime --yes\n", "compliant"),
        ("ExecStart=\nExecStart=-/usr/bin/tunectl apply --runtime -y --wait=60\n", "drifted"),
        ("ExecStart=\nExecStart=/usr/bin/tunectl apply --runtime -y\n", "compliant"),
        ("ExecStart=\nExecStart=/usr/bin/tunectl apply --runtime\n", "drifted"),
        ("ExecStart=\nExecStart=/usr/bin/tunectl --runtime apply --yes\n", "drifted"),
        ("ExecStart=\nExecStart=/opt/tunectl apply --yes --runtime\n", "drifted"),
    ],
)
def test_what_several_lines_come_to_together_counts(applied4: Path, text: str, outcome: str) -> None:
    write(applied4, DROP_IN, f"[Service]\n{text}")
    found = of_the_service(applied4)
    assert found.outcome == outcome
    typed(applied4, str(found.fix) or "sudo true")
    assert of_the_service(applied4).outcome == "compliant"


@needs_systemd
@pytest.mark.parametrize(
    ("marks", "may_be_missing"), [("-", True), ("@-", True), ("+-", True), ("@", False), ("", False)]
)
def test_systemd_too_lets_a_command_with_a_minus_be_missing(tmp_path: Path, marks: str, may_be_missing: bool) -> None:
    unit = tmp_path / "tunectl-x.service"
    unit.write_text(f"[Service]\nType=oneshot\nExecStart=/bin/true\nExecStartPre={marks}/no/program no\n")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    assert ("/no/program" not in done.stderr) is may_be_missing is dropins._may_fail(f"{marks}/no/program no")


def test_the_order_of_options_with_values_is_no_matter(lab4: Path) -> None:
    own = "/usr/bin/tunectl --host /a --state /b apply --yes --wait 120"
    for words, harmful in (
        ("/usr/bin/tunectl --state /b --host=/a apply --wait=120 --yes", False),
        ("/usr/bin/tunectl --state /a --host /b apply --yes --wait 120", True),
        ("/usr/bin/tunectl --host /a --state /b apply --yes --wait 12", True),
    ):
        said = [Said("Service", "ExecStart", value, file, 1, 1) for value, file in ((own, UNIT), ("", DROP_IN))]
        said.append(Said("Service", "ExecStart", words, DROP_IN, 2, 2))
        assert bool(dropins.not_harmless(Sysroot(str(lab4)), said, UNIT, own.split())) is harmful


SHARED = "etc/systemd/system/tunectl-.service.d/zz.conf"
LATER = DROP_IN.replace("override", "z")
UNTIL = "[Unit]\nConditionPathExists=/nope\nAssertPathExists=/no\nConditionPathExists=|/a\nConditionPathExists=|/b\n"


@pytest.mark.parametrize(
    ("files", "left"),
    [
        pytest.param(
            {DROP_IN: f"{UNTIL}[Service]\nNice=1\nUser=nobody\n"},
            {DROP_IN: "[Unit]\n[Service]\nNice=1\n"},
            id="conditions and lines",
        ),
        pytest.param(
            {DROP_IN: "[Service]\nUser=nobody\nUser=games\n", LATER: "[Service]\nUser=daemon\n"},
            {DROP_IN: "[Service]\n", LATER: "[Service]\n"},
            id="one line hides another",
        ),
        pytest.param(
            {DROP_IN: "[Service]\nUser=nobody\nUser=root\nPrivateNetwork=no\n", LATER: "[Service]\nUMask=0777\n"},
            {DROP_IN: "[Service]\nUser=nobody\nUser=root\nPrivateNetwork=no\n", LATER: "[Service]\n"},
            id="what is taken back may stay",
        ),
        pytest.param(
            {
                f"{UNIT}.requires/a b.target": "",
                f"{UNIT}.requires/c.target": "",
                DROP_IN: "[Unit]\nRequires=no.target\n",
            },
            {f"{UNIT}.requires/a b.target": None, f"{UNIT}.requires/c.target": None, DROP_IN: "[Unit]\n"},
            id="links",
        ),
    ],
)
def test_one_fix_takes_everything_out_that_is_in_the_way_and_nothing_else(
    applied4: Path, files: dict[str, str], left: dict[str, str | None]
) -> None:
    for path, text in files.items():
        write(applied4, path, text)
    found = of_the_service(applied4)
    assert found.outcome == "drifted"
    typed(applied4, str(found.fix).replace("; sudo", " && sudo"))
    assert {path: (applied4 / path).read_text() if (applied4 / path).exists() else None for path in files} == left
    assert of_the_service(applied4).outcome == "compliant"


def test_a_condition_and_a_line_are_both_named(applied4: Path) -> None:
    write(applied4, DROP_IN, f"{UNTIL}[Service]\nUser=nobody\n")
    reason = of_the_service(applied4).reason
    assert all(f"/{DROP_IN}:{number} says" in reason for number in (2, 3, 4, 5, 7))


def test_a_shared_drop_in_leaves_a_decision_for_its_own_lines_alone(applied4: Path) -> None:
    write(applied4, SHARED, "[Service]\nNice=1\nUser=nobody\n[Unit]\nConditionPathExists=/nope\n")
    write(applied4, DROP_IN, "[Service]\nUMask=0777\nPrivateDevices=yes\n")
    first, second = of_the_service(applied4).fix.tasks
    assert first.text == f"sudo sed -i '2d;3d' /{DROP_IN} && sudo systemctl daemon-reload"
    assert second.text.startswith(f"decide about /{SHARED}:3, /{SHARED}:5: it holds for other units")
    typed(applied4, first.text)
    assert of_the_service(applied4).fix.tasks == (second,)
    write(applied4, SHARED, "[Service]\nNice=1\n")
    assert of_the_service(applied4).outcome == "compliant"


@pytest.mark.parametrize("name", ["a\x1b[31mb", "two\nlines", "caf\udce9", "100% 'of' \"it\" \\033 $x`y`\t", "a b'c"])
def test_a_drop_in_of_any_name_is_found_by_the_command_that_is_printed(applied4: Path, name: str) -> None:
    path = f"{UNIT}.d/{name}.conf"
    write(applied4, path, "[Service]\nNice=1\nUser=nobody\n")
    fix = str(of_the_service(applied4).fix)
    assert "\n" not in fix
    command = fix.partition(" && ")[0].removeprefix("sudo ").replace("/etc/systemd", f"{applied4}/etc/systemd")
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert of_the_service(applied4).outcome == "compliant"


@pytest.mark.slow
def test_a_line_that_keeps_the_service_as_it_is_is_no_matter(applied4: Path) -> None:
    for section, line in alone(HARMLESS):
        write(applied4, DROP_IN, f"{section}\n{line}\n")
        assert of_the_service(applied4).outcome == "compliant", line


@pytest.mark.parametrize(
    ("command", "harmful"),
    [
        ("/usr/bin/tunectl --host /etc/tunectl/host.toml apply", False),
        ("/srvx/bin/tunectl apply", False),
        ("/srv/tunectl/bin/tunectl apply", True),
        ("/usr/bin/tunectl --host /srv/host.toml apply", True),
    ],
)
@pytest.mark.parametrize("key", ["InaccessiblePaths", "ReadOnlyPaths"])
def test_a_place_may_be_taken_away_unless_the_command_names_a_file_there(
    lab4: Path, key: str, command: str, harmful: bool
) -> None:
    said = [Said("Service", "ExecStart", command, UNIT, 2, 2), Said("Service", key, "-/srv", DROP_IN, 2, 2)]
    assert dropins.not_harmless(Sysroot(str(lab4)), said, UNIT, command.split()) == said[1:] * harmful


@pytest.mark.parametrize(
    "text",
    [
        "User=nobody\nUser=root\n",
        "User=nobody\nUser=\n",
        "TimeoutStartSec=1\nTimeoutSec=5min\n",
        "PrivateDevices=yes\nPrivateDevices=no\n",
        "ReadWritePaths=\nReadWritePaths=/\n",
        "SystemCallFilter=~write\nSystemCallFilter=\n",
        "ExecStartPre=/bin/false\nExecStartPre=\n",
        "Environment=PATH=/x\nEnvironment=\n",
        "CapabilityBoundingSet=\nCapabilityBoundingSet=~\n",
        "SystemCallFilter=~write\nSystemCallFilter=write\n",
        "RestrictAddressFamilies=none\nRestrictAddressFamilies=AF_UNIX AF_NETLINK\n",
        "RestrictNamespaces=yes\nRestrictNamespaces=mnt\n",
        "SuccessExitStatus=\nSuccessExitStatus=4\n",
        "SuccessExitStatus=\nSuccessExitStatus=0 4\n",
        f"ReadWritePaths=\nReadWritePaths={confined.WRITTEN}\n",
        "ReadWritePaths=\nReadWriteDirectories=-/efi -/boot /var -/run -/srv -/etc -/usr/lib/modules\n",
        "ReadWriteDirectories=\nProtectSystem=no\n",
        "ReadWritePaths=\nProtectSystem=false\n",
        "PrivateNetwork=yes\nPrivateNetwork=no\n",
    ],
)
def test_a_line_that_a_later_one_takes_back_is_no_matter(applied4: Path, text: str) -> None:
    """The other way round it is one; but for a dependency, which nothing takes back."""
    first, second = text.splitlines()
    write(applied4, DROP_IN, f"[Service]\n{first}\n")
    write(applied4, DROP_IN.replace("override", "z"), f"[Service]\n{second}\n")
    assert of_the_service(applied4).outcome == "compliant"
    (applied4 / DROP_IN.replace("override", "z")).unlink()
    assert of_the_service(applied4).observed == "overridden"


@pytest.mark.parametrize(
    "lines",
    [
        "RestrictAddressFamilies=\nRestrictAddressFamilies=AF_INET\n",
        "CapabilityBoundingSet=\nCapabilityBoundingSet=CAP_SYS_NICE\n",
        "SystemCallFilter=\nSystemCallFilter=@basic-io\n",
        "DeviceAllow=\nDeviceAllow=/dev/null rw\n",
        "RestrictNamespaces=\nRestrictNamespaces=~mnt\n",
    ],
)
def test_a_list_that_begins_anew_without_what_the_service_needs_is_named_and_its_fix_mends_it(
    lab4: Path, lines: str
) -> None:
    apply(lab4)
    write(lab4, DROP_IN, f"[Service]\nNice=1\n{lines}")
    found = of_the_service(lab4)
    assert (found.outcome, found.observed) == ("drifted", "overridden")
    typed(lab4, str(found.fix))
    assert "Nice=1\n" in (lab4 / DROP_IN).read_text()
    assert of_the_service(lab4).outcome == "compliant"


@needs_systemd
def test_systemd_comes_to_the_same_lists(tmp_path: Path) -> None:
    """systemd-analyze security judges the merged unit: what it calls allowed before, it must still call so."""
    own = "[Service]\nExecStart=/bin/true\n" + "\n".join(confined.confined(()).splitlines()) + "\n"
    needed = (
        *("CapabilityBoundingSet=~CAP_SYS_ADMIN", "CapabilityBoundingSet=~CAP_NET_ADMIN", "RestrictNamespaces=~mnt"),
        *("RestrictAddressFamilies=~AF_NETLINK", "SystemCallFilter=~@mount", "SystemCallFilter=~@resources"),
    )
    lines = [line for _, line in alone(HARMFUL + HARMLESS) if line.partition("=")[0] in allowlists.KEYS]
    lines = [line for line in lines if not line.startswith(("DeviceAllow", "SystemCallFilter=~write"))]
    (tmp_path / "tunectl-x.service").write_text(own)
    dropin = tmp_path / "tunectl-x.service.d/x.conf"
    dropin.parent.mkdir()
    for line in lines:
        dropin.write_text(f"[Service]\n{line}\n")
        asked = ["systemd-analyze", "security", "--offline=yes", "--json=short", str(tmp_path / "tunectl-x.service")]
        done = subprocess.run(asked, capture_output=True, text=True)
        is_set = {one["name"]: one["set"] for one in json.loads(done.stdout)}
        assert all(is_set[name] is not True for name in needed) is (line in HARMLESS.splitlines()), line


@needs_systemd
def test_no_call_of_ours_is_in_a_group_that_counts_as_somebody_elses() -> None:
    def calls(group: str) -> set[str]:
        asked = ["systemd-analyze", "syscall-filter", "--no-pager", group]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        words = {line.strip() for line in done.stdout.splitlines()[1:]}
        inner = {word for word in words if word.startswith("@")}
        return {word for word in words if word and word[0] not in "@#"}.union(*map(calls, inner))

    ours = calls("@system-service") | calls("@mount")
    assert "sched_setaffinity" in ours
    assert not any(ours & calls(group) for group in allowlists.OTHER_CALLS)


STEERING = ("TUNECTL_HOST=/etc/tunectl/draft.toml", "TUNECTL_STATE=/x", "PYTHONPATH=/x", "LD_PRELOAD=/x.so")
MANAGER = "etc/systemd/system.conf.d/10-env.conf"


@pytest.mark.parametrize("name", ["apply", "repair", "monitor"])
def test_no_environment_redirects_a_service_of_ours(name: str) -> None:
    """UnsetEnvironment= counts last: after the manager's, a drop-in's and a file's (systemd.exec(5))."""
    for unit in units_of(name, ("/usr/bin/tunectl",)):
        if "ExecStart=" in unit.text:
            line = next(line for line in unit.text.split("\n") if line.startswith("UnsetEnvironment="))
            assert {word.partition("=")[0] for word in STEERING} <= set(line.partition("=")[2].split())
            assert "PATH" not in line.partition("=")[2].split()
    assert UNSET in hotplug.render(("/usr/bin/tunectl",))


@pytest.mark.parametrize("variable", STEERING)
def test_the_managers_environment_counts_where_a_drop_in_lets_it_in(applied4: Path, variable: str) -> None:
    write(applied4, MANAGER, f'[Manager]\nDefaultEnvironment=LANG=C "{variable}"\n')
    assert of_the_service(applied4).outcome == "compliant"
    write(applied4, DROP_IN, "[Service]\nUnsetEnvironment=\n")
    found = of_the_service(applied4)
    assert (found.outcome, found.observed) == ("drifted", "overridden")
    assert f"/{MANAGER}:2 says DefaultEnvironment=" in found.reason
    write(applied4, MANAGER, "[Manager]\nDefaultEnvironment=LANG=C\n")
    assert of_the_service(applied4).outcome == "compliant"


@pytest.mark.parametrize(
    ("line", "harmless"),
    [
        ("DefaultLimitNOFILE=3", "DefaultLimitNOFILE=65536"),
        ("DefaultTasksMax=1", "DefaultTasksMax=15%"),
        ("CapabilityBoundingSet=CAP_SYS_NICE", "LogLevel=debug"),
    ],
)
def test_what_the_manager_allows_every_service_counts(applied4: Path, line: str, harmless: str) -> None:
    write(applied4, MANAGER, f"[Manager]\n{harmless}\n")
    assert of_the_service(applied4).outcome == "compliant"
    write(applied4, MANAGER, f"[Manager]\n{line}\n")
    found = of_the_service(applied4)
    assert (found.outcome, found.observed) == ("drifted", "overridden")
    assert f"/{MANAGER}:2 says {line}" in found.reason


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
    assert (found.outcome, found.observed) == ("drifted", "overridden")
    assert f'/{SITE_RULE}:2 says ENV{{SYSTEMD_WANTS}}=""' in found.reason
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


def test_a_rule_that_may_be_about_these_cards_is_not_known(applied4: Path) -> None:
    write(applied4, SITE_RULE, 'SUBSYSTEM=="net", ATTR{mtu}=="9000", ENV{SYSTEMD_WANTS}=""\n')
    assert of_the_rule(applied4).outcome == "unreadable"


def test_a_dependency_is_not_taken_back_by_an_empty_one(applied4: Path) -> None:
    """Source: systemd.unit(5): dependencies cannot be reset to an empty list."""
    write(applied4, DROP_IN, "[Unit]\nRequires=no.service\nRequires=\n")
    assert f"/{DROP_IN}:2 says Requires=no.service" in of_the_service(applied4).reason


@pytest.mark.parametrize("key", ["PrivateDevices=yes", "TimeoutStartSec=1", "DynamicUser=yes", "PrivateNetwork=yes"])
def test_an_empty_value_takes_back_only_what_systemd_lets_it(applied4: Path, key: str) -> None:
    write(applied4, DROP_IN, f"[Service]\n{key}\n{key.partition('=')[0]}=\n")
    assert of_the_service(applied4).observed == "overridden"


@needs_systemd
def test_systemd_knows_every_key_of_the_table_and_which_may_be_empty(tmp_path: Path) -> None:
    """A key that is written wrongly would never be found in a drop-in."""
    keys = [(section, key) for section, tests in dropins._HARMLESS.items() for key in tests]
    keys = [("Service", "ExecStart"), *(key for key in keys if key[1] != "DynamicUser")]  # empty, it is refused
    unit = tmp_path / "tunectl-keys.service"
    unit.write_text("".join(f"[{section}]\n{key}=\n" for section, key in keys) + "[Service]\nExecStart=/bin/true\n")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    unknown = set(re.findall(r"Unknown key(?: name)? '(\w+)'", done.stderr))
    assert unknown <= NEWER
    refused = {keys[int(line) // 2 - 1][1] for line in re.findall(r":(\d+): Failed to parse", done.stderr)}
    assert "Type" in refused
    assert refused.isdisjoint({*dropins._TAKEN_BACK, *dropins._LISTS})


def test_a_first_apply_by_hand_needs_no_run_of_the_service(lab4: Path) -> None:
    (lab4 / "run/systemd/units").mkdir(parents=True)
    apply(lab4)
    assert of_the_service(lab4).outcome == "compliant"


def test_a_condition_that_a_recording_cannot_judge_is_not_known(applied4: Path) -> None:
    write(applied4, DROP_IN, "[Unit]\nConditionACPower=true\n")
    assert of_the_service(applied4).outcome == "unreadable"


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
