"""Proposals: the rules on every recorded host, and over generated ones."""

import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hosts.builder import NAMES, HostFactory
from tunectl.cpulist import format_cpulist, parse_cpulist
from tunectl.host.cpus import Cpu, NumaNode
from tunectl.host.cpusets import CpuFacts
from tunectl.host.sysroot import Sysroot
from tunectl.host.topology import Topology, read_topology
from tunectl.hostfile.profile import Limit, load_profile, shipped
from tunectl.shapes import Drivers, Nic
from tunectl.tuning.propose import Proposal, host_file_toml, propose


def topology(host_root: HostFactory, name: str) -> Topology:
    return read_topology(Sysroot(str(host_root(name))))


def keeps_the_rules(host: Topology, proposal: Proposal) -> None:
    """What must hold of every proposal that is no refusal."""
    assert proposal.isolated
    assert proposal.isolated | proposal.housekeeping == host.online
    assert not proposal.isolated & proposal.housekeeping
    assert min(host.online) not in proposal.isolated
    for cpu in host.cpus:
        if cpu.online:
            core = cpu.smt_siblings & host.online
            assert core <= proposal.isolated or not core & proposal.isolated
    for node in {cpu.numa_node for cpu in host.cpus if cpu.online}:
        assert [cpu for cpu in host.cpus if cpu.numa_node == node and cpu.cpu in proposal.housekeeping]
    reasoned = [cpu for reason in proposal.reasons for cpu in reason.cpus]
    assert sorted(reasoned) == sorted(host.online)  # each CPU has one reason


def test_another_cpu_is_not_called_the_boot_cpu_while_that_is_offline(host_root: HostFactory) -> None:
    whole = topology(host_root, "lab4")
    cpus = tuple(cpu._replace(online=cpu.cpu != 0) for cpu in whole.cpus)
    host = whole._replace(cpus=cpus, facts=whole.facts._replace(online=whole.online - {0}))
    proposal = propose(host)
    assert 1 in proposal.housekeeping
    assert "boot CPU" not in str(proposal.reasons)
    assert "the boot CPU" in str(propose(whole).reasons)


@pytest.mark.parametrize("name", NAMES)
def test_the_rules_hold_on_every_host(host_root: HostFactory, name: str) -> None:
    host = topology(host_root, name)
    keeps_the_rules(host, propose(host))
    for nic in host.nics:
        keeps_the_rules(host, propose(host, nic=nic.name))


@pytest.mark.parametrize(
    ("name", "nic", "isolated"),
    [
        ("lab4", None, "2-3"),
        ("vm2", None, "1"),
        ("sparse", None, "8-9"),
        ("hybrid", None, "2-7"),  # all performance cores but the boot CPU's
        ("xeon2s", None, "12-15,28-31"),  # next to the fastest interface
        ("xeon2s", "eno1", "4-7,20-23"),
        ("xeon2s", "ens2f0", "12-15,28-31"),
        ("epyc", "enp193s0", "12-15,28-31"),  # one L3 to itself
        ("arm64", None, "32-63"),
    ],
)
def test_the_proposals_of_known_hosts(host_root: HostFactory, name: str, nic: str | None, isolated: str) -> None:
    assert format_cpulist(propose(topology(host_root, name), nic=nic).isolated) == isolated


def test_a_count_is_rounded_up_to_whole_cores_and_said_so(host_root: HostFactory) -> None:
    proposal = propose(topology(host_root, "xeon2s"), nic="ens2f0", count=3)
    assert len(proposal.isolated) == 4
    assert proposal.notes[0] == "3 CPUs were asked for; whole cores make it 4"


def test_more_than_a_node_has_spills_into_the_next(host_root: HostFactory) -> None:
    host = topology(host_root, "xeon2s")
    proposal = propose(host, nic="ens2f0", count=16)
    assert proposal.isolated > {*range(9, 16), *range(25, 32)}
    assert any("no more to spare" in reason.text for reason in proposal.reasons)
    keeps_the_rules(host, proposal)


def made(cores: list[tuple[int, ...]], nodes: list[int], kinds: list[str] | None = None) -> Topology:
    """A host of cores (their CPUs), each on a node; every node's cores share a cache."""
    online = frozenset(cpu for core in cores for cpu in core)
    kinds = kinds or ["unknown"] * len(cores)
    cpus = [
        Cpu(cpu, True, index, 0, 0, node, frozenset(core), kind)
        for index, (core, node, kind) in enumerate(zip(cores, nodes, kinds, strict=True))
        for cpu in core
    ]
    facts = CpuFacts(online, online, max(online) + 1, frozenset(), frozenset(), {})
    of_node = {node: frozenset(cpu.cpu for cpu in cpus if cpu.numa_node == node) for node in nodes}
    numa = tuple(NumaNode(node, members, None, ()) for node, members in sorted(of_node.items()))
    return Topology(tuple(sorted(cpus, key=lambda cpu: cpu.cpu)), numa, (), (), Drivers(), facts)


@pytest.mark.parametrize("cores", [[(0, 1)], [(0,), (1,)]])
def test_where_each_node_has_one_core_nothing_can_be_divided(cores: list[tuple[int, ...]]) -> None:
    assert propose(made(cores, list(range(len(cores))))).refusal


def test_a_node_keeps_its_efficient_core_rather_than_a_fast_one() -> None:
    host = made([(0,), (1,), (2,), (3,)], [0, 1, 1, 1], ["performance", "performance", "performance", "efficiency"])
    proposal = propose(host, count=2)
    assert proposal.isolated == {1, 2}


def test_a_nic_on_a_node_without_cores_takes_the_nearest() -> None:
    host = made([(0,), (1,), (2,), (3,)], [0, 0, 2, 2])
    nodes = (
        NumaNode(0, frozenset({0, 1}), None, (10, 12, 30)),
        NumaNode(1, frozenset(), None, (12, 10, 20)),
        NumaNode(2, frozenset({2, 3}), None, (30, 20, 10)),
    )
    nic = Nic("x0", "drv", "0000:01:00.0", 1, "", (), "up", 1000, 1500, 1, 1)
    proposal = propose(host._replace(numa_nodes=nodes, nics=(nic,)), nic="x0")
    assert proposal.isolated == {1}
    assert "x0 is on node 1, the nearest with cores is node 0" in proposal.reasons[0].text


@pytest.mark.parametrize("profile", shipped())
def test_the_host_file_has_each_limit_of_the_profile(host_root: HostFactory, profile: str) -> None:
    budget = load_profile(profile).budget
    proposal = propose(topology(host_root, "xeon2s"), nic="ens2f0")
    text = host_file_toml(proposal, profile, "xeon2s", budget)
    assert tomllib.loads(text)["budget"] == {key: limit.value for key, limit in budget.items()}
    odd = host_file_toml(proposal, profile, "xeon2s", {"stolen_ppm": Limit(0.1, "ours\n[knobs]")})
    assert tomllib.loads(odd)["budget"] == {"stolen_ppm": 0.1}
    assert "knobs" not in tomllib.loads(odd)


def test_a_name_from_the_host_cannot_end_the_comment(host_root: HostFactory) -> None:
    proposal = propose(topology(host_root, "lab4"))
    text = host_file_toml(replace(proposal, notes=('x\nisolated = "0-3"',)))
    assert tomllib.loads(text)["isolated"] == "2-3"


@st.composite
def hosts(draw: st.DrawFn) -> Topology:
    count = draw(st.integers(1, 24))
    threads = draw(st.sampled_from([1, 2, 4]))
    start = draw(st.integers(0, 3))
    nodes = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    kinds = draw(st.lists(st.sampled_from(["performance", "efficiency"]), min_size=count, max_size=count))
    numbers = draw(st.permutations(range(start, start + count * threads)))
    cores = [tuple(numbers[at : at + threads]) for at in range(0, count * threads, threads)]
    return made(cores, nodes, kinds)


@given(hosts(), st.one_of(st.none(), st.integers(1, 100)))
def test_the_rules_hold_on_any_host(host: Topology, count: int | None) -> None:
    proposal = propose(host, count=count)
    if proposal.refusal:
        assert proposal.isolated == frozenset()
        return
    keeps_the_rules(host, proposal)
    if count is not None:
        threads = len(host.cpus[0].smt_siblings)
        assert len(proposal.isolated) == -(-count // threads) * threads
    assert parse_cpulist(tomllib.loads(host_file_toml(proposal))["isolated"]) == proposal.isolated
