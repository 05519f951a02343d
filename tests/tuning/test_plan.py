"""diff() as what it is: a pure function of settings, readings, facts, waivers and a date."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tunectl.cpulist import Isolcpus
from tunectl.fix import NOTHING, of_text, to_decide
from tunectl.knobs import KNOBS, in_order
from tunectl.knobs.drivers.bootargs import BootFacts
from tunectl.knobs.drivers.irqaffinity import IrqFacts
from tunectl.knobs.row import Facts
from tunectl.model import Change, Finding, Match, Outcome, Plan, Reading, Setting, State, Target, Waiver
from tunectl.report.findings import finding_body, finding_of
from tunectl.tuning.plan import diff
from tunectl.wording import standing

TODAY = "2026-11-21"
HOUSEKEEPING, ISOLATED = frozenset({0, 1}), frozenset({2, 3})
NONE: frozenset[int] = frozenset()
MANAGED = Isolcpus(frozenset({"managed_irq", "domain"}), ISOLATED)


def planned(
    knob: str, desired: Any, *readings: Reading, facts: Facts | None = None, waivers: tuple[Waiver, ...] = ()
) -> Plan:
    return diff([Setting(knob, desired, "because")], readings, facts or Facts(), waivers, TODAY)


def judged(plan: Plan) -> Finding:
    (finding,) = plan.findings
    return finding


def read(knob: str, value: Any, instance: str = "", **more: Any) -> Reading:
    return Reading(knob, instance, State.READ, value, **more)


# ---- outcomes


@pytest.mark.parametrize(
    ("knob", "desired", "observed", "outcome"),
    [
        ("mm.thp_enabled", "never", "never", Outcome.COMPLIANT),
        ("mm.thp_enabled", "never", "always", Outcome.DRIFTED),
        ("mm.swappiness", 1, 0, Outcome.COMPLIANT),
        ("mm.swappiness", 1, 1, Outcome.COMPLIANT),
        ("mm.swappiness", 1, 2, Outcome.DRIFTED),
        ("kernel.stat_interval", 10, 120, Outcome.COMPLIANT),
        ("kernel.stat_interval", 10, 9, Outcome.DRIFTED),
        ("kernel.watchdog_cpumask", HOUSEKEEPING, frozenset({0}), Outcome.COMPLIANT),
        ("kernel.watchdog_cpumask", HOUSEKEEPING, frozenset({0, 2}), Outcome.DRIFTED),
        ("kernel.watchdog_cpumask", HOUSEKEEPING, NONE, Outcome.DRIFTED),
        ("irqbalance.banned_cpus", ISOLATED, frozenset({1, 2, 3}), Outcome.COMPLIANT),
        ("irqbalance.banned_cpus", ISOLATED, frozenset({3}), Outcome.DRIFTED),
        ("cpuidle.max_latency_us", 2, 0, Outcome.COMPLIANT),
        ("cpuidle.max_latency_us", 2, 133, Outcome.DRIFTED),
        ("cpufreq.max_khz", 3500000, 3500000, Outcome.COMPLIANT),
        ("cpufreq.max_khz", 3500000, 2400000, Outcome.DRIFTED),
    ],
)
def test_a_value_satisfies_or_it_does_not(knob: str, desired: Any, observed: Any, outcome: Outcome) -> None:
    plan = planned(knob, desired, read(knob, observed))
    assert judged(plan).outcome is outcome
    assert [change.knob for change in plan.changes] == ([knob] if outcome is Outcome.DRIFTED else [])
    assert not plan.reboot_required


@pytest.mark.parametrize(
    ("knob", "desired", "observed", "said"),
    [
        ("mm.swappiness", 1, 60, "is 60, should be at most 1"),
        ("kernel.stat_interval", 10, 9, "is 9, should be at least 10"),
        ("mm.thp_enabled", "never", "always", "is always, should be never"),
    ],
)
def test_a_bound_is_called_one_by_whoever_draws_the_finding(knob: str, desired: Any, observed: Any, said: str) -> None:
    finding = judged(planned(knob, desired, read(knob, observed)))
    assert (finding.match, standing(finding)) == (KNOBS[knob].match, said)
    body = finding_body(finding)
    assert finding_of(body) == finding._replace(fix=of_text(body["fix"]))
    assert body.get("match", "equal") == finding.match.value
    assert finding_of({**body, "match": "a word of a later version"}).match is Match.EQUAL


def test_a_change_says_what_stands_what_is_wanted_and_why() -> None:
    plan = planned("mm.thp_enabled", "never", read("mm.thp_enabled", "always"))
    assert plan.changes == (
        Change(
            "mm.thp_enabled",
            "",
            "always",
            "never",
            KNOBS["mm.thp_enabled"].lifetime,
            "because",
            "never",
        ),
    )
    assert str(judged(plan).fix) == "sudo tunectl apply"
    assert judged(plan).reason == KNOBS["mm.thp_enabled"].why


def test_targets_are_judged_one_by_one() -> None:
    readings = [read("cpufreq.governor", word, str(cpu)) for cpu, word in enumerate(["performance", "powersave"])]
    plan = planned("cpufreq.governor", "performance", *readings)
    assert {one.target: one.outcome for one in plan.findings} == {
        "cpufreq.governor[0]": Outcome.COMPLIANT,
        "cpufreq.governor[1]": Outcome.DRIFTED,
    }
    assert [change.instance for change in plan.changes] == ["1"]


def test_what_is_written_may_be_more_than_what_is_wanted() -> None:
    union = frozenset({1, 2, 3})
    plan = planned("irqbalance.banned_cpus", ISOLATED, read("irqbalance.banned_cpus", frozenset({1}), write=union))
    (change,) = plan.changes
    assert change.value == union


def test_a_word_stands_for_this_hosts_own_value() -> None:
    plan = planned("cpufreq.max_khz", "hardware-max", read("cpufreq.max_khz", 2400000, "3", wanted=3500000))
    (change,) = plan.changes
    assert (change.observed, change.desired, change.value) == (2400000, 3500000, 3500000)


def test_absent_is_unsupported_and_changes_nothing() -> None:
    plan = planned("mm.ksm", "stopped", Reading("mm.ksm", "", State.ABSENT, reason="this host has no ksm"))
    assert (judged(plan).outcome, judged(plan).reason) == (Outcome.UNSUPPORTED, "this host has no ksm")
    assert (judged(plan).observed, judged(plan).desired) == (None, "stopped")
    assert plan.changes == ()


@pytest.mark.parametrize(
    ("number", "fix"),
    [(errno.EACCES, "run as root to read it"), (errno.EPERM, "run as root to read it"), (errno.EIO, ""), (None, "")],
)
def test_unreadable_is_said_and_changes_nothing(number: int | None, fix: str) -> None:
    reason = "/proc/x: cannot be read"
    plan = planned("mm.ksm", "stopped", Reading("mm.ksm", "", State.UNREADABLE, reason=reason, errno=number))
    assert (judged(plan).outcome, judged(plan).reason, str(judged(plan).fix)) == (Outcome.UNREADABLE, reason, fix)
    assert plan.changes == ()


def test_an_empty_wish_is_an_empty_plan() -> None:
    assert diff([], [], Facts(), (), TODAY) == Plan((), (), False)


# ---- waivers


@pytest.mark.parametrize("instance", [None, "1"])
@pytest.mark.parametrize("until", ["2026-11-21", "2099-01-01"])
def test_a_waiver_holds_to_its_last_day(instance: str | None, until: str) -> None:
    waiver = Waiver("cpufreq.governor", instance, "the vendor says so", until)
    plan = planned("cpufreq.governor", "performance", read("cpufreq.governor", "powersave", "1"), waivers=(waiver,))
    assert judged(plan).outcome is Outcome.WAIVED
    assert judged(plan).reason == f"the vendor says so (until {until})"
    assert str(judged(plan).fix) == ""
    assert plan.changes == ()


def test_an_expired_waiver_is_said_and_holds_no_more() -> None:
    waiver = Waiver("mm.swappiness", None, "was fine", "2026-11-20")
    plan = planned("mm.swappiness", 1, read("mm.swappiness", 60), waivers=(waiver,))
    assert judged(plan).outcome is Outcome.DRIFTED
    assert judged(plan).reason.endswith("(its waiver expired on 2026-11-20)")
    assert len(plan.changes) == 1


def test_a_second_waiver_may_still_hold() -> None:
    waivers = (Waiver("mm.swappiness", None, "old", "2020-01-01"), Waiver("mm.swappiness", None, "new", "2099-01-01"))
    plan = planned("mm.swappiness", 1, read("mm.swappiness", 60), waivers=waivers)
    assert (judged(plan).outcome, judged(plan).reason) == (Outcome.WAIVED, "new (until 2099-01-01)")


@pytest.mark.parametrize(
    "waiver",
    [Waiver("mm.swappiness", "7", "other target", "2099-01-01"), Waiver("mm.ksm", None, "other", "2099-01-01")],
)
def test_a_waiver_for_another_target_is_none(waiver: Waiver) -> None:
    found, idle = planned("mm.swappiness", 1, read("mm.swappiness", 60), waivers=(waiver,)).findings
    assert found.outcome is Outcome.DRIFTED
    assert (idle.target, idle.outcome) == (f"waiver[{Target(waiver.knob, waiver.instance or '')}]", "unsupported")


def test_a_waiver_that_covers_nothing_is_named_with_its_file_and_key_and_one_that_does_is_not() -> None:
    origin = "/etc/tunectl/host.toml: waivers[2]"
    mistyped = Waiver("cpufreq.governor", "22", "vendor", "2099-01-01", origin)
    plan = planned("cpufreq.governor", "performance", read("cpufreq.governor", "powersave", "2"), waivers=(mistyped,))
    idle = plan.findings[-1]
    assert idle.reason.startswith(f"{origin}: the waiver for cpufreq.governor[22] covers nothing: this host has no")
    assert f"take {origin} out" in str(idle.fix)
    for value in ("powersave", "performance"):  # a waiver for what is well today is no idle one
        waiver = mistyped._replace(instance="2")
        reading = read("cpufreq.governor", value, "2")
        plan = planned("cpufreq.governor", "performance", reading, waivers=(waiver,))
        assert [one.knob for one in plan.findings] == ["cpufreq.governor"]


@pytest.mark.parametrize(
    ("target", "covered"),
    [
        ("2-3", {"2", "3"}),
        ("3,7-9", {"3"}),
        ("2,3,27-28", {"2", "3"}),
        ("1", {"1"}),
        ("27-28", set()),
        ("4-4294967295", set()),
        ("3-", set()),
        ("2-3x", set()),
        ("02-03", {"2", "3"}),
        ("1-3:1/2", {"1", "3"}),
        ("1-3:2/2", {"1", "2", "3"}),
        ("2-8:2", set()),
    ],
)
def test_a_list_of_numbers_stands_for_each_of_them_and_is_idle_only_where_none_is_there(
    target: str, covered: set[str]
) -> None:
    waiver = Waiver("cpufreq.governor", target, "vendor", "2099-01-01", "host.toml: waivers[0]")
    readings = [read("cpufreq.governor", "powersave", cpu) for cpu in ("1", "2", "3")]
    found = planned("cpufreq.governor", "performance", *readings, waivers=(waiver,)).findings
    assert {one.instance for one in found if one.outcome is Outcome.WAIVED} == covered
    idle = [one for one in found if one.knob == "waiver"]
    assert [one.target for one in idle] == ([] if covered else [f"waiver[cpufreq.governor[{target}]]"])


def test_a_list_is_no_name_of_another_kind() -> None:
    waiver = Waiver("net.rps_cpus", "0-9", "vendor", "2099-01-01")
    assert not waiver.covers("eth0")
    assert not waiver.covers("")
    assert Waiver("net.rps_cpus", "eth0", "vendor", "2099-01-01").covers("eth0")


def test_a_waiver_improves_only_what_is_wrong() -> None:
    waiver = Waiver("mm.swappiness", None, "why", "2099-01-01")
    assert judged(planned("mm.swappiness", 1, read("mm.swappiness", 1), waivers=(waiver,))).outcome is Outcome.COMPLIANT


# ---- order


def test_the_order_of_changes() -> None:
    wrong: dict[str, tuple[Any, Reading]] = {
        "boot.skew_tick": (1, read("boot.skew_tick", None, facts=facts_of(booted=None, upcoming=None))),
        "kernel.stat_interval": (10, read("kernel.stat_interval", 1)),
        "mm.swappiness": (1, read("mm.swappiness", 60)),
        "cpufreq.min_khz": (5, read("cpufreq.min_khz", 1, "0")),
        "cpufreq.max_khz": (5, read("cpufreq.max_khz", 1, "0")),
        "cpufreq.energy_performance_preference": (
            "performance",
            read("cpufreq.energy_performance_preference", "power", "0"),
        ),
        "cpufreq.boost": (True, read("cpufreq.boost", False)),
        "cpufreq.governor": ("performance", read("cpufreq.governor", "powersave", "0")),
        "cpuidle.max_latency_us": (2, read("cpuidle.max_latency_us", 100, "2")),
        "workqueue.cpumask": (HOUSEKEEPING, read("workqueue.cpumask", ISOLATED)),
        "irq.affinity": (
            HOUSEKEEPING,
            read("irq.affinity", ISOLATED, "9", facts=IrqFacts(ISOLATED, ISOLATED, "eth0", True)),
        ),
        "irq.default_affinity": (HOUSEKEEPING, read("irq.default_affinity", ISOLATED)),
        "irqbalance.banned_cpus": (ISOLATED, read("irqbalance.banned_cpus", NONE, write=ISOLATED)),
        "smt.control": ("off", read("smt.control", "on")),
    }
    settings = [Setting(knob, desired, "") for knob, (desired, _) in wrong.items()]
    order = [one.knob for one in diff(settings, [reading for _, reading in wrong.values()], Facts(), (), TODAY).changes]
    assert order == [
        "smt.control",
        "irqbalance.banned_cpus",
        "irq.default_affinity",
        "irq.affinity",
        "workqueue.cpumask",
        "cpuidle.max_latency_us",
        "cpufreq.governor",
        "cpufreq.boost",
        "cpufreq.max_khz",
        "cpufreq.min_khz",
        "cpufreq.energy_performance_preference",
        "mm.swappiness",
        "kernel.stat_interval",
        "boot.skew_tick",
    ]


def test_every_row_comes_after_what_it_must_follow() -> None:
    order = in_order(list(reversed(KNOBS)))
    assert sorted(order) == sorted(KNOBS)
    for knob in KNOBS.values():
        assert [name for name in knob.after if order.index(name) > order.index(knob.name)] == []
    groups = ["irqbalance", "irq", "workqueue", "cpuidle", "cpufreq", "mm", "kernel", "boot"]
    firsts = [order.index(next(name for name in order if name.startswith(f"{group}."))) for group in groups]
    assert firsts == sorted(firsts)
    assert order[-len([name for name in KNOBS if name.startswith("boot.")]) :] == [
        name for name in KNOBS if name.startswith("boot.")
    ]


def test_findings_keep_the_order_of_the_settings() -> None:
    settings = [Setting("mm.swappiness", 1, ""), Setting("mm.ksm", "stopped", "")]
    plan = diff(settings, [read("mm.ksm", "running"), read("mm.swappiness", 60)], Facts(), (), TODAY)
    assert [one.knob for one in plan.findings] == ["mm.swappiness", "mm.ksm"]


# ---- interrupts


def interrupt(
    asked: frozenset[int], effective: frozenset[int], device: str = "nvme0q3", settable: bool = False
) -> Reading:
    return read("irq.affinity", effective or asked, "27", facts=IrqFacts(asked, effective, device, settable))


REFUSED = Facts(live=False, refused=frozenset({Target("irq.affinity", "27")}))
EVERYWHERE = HOUSEKEEPING | ISOLATED


def test_an_interrupt_on_an_isolated_cpu_is_moved() -> None:
    plan = planned(
        "irq.affinity", HOUSEKEEPING, interrupt(EVERYWHERE, ISOLATED, settable=True), facts=Facts(live=False)
    )
    assert judged(plan).outcome is Outcome.DRIFTED
    assert "interrupt 27 (nvme0q3) is delivered to CPU 2-3" in judged(plan).reason
    assert [change.value for change in plan.changes] == [HOUSEKEEPING]


@pytest.mark.parametrize(
    ("reading", "facts", "harmful", "said"),
    [
        (
            interrupt(EVERYWHERE, ISOLATED),
            REFUSED,
            True,
            "serves housekeeping CPUs too and fires on CPU 2-3; none so far",
        ),
        (interrupt(ISOLATED, ISOLATED), REFUSED, False, "it fires for I/O submitted from them only"),
        (interrupt(EVERYWHERE, NONE), REFUSED, False, "no driver uses it now"),
        (interrupt(EVERYWHERE, ISOLATED, device=""), REFUSED, False, "no driver uses it now"),
        (
            interrupt(EVERYWHERE, ISOLATED),
            Facts(live=False, refused=REFUSED.refused, managed_pending=True),
            False,
            "isolcpus=managed_irq moves it to a housekeeping CPU with the next boot",
        ),
        (
            interrupt(EVERYWHERE, ISOLATED),
            Facts(live=False, refused=REFUSED.refused, irq_counts={"27": 4711}),
            True,
            "; 4711 so far on isolated CPUs",
        ),
    ],
)
def test_a_managed_interrupt_is_harmful_or_not(reading: Reading, facts: Facts, harmful: bool, said: str) -> None:
    plan = planned("irq.affinity", HOUSEKEEPING, reading, facts=facts)
    assert (judged(plan).outcome, judged(plan).harmful) == (Outcome.REFUSED, harmful)
    assert said in judged(plan).reason
    assert bool(judged(plan).fix) is harmful
    assert plan.changes == ()


def test_a_read_only_affinity_file_is_as_good_as_a_refusal() -> None:
    plan = planned(
        "irq.affinity", HOUSEKEEPING, interrupt(EVERYWHERE, ISOLATED, settable=False), facts=Facts(live=False)
    )
    assert judged(plan).outcome is Outcome.REFUSED


def test_a_refused_interrupt_may_be_waived() -> None:
    waiver = Waiver("irq.affinity", "27", "admin queue", "2099-01-01")
    plan = planned("irq.affinity", HOUSEKEEPING, interrupt(EVERYWHERE, ISOLATED), facts=REFUSED, waivers=(waiver,))
    assert judged(plan).outcome is Outcome.WAIVED


@pytest.mark.parametrize("live", [True, False])
def test_an_affinity_that_takes_effect_with_the_next_interrupt(live: bool) -> None:
    reading = interrupt(HOUSEKEEPING, ISOLATED, settable=True)
    finding = judged(planned("irq.affinity", HOUSEKEEPING, reading, facts=Facts(live=live)))
    assert finding.outcome is (Outcome.COMPLIANT if live else Outcome.DRIFTED)
    assert ("with its next interrupt" in finding.reason) is live


def test_isolcpus_with_managed_irq_pending_makes_a_managed_interrupt_harmless() -> None:
    settings = [Setting("irq.affinity", HOUSEKEEPING, ""), Setting("boot.isolcpus", MANAGED, "")]
    pending = read("boot.isolcpus", None, facts=facts_of(booted=None, upcoming=MANAGED))
    plan = diff(settings, [interrupt(EVERYWHERE, ISOLATED), pending], REFUSED, (), TODAY)
    assert [(one.outcome, one.harmful) for one in plan.findings] == [
        (Outcome.REFUSED, False),
        (Outcome.PENDING_REBOOT, True),
    ]
    plain = Isolcpus(frozenset({"domain"}), ISOLATED)
    settings[1] = Setting("boot.isolcpus", plain, "")
    pending = read("boot.isolcpus", None, facts=facts_of(booted=None, upcoming=plain))
    plan = diff(settings, [interrupt(EVERYWHERE, ISOLATED), pending], REFUSED, (), TODAY)
    assert plan.findings[0].harmful


# ---- boot arguments: asked, next boot, this boot, kernel


def facts_of(*, booted: Any, upcoming: Any, accepted: bool = True, **more: Any) -> BootFacts:
    plain = BootFacts(upcoming, True, "", booted, "", accepted, "", "the list was bad", "", "", NOTHING)
    return plain._replace(**more)


def boot(facts: Facts | None = None, **points: Any) -> Plan:
    found = facts_of(**points)
    return planned("boot.nohz_full", ISOLATED, read("boot.nohz_full", found.booted, facts=found), facts=facts)


def test_in_force_and_configured_is_compliant() -> None:
    plan = boot(booted=ISOLATED, upcoming=ISOLATED)
    assert (judged(plan).outcome, judged(plan).observed) == (Outcome.COMPLIANT, "2-3")
    assert judged(plan).points == {
        "asked": "2-3",
        "next_boot": "2-3",
        "this_boot": "2-3",
        "kernel": "not shown by the kernel",
    }
    assert not plan.reboot_required


def test_neither_is_drift_that_apply_mends_for_the_next_boot() -> None:
    plan = boot(booted=None, upcoming=None)
    assert judged(plan).outcome is Outcome.DRIFTED
    assert judged(plan).reason == "this boot had no nohz_full; the next will have no nohz_full"
    assert [change.lifetime for change in plan.changes] == ["boot"]
    assert plan.reboot_required


@pytest.mark.parametrize("configured_in", ["", "this-boot"])
def test_configured_in_this_boot_waits_for_the_next(configured_in: str) -> None:
    plan = boot(Facts("this-boot", configured_in=configured_in), booted=None, upcoming=ISOLATED)
    assert (judged(plan).outcome, str(judged(plan).fix)) == (Outcome.PENDING_REBOOT, "reboot")
    assert plan.changes == ()
    assert plan.reboot_required


def test_configured_before_this_boot_and_not_in_force_is_drift() -> None:
    plan = boot(Facts("this-boot", configured_in="the-boot-before"), booted=None, upcoming=ISOLATED)
    assert judged(plan).outcome is Outcome.DRIFTED
    assert judged(plan).reason == "nohz_full=2-3 was configured before this boot, and yet this boot did not have it"
    assert plan.changes == ()
    assert not plan.reboot_required


def test_in_force_but_not_for_the_next_boot_is_drift() -> None:
    plan = boot(booted=ISOLATED, upcoming=frozenset({3}))
    assert judged(plan).outcome is Outcome.DRIFTED
    assert "in force now, but the next boot will not have it" in judged(plan).reason
    assert len(plan.changes) == 1


def test_not_accepted_is_drift_that_no_write_mends() -> None:
    plan = boot(booted=ISOLATED, upcoming=ISOLATED, accepted=False, kernel="3", evidence="it shows '3'")
    assert (judged(plan).outcome, judged(plan).observed) == (Outcome.DRIFTED, "3")
    assert judged(plan).reason == "this boot had nohz_full=2-3, and the kernel did not accept it: it shows '3'"
    assert str(judged(plan).fix) == "the list was bad (dmesg names the cause)"
    assert plan.changes == ()


def test_a_boot_loader_that_is_not_ours_is_left_alone() -> None:
    plan = boot(booted=None, upcoming=None, next_known=False, refusal="systemd-boot")
    assert judged(plan).outcome is Outcome.DRIFTED
    assert str(judged(plan).fix) == "add nohz_full=2-3 to the kernel command line yourself, then reboot"
    assert plan.changes == ()
    assert judged(boot(booted=ISOLATED, upcoming=None, next_known=False, refusal="x")).outcome is Outcome.COMPLIANT


def test_an_obstacle_is_named_and_nothing_is_written() -> None:
    plan = boot(booted=None, upcoming=None, obstacle="zz.cfg sets it again", remedy=to_decide("take zz.cfg:1 out"))
    assert str(judged(plan).fix) == "take zz.cfg:1 out"
    assert plan.changes == ()


def test_a_pending_reboot_is_not_waived_away() -> None:
    found = facts_of(booted=None, upcoming=ISOLATED)
    waiver = Waiver("boot.nohz_full", None, "later", "2099-01-01")
    plan = planned("boot.nohz_full", ISOLATED, read("boot.nohz_full", None, facts=found), waivers=(waiver,))
    assert judged(plan).outcome is Outcome.PENDING_REBOOT


@pytest.mark.parametrize(
    ("booted", "outcome"),
    [
        (MANAGED, Outcome.COMPLIANT),
        (Isolcpus(frozenset({"managed_irq", "domain", "nohz"}), ISOLATED), Outcome.COMPLIANT),
        (Isolcpus(frozenset({"managed_irq"}), ISOLATED), Outcome.PENDING_REBOOT),
        (Isolcpus(frozenset({"managed_irq", "domain"}), frozenset({3})), Outcome.PENDING_REBOOT),
        (Isolcpus(frozenset({"managed_irq", "domain"}), frozenset({1, 2, 3})), Outcome.PENDING_REBOOT),
    ],
)
def test_isolcpus_needs_its_flags_and_exactly_its_cpus(booted: Isolcpus, outcome: Outcome) -> None:
    found = facts_of(booted=booted, upcoming=MANAGED)
    assert judged(planned("boot.isolcpus", MANAGED, read("boot.isolcpus", booted, facts=found))).outcome is outcome
