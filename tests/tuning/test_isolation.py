"""Isolation at run time: a partition of control group v2 and systemd's slices; applied, refused, taken back."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import LOW_LATENCY, write_host_file
from tests.fake_kernel import KernelRoot, Manners
from tests.trees import differences, picture, write
from tests.tuned import apply, inspection_on, judged, restore, results
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.writable import WritableSysroot
from tunectl.knobs.drivers.systemdcpus import unsettled_slices
from tunectl.model import Finding
from tunectl.verdict import verdict_of

RUNTIME = f'{LOW_LATENCY}isolation = "runtime"\n'
CGROUP = "sys/fs/cgroup"
PARTITION = f"{CGROUP}/isolated.slice/cpuset.cpus.partition"
UNITS = "etc/systemd/system"


@pytest.fixture
def host(lab4: Path) -> Path:
    """A stock host whose host file isolates CPUs 2-3 at run time."""
    write_host_file(lab4, RUNTIME)
    return lab4


def finding(root: Path | WritableSysroot, target: str = "cpuset.isolated") -> Finding:
    return judged(root, target.partition("[")[0])[target]


def test_no_reboot_is_needed_and_everything_goes_back(host: Path) -> None:
    before = picture(host)
    run = apply(WritableSysroot(str(host)))
    assert set(results(run).values()) == {"changed"}
    assert (verdict_of(run.plan.findings), run.plan.reboot_required) == ("compliant", False)
    assert (host / PARTITION).read_text() == "isolated\n"
    assert (host / f"{CGROUP}/cpuset.cpus.effective").read_text() == "0-1\n"
    assert "cpuset" in (host / f"{CGROUP}/cgroup.subtree_control").read_text().split()
    assert read_scope_facts(WritableSysroot(str(host))).quiet == {2, 3}
    restore(WritableSysroot(str(host)))
    assert differences(before, host) == {}


def test_a_second_apply_after_a_boot_makes_the_partition_again(host: Path) -> None:
    before = picture(host)
    apply(WritableSysroot(str(host)))
    for path in ("isolated.slice", "cgroup.subtree_control", "cpuset.cpus.effective"):  # /sys as a boot leaves it
        place = host / CGROUP / path
        shutil.rmtree(place) if place.is_dir() else place.write_bytes(before[f"{CGROUP}/{path}"][2])  # type: ignore[arg-type]
    boot_id = host / "proc/sys/kernel/random/boot_id"
    first = boot_id.read_text()
    boot_id.write_text("11111111-0000-4000-8000-000000000001\n")
    run = apply(WritableSysroot(str(host)), runtime_only=True)
    assert results(run) == {"cpuset.isolated": "changed"}
    assert verdict_of(run.plan.findings) == "compliant"
    restore(WritableSysroot(str(host)))
    boot_id.write_text(first)
    assert {path for path in differences(before, host) if path.startswith((CGROUP, "etc"))} == set()


@pytest.mark.parametrize("why", [" (Cpu list in cpuset.cpus not exclusive)", " (Parent unable to distribute cpu)", ""])
def test_the_kernels_reason_for_an_invalid_partition_is_told(host: Path, why: str) -> None:
    root = KernelRoot(host, Manners(clamp={PARTITION: f"isolated invalid{why}"}))
    (failed,) = [one for one in apply(root).applied.results if one.result == "failed"]
    assert (failed.change.target, why in failed.message) == ("cpuset.isolated", True)
    found = finding(root)
    assert (found.outcome, found.observed, why in found.reason) == ("drifted", "", True)


def test_the_control_group_that_wants_the_same_cpus_is_named(host: Path) -> None:
    (host / f"{CGROUP}/machine.slice").mkdir(parents=True)
    (host / f"{CGROUP}/machine.slice/cpuset.cpus").write_text("1-2\n")
    root = KernelRoot(host, Manners(clamp={PARTITION: "isolated invalid (Cpu list in cpuset.cpus not exclusive)"}))
    apply(root)
    assert ["machine.slice (2)" in str(text) for text in (finding(root).reason, finding(root).fix)] == [True, True]


class Stubborn(KernelRoot):
    """A kernel up to 6.6: what is invalid stays so until it was a member, and whoever has the CPUs keeps them."""

    INVALID = "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n"
    rival = ""  # a path that says who has the CPUs, and the text in which nobody does
    free = ""

    def write_value(self, path: str, text: str) -> None:
        if path == PARTITION and text.startswith("isolated"):
            taken = self.exists(self.rival) and self.free not in self.get_text(self.rival)
            if taken or " invalid" in self.get(PARTITION):
                text = self.INVALID
        super().write_value(path, text)


def test_a_partition_is_made_again_once_its_rival_is_gone(host: Path) -> None:
    rival = host / f"{CGROUP}/rival/cpuset.cpus"
    rival.parent.mkdir()
    rival.write_text("2\n")
    root = Stubborn(host, Manners())
    root.rival, root.free = f"{CGROUP}/rival/cpuset.cpus", "nobody"
    assert results(apply(root))["cpuset.isolated"] == "failed"
    assert "rival (2)" in str(finding(root).fix)
    shutil.rmtree(rival.parent)
    assert results(apply(root)) == {"cpuset.isolated": "changed"}
    assert finding(root).outcome == "compliant"
    assert restore(root).complete
    assert not (host / f"{CGROUP}/isolated.slice").exists()


def test_a_partition_that_grows_needs_no_second_apply(host: Path) -> None:
    """Until systemd has been told, its own slice has the CPU that the partition asks for."""
    apply(WritableSysroot(str(host)))
    write_host_file(host, RUNTIME.replace('"2-3"', '"1-3"'))
    (host / PARTITION).write_text(Stubborn.INVALID)
    root = Stubborn(host, Manners())
    root.rival, root.free = f"{UNITS}/system.slice.d/zz-tunectl.conf", "AllowedCPUs=0\n"
    assert results(apply(root))["cpuset.isolated"] == "changed"
    assert finding(root).outcome == "compliant"


def test_what_the_kernel_never_makes_valid_is_tried_twice(host: Path) -> None:
    root = KernelRoot(host, Manners(clamp={PARTITION: "isolated invalid (Parent unable to distribute cpu)"}))
    assert results(apply(root))["cpuset.isolated"] == "failed"
    assert root.written.count(PARTITION) == 3  # and made a member in between


def test_controllers_that_systemd_switched_on_meanwhile_stay(host: Path) -> None:
    control = host / f"{CGROUP}/cgroup.subtree_control"
    apply(WritableSysroot(str(host)))
    control.write_text(f"hugetlb {control.read_text()}")
    undone = restore(WritableSysroot(str(host)))
    found = {one.path: one.result for one in undone.outcome.results}
    assert undone.complete
    assert found[f"/{CGROUP}/cgroup.subtree_control"] == "restored"
    assert "cpuset" not in control.read_text().split()


@pytest.mark.parametrize("controllers", [None, "cpu io memory pids"])
def test_a_host_that_cannot_is_not_called_isolated(host: Path, controllers: str | None) -> None:
    place = host / f"{CGROUP}/cgroup.controllers"
    place.write_text(controllers) if controllers else place.unlink()
    assert "cpuset.isolated" not in results(apply(WritableSysroot(str(host))))
    assert finding(host).outcome == "drifted"
    assert 'isolation = "boot"' in str(finding(host).fix)


def test_who_is_asked_no_more_is_let_go(host: Path) -> None:
    root = WritableSysroot(str(host))
    apply(root)
    write_host_file(host, LOW_LATENCY)
    assert {finding(host).outcome, finding(host, "systemd.allowed_cpus[user.slice]").outcome} == {"drifted"}
    assert set(results(apply(root)).values()) == {"changed"}
    assert (host / PARTITION).read_text() == "member\n"
    assert not list(host.glob(f"{UNITS}/*.d/zz-tunectl.conf"))
    assert not (host / f"{UNITS}/isolated.slice").exists()
    assert not {one.knob for one in inspection_on(root).assess().findings} & {"cpuset.isolated", "systemd.allowed_cpus"}


def test_an_operators_own_partition_of_that_name_is_left_alone(lab4: Path) -> None:
    place = lab4 / f"{CGROUP}/isolated.slice"
    place.mkdir()
    (place / "cpuset.cpus.partition").write_text("isolated\n")
    assert not [
        one for one in inspection_on(WritableSysroot(str(lab4))).assess().findings if one.knob == "cpuset.isolated"
    ]


@pytest.mark.parametrize(
    ("path", "text", "allowed"),
    [
        ("system.slice.d/zzz-site.conf", "[Slice]\nAllowedCPUs=3\n", "0-1,3"),  # it adds up
        ("slice.d/zzz-all.conf", "# all\n[Slice]\nAllowedCPUs= \nAllowedCPUs=0 2 \\\n 3\n", "0,2-3"),
        ("../system.control/system.slice.d/zzz.conf", "[Slice]\nAllowedCPUs=\n", "empty"),
    ],
)
def test_a_file_that_is_read_last_is_named(host: Path, path: str, text: str, allowed: str) -> None:
    target = "systemd.allowed_cpus[system.slice]"
    write(host, f"{UNITS}/{path}", text)
    run = apply(WritableSysroot(str(host)))
    (failed,) = [one for one in run.applied.results if (one.result, one.change.target) == ("failed", target)]
    assert f"is {allowed}, " in failed.message
    name = path.rpartition("/")[2]
    found = finding(host, target)
    assert (found.outcome, f"/{name}:" in found.reason, f"/{name}" in str(found.fix)) == ("drifted", True, True)
    assert not inspection_on(WritableSysroot(str(host))).assess().changes  # our file stands: apply has no more to write


def test_the_line_of_one_slices_own_file_is_taken_out_by_what_the_fix_types(host: Path) -> None:
    target = "systemd.allowed_cpus[system.slice]"
    write(host, f"{UNITS}/system.slice.d/zzz-site.conf", "[Slice]\nAllowedCPUs=3\n")
    apply(WritableSysroot(str(host)))
    first, *others = str(finding(host, target).fix).split(" && ")
    assert others == ["sudo systemctl daemon-reload", "sudo tunectl apply"]
    subprocess.run(first.removeprefix("sudo ").replace("/etc/", f"{host}/etc/", 1), shell=True, check=True)
    assert finding(host, target).outcome == "compliant"


def test_what_an_operator_restricts_further_is_no_drift(host: Path) -> None:
    apply(WritableSysroot(str(host)))
    (host / f"{UNITS}/user.slice.d/zzz-site.conf").write_text("[Slice]\nAllowedCPUs=\nAllowedCPUs=0\n")
    (host / f"{UNITS}/user.slice.d/aaa-site.conf").write_text("[Slice]\nAllowedCPUs=3\n[Install]\nAllowedCPUs=9\n")
    assert finding(host, "systemd.allowed_cpus[user.slice]").outcome == "compliant"


# --- what systemd made of it


GROUP = f"{CGROUP}/system.slice"


def kept(host: Path, effective: str | None, cpus: str = "") -> tuple[Finding, list[str]]:
    """What is said of system.slice on a running host, and the slices that apply would start something in."""
    if effective is not None:
        write(host, f"{GROUP}/cgroup.controllers", "cpuset cpu io memory pids\n")
        write(host, f"{GROUP}/cpuset.cpus", f"{cpus}\n")
        write(host, f"{GROUP}/cpuset.cpus.effective", f"{effective}\n")
    inspection = inspection_on(host)
    inspection.root.live = True  # a running host, as far as reading is concerned
    plan = inspection.assess()
    changes = [one.instance for one in plan.changes if one.knob == "systemd.allowed_cpus"]
    found = {one.target: one for one in plan.findings}["systemd.allowed_cpus[system.slice]"]
    assert ("system.slice" in changes) == (found.outcome == "drifted")
    return found, unsettled_slices(inspection.root)


@pytest.mark.parametrize(
    ("effective", "cpus", "has_group", "outcome", "starts"),
    [
        ("0-1", "0-1", True, "compliant", []),
        ("0", "0-1", True, "compliant", []),
        ("0-2", "", True, "drifted", ["system.slice"]),  # systemd has not given that to the kernel yet
        # systemd 257 switches the controller on when something starts there: until then all CPUs are allowed.
        (None, "", True, "drifted", ["system.slice"]),
        (None, "", False, "compliant", []),  # the group is made, with these CPUs, for the first that starts there
    ],
)
def test_a_slice_is_judged_by_what_systemd_gave_the_kernel(
    host: Path, effective: str | None, cpus: str, has_group: bool, outcome: str, starts: list[str]
) -> None:
    apply(host)
    write(host, f"{GROUP}/cgroup.controllers", "cpuset cpu io memory pids\n") if has_group else None
    found, unsettled = kept(host, effective, cpus)
    assert (found.outcome, unsettled) == (outcome, starts)


@pytest.mark.parametrize(("cpus", "named"), [("0-3", True), ("0", False)])
def test_what_set_property_says_is_named_where_it_is_the_cause(host: Path, cpus: str, named: bool) -> None:
    apply(host)
    place = host / "run/systemd/system.control/system.slice.d/50-AllowedCPUs.conf"
    place.parent.mkdir(parents=True)
    place.write_text(f"# This is a drop-in unit file extension\n[Slice]\nAllowedCPUs={cpus}\n")
    found, _ = kept(host, "0-3", "0-3")
    assert found.outcome == "drifted"
    line = "/run/systemd/system.control/system.slice.d/50-AllowedCPUs.conf:3 says AllowedCPUs=0-3"
    assert (f"systemctl set-property took effect at once ({line})" in found.reason) == named


def test_after_a_restore_a_slice_is_given_back_what_it_had(host: Path) -> None:
    apply(host)
    kept(host, "0-1", "0-1")
    restore(WritableSysroot(str(host)))
    assert unsettled_slices(WritableSysroot(str(host))) == ["system.slice"]


def test_where_no_control_group_can_have_cpus_of_its_own_none_is_asked_for(host: Path) -> None:
    (host / f"{CGROUP}/cgroup.controllers").write_text("cpu io memory pids\n")
    apply(host)
    assert finding(host, "systemd.allowed_cpus").outcome == "unsupported"
    assert not (host / f"{UNITS}/system.slice.d").exists()


def test_systemd_reads_what_was_written(host: Path) -> None:
    """The real reader of each file: systemd-analyze knows every key and complains of none."""
    apply(WritableSysroot(str(host)))
    analyze = ["systemd-analyze", f"--root={host}"]
    units = [f"{UNITS}/isolated.slice"]
    done = subprocess.run([*analyze, "verify", *units], capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if "tunectl" in line or "isolated.slice" in line]
    assert complaints == []
    shown = subprocess.run([*analyze, "cat-config", "systemd/system.conf"], capture_output=True, text=True, check=True)
    assert shown.stdout.rstrip().endswith("[Manager]\nCPUAffinity=\nCPUAffinity=0-1")


def test_kernel_threads_that_can_move_do_and_the_others_are_expected(host: Path) -> None:
    root = WritableSysroot(str(host))
    seen = finding(root, "kthread.affinity[2]")
    assert seen.reason == "kernel thread kthreadd (pid 2) may run on CPUs 0-3"
    apply(root)
    assert "Cpus_allowed_list:\t0-1\n" in (host / "proc/2/status").read_text()
    assert finding(root, "kthread.affinity").reason.startswith(
        "expected on isolated CPUs, because they cannot be moved: cpuhp/2"
    )


def test_threads_that_go_by_other_masks_are_none_of_its_business(host: Path) -> None:
    names = [(host / f"proc/{pid}/stat").read_text().split()[1] for pid in (2, 10)]
    stat = host / "proc/2/stat"
    stat.write_text(stat.read_text().replace(names[0], "(kworker/u8:0-events)"))
    other = host / "proc/10/stat"
    other.write_text(other.read_text().replace(names[1], "(irq/30-eth0)"))
    targets = {one.target for one in inspection_on(WritableSysroot(str(host))).assess().findings}
    assert not targets & {"kthread.affinity[2]", "kthread.affinity[10]"}
    assert "kworker/u8" not in finding(host, "kthread.affinity").reason
    assert "irq/" not in finding(host, "kthread.affinity").reason


@pytest.mark.parametrize(("delivered", "moved"), [("1", "1"), ("3", "0-1")])
def test_the_thread_of_an_interrupt_goes_where_its_interrupt_is_delivered(
    host: Path, delivered: str, moved: str
) -> None:
    """Unless that is an isolated CPU: then the interrupt's own row judges it, and moves both."""
    stat, status = host / "proc/2/stat", host / "proc/2/status"
    stat.write_text(stat.read_text().replace("(kthreadd)", "(irq/9-acpi)"))
    write(host, "proc/irq/9/smp_affinity_list", "0-3\n")
    write(host, "proc/irq/9/effective_affinity_list", f"{delivered}\n")
    assert ("kthread.affinity[2]" in judged(host, "kthread.affinity")) is (delivered == "1")
    apply(WritableSysroot(str(host)))
    assert f"Cpus_allowed_list:\t{moved}\n" in status.read_text()


def test_a_kworker_that_is_being_made_is_no_drift(host: Path) -> None:
    """It has all CPUs and no flag yet, and is bound before it first runs."""
    stat = host / "proc/2/stat"
    stat.write_text(stat.read_text().replace("(kthreadd)", "(kworker/3:2)"))
    targets = {one.target for one in inspection_on(WritableSysroot(str(host))).assess().findings}
    assert "kthread.affinity[2]" not in targets
    assert "kworker/3:2" in finding(host, "kthread.affinity").reason


def test_a_kernel_thread_keeps_what_else_restricts_it(host: Path) -> None:
    status = host / "proc/2/status"
    status.write_text(status.read_text().replace("0-3", "1-2"))
    apply(WritableSysroot(str(host)))
    assert "Cpus_allowed_list:\t1\n" in status.read_text()


def test_a_process_that_has_the_number_of_a_thread_that_ended_is_left_alone(host: Path) -> None:
    apply(WritableSysroot(str(host)))
    status = host / "proc/2/status"
    status.write_text(f"Name:\tbash\nVmSize:\t  9000 kB\n{status.read_text()}")
    found = {one.path: one for one in restore(WritableSysroot(str(host))).outcome.results}
    assert (found["/proc/2/status"].result, found["/proc/2/status"].message) == ("gone", "the thread has ended")
    assert "Cpus_allowed_list:\t0-1\n" in status.read_text()


def test_without_kernel_threads_in_sight_nothing_is_claimed(host: Path) -> None:
    for stat in host.glob("proc/[0-9]*/stat"):
        stat.unlink()
    assert finding(host, "kthread.affinity").outcome == "unsupported"
    assert finding(host, "kthread.node_affinity").outcome == "unsupported"


# --- of memory nodes, however the CPUs are isolated


def status_of(root: Path, comm: str) -> Path:
    (stat,) = (one for one in root.glob("proc/[0-9]*/stat") if f"({comm})" in one.read_text())
    return stat.with_name("status")


def test_threads_of_memory_nodes_are_named_by_their_names_and_have_one_knob(host: Path) -> None:
    targets = {one.target for one in inspection_on(WritableSysroot(str(host))).assess().findings}
    named = {"kthread.node_affinity[kswapd0]", "kthread.node_affinity[kcompactd0]"}
    assert {one for one in targets if "kthread" in one} == {"kthread.affinity", "kthread.affinity[2]", *named}
    assert finding(host, "kthread.node_affinity[kswapd0]").outcome == "drifted"
    before = picture(host)
    apply(WritableSysroot(str(host)))
    assert "Cpus_allowed_list:\t0-1\n" in status_of(host, "kswapd0").read_text()
    assert finding(host, "kthread.node_affinity[kswapd0]").outcome == "compliant"
    restore(WritableSysroot(str(host)))
    assert differences(before, host) == {}


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("Name:\tkswapd0\n", "Name:\tkswapd7\n"),
        ("Name:\tkswapd0\n", "Name:\tkswapd0\nKthread:\t0\n"),
        ("Name:\tkswapd0\n", "Name:\tkswapd0\nVmSize:\t 100 kB\n"),
    ],
    ids=["another kernel thread", "a process that may be a zombie", "a process"],
)
def test_who_got_the_number_of_such_a_thread_keeps_its_cpus(line: str, instead: str, host: Path) -> None:
    apply(WritableSysroot(str(host)))
    status = status_of(host, "kswapd0")
    status.write_text(status.read_text().replace(line, instead))
    done = restore(WritableSysroot(str(host)))
    (seen,) = [one for one in done.outcome.results if one.path == f"/{status.relative_to(host)}"]
    assert (done.complete, seen.result) == (True, "gone")
    assert "Cpus_allowed_list:\t0-1\n" in status.read_text()


def test_a_thread_that_does_not_say_where_it_may_run_has_not_ended(host: Path) -> None:
    apply(WritableSysroot(str(host)))
    status = status_of(host, "kswapd0")
    before = status.read_text()
    status.write_text("")
    done = restore(WritableSysroot(str(host)))
    (seen,) = [one for one in done.outcome.results if one.path == f"/{status.relative_to(host)}"]
    assert (done.complete, seen.result) == (False, "failed")
    assert seen.message.endswith("status: has no Cpus_allowed_list")
    status.write_text(before)
    assert restore(WritableSysroot(str(host))).complete
    assert "Cpus_allowed_list:\t0-3\n" in status.read_text()


def test_a_node_without_a_housekeeping_cpu_is_served_from_another(host: Path) -> None:
    status = status_of(host, "kcompactd0")
    status.write_text(status.read_text().replace("0-3", "2-3"))
    assert finding(host, "kthread.node_affinity[kcompactd0]").observed == "2-3"
    apply(WritableSysroot(str(host)))
    assert "Cpus_allowed_list:\t0-1\n" in status.read_text()


def test_where_such_a_thread_may_run_is_known_or_unreadable(host: Path) -> None:
    status = status_of(host, "kswapd0")
    status.write_text(status.read_text().replace("Cpus_allowed_list", "Cpus"))
    assert finding(host, "kthread.node_affinity[kswapd0]").outcome == "unreadable"


def test_a_kernel_without_such_threads_lacks_nothing(host: Path) -> None:
    for name in ("kswapd0", "kcompactd0"):
        status_of(host, name).with_name("stat").unlink()
    assert finding(host, "kthread.node_affinity").outcome == "unsupported"


# --- beside isolcpus=


def boots_isolated(host: Path, cpus: str) -> None:
    (host / "sys/devices/system/cpu/isolated").write_text(f"{cpus}\n")


def test_with_isolcpus_booted_no_partition_is_asked_of_the_kernel_and_none_is_missed(host: Path) -> None:
    """6.12 calls it invalid ("partition config conflicts with housekeeping setup"): it is never asked for."""
    boots_isolated(host, "2-3")
    root = KernelRoot(host, Manners(clamp={PARTITION: "isolated invalid (partition config conflicts)"}))
    run = apply(root)
    assert set(results(run).values()) == {"changed"}
    assert "cpuset.isolated" not in results(run)
    assert not (host / PARTITION).exists()
    found = finding(root)
    assert (found.outcome, found.observed) == ("compliant", "2-3")
    assert "this boot's isolcpus= keeps these CPUs out" in found.reason


@pytest.mark.parametrize("shown", ["member", "isolated invalid (partition config conflicts with housekeeping setup)"])
def test_what_an_earlier_apply_left_beside_isolcpus_is_no_drift(host: Path, shown: str) -> None:
    apply(host)
    boots_isolated(host, "2-3")
    (host / PARTITION).write_text(f"{shown}\n")
    assert finding(host).outcome == "compliant"


def test_a_partition_beside_an_isolcpus_for_other_cpus_is_named_with_what_ends_it(host: Path) -> None:
    boots_isolated(host, "3")
    before = finding(host)
    assert before.outcome == "drifted"
    assert "a kernel may take no partition beside it" in before.reason  # said before anything is written
    root = KernelRoot(host, Manners(clamp={PARTITION: "isolated invalid (partition config conflicts)"}))
    apply(root)
    found = finding(root)
    assert found.outcome == "drifted"
    assert "this boot's isolcpus= isolates CPUs 3" in found.reason
    assert str(found.fix).startswith("boot again with isolcpus= for all of these CPUs, or without it")
    assert [one.target for one in inspection_on(root).assess().changes if one.knob == "cpuset.isolated"] == []


def test_a_partition_of_the_isolated_cpus_stands_where_the_kernel_takes_it(host: Path) -> None:
    apply(host)
    boots_isolated(host, "2-3")
    found = finding(host)
    assert (found.outcome, found.observed, found.reason) == ("compliant", "2-3", "")
