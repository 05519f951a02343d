"""Isolation without a reboot, on a real kernel and a real systemd: the isolated CPUs empty, and everything back."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .evidence import cpus
from .follow import in_order
from .lab import Lab
from .product import HOST_FILE, WRITTEN, findings, tunectl, verify
from .story import difference, volatile

RUNTIME = f'{HOST_FILE}isolation = "runtime"\n'
PARTITION = "/sys/fs/cgroup/isolated.slice/cpuset.cpus.partition"
EFFECTIVE = "/sys/fs/cgroup/cpuset.cpus.effective"
BUSY = "sh -c 'while :; do :; done' >/dev/null 2>&1 &"
HOG = "isolation-lab-hog"
# Runnable threads on CPUs 2-3: none, while nothing was put into the partition.
STRAYS = "ps -eLo psr=,stat=,comm= | awk '($1 == 2 || $1 == 3) && $2 ~ /^R/ {print}'"


@pytest.fixture
def asked(installed: Lab) -> Lab:
    """A host whose host file asks for isolation at run time, and nothing applied."""
    installed.write("/etc/tunectl/host.toml", RUNTIME)
    return installed


@pytest.fixture(scope="module")
def _partitioned(lab: Lab, _installed: str) -> str:
    """The saved moment after apply."""
    lab.restore(_installed)
    lab.write("/etc/tunectl/host.toml", RUNTIME)
    tunectl(lab, "apply --yes -q")
    lab.save("partitioned")
    return "partitioned"


@pytest.fixture
def partitioned(lab: Lab, _partitioned: str) -> Lab:
    """A host with the partition in force."""
    lab.restore(_partitioned)
    tunectl(lab, "apply --yes --runtime -q")  # the NVMe controller was plugged in again, as for `tuned`
    return lab


@contextmanager
def loops(lab: Lab) -> Iterator[None]:
    """Eight busy loops that may run anywhere, on four CPUs."""
    lab.run(" ".join([BUSY] * 8) + " sleep 2")
    try:
        yield
    finally:
        lab.run("pkill -f 'while :'", check=False)


def idle_shares(lab: Lab, seconds: int = 5) -> list[float]:
    """The share of the time each CPU idled."""

    def read() -> list[tuple[int, int]]:
        rows = [line.split() for line in lab.read("/proc/stat").splitlines() if line[:3] == "cpu" and line[3] != " "]
        return [(int(row[4]) + int(row[5]), sum(map(int, row[1:9]))) for row in rows]

    before = read()
    lab.run(f"sleep {seconds}")
    return [(now[0] - then[0]) / (now[1] - then[1]) for then, now in zip(before, read(), strict=True)]


def test_the_isolated_cpus_are_empty_without_a_reboot(asked: Lab) -> None:
    boot_id = asked.read("/proc/sys/kernel/random/boot_id")
    with loops(asked):
        assert max(idle_shares(asked)) < 0.3
        applied = tunectl(asked, "apply --yes --format json")
        failed = [one for one in applied.json["changes"] if one["result"] == "failed"]
        assert (applied.code, failed) == (0, []), findings(applied.json, "drifted", "unreadable", "error")
        assert asked.read(PARTITION) == "isolated"
        assert cpus(asked.read(EFFECTIVE)) == {0, 1}
        measured: list[list[float]] = []  # a pause of the emulator within an interrupt is no idle time
        while not (measured and min(measured[-1][2:]) > 0.95 and max(measured[-1][:2]) < 0.3):
            assert len(measured) < 5, measured
            measured.append(idle_shares(asked))
        asked.wait_for(f'test -z "$({STRAYS})"')  # a thread of the kernel's own may have its turn there
    assert asked.read("/proc/sys/kernel/random/boot_id") == boot_id
    ran = tunectl(asked, "verify --format json")
    assert (ran.code, ran.json["verdict"]) == (0, "compliant"), findings(ran.json, "drifted", "pending-reboot")


@pytest.mark.long
def test_units_of_the_slice_run_there_and_others_cannot(partitioned: Lab) -> None:
    spin = "/bin/sh -c 'while :; do :; done'"
    partitioned.run(f"systemd-run --unit={HOG} --slice=isolated.slice -p CPUAffinity=2 {spin} && sleep 2")
    pid = partitioned.run(f"systemctl show -p MainPID --value {HOG}").out.strip()
    assert partitioned.run(f"ps -o psr= -p {pid}").out.strip() == "2"
    assert partitioned.read(PARTITION) == "isolated"
    assert partitioned.run("taskset -c 3 true", check=False).code != 0


@pytest.mark.long
def test_systemd_keeps_it(partitioned: Lab) -> None:
    reloaded = "systemctl daemon-reload && systemd-run --quiet --wait --slice=system.slice true"
    partitioned.run(f"{reloaded} && systemctl daemon-reexec && sleep 2")
    assert partitioned.read(PARTITION) == "isolated"
    assert verify(partitioned)["verdict"] == "compliant"


@pytest.mark.long
@pytest.mark.parametrize("given", ["0", "0-1", "0-3"])
def test_a_slice_is_named_where_the_kernel_lets_it_out(partitioned: Lab, given: str) -> None:
    """By `systemctl set-property`, as an operator would; the partition may keep the kernel from giving it more."""
    partitioned.run(f"systemctl set-property system.slice AllowedCPUs={given}; sleep 2")
    let_out = bool(cpus(partitioned.read("/sys/fs/cgroup/system.slice/cpuset.cpus.effective")) - {0, 1})
    found = findings(verify(partitioned), "drifted")
    assert ("systemd.allowed_cpus[system.slice]" in found) == let_out, found
    assert bool(found) == (let_out or partitioned.read(PARTITION) != "isolated"), found
    for step in in_order([one["fix"] for one in found.values()]):
        partitioned.run(step, check=False, timeout=300)
    assert not findings(verify(partitioned), "drifted")


@pytest.mark.long
def test_the_probe_measures_inside_the_partition(partitioned: Lab) -> None:
    ran = tunectl(partitioned, "probe jitter --cpus 2-3 --duration 2 --format json")
    assert [row["cpu"] for row in ran.json["cpus"]] == [2, 3]
    ran = tunectl(partitioned, "probe wake --mechanisms pipe --waiting block --idle-ms 0 --messages 9 --format json")
    assert {frozenset(cell["cpus"]) for cell in ran.json["cells"]} == {frozenset({2, 3})}
    looked = {row["cpu"]: row for row in tunectl(partitioned, "monitor --once --clock 2 --format json").json["cpus"]}
    assert looked[2]["frequency_from"] == "measured", looked[2]
    split = tunectl(partitioned, "probe jitter --cpus 1-2 --duration 1")
    assert (split.code, "no process may use both" in split.err) == (2, True), split.err
    other = tunectl(partitioned, "probe jitter --cpus 2 --duration 1", user="ops")
    assert (other.code, "CPU 2 belongs to the isolated partition" in other.err) == (1, True), other.err
    assert partitioned.run("ls -d /sys/fs/cgroup/isolated.slice/tunectl-*", check=False).out == ""


@pytest.mark.long
def test_the_sentinel_lives_inside_the_partition(partitioned: Lab) -> None:
    partitioned.write("/etc/tunectl/host.toml", f"{RUNTIME}[monitor.sentinel]\ncpu = 2\n")
    partitioned.run("tunectl monitor --duration 60 >/dev/null 2>/tmp/monitor.log & echo $! >/tmp/pid")
    inside = "ps -o comm=,psr= -p $(cat /sys/fs/cgroup/isolated.slice/tunectl-*/cgroup.procs)"
    partitioned.wait_for(f"{inside} | grep -q 'tunectl-probe *2'")  # it enters, then pins itself
    assert partitioned.run("awk '/Cpus_allowed_list/ {print $2}' /proc/$(cat /tmp/pid)/status").out == "0-1\n"
    partitioned.run("kill $(cat /tmp/pid)")
    partitioned.wait_for("! ls -d /sys/fs/cgroup/isolated.slice/tunectl-* 2>/dev/null")


@pytest.mark.long
def test_the_kernels_reason_is_told(asked: Lab) -> None:
    """The kernel's own words, for a control group that names the same CPU."""
    asked.run("cd /sys/fs/cgroup && echo +cpuset > cgroup.subtree_control && mkdir rival && echo 2 > rival/cpuset.cpus")
    applied = tunectl(asked, "apply --yes --format json")
    assert applied.code == 1, applied.json["changes"]
    assert [one["target"] for one in applied.json["changes"] if one["result"] == "failed"] == ["cpuset.isolated"]
    assert asked.read(PARTITION).startswith("isolated invalid")
    finding = findings(verify(asked), "drifted")["cpuset.isolated"]
    assert asked.read(PARTITION) in finding["reason"]
    assert "rival (2)" in finding["fix"]
    asked.run("rmdir /sys/fs/cgroup/rival")
    assert tunectl(asked, "apply --yes -q").code == 0  # by way of "member": up to 6.6 nothing else brings it back
    assert asked.read(PARTITION) == "isolated"


@pytest.mark.long
def test_the_next_boot_has_it_again(partitioned: Lab) -> None:
    partitioned.reboot()
    partitioned.wait_for("systemctl is-active tunectl-apply.service")
    assert "isolcpus" not in partitioned.read("/proc/cmdline")
    assert partitioned.read(PARTITION) == "isolated"
    assert verify(partitioned)["verdict"] == "compliant", findings(verify(partitioned), "drifted")
    assert cpus(partitioned.run("awk '/Cpus_allowed_list/ {print $2}' /proc/1/status").out) == {0, 1}


@pytest.mark.long
def test_and_back(asked: Lab) -> None:
    asked.run("systemctl stop irqbalance")  # what it moves in between is not ours to move back
    before = asked.fingerprint(*WRITTEN)
    tunectl(asked, "apply --yes -q")
    assert tunectl(asked, "restore --format json").code == 0
    assert asked.run(f"cat {PARTITION}", check=False).out in ("", "member\n")
    assert cpus(asked.read(EFFECTIVE)) == {0, 1, 2, 3}
    asked.run("taskset -c 3 true")
    left = difference(before, asked.fingerprint(*WRITTEN))
    assert {path for path in left if not volatile(path)} == set(), left
    with loops(asked):
        assert max(idle_shares(asked)) < 0.3
