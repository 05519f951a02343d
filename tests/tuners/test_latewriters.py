"""Cron jobs, rc.local, services and timers that will write what is asked for here; and what only looks like one."""

from pathlib import Path
from typing import Any

import pytest

from tests.trees import write
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.tuners.conflicts import FoundTuner, objection, unseen, unseen_fix
from tunectl.tuners.find import read_tuners

OURS: dict[str, Any] = {
    "cpufreq.governor": "performance",
    "cpufreq.boost": True,
    "cpufreq.energy_perf_bias": 0,
    "cpuidle.max_latency_us": 1,
    "mm.ksm": "stopped",
    "mm.swap": "off",
    "mm.swappiness": 1,
    "mm.thp_enabled": "never",
    "kernel.nmi_watchdog": False,
    "irq.affinity": frozenset({0, 1}),
    "net.adaptive_rx": False,
    "net.rx_ring": 4096,
}
MM = "/sys/kernel/mm/transparent_hugepage"
THP = f"{MM}/enabled"
GOVERNOR = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"
SYSTEM = "etc/systemd/system"


def program(path: str, text: str, mode: int = 0o755) -> Any:
    def act(root: Path) -> None:
        write(root, path, text)
        (root / path).chmod(mode)

    return act


def unit(name: str, text: str, target: str = "multi-user.target") -> Any:
    def act(root: Path) -> None:
        write(root, f"{SYSTEM}/{name}", text)
        wants = root / SYSTEM / f"{target}.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / name).symlink_to(f"/{SYSTEM}/{name}")

    return act


def instance(value: str) -> Any:
    """tune@VALUE.service, enabled; its template writes the instance's name."""
    text = f"[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo %i > {GOVERNOR}'\n"

    def act(root: Path) -> None:
        program(f"{SYSTEM}/tune@.service", text)(root)
        wants = root / SYSTEM / "multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / f"tune@{value}.service").symlink_to(f"/{SYSTEM}/tune@.service")

    return act


ZRAM = "/etc/systemd/zram-generator.conf"
GENERATOR = "usr/lib/systemd/system-generators/zram-generator"


def zram(text: str, path: str = ZRAM.lstrip("/"), generator: str = GENERATOR) -> Any:
    """zram-generator, with this configuration."""
    return both(program(generator, "\0"), program(path, text))


def both(*acts: Any) -> Any:
    def act(root: Path) -> None:
        for one in acts:
            one(root)

    return act


def tuners(root: Path) -> list[FoundTuner]:
    return read_tuners(Sysroot(str(root)))


def against(root: Path, act: Any) -> dict[str, tuple[str, str]]:
    """{row of check.other_tuners: (reason, fix)}."""
    for name in ("present", "online"):
        write(root, f"sys/devices/system/cpu/{name}", "0-3\n")
    write(root, "usr/lib/systemd/system/cron.service", "[Service]\nExecStart=/usr/sbin/cron -f\n")
    write(root, "etc/debian_version", "12.5\n")
    write(root, f"{SYSTEM}/tunectl-apply.service", "[Unit]\nAfter=early.service\n[Service]\nExecStart=/x apply\n")
    act(root)
    host = Sysroot(str(root))
    facts = read_scope_facts(host)
    found = {one.name: objection(one, OURS, frozenset({2, 3}), facts) for one in tuners(root)}
    return {name: (one.reason, str(one.fix)) for name, one in found.items() if one}


SET = f"echo powersave > {GOVERNOR}"
SERVICE = f"[Service]\nType=oneshot\nExecStart=/bin/sh -c '{SET}'\n"
SCRIPT = program("usr/local/bin/save", f"#!/bin/sh\nset -e\n{SET}\n")
PASSWD = program("etc/passwd", "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\ntoor:x:0:0::/:/bin/sh\n")


def service_with(text: str, mark: str = "") -> Any:
    """late.service with more in its section, and a mark before its command."""
    return both(PASSWD, unit("late.service", f"{SERVICE.replace('ExecStart=', f'ExecStart={mark}')}{text}\n"))


@pytest.mark.parametrize(
    ("act", "row", "place", "fix"),
    [
        (program("etc/cron.d/save", f"SHELL=/bin/sh\n@reboot root {SET}\n"), "cron", "/etc/cron.d/save:2", "take /etc"),
        (program("etc/crontab", f"*/5 * * * * root sleep 3; {SET}\n"), "cron", "/etc/crontab:1", "take /etc/cron"),
        (program("var/spool/cron/crontabs/root", f"@reboot {SET}\n"), "cron", "/root:1", "take /var"),
        (both(PASSWD, program("var/spool/cron/toor", f"@reboot {SET}\n")), "cron", "/toor:1", "take /var"),
        (both(PASSWD, program("etc/cron.d/save", f"@reboot toor {SET}\n")), "cron", "/cron.d/save:1", "take /etc"),
        (service_with("User=root\nDynamicUser=no"), "services", "late.service:3", "sudo systemctl disable"),
        (service_with("User=toor"), "services", "late.service:3", "sudo systemctl disable"),
        (service_with("User=nobody", "+"), "services", "late.service:3", "sudo systemctl disable"),
        (service_with("User=nobody", "-!!"), "services", "late.service:3", "sudo systemctl disable"),
        (
            service_with("User=nobody\nAmbientCapabilities=CAP_DAC_OVERRIDE"),
            "services", "late.service:3", "sudo systemctl disable",
        ),
        (program("etc/cron.hourly/save", f"#!/bin/sh\n{SET}\n"), "cron", "/cron.hourly/save:2", "take /etc"),
        (both(SCRIPT, program("etc/cron.d/x", "@daily root /usr/local/bin/save\n")), "cron", "save:3", "take /usr"),
        (program("etc/cron.d/x", "@daily root sysctl -w vm.swappiness=60\n"), "cron", "vm.swappiness = 60", "take"),
        (program("etc/cron.d/x", "@daily root echo 8 > /proc/irq/33/smp_affinity\n"), "cron", "= 3,", "take /etc"),
        (program("etc/rc.local", f"#!/bin/sh -e\n{SET}\nexit 0\n"), "rc.local", "/etc/rc.local:2", "take /etc"),
        (
            both(program("etc/site.conf", "kernel.panic = 9\nvm/swappiness = 60\n"),
                 program("etc/rc.local", "#!/bin/sh\nsysctl -q -p /etc/site.conf\n")),
            "rc.local", "/etc/site.conf:2 may write vm.swappiness = 60", "take /etc/site.conf:2 out, or say vm.swap",
        ),
        (
            both(program("etc/sysctl.conf", "vm.swappi* = 60\n"),
                 unit("x.service", "[Service]\nExecStart=sysctl -p\n")),
            "services", "/etc/sysctl.conf:1", "take /etc/sysctl.conf:1 out",
        ),
        (zram("[zram0]\nzram-size = ram / 2\n"), "zram-generator", f"{ZRAM}:1", "sudo systemctl mask dev-zram0.swap"),
        (zram("# bare\n[zram1]\n"), "zram-generator", f"{ZRAM}:2", "sudo systemctl mask dev-zram1.swap"),
        (
            zram("[zram0]\n", "usr/lib/systemd/zram-generator.conf.d/10-vendor.conf"), "zram-generator",
            "10-vendor.conf:1 will write swapon /dev/zram0 = on", "sudo systemctl mask",
        ),
        (unit("late.service", SERVICE), "services", "late.service:3", "sudo systemctl disable --now late.service"),
        (instance("powersave"), "services", "= powersave", "sudo systemctl disable --now tune@powersave.service"),
        (
            both(SCRIPT, unit("late.service", "[Service]\nExecStartPre=-/usr/local/bin/save\nExecStart=/bin/true\n")),
            "services", "/usr/local/bin/save:3", "take /usr/local/bin/save:3 out",
        ),
        (
            both(unit("late.timer", "[Timer]\n", "timers.target"), program(f"{SYSTEM}/late.service", SERVICE)),
            "services", "late.service:3", "sudo systemctl disable --now late.timer",
        ),
        (
            both(
                unit("x.timer", "[Timer]\nUnit=other.service\n", "timers.target"),
                program(f"{SYSTEM}/other.service", "[Service]\nExecStart=/sbin/tuned-adm profile balanced\n"),
            ),
            "services", "tuned-adm profile balanced", "sudo systemctl disable --now x.timer",
        ),
    ],
)  # fmt: skip
def test_who_will_write_is_named_with_file_and_line(tmp_path: Path, act: Any, row: str, place: str, fix: str) -> None:
    found = against(tmp_path, act)
    assert list(found) == [row]
    assert place in found[row][0]
    assert f"{'will' if row == 'zram-generator' else 'may'} write" in found[row][0]
    assert found[row][1].startswith(fix)


@pytest.mark.parametrize(
    ("act", "row", "place", "knob"),
    [
        (program("etc/rc.local", "#!/bin/sh\ncd /proc/sys/vm\necho 60 > swappiness\n"), "rc.local", 2, "mm.swappiness"),
        (
            unit("x.service", f"[Service]\nEnvironment=GOV=powersave F={GOVERNOR}\nExecStart=/bin/sh -c "
                 "'for g in $$GOV; do echo $$g > ${F}; done'\n"),
            "services", 3, "cpufreq.governor",
        ),
        (
            both(unit("late.service", "[Service]\nExecStart=/opt/x.py\n"),
                 program("opt/x.py", f"#!/usr/bin/python3\nopen('{THP}', 'w').write('never')\n")),
            "services", 2, "mm.thp_enabled",
        ),
        (program("etc/cron.d/x", "@daily root ethtool -C $(card) adaptive-rx off\n"), "cron", 1, "net.adaptive_rx"),
    ],
)  # fmt: skip
def test_what_a_program_does_otherwise_is_not_known_and_named(
    tmp_path: Path, act: Any, row: str, place: int, knob: str
) -> None:
    assert against(tmp_path, act) == {}
    named = {(tuner.name, one.line, one.knob) for tuner in tuners(tmp_path) for one in tuner.settings if one.named}
    hidden = {tuner.name: (unseen(tuner, OURS), unseen_fix(tuner, OURS)) for tuner in tuners(tmp_path)}
    assert (row, place, knob) in named
    assert all(hidden[row])
    assert [unseen(tuner, {"mm.ksm": "stopped"}) for tuner in tuners(tmp_path)] == [""]


def test_swap_in_compressed_memory_is_over_once_its_unit_is_masked(tmp_path: Path) -> None:
    assert list(against(tmp_path, zram("[zram0]\n"))) == ["zram-generator"]
    masked = both(zram("[zram0]\n"), lambda root: (root / SYSTEM / "dev-zram0.swap").symlink_to("/dev/null"))
    assert against(tmp_path, masked) == {}


@pytest.mark.parametrize(
    ("limit", "rows"), [("1000", []), ("1999", []), ("2000", ["zram-generator"]), ("none", ["zram-generator"])]
)
def test_swap_in_compressed_memory_is_for_hosts_that_have_no_more_memory(
    tmp_path: Path, limit: str, rows: list[str]
) -> None:
    write(tmp_path, "proc/meminfo", "MemTotal:        2048000 kB\n")
    assert list(against(tmp_path, zram(f"[zram0]\nhost-memory-limit = {limit}\n"))) == rows


SSH = "usr/lib/systemd/system/ssh.service"
LOGIN = both(
    program(SSH, "[Service]\nExecStartPre=/usr/sbin/sshd -t\nExecStart=/usr/sbin/sshd -D\n"),
    lambda root: (root / SYSTEM / "multi-user.target.wants").mkdir(parents=True),
    lambda root: (root / SYSTEM / "multi-user.target.wants/ssh.service").symlink_to(f"/{SSH}"),
)
TWEAK = "/sbin/sysctl -w vm.swappiness=60"
AGAIN = "then sudo systemctl daemon-reload"


def added(text: str) -> Any:
    return both(LOGIN, program(f"{SYSTEM}/ssh.service.d/tweak.conf", f"[Service]\n{text}"))


@pytest.mark.parametrize(
    ("act", "fix"),
    [
        # a line that the service can do without
        (added(f"ExecStartPost={TWEAK}\n"), f"take /{SYSTEM}/ssh.service.d/tweak.conf:2 out, {AGAIN}"),
        (unit("a.service", f"[Service]\nExecStartPost={TWEAK}\nExecStart=/opt/a\n"), f"a.service:2 out, {AGAIN}"),
        (
            unit("a.service", f"[Service]\nType=oneshot\nExecStart=/opt/a\nExecStart={TWEAK}\n"),
            f"a.service:4 out, {AGAIN}",
        ),
        # the line that starts it
        (added(f"ExecStart=\nExecStart=/bin/sh -c '{TWEAK}; exec /usr/sbin/sshd -D'\n"), "decide what /etc"),
        (unit("a.service", f"[Service]\nExecStart=/bin/sh -c '{TWEAK} && /opt/a'\n"), "a.service:2 shall do instead"),
        (unit("a.service", "[Service]\nExecStart=/sbin/sysctl vm.swappiness=60 net.core.somaxconn=1\n"), "decide"),
        (unit("a.service", f"[Service]\nExecStart={TWEAK}\nExecStop=/opt/a\n"), "decide what /etc"),
        # a service that does nothing else
        (
            unit("a.service", f"[Service]\nExecStart=/bin/sh -c 'for x in 2 3; do {TWEAK}; done'\n"),
            "sudo systemctl disable --now a.service",
        ),
        (unit("a.service", f"[Service]\nExecStart=/bin/sh -c '[ -e /x ] && {TWEAK}'\n"), "disable --now a.service"),
    ],
)
def test_only_a_service_that_does_nothing_else_is_to_be_disabled(tmp_path: Path, act: Any, fix: str) -> None:
    found = against(tmp_path, act)["services"][1]
    assert fix in found
    assert ("disable" in found) is ("disable" in fix)


def test_what_two_lines_should_say_is_said_once(tmp_path: Path) -> None:
    fix = against(tmp_path, program("etc/rc.local", f"#!/bin/sh\n{SET}\n{SET}\n"))["rc.local"][1]
    assert fix.startswith("take /etc/rc.local:2, /etc/rc.local:3 out, or say ")
    assert fix.count(" = ") == 1


def test_rc_local_has_one_row_and_its_line_is_the_fix(tmp_path: Path) -> None:
    runs = unit("rc-local.service", "[Service]\nExecStart=/etc/rc.local start\n")
    found = against(tmp_path, both(program("etc/rc.local", f"#!/bin/sh -e\n{SET}\nexit 0\n"), runs))
    assert list(found) == ["rc.local"]
    assert found["rc.local"][1].startswith("take /etc/rc.local:2 out, or say")


@pytest.mark.parametrize(
    "act",
    [
        both(unit("rc-local.service", "[Service]\nExecStart=/etc/rc.local start\n"),
             program("etc/rc.local", f"#!/bin/sh -e\n{SET}\n", 0o644)),
        added("ExecStartPost=/sbin/sysctl vm.swappiness\n"),
        program("etc/cron.d/same", f"@reboot root {SET.replace('powersave', 'performance')}\n"),
        # what another user than root has run writes nothing of ours
        both(PASSWD, program("var/spool/cron/crontabs/nobody", f"@reboot {SET}\n")),
        both(PASSWD, SCRIPT, program("var/spool/cron/nobody", "@reboot /usr/local/bin/save\n")),
        program("var/spool/cron/crontabs/unheard-of", f"@reboot {SET}\n"),
        both(PASSWD, program("etc/cron.d/x", f"@reboot nobody {SET}\n")),
        program("etc/crontab", f"1 * * * * nobody {SET}\n"),
        service_with("User=nobody"),
        service_with("User=65534", "-@"),
        service_with("DynamicUser=yes"),
        both(unit("tune@.service", SERVICE), instance("nobody"),
             program(f"{SYSTEM}/tune@.service", f"{SERVICE}User=%i\n")),
        zram("[zram0]\nzram-size = 0\n"),
        zram("[zram0]\nmount-point = /var/scratch\n"),
        zram("[zram0]\nfs-type = ext4\nmount-point = /x\n"),
        zram("# [zram0]\n[other]\n"),
        both(zram("[zram0]\n", "usr/lib/systemd/zram-generator.conf"), zram("")),
        both(zram("[zram0]\n"), zram("[zram0]\nzram-size = 0\n", "etc/systemd/zram-generator.conf.d/off.conf")),
        program("etc/systemd/zram-generator.conf", "[zram0]\n"),
        both(program("etc/site.conf", "vm.swappiness = 60\nkernel.panic = 9\nvm.swappiness = 1\n"),
             program("etc/rc.local", "#!/bin/sh\nsysctl -p /etc/site.conf\n")),
        unit("x.service", f"[Service]\nEnvironment=GOV=performance\nExecStart=/bin/sh -c 'echo $GOV > {GOVERNOR}'\n"),
        program("etc/cron.d/same", "@reboot root echo 3 > /proc/irq/33/smp_affinity\n"),
        program("etc/cron.d/reads", f"@reboot root cat {GOVERNOR} > /tmp/governor\n"),
        program("etc/cron.d/off.disabled", f"@reboot root {SET}\n"),
        program("etc/cron.d/comment", f"# @reboot root {SET}\n"),
        program("etc/cron.daily/not-a-program", f"#!/bin/sh\n{SET}\n", 0o644),
        program("etc/cron.d/off", "@reboot root echo 1 > /sys/devices/system/cpu/cpu2/cpuidle/state2/disable\n"),
        both(program("etc/cron.d/x", f"@reboot root {SET}\n"),
             lambda root: (root / "usr/lib/systemd/system/cron.service").unlink()),
        program("etc/rc.local", f"#!/bin/sh -e\n{SET}\n", 0o644),
        program(f"{SYSTEM}/not-enabled.service", SERVICE),
        unit("early.service", SERVICE),
        instance("performance"),
        unit("before.service", f"[Unit]\nBefore=tunectl-apply.service\n{SERVICE}"),
        unit("first.service", SERVICE, "sysinit.target"),
        both(unit("masked.service", SERVICE), lambda root: (root / SYSTEM / "masked.service").unlink(),
             lambda root: (root / SYSTEM / "masked.service").symlink_to("/dev/null")),
        unit("reset.service", f"{SERVICE}ExecStart=\nExecStart=/bin/true\n"),
        unit("tunectl-monitor.service", "[Service]\nExecStart=/usr/bin/tunectl monitor\n"),
        both(unit("big.service", "[Service]\nExecStart=/opt/big\n"), program("opt/big", f"\0{SET}\n")),
    ],
)  # fmt: skip
def test_who_will_not_write_or_writes_our_value_is_no_matter(tmp_path: Path, act: Any) -> None:
    assert against(tmp_path, act) == {}
