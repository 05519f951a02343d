"""What lives in files of our own: the service that holds the latency limit, the limits of locked memory."""

import math
import re
import shlex
import struct
import subprocess
from pathlib import Path

import pytest

from tests.conftest import write_host_file
from tests.hosts.builder import HostFactory
from tests.knobs.test_ourboot import answered, shown
from tests.trees import differences, picture, write
from tests.tuned import apply, inspection_on, judged, restore
from tunectl.errors import UsageError
from tunectl.host.limits import parse_logins, parse_services, read_logins, read_services
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.drivers.exitlatency import NAME, UNIT, render
from tunectl.tuning.commands import run_commands

ASKED = """\
profile = "balanced-latency"
isolated = "2-3"
[knobs]
"cpuidle.dma_latency_us" = 3
"limits.memlock_logins" = "unlimited"
"limits.memlock_services" = 1048576
"mm.hugepages_2mib" = 8
"""


@pytest.mark.parametrize("limit", [0, 3, 92, 255, 256, 70000])
def test_the_service_writes_four_bytes_and_keeps_the_device_open(tmp_path: Path, limit: int) -> None:
    command = re.search(r"^ExecStart=(.*)$", render(limit), re.MULTILINE)
    assert command is not None
    quoted = command[1].partition(" -c ")[2]
    device = tmp_path / "device"
    # systemd halves backslashes inside quotes (systemd.syntax(7)), and sh sees what is left.
    script = shlex.split(quoted)[0].replace("\\\\", "\\").replace("/dev/cpu_dma_latency", str(device))
    script = script.replace("exec sleep infinity", "exec readlink /proc/self/fd/3")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(device)
    assert device.read_bytes() == struct.pack("=i", limit)


@pytest.mark.parametrize("knob", ["cpuidle.dma_latency_us", "cpuidle.resume_latency_us"])
def test_a_limit_beyond_the_kernels_is_refused_before_anything_is_written(
    knob: str, host_root: HostFactory, tmp_path: Path
) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, f'profile = "low-latency"\nisolated = "2-3"\n[knobs]\n"{knob}" = 2147483647\n')
    with pytest.raises(UsageError, match="2147483646 is the most"):
        inspection_on(root)


def test_apply_and_restore_to_the_byte(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, ASKED)
    before = picture(root)
    apply(root)
    assert "infinity" not in (root / "etc/systemd/system.conf.d/99-tunectl.conf").read_text()
    assert read_services(Sysroot(str(root))).kib == 1048576
    assert read_logins(Sysroot(str(root))).kib == math.inf
    findings = {one.knob: str(one.outcome) for one in inspection_on(root).assess().findings}
    assert {findings[name] for name in findings if name.startswith(("limits.", "cpuidle.dma"))} == {"compliant"}
    assert restore(root).complete
    assert differences(before, root) == {}


def test_a_hold_that_failed_in_this_boot_holds_nothing(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, ASKED)
    apply(root)
    answered(shown(NAME))(root)
    assert judged(root, "cpuidle.dma_latency_us")["cpuidle.dma_latency_us"].outcome == "compliant"
    answered(shown(NAME, ActiveState="failed", Result="exit-code", ExecMainStatus="1"))(root)
    finding = judged(root, "cpuidle.dma_latency_us")["cpuidle.dma_latency_us"]
    assert (finding.outcome, NAME in finding.reason) == ("drifted", True)


@pytest.mark.parametrize("described", ["us", "within many us", "within 9999999999 us", "99999999999999999999 us"])
def test_a_unit_of_that_name_that_somebody_else_described_holds_nothing(
    host_root: HostFactory, tmp_path: Path, described: str
) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, ASKED)
    write(root, UNIT, f"[Unit]\nDescription={described}\n")
    finding = judged(root, "cpuidle.dma_latency_us")["cpuidle.dma_latency_us"]
    assert (finding.outcome, finding.observed) == ("drifted", "no constraint")


def test_what_is_told_of_the_service_depends_on_whether_it_is_there(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    assert run_commands(Sysroot(str(root)), ["hold-latency"]).not_run == [
        "/usr/bin/systemctl stop tunectl-latency.service"
    ]
    write(root, UNIT, render(3))
    assert run_commands(Sysroot(str(root)), ["hold-latency"]).not_run == [
        "/usr/bin/systemctl restart tunectl-latency.service"
    ]


@pytest.mark.parametrize(
    ("text", "kib"),
    [
        ("", None),
        ("# * - memlock unlimited\n", None),
        ("* - memlock unlimited\n", math.inf),
        ("*\tsoft\tmemlock\t64 # small\n", 64),
        ("* hard memlock 64\n@trading - memlock unlimited\n* - nofile 9\n", None),
        ("* - memlock 64\n* - memlock -1\n", math.inf),
    ],
)
def test_limits_of_logins(text: str, kib: float | None) -> None:
    assert parse_logins(text) == kib


@pytest.mark.parametrize(
    ("text", "kib"),
    [
        ("[Manager]\n#DefaultLimitMEMLOCK=8M\n", None),
        ("[Manager]\nDefaultLimitMEMLOCK=8M\n", 8192),
        ("[Manager]\nDefaultLimitMEMLOCK=infinity\n", math.inf),
        ("[Manager]\nDefaultLimitMEMLOCK=64K:infinity\n", 64),
        ("[Manager]\nDefaultLimitMEMLOCK = 1048576\nDefaultLimitNOFILE=5\n", 1024),
        # systemd reads it in [Manager] only
        ("DefaultLimitMEMLOCK=8M\n", None),
        ("[Service]\nDefaultLimitMEMLOCK=8M\n", None),
        ("[Manager]\nDefaultLimitMEMLOCK=8M\n[Journal]\nDefaultLimitMEMLOCK=1M\n", 8192),
    ],
)
def test_limits_of_services(text: str, kib: float | None) -> None:
    assert parse_services(text) == kib


def test_a_later_file_counts(tmp_path: Path) -> None:
    write(tmp_path, "etc/security/limits.conf", "* - memlock unlimited\n")
    write(tmp_path, "etc/security/limits.d/99-a.conf", "* - memlock 64\n")
    assert read_logins(Sysroot(str(tmp_path))) == (64, "/etc/security/limits.d/99-a.conf")
    write(tmp_path, "usr/lib/systemd/system.conf.d/50-a.conf", "[Manager]\nDefaultLimitMEMLOCK=infinity\n")
    write(tmp_path, "etc/systemd/system.conf", "[Manager]\nDefaultLimitMEMLOCK=64K\n")
    assert read_services(Sysroot(str(tmp_path))) == (math.inf, "/usr/lib/systemd/system.conf.d/50-a.conf")


def test_the_file_of_the_distribution_counts_where_the_site_has_none(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib/systemd/system.conf", "[Manager]\nDefaultLimitMEMLOCK=64K\n")
    assert read_services(Sysroot(str(tmp_path))) == (64, "/usr/lib/systemd/system.conf")


def test_a_file_that_is_read_after_ours_is_named_and_not_fought(host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("lab4", tmp_path)
    write_host_file(root, ASKED)
    write(root, "etc/security/limits.d/zz-site.conf", "* soft memlock 64\n")
    apply(root)
    finding = next(one for one in inspection_on(root).assess().findings if one.knob == "limits.memlock_logins")
    assert (str(finding.outcome), finding.observed, finding.desired) == ("drifted", 64, "unlimited")
    assert "/etc/security/limits.d/zz-site.conf is read after" in finding.reason
    assert not (root / "etc/security/limits.d/99-tunectl.conf").exists()
    (root / "etc/security/limits.d/zz-site.conf").unlink()
    apply(root)
    assert read_logins(Sysroot(str(root))).kib == math.inf
