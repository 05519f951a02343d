"""`propose --from-tuned`: the host file asks for what TuneD did, and says what it leaves out."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.builder import HostFactory
from tests.ran import Ran
from tests.trees import write
from tests.tuners.partitioned import partition
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.tuners.conflicts import conflicts
from tunectl.tuners.find import read_tuners
from tunectl.tuning.inspection import read_config

Run = Callable[..., Ran]


@pytest.fixture
def root(host_root: HostFactory, tmp_path: Path) -> Path:
    tree = host_root.fresh("lab4", tmp_path)
    partition(tree)
    return tree


@pytest.mark.slow
def test_a_partitioned_host_is_taken_over(tunectl: Run, root: Path) -> None:
    target = root / "etc/tunectl/host.toml"
    done = tunectl("propose", "--from-tuned", "--nic", "eth0", "--root", root, "--output", target, "--format", "json")
    assert done.code == 0
    body = done.json
    assert (body["isolated"], body["housekeeping"], body["nic"]) == ("2-3", "0-1", "eth0")
    assert "/usr/lib/tuned/cpu-partitioning/tuned.conf:22" in body["reasons"][0]["text"]
    written = tomllib.loads(target.read_text())
    assert written["profile"] == "low-latency"
    assert written["isolated"] == "2-3"
    assert written["network"] == {"interfaces": ["eth0"]}
    # Where both agree nothing is said; where not, TuneD's value stays.
    assert {"mm.swappiness": 10, "kernel.timer_migration": False}.items() <= written["knobs"].items()
    assert not {"workqueue.cpumask", "irq.affinity", "boot.nohz_full", "cpufreq.governor"} & set(written["knobs"])
    notes = "\n".join(body["notes"])
    assert "mm.swappiness = 10 as TuneD has it (/usr/lib/tuned/latency-performance/tuned.conf:9)" in notes
    assert "no row for it: [sysctl] net.ipv4.tcp_fastopen = 3" in notes
    assert "tuned-adm off" in notes
    assert "no row for it: [cpu] force_latency" not in notes
    # Read back by its real reader: nothing is left that TuneD would set otherwise.
    config = read_config(str(target), read_scope_facts(Sysroot(str(root))))
    asked = {setting.knob: setting.value for setting in config.settings}
    tuned = next(one for one in read_tuners(Sysroot(str(root))) if one.name == "tuned")
    assert conflicts(tuned, asked) == []
    assert tunectl("plan", "--root", root, "--format", "json").code in (3, 4)


def test_reserved_cpus_are_worked_out(tunectl: Run, host_root: HostFactory, tmp_path: Path) -> None:
    root = host_root.fresh("xeon2s", tmp_path)
    partition(root, variables="isolated_cores=${f:calc_isolated_cores:2}\n")
    body = tunectl("propose", "--from-tuned", "--root", root, "--format", "json").json
    assert body["isolated"] == "2-7,10-31"
    assert tomllib.loads(body["host_file"])["allow_split_siblings"] is True
    assert any("share a core" in note for note in body["notes"])


def test_a_profile_that_cannot_be_worked_out_leaves_this_boots_evidence(
    tunectl: Run, host_root: HostFactory, tmp_path: Path
) -> None:
    root = host_root.fresh("lab4", tmp_path, tuned_boot=frozenset({3}))
    partition(root, isolated="${f:exec:somewhere}")
    body = tunectl("propose", "--from-tuned", "--root", root, "--format", "json").json
    assert body["isolated"] == "3"
    assert "this boot's nohz_full" in body["reasons"][0]["text"]


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("etc/tuned/active_profile", "\n", "TuneD has no profile"),
        ("etc/tuned/active_profile", "nowhere\n", "cannot be read: there is no tuned.conf for nowhere"),
        ("etc/tuned/active_profile", "network-latency\n", "isolates no CPU of this host"),
        ("etc/tuned/cpu-partitioning-variables.conf", "isolated_cores=0-3\n", "isolates every CPU"),
    ],
)
def test_refusals(tunectl: Run, root: Path, path: str, text: str, said: str) -> None:
    write(root, path, text)
    done = tunectl("propose", "--from-tuned", "--root", root, "--format", "json")
    assert done.code == 1
    assert said in done.json["refusal"]


def test_plan_and_apply_say_who_else_writes(tunectl: Run, root: Path) -> None:
    write(root, "etc/tunectl/host.toml", 'profile = "low-latency"\nisolated = "2-3"\n')
    for words in (("plan",), ("apply", "--yes")):
        notes = tunectl(*words, "--root", root, "--format", "json").json["notes"]
        said = [note for note in notes if note.startswith("tuned (profile cpu-partitioning) writes ")]
        assert len(said) == 1
        assert "vm.swappiness = 10 (/usr/lib/tuned/latency-performance/tuned.conf:9)" in said[0]
        assert "tunectl-apply.service runs after it" in said[0]
        assert "governor" not in said[0]
