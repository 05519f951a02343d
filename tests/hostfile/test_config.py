"""The host file made concrete: host file + profile + topology -> what is wanted of this machine."""

import re
from pathlib import Path

import pytest

from tests.hosts.tree import Tree
from tunectl.cpulist import CpuSet, Isolcpus
from tunectl.errors import UsageError
from tunectl.host.cpusets import CpuFacts
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.budget import KEYS
from tunectl.hostfile.config import HostConfig, resolve
from tunectl.hostfile.monitor import sla_notes
from tunectl.hostfile.profile import load_profile, shipped
from tunectl.hostfile.shape import HostFile
from tunectl.hostfile.toml import read_toml
from tunectl.knobs import KNOBS
from tunectl.model import Waiver
from tunectl.shapes import FIGURES, LIMITS, SMIS, Looser

LOW = 'profile = "low-latency"\nisolated = "2-3"\n'
INTERFACE_EXAMPLE = """
profile  = "low-latency"        # a shipped profile, or a path
isolated = "2-3"                # full kernel grammar; housekeeping is the complement

[network]
interfaces = ["eth0"]           # the NICs that carry market data

[budget]                        # what the probe is judged by
max_ns = 50000
p99_9_ns = 10000                # arrival-weighted, see below
interruptions_per_s = 10
stolen_ppm = 100

[thermal]
base_frequency_khz = 3500000    # optional: overrides what the host says
min_ratio = 0.9

[knobs]                         # the site's own values over the profile's
"cpuidle.max_latency_us" = 1

[[waivers]]
knob = "irq.affinity"
target = "33"
reason = "nvme admin queue, managed; no I/O is submitted from the isolated CPUs"
until = 2027-03-31
"""

ALL: CpuSet = frozenset(range(4))
PAIRS = {cpu: frozenset({cpu % 2, cpu % 2 + 2}) for cpu in range(4)}  # 0 and 2 share a core, 1 and 3
CPUS = CpuFacts(ALL, ALL, 4, frozenset(), frozenset(), {})


def config(tmp_path: Path, text: str, cpus: CpuFacts = CPUS) -> HostConfig:
    path = tmp_path / "host.toml"
    path.write_text(text)
    return resolve(read_toml(str(path), HostFile), cpus, str(path))


def values(found: HostConfig) -> dict[str, object]:
    return {setting.knob: setting.value for setting in found.settings}


def test_the_example_of_the_interface(tmp_path: Path) -> None:
    found = config(tmp_path, INTERFACE_EXAMPLE)
    assert found.scope.isolated == {2, 3}
    assert found.scope.housekeeping == {0, 1}
    assert found.budget == {"max_ns": 50000, "p99_9_ns": 10000, "interruptions_per_s": 10, "stolen_ppm": 100} | {
        SMIS: 0
    }
    assert (found.thermal.base_frequency_khz, found.thermal.min_ratio) == (3500000, 0.9)
    assert found.interfaces == ("eth0",)
    assert values(found)["cpuidle.max_latency_us"] == 1
    assert found.waivers == (
        Waiver(
            "irq.affinity",
            "33",
            "nvme admin queue, managed; no I/O is submitted from the isolated CPUs",
            "2027-03-31",
            f"{tmp_path}/host.toml: waivers[0]",
        ),
    )


def test_words_become_cpu_sets_of_this_host(tmp_path: Path) -> None:
    found = values(config(tmp_path, LOW))
    assert found["irq.affinity"] == {0, 1}
    assert found["irqbalance.banned_cpus"] == {2, 3}
    assert found["boot.nohz_full"] == {2, 3}
    assert found["boot.isolcpus"] == Isolcpus(frozenset({"managed_irq", "domain"}), frozenset({2, 3}))


def test_every_setting_has_a_reason_and_comes_in_the_tables_order(tmp_path: Path) -> None:
    found = config(tmp_path, LOW + '[knobs]\n"smt.control" = "off"\n').settings
    order = [list(KNOBS).index(setting.knob) for setting in found]
    assert order == sorted(order)
    assert [setting.knob for setting in found if not setting.reason] == []
    assert found[0].reason == f"the site's own value, in {tmp_path}/host.toml"


def test_the_sites_own_value_wins_and_a_knob_may_be_left_alone(tmp_path: Path) -> None:
    own = '[knobs]\n"mm.swappiness" = 10\n"mm.ksm" = "unmanaged"\n"boot.tsc" = "unmanaged"\n'
    plain, found = values(config(tmp_path, LOW)), values(config(tmp_path, LOW + own))
    assert (plain["mm.swappiness"], found["mm.swappiness"]) == (1, 10)
    assert set(plain) - set(found) == {"mm.ksm", "boot.tsc"}


@pytest.mark.parametrize(
    ("text", "isolated"), [("3", {3}), ("2-N", {2, 3}), ("1-3:1/2", {1, 3}), (" 2,3 ", {2, 3}), ("3,2", {2, 3})]
)
def test_the_kernels_whole_grammar(tmp_path: Path, text: str, isolated: set[int]) -> None:
    assert config(tmp_path, f'profile = "low-latency"\nisolated = "{text}"\n').scope.isolated == isolated


def test_a_cpu_that_is_off_may_be_isolated_but_one_must_be_left_on(tmp_path: Path) -> None:
    cpus = CPUS._replace(online=frozenset({1, 2}))
    assert config(tmp_path, LOW, cpus).scope.isolated == {2, 3}
    with pytest.raises(UsageError, match="no housekeeping CPU is left"):
        config(tmp_path, 'profile = "low-latency"\nisolated = "1-2"\n', cpus)


def test_half_a_core(tmp_path: Path) -> None:
    cpus = CPUS._replace(siblings=PAIRS)
    with pytest.raises(UsageError, match="CPU 2 shares its core with CPU 0, which is not isolated"):
        config(tmp_path, LOW, cpus)
    assert config(tmp_path, LOW + "allow_split_siblings = true\n", cpus).scope.isolated == {2, 3}
    assert config(tmp_path, 'profile = "low-latency"\nisolated = "1,3"\n', cpus).scope.isolated == {1, 3}


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0"])
@pytest.mark.parametrize("key", ["max_ns", "p99_9_ns", "interruptions_per_s", "stolen_ppm"])
def test_a_limit_must_be_able_to_limit(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(UsageError, match=rf"budget\.{key}: {re.escape(value)} is no limit"):
        config(tmp_path, f"{LOW}[budget]\n{key} = {value}\n")


def test_loads_of_preflight_are_of_the_table(tmp_path: Path) -> None:
    assert config(tmp_path, LOW).load == ()
    assert config(tmp_path, f'{LOW}[preflight]\nload = ["timers", "memory"]\n').load == ("memory", "timers")
    assert config(tmp_path, f'{LOW}[preflight]\nload = ["none"]\n').load == ()
    with pytest.raises(UsageError, match=r"host.toml: preflight.load: there is no load 'memori' \(one of memory, "):
        config(tmp_path, f'{LOW}[preflight]\nload = ["memori"]\n')


@pytest.mark.parametrize("name", shipped())
def test_every_profile_has_a_whole_budget_and_explains_each_figure(name: str) -> None:
    limits = load_profile(name).budget
    assert tuple(limits) == (KEYS if name == "low-latency" else FIGURES)
    assert [key for key, limit in limits.items() if len(limit.reason) < 10 or not limit.source] == []
    assert resolve(HostFile(profile=name, isolated="3"), CPUS, "example").budget == {
        key: limit.value for key, limit in limits.items()
    }


def test_low_latency_permits_less_than_balanced_latency() -> None:
    low, balanced = load_profile("low-latency").budget, load_profile("balanced-latency").budget
    assert [key for key in FIGURES if low[key].value >= balanced[key].value] == []
    assert (low[SMIS].value, SMIS in balanced) == (0, False)


def test_a_host_file_may_permit_smis_and_that_is_looser(tmp_path: Path) -> None:
    """None at all is a limit of SMIs, and of nothing else."""
    assert config(tmp_path, f"{LOW}[budget]\n{SMIS} = 0\n").looser == ()
    assert config(tmp_path, f"{LOW}[budget]\n{SMIS} = 0.5\n").looser == (Looser(SMIS, 0.5, 0, "low-latency"),)
    assert config(tmp_path, f"{LOW}[budget]\n{SMIS} = 0.000116\n").budget[SMIS] == 0.000116  # ten in a day
    for key, value in ((SMIS, -0.1), (SMIS, 1e6), (SMIS, "nan"), ("max_ns", 0), (SMIS, 0.000115)):
        with pytest.raises(UsageError, match=rf"budget\.{key}: \S+ is no limit"):
            config(tmp_path, f"{LOW}[budget]\n{key} = {value}\n")


@pytest.mark.parametrize("key", FIGURES)
def test_the_host_file_replaces_the_profiles_limits_one_by_one(tmp_path: Path, key: str) -> None:
    usual = config(tmp_path, LOW).budget
    for value, is_looser in ((usual[key], False), (usual[key] / 2, False), (usual[key] * 2, True)):
        found = config(tmp_path, f"{LOW}[budget]\n{key} = {value}\n")
        assert found.budget == {**usual, key: value}
        assert found.looser == ((Looser(key, value, usual[key], "low-latency"),) if is_looser else ())


def test_the_host_file_has_a_key_for_each_limit() -> None:
    assert tuple(LIMITS) == KEYS


def test_no_host_file_can_do_without_a_limit(tmp_path: Path) -> None:
    for text in ("", "[budget]\n", "[budget]\nmax_ns = 8e13\n"):
        assert tuple(config(tmp_path, LOW + text).budget) == KEYS
    assert config(tmp_path, f"{LOW}[budget]\nmax_ns = 8e13\n").looser[0].limit == 8e13


@pytest.mark.parametrize(
    ("key", "ceiling"),
    [("max_ns", 86_400e9), ("p99_9_ns", 86_400e9), ("interruptions_per_s", 1e9), ("stolen_ppm", 1e6)],
)
def test_a_limit_that_no_run_can_break_is_none(tmp_path: Path, key: str, ceiling: float) -> None:
    """A day's gap, an interruption in each nanosecond, the whole time; in the host file and in a site's profile."""
    low, mine = f"{LOW}[budget]\n{key} = {{}}\n", tmp_path / "mine.toml"
    assert config(tmp_path, low.format(ceiling * 0.999999)).looser[0].key == key
    with pytest.raises(UsageError, match=rf"budget\.{key}: \S+ is no limit") as refused:
        config(tmp_path, low.format(ceiling))
    assert f"no run reaches {ceiling:.10g}: say " in (refused.value.hint or "")
    mine.write_text(f'[budget.{key}]\nvalue = {ceiling}\nreason = "our own"\n')
    with pytest.raises(UsageError, match=rf"mine\.toml: budget\.{key}\.value: \S+ is no limit"):
        load_profile(str(mine))


def test_a_sites_own_profile_inherits_limits_and_replaces_them(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('inherits = "low-latency"\n[budget.max_ns]\nvalue = 70000\nreason = "our own"\n')
    found = config(tmp_path, 'profile = "mine.toml"\nisolated = "2-3"\n')
    assert (found.budget["max_ns"], found.budget["stolen_ppm"]) == (70000, 100)
    # It does not make tunectl's own limit any wider, and where it inherits none low-latency's is the measure.
    assert found.looser == (Looser("max_ns", 70000, 50000, "low-latency"),)
    mine.write_text('[budget.max_ns]\nvalue = 70000\nreason = "our own"\n')
    own = 'profile = "mine.toml"\nisolated = "2-3"\n[budget]\nmax_ns = {}\nstolen_ppm = 1\n'
    assert config(tmp_path, own.format(50000)).looser == ()
    assert config(tmp_path, own.format(50001)).looser == (Looser("max_ns", 50001, 50000, "low-latency"),)
    assert config(tmp_path, own.partition("[")[0]).looser == (Looser("max_ns", 70000, 50000, "low-latency"),)
    for value in ("0", "inf", "nan", "-1"):
        mine.write_text(f'[budget.max_ns]\nvalue = {value}\nreason = "our own"\n')
        with pytest.raises(UsageError, match=rf"mine\.toml: budget\.max_ns\.value: {re.escape(value)} is no limit"):
            load_profile(str(mine))
    mine.write_text('[budget.max_us]\nvalue = 1\nreason = "our own"\n')
    with pytest.raises(UsageError, match="known here: max_ns"):
        load_profile(str(mine))


@pytest.mark.parametrize("value", ["0", "-0.5", "1.01", "nan"])
def test_a_ratio_is_a_share_of_one(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match=r"thermal\.min_ratio"):
        config(tmp_path, f"{LOW}[thermal]\nmin_ratio = {value}\n")


@pytest.mark.parametrize(
    ("table", "limit_ns"),
    [
        ("", 100e3),
        ("[clock]", 100e3),
        ('[clock]\nrule = "rts25"', 1e6),
        ('[clock]\nrule = "cat"', 50e6),
        ('[clock]\nrule = "cat"\nmax_error_ns = 20000', 20e3),
    ],
)
def test_how_far_the_clock_may_be_off(tmp_path: Path, table: str, limit_ns: float) -> None:
    assert config(tmp_path, f"{LOW}{table}\n").clock.limit_ns == limit_ns


@pytest.mark.parametrize("value", ["0", "-1.0", "nan", "inf", "86400e9"])
def test_a_limit_that_no_clock_keeps_or_breaks_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match=r"clock\.max_error_ns"):
        config(tmp_path, f"{LOW}[clock]\nmax_error_ns = {value}\n")


@pytest.mark.parametrize("knob", ["check.tick_off", "thermal.throttled"])
def test_checks_may_be_waived_too(tmp_path: Path, knob: str) -> None:
    text = f'{LOW}[[waivers]]\nknob = "{knob}"\nreason = "x"\nuntil = 2099-01-01\ntarget = 2\n'
    assert config(tmp_path, text).waivers == (
        Waiver(knob, "2", "x", "2099-01-01", f"{tmp_path}/host.toml: waivers[0]"),
    )


@pytest.mark.parametrize("target", ["33", '"33"', '"irq.affinity[33]"'])
def test_a_waiver_names_an_instance_or_a_target(tmp_path: Path, target: str) -> None:
    text = f'{LOW}[[waivers]]\nknob = "irq.affinity"\nreason = "x"\nuntil = 2099-01-01\ntarget = {target}\n'
    assert config(tmp_path, text).waivers == (
        Waiver("irq.affinity", "33", "x", "2099-01-01", f"{tmp_path}/host.toml: waivers[0]"),
    )


def waived(tmp_path: Path, knob: str, target: str) -> Waiver:
    text = f'{LOW}[[waivers]]\nknob = "{knob}"\nreason = "x"\nuntil = 2099-01-01\ntarget = "{target}"\n'
    (waiver,) = config(tmp_path, text).waivers
    return waiver


@pytest.mark.parametrize(
    ("target", "cpus"),
    [
        ("N", "3"),
        ("1-N", "123"),
        ("all", "0123"),
        ("ALL:1/2", "02"),
        ("0-N:1/2", "02"),
        ("0-6:1/3", "036"),
        ("1 3", "13"),
    ],
)
def test_a_list_of_a_waiver_is_what_the_kernel_would_read(tmp_path: Path, target: str, cpus: str) -> None:
    """On a host with CPUs 0-3; a list may name more than this host has, for a host file that several share."""
    for knob in ("cpufreq.governor", "check.tick_off", f"cpufreq.governor[{target}]"):
        name = knob.partition("[")[0]
        waiver = waived(tmp_path, name, knob if "[" in knob else target)
        assert {cpu for cpu in "0123456789" if waiver.covers(cpu)} == set(cpus)


@pytest.mark.parametrize("target", ["2-8:2", "3-1", "2-", "0-3:3/2", "0-3:0/0", "all:2", "1-2-3", "N-0"])
def test_what_the_kernel_refuses_is_no_list_of_a_waiver(tmp_path: Path, target: str) -> None:
    with pytest.raises(UsageError, match=r"waivers\[0\].target: not a CPU list"):
        waived(tmp_path, "cpufreq.governor", target)


@pytest.mark.parametrize("target", ["N", "all", "30-N"])
def test_only_cpus_have_a_last_one(tmp_path: Path, target: str) -> None:
    with pytest.raises(UsageError, match=r"the targets of irq.affinity are interrupts"):
        waived(tmp_path, "irq.affinity", target)


@pytest.mark.parametrize("name", ["eth0", "0000:03:00.0", "allnet0", "2-3x", "No1"])
def test_a_name_stays_a_name(tmp_path: Path, name: str) -> None:
    waiver = waived(tmp_path, "net.rx_ring", name)
    assert waiver.instance == name
    assert not waiver.covers("2")


def test_a_profile_of_ones_own_beside_the_host_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'inherits = "balanced-latency"\n[knobs."mm.swappiness"]\nvalue = 5\nreason = "our own"\n'
    )
    found = config(tmp_path, 'profile = "mine.toml"\nisolated = "2-3"\n')
    assert {one.knob: (one.value, one.reason) for one in found.settings}["mm.swappiness"] == (5, "our own")
    lines = load_profile("balanced-latency").knobs
    assert set(values(found)) == {name for name, line in lines.items() if line.isolation != "runtime"}


def test_the_way_of_isolating_chooses_what_is_asked(tmp_path: Path) -> None:
    asked = {how: set(values(config(tmp_path, f'{LOW}isolation = "{how}"\n'))) for how in ("boot", "runtime", "both")}
    assert asked["both"] - asked["boot"] == {
        "cpuset.isolated",
        "kthread.affinity",
        "systemd.isolated_slice",
        "systemd.allowed_cpus",
        "systemd.cpu_affinity",
    }
    of_the_boot = {name for name in asked["both"] if name.startswith("boot.")} | {"kernel.nohz"}  # for nohz_full=
    assert asked["both"] - asked["runtime"] == of_the_boot
    assert set(values(config(tmp_path, LOW))) == asked["boot"]


def test_a_boot_argument_that_the_site_spells_out_is_asked_for_all_the_same(tmp_path: Path) -> None:
    own = f'{LOW}isolation = "runtime"\n[knobs]\n"boot.nohz_full" = "isolated"\n'
    assert values(config(tmp_path, own))["boot.nohz_full"] == {2, 3}


def test_a_way_of_isolating_that_the_profile_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[knobs."mm.swappiness"]\nvalue = 5\nreason = "our own"\n')
    text = 'profile = "mine.toml"\nisolated = "2-3"\nisolation = "runtime"\n'
    with pytest.raises(UsageError, match="does not say how"):
        config(tmp_path, text)
    assert values(config(tmp_path, f'{text}[knobs]\n"cpuset.isolated" = "isolated"\n'))["cpuset.isolated"] == {2, 3}
    with pytest.raises(UsageError, match="isolation"):
        config(tmp_path, f'{LOW}isolation = "somehow"\n')


@pytest.mark.parametrize("name", shipped())
def test_shipped_profiles_fit_every_host_and_explain_themselves(name: str) -> None:
    found = resolve(HostFile(profile=name, isolated="3", isolation="both"), CPUS, "example")
    assert {one.knob for one in found.settings} == set(load_profile(name).knobs)
    assert [line for line in load_profile(name).knobs.values() if len(line.reason) < 10] == []


def test_balanced_latency_asks_for_no_boot_argument_and_no_idle_power() -> None:
    asked = load_profile("balanced-latency").knobs
    assert [knob for knob in asked if knob.startswith(("boot.", "cpufreq.", "cpuidle."))] == []
    assert set(asked) <= set(load_profile("low-latency").knobs)


HOOK = f'{LOW}[[monitor.hooks]]\ncommand = ["/bin/true"]\n'


def key(name: str, value: object) -> str:
    """A host file with one key of [table.name] set; `timeout_s` is a hook's."""
    table, _, last = name.rpartition(".")
    return f"{f'{LOW}[{table}]' if table else HOOK}\n{last} = {value}\n"


@pytest.mark.parametrize(
    ("name", "allowed", "refused"),
    [
        ("monitor.interval_s", (0.05, 3600), (0.049, 3600.1)),
        ("monitor.drift_interval_s", (0.05, 86400), (0.049, 86400.1)),
        ("monitor.sla.window_s", (0.1, 3600), (0.099, 3600.1)),
        ("thermal.min_ratio", (0.001, 1), (0, 1.001)),
        ("timeout_s", (0.001, 3600), (0, 3600.1)),
        ("thermal.base_frequency_khz", (1,), (0, -1)),
        ("budget.max_ns", (0.001, 86_399e9), (0, -1, 86_400e9, "inf", "nan")),
    ],
)
def test_a_number_may_be_at_its_limit_and_not_beside_it(
    tmp_path: Path, name: str, allowed: tuple[object, ...], refused: tuple[object, ...]
) -> None:
    for value in allowed:
        config(tmp_path, key(name, value))
    for value in refused:
        with pytest.raises(UsageError, match=re.escape(name)):
            config(tmp_path, key(name, value))


def test_a_file_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text('profile = "/dev/zero"\nisolated = "2-3"\n')
    with pytest.raises(UsageError, match="cannot read /dev/zero: not a regular file"):
        load_profile("/dev/zero", "/", str(path))
    path.write_text(f"{LOW}# {'x' * (1 << 20)}\n")
    with pytest.raises(UsageError, match=r"host\.toml: is larger than 1 MiB"):
        read_toml(str(path), HostFile)


MONITOR_REFUSED = [
    ('[[monitor.webhooks]]\nurl = "ftp://x"\n', "monitor.webhooks[0].url: "),
    ('[[monitor.webhooks]]\nurl = "https://x"\n[[monitor.webhooks]]\nurl = "x"\n', "monitor.webhooks[1].url: "),
    ('[[monitor.webhooks]]\nurl = "https://x:99999/"\n', "monitor.webhooks[0].url: "),
    ('[[monitor.webhooks]]\nurl = "https://x:0/"\n', "monitor.webhooks[0].url: "),
    ('[[monitor.webhooks]]\nurl = "https://x/\\u001b[31m"\n', "monitor.webhooks[0].url: "),
    ('[[monitor.webhooks]]\nurl = "http://x/"\ntoken_file = "/t"\n', "monitor.webhooks[0].url: "),
    ('[[monitor.webhooks]]\nurl = "https://x"\ntoken_file = "/a\\u0000"\n', "monitor.webhooks[0].token_file: "),
    ("[[monitor.webhooks]]\n", "monitor.webhooks[0]: needs url or url_file"),
    ('[[monitor.webhooks]]\nurl = "https://x"\nurl_file = "/u"\n', "monitor.webhooks[0]: needs url or url_file"),
    ('[[monitor.webhooks]]\nurl_file = "desk"\n', "monitor.webhooks[0].url_file: "),
    ('[[monitor.webhooks]]\nurl = "https://x"\nca_file = "/a\\u0000"\n', "monitor.webhooks[0].ca_file: "),
    ("[[monitor.hooks]]\ncommand = []\n", "monitor.hooks[0].command: "),
    ('[[monitor.hooks]]\ncommand = ["page-me"]\n', "monitor.hooks[0].command: "),
    ('[[monitor.hooks]]\ncommand = ["/bin/x", "a\\u0000b"]\n', "monitor.hooks[0].command[1]: "),
    ('[monitor.prometheus]\nlisten = "9750"\n', "monitor.prometheus.listen: "),
    ('[monitor.prometheus]\nlisten = "localhost:99999"\n', "monitor.prometheus.listen: "),
    ('[monitor.prometheus]\ntextfile = "/a/b.txt"\n', "monitor.prometheus.textfile: "),
    ('[monitor.prometheus]\ntextfile = "/a\\u0000.prom"\n', "monitor.prometheus.textfile: "),
    ('[monitor.sla]\nsocket = "/a\\u0000"\n', "monitor.sla.socket: "),
    ('[monitor.sla]\nsocket = "foo"\n', "monitor.sla.socket: 'foo' is neither a whole path nor HOST:PORT (socket = "),
    ('[monitor.sla]\nsocket = ""\n', "monitor.sla.socket: '' is neither"),
    ('[monitor.sla]\nsocket = "run/latency"\n', "monitor.sla.socket: 'run/latency' is neither"),
    ('[monitor.sla]\nsocket = "127.0.0.1:99999"\n', "monitor.sla.socket: '127.0.0.1:99999' is neither"),
    ('[monitor.sla]\nsocket = "127.0.0.1:0"\n', "monitor.sla.socket: '127.0.0.1:0' is neither"),
    ('[monitor.sla]\nsocket = "::1:7000"\n', "monitor.sla.socket: '::1:7000' is neither"),
    ('[monitor.sla]\nsocket = "/run/"\n', "monitor.sla.socket: '/run/' is a directory"),
    (f'[monitor.sla]\nsocket = "/{"a" * 107}"\n', "monitor.sla.socket: the path has 108 bytes, and a Unix socket's"),
    ('[monitor.sla]\nsocket_group = "trading"\n', "monitor.sla.socket_group: only the path of a Unix socket has a"),
    (
        '[monitor.sla]\nsocket = "127.0.0.1:7000"\nsocket_group = "trading"\n',
        "monitor.sla.socket_group: only the path of a Unix socket has a group",
    ),
    (
        '[monitor.sla]\nsocket = "/run/x"\nsocket_group = "a b"\n',
        "monitor.sla.socket_group: 'a b' is no group's name (socket_group = \"trading\")",
    ),
    ("[monitor.sentinel]\ncpu = 4\n", "monitor.sentinel.cpu: this host has no CPU 4 (it has 0-3)"),
    ("[monitor.sentinel]\ncpu = -1\n", "monitor.sentinel.cpu: "),
    ("[monitor.sentinel]\ncpu = 99999999999999999999\n", "monitor.sentinel.cpu: "),
]


@pytest.mark.parametrize(("text", "key"), MONITOR_REFUSED)
def test_what_the_monitor_could_not_do_is_refused_with_file_and_key(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(UsageError) as caught:
        config(tmp_path, LOW + text)
    assert str(caught.value).startswith(f"{tmp_path / 'host.toml'}: {key}")


def test_what_the_monitor_can_do_is_accepted(tmp_path: Path) -> None:
    text = """
    [monitor.prometheus]
    listen = "[::1]:65535"
    textfile = "/var/lib/tunectl.prom"
    [[monitor.webhooks]]
    url = "http://[::1]:9093"
    token_file = "/run/token"
    [[monitor.webhooks]]
    url = "https://alerts.example:65535/a?b=c"
    [[monitor.hooks]]
    command = ["/usr/local/bin/page-me", ""]
    [monitor.sla]
    socket = "/run/tunectl-monitor/latency"
    socket_group = "trading"
    [monitor.sentinel]
    cpu = 3
    """
    found = config(tmp_path, LOW + text).monitor
    assert found.sentinel is not None
    assert found.sentinel.cpu == 3


@pytest.mark.parametrize("address", ["/" + "a" * 106, "127.0.0.1:65535", "[::1]:1", "localhost:7000"])
def test_an_address_for_latencies_that_can_be_one_is_accepted(tmp_path: Path, address: str) -> None:
    assert config(tmp_path, f'{LOW}[monitor.sla]\nsocket = "{address}"\n').monitor.sla.socket == address


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[monitor.sla]\np99_9_ns = 20000\n", ["p99_9_ns judges nothing: no socket is named here, and no "]),
        ("[monitor.sla]\np99_9_ns = 20000\nmax_ns = 30000\n", ["p99_9_ns and max_ns judge nothing: no socket"]),
        ('[monitor.sla]\nsocket = "/a"\np99_9_ns = 20000\nmax_ns = 19999\n', ["max_ns is below p99_9_ns: "]),
        ('[monitor.sla]\nsocket = "/a"\np99_9_ns = 20000\nmax_ns = 20000\n', []),
        ("[monitor.sla]\np99_9_ns = 20000\n[monitor.sentinel]\ncpu = 3\n", []),
        ("[monitor.sla]\nwindow_s = 5\n", []),
    ],
)
def test_limits_that_judge_nothing_are_noted(tmp_path: Path, text: str, said: list[str]) -> None:
    notes = list(sla_notes(config(tmp_path, LOW + text).monitor, "host.toml"))
    assert [note.startswith(f"host.toml: monitor.sla: {begin}") for note, begin in zip(notes, said, strict=True)] == [
        True for _ in said
    ]


@pytest.mark.parametrize(("text", "isolated"), [("2-N", {2, 3}), ("N", {3}), ("1-N:1/2", {1, 3}), ("2,N", {2, 3})])
def test_the_last_cpu_is_the_last_that_is_there(tmp_path: Path, text: str, isolated: set[int]) -> None:
    guest = CPUS._replace(nr_cpus=32)
    found = config(tmp_path, LOW.replace('"2-3"', f'"{text}"'), guest)
    assert found.scope.isolated == isolated


def test_a_number_that_is_possible_and_not_there_is_refused(tmp_path: Path) -> None:
    guest = CPUS._replace(nr_cpus=32)
    with pytest.raises(UsageError, match="no CPU 9"):
        config(tmp_path, LOW.replace('"2-3"', '"2,9"'), guest)


def test_what_a_bond_feeds_is_fed_by_its_cards(tmp_path: Path) -> None:
    rows = ("book", 'fed_by = ["rx"]\n'), ("rx", 'fed_by = ["bond0"]\n'), ("tx", "")
    threads = "".join(f'[[threads]]\ncpu = {cpu}\ncommand = "{name}"\n{fed}' for cpu, (name, fed) in enumerate(rows, 1))
    text = 'profile = "low-latency"\nisolated = "1-3"\nallow_split_siblings = true\n[network]\ninterfaces = ["bond0"]\n'
    for card in ("eth0", "eth1"):
        Tree(tmp_path).value(f"sys/class/net/{card}/device/vendor", "0x15b3")
    Tree(tmp_path).stacked("bond0", "eth0", "eth1")
    path = tmp_path / "host.toml"
    path.write_text(text + threads)
    found = resolve(read_toml(str(path), HostFile), CPUS, str(path), Sysroot(str(tmp_path)))
    assert found.interfaces == ("eth0", "eth1")
    assert [thread.fed_by for thread in found.threads] == [("rx",), ("eth0", "eth1"), ("eth0", "eth1")]
