"""diff() as what it is: a pure function of settings, readings, facts, waivers and a date."""

import errno
from typing import Any

import pytest

from tunectl.cpulist import Isolcpus
from tunectl.fix import Kind, of_text, to_decide
from tunectl.host.refusals import AS_ROOT
from tunectl.knobs import KNOBS, in_order
from tunectl.knobs.drivers.bootargs import BootFacts, Next
from tunectl.knobs.drivers.irqaffinity import IrqFacts
from tunectl.knobs.row import Facts
from tunectl.model import (
    NEXT_BOOT,
    Change,
    Finding,
    Match,
    NextBoot,
    Outcome,
    Plan,
    Reading,
    Setting,
    State,
    Target,
    Waiver,
)
from tunectl.report.findings import finding_body, finding_of
from tunectl.tuning.plan import diff
from tunectl.verdict import verdict_of
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
    finding, *_ = plan.findings  # that of the next boot comes last
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
    [(errno.EACCES, str(AS_ROOT)), (errno.EPERM, str(AS_ROOT)), (errno.EIO, ""), (None, "")],
)
def test_unreadable_is_said_and_changes_nothing(number: int | None, fix: str) -> None:
    reason = "/proc/x: cannot be read"
    plan = planned("mm.ksm", "stopped", Reading("mm.ksm", "", State.UNREADABLE, reason=reason, errno=number))
    assert (judged(plan).outcome, judged(plan).reason, str(judged(plan).fix)) == (Outcome.UNREADABLE, reason, fix)
    assert plan.changes == ()


def test_an_empty_wish_is_an_empty_plan() -> None:
    assert diff([], [], Facts(), (), TODAY) == Plan((), (), False)


# ---- waivers


OLD, NEW = Waiver("mm.swappiness", None, "old", "2026-11-20"), Waiver("mm.swappiness", None, "new", "2099-01-01")


@pytest.mark.parametrize(
    ("waivers", "observed", "outcomes"),
    [
        ((NEW,), 60, ["waived"]),
        ((NEW._replace(until=TODAY),), 60, ["waived"]),  # it holds to its last day
        ((NEW._replace(instance=""),), 60, ["waived"]),
        ((OLD,), 60, ["drifted"]),
        ((OLD, NEW), 60, ["waived"]),
        ((NEW._replace(instance="7"),), 60, ["drifted", "unsupported"]),  # of another target, and so of none
        ((NEW._replace(knob="mm.ksm"),), 60, ["drifted", "unsupported"]),
        ((NEW,), 1, ["compliant"]),  # it improves only what is wrong
    ],
)
def test_a_waiver_holds_for_its_target_and_to_its_day(
    waivers: tuple[Waiver, ...], observed: int, outcomes: list[str]
) -> None:
    plan = planned("mm.swappiness", 1, read("mm.swappiness", observed), waivers=waivers)
    assert [one.outcome for one in plan.findings] == outcomes
    assert len(plan.changes) == outcomes.count("drifted")
    assert bool(plan.findings[0].fix) == ("drifted" in outcomes)
    covers = [waiver.until for waiver in waivers if waiver.covers("") and waiver.knob == "mm.swappiness"]
    assert plan.findings[0].until == (covers[-1] if observed != 1 and covers else "")
    assert all(
        one.target == f"waiver[{Target(waivers[0].knob, waivers[0].instance or '')}]" for one in plan.findings[1:]
    )


def test_a_waiver_that_covers_nothing_is_named_with_its_file_and_key_and_one_that_does_is_not() -> None:
    origin = "/etc/tunectl/host.toml: waivers[2]"
    mistyped = Waiver("cpufreq.governor", "22", "vendor", "2099-01-01", origin)
    plan = planned("cpufreq.governor", "performance", read("cpufreq.governor", "powersave", "2"), waivers=(mistyped,))
    idle = plan.findings[-1]
    assert (idle.target, origin in idle.reason, origin in str(idle.fix)) == (
        "waiver[cpufreq.governor[22]]", True, True,
    )  # fmt: skip
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


# ---- order


def test_the_order_of_changes() -> None:
    order = ["irqbalance.banned_cpus", "workqueue.cpumask", "cpufreq.governor", "mm.swappiness", "kernel.stat_interval"]
    wrong = {
        "kernel.stat_interval": (10, read("kernel.stat_interval", 1)),
        "workqueue.cpumask": (HOUSEKEEPING, read("workqueue.cpumask", ISOLATED)),
        "mm.swappiness": (1, read("mm.swappiness", 60)),
        "irqbalance.banned_cpus": (ISOLATED, read("irqbalance.banned_cpus", NONE, write=ISOLATED)),
        "cpufreq.governor": ("performance", read("cpufreq.governor", "powersave", "0")),
    }
    settings = [Setting(knob, desired, "") for knob, (desired, _) in wrong.items()]
    plan = diff(settings, [reading for _, reading in wrong.values()], Facts(), (), TODAY)
    assert [one.knob for one in plan.changes] == order


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
    asked: frozenset[int], effective: frozenset[int], device: str = "nvme0q3", settable: bool | None = False
) -> Reading:
    return read("irq.affinity", effective or asked, "27", facts=IrqFacts(asked, effective, device, settable))


REFUSED = Facts(live=False, refused=frozenset({Target("irq.affinity", "27")}))
EVERYWHERE = HOUSEKEEPING | ISOLATED


def test_an_interrupt_on_an_isolated_cpu_is_moved() -> None:
    plan = planned(
        "irq.affinity", HOUSEKEEPING, interrupt(EVERYWHERE, ISOLATED, settable=True), facts=Facts(live=False)
    )
    assert (judged(plan).outcome, judged(plan).observed) == (Outcome.DRIFTED, "2-3")
    assert [change.value for change in plan.changes] == [HOUSEKEEPING]


@pytest.mark.parametrize(
    ("reading", "facts", "harmful"),
    [
        (interrupt(EVERYWHERE, ISOLATED), REFUSED, True),
        (interrupt(EVERYWHERE, ISOLATED), REFUSED._replace(irq_counts={"27": 4711}), True),
        (interrupt(ISOLATED, ISOLATED), REFUSED, False),  # it fires for I/O submitted from them only
        (interrupt(EVERYWHERE, NONE), REFUSED, False),  # no driver uses it now
        (interrupt(EVERYWHERE, ISOLATED, device=""), REFUSED, False),
        (interrupt(EVERYWHERE, ISOLATED), REFUSED._replace(managed_pending=True), False),  # the next boot moves it
    ],
)
def test_a_managed_interrupt_is_harmful_or_not(reading: Reading, facts: Facts, harmful: bool) -> None:
    plan = planned("irq.affinity", HOUSEKEEPING, reading, facts=facts)
    assert (judged(plan).outcome, judged(plan).harmful) == (Outcome.REFUSED, harmful)
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


LAX = interrupt(EVERYWHERE, HOUSEKEEPING, settable=None)  # before 6.12
TRIED = Target("irq.affinity", "27")


KEPT = Facts(managed_kept=ISOLATED)


@pytest.mark.parametrize(
    ("reading", "facts", "outcome", "changes"),
    [
        (LAX, KEPT, Outcome.UNREADABLE, 1),  # only a write tells
        (LAX, KEPT._replace(refused=frozenset({TRIED})), Outcome.COMPLIANT, 0),
        (LAX, KEPT._replace(moved=frozenset({TRIED})), Outcome.DRIFTED, 1),
        (LAX, Facts(), Outcome.DRIFTED, 1),  # nothing keeps it off these CPUs
        (LAX, Facts(managed_kept=frozenset({2})), Outcome.DRIFTED, 1),
        (interrupt(EVERYWHERE, HOUSEKEEPING, settable=True), KEPT, Outcome.DRIFTED, 1),
        (interrupt(EVERYWHERE, HOUSEKEEPING, settable=False), KEPT, Outcome.COMPLIANT, 0),
        (interrupt(EVERYWHERE, ISOLATED, settable=None), KEPT, Outcome.DRIFTED, 1),
    ],
)
def test_whether_the_kernel_keeps_an_interrupt_off_itself_is_unknown_until_a_write_tells(
    reading: Reading, facts: Facts, outcome: Outcome, changes: int
) -> None:
    plan = planned("irq.affinity", HOUSEKEEPING, reading, facts=facts)
    assert judged(plan).outcome is outcome
    assert [change.value for change in plan.changes] == [HOUSEKEEPING] * changes
    assert [task.kind for task in judged(plan).fix.tasks] == [Kind.APPLY] * changes


# ---- boot arguments: asked, next boot, this boot, kernel


def facts_of(*, booted: Any, upcoming: Any, known: bool = True, **more: Any) -> BootFacts:
    kernel: dict[str, Any] = {"accepted": True, "likely": "the list was bad"}
    return BootFacts(next=Next(value=upcoming, known=known), booted=booted, **kernel | more)


def boot(facts: Facts | None = None, **points: Any) -> Plan:
    found = facts_of(**points)
    return planned("boot.nohz_full", ISOLATED, read("boot.nohz_full", found.booted, facts=found), facts=facts)


COMPLIANT, DRIFTED, PENDING = Outcome.COMPLIANT, Outcome.DRIFTED, Outcome.PENDING_REBOOT
BEFORE = Facts("this-boot", configured_in="the-boot-before")
OBSTACLE = {"obstacle": "zz.cfg sets it again", "remedy": to_decide("take zz.cfg:1 out")}
UNACCEPTED: dict[str, Any] = {"accepted": False, "kernel": "3", "evidence": "it shows '3'"}


@pytest.mark.parametrize(
    ("booted", "upcoming", "more", "facts", "outcome", "fix", "changes", "reboots"),
    [
        (ISOLATED, ISOLATED, {}, None, COMPLIANT, [], 0, False),
        (None, None, {}, None, DRIFTED, [Kind.APPLY], 1, True),
        (None, ISOLATED, {}, Facts("this-boot"), PENDING, [Kind.REBOOT], 0, True),
        (None, ISOLATED, {}, Facts("this-boot", configured_in="this-boot"), PENDING, [Kind.REBOOT], 0, True),
        # Configured before this boot, and not in force: somebody booted another entry.
        (None, ISOLATED, {}, BEFORE, DRIFTED, [Kind.REBOOT], 0, False),
        (ISOLATED, frozenset({3}), {}, None, DRIFTED, [Kind.APPLY], 1, True),  # the next boot will not have it
        (ISOLATED, ISOLATED, UNACCEPTED, None, DRIFTED, [Kind.DECIDE], 0, False),  # no write mends that
        # A boot loader that is not ours is left alone.
        (None, None, {"known": False, "refusal": "grub4dos"}, None, DRIFTED, [Kind.WORDS, Kind.REBOOT], 0, False),
        (ISOLATED, None, {"known": False, "refusal": "grub4dos"}, None, COMPLIANT, [], 0, False),
        (None, None, OBSTACLE, None, DRIFTED, [Kind.DECIDE], 0, False),  # its own remedy, and nothing is written
    ],
)
def test_a_boot_argument_is_judged_at_its_points(
    booted: Any,
    upcoming: Any,
    more: dict[str, Any],
    facts: Facts | None,
    outcome: Outcome,
    fix: list[Kind],
    changes: int,
    reboots: bool,
) -> None:
    plan = boot(facts, booted=booted, upcoming=upcoming, **more)
    assert (judged(plan).outcome, [task.kind for task in judged(plan).fix.tasks]) == (outcome, fix)
    assert [change.lifetime for change in plan.changes] == ["boot"] * changes
    assert plan.reboot_required is reboots


@pytest.mark.parametrize(
    ("upcoming", "more", "following"),
    [
        (ISOLATED, {}, NextBoot.SAME),
        (frozenset({3}), {}, NextBoot.OTHER),
        (None, {"known": False, "refusal": "grub4dos"}, NextBoot.UNKNOWN),
    ],
)
def test_what_the_next_boot_has_is_an_answer_of_its_own(
    upcoming: Any, more: dict[str, Any], following: NextBoot
) -> None:
    assert judged(boot(booted=ISOLATED, upcoming=upcoming, **more)).next is following


def test_what_is_not_known_of_the_next_boot_is_one_finding_for_all_arguments() -> None:
    unknown = facts_of(booted=ISOLATED, upcoming=None, known=False, refusal="grub4dos")
    settings = [Setting(name, ISOLATED, "") for name in ("boot.nohz_full", "boot.rcu_nocbs")]
    readings = [read(setting.knob, ISOLATED, facts=unknown) for setting in settings]
    findings = diff(settings, readings, Facts(), (), TODAY).findings
    assert [(one.knob, one.outcome) for one in findings] == [
        ("boot.nohz_full", Outcome.COMPLIANT),
        ("boot.rcu_nocbs", Outcome.COMPLIANT),
        (NEXT_BOOT, Outcome.UNREADABLE),
    ]
    assert (verdict_of(findings), verdict_of(findings, strict=True)) == ("compliant", "unreadable")
    waived = diff(settings, readings, Facts(), (Waiver(NEXT_BOOT, None, "PXE", "2099-01-01"),), TODAY).findings
    assert [one.outcome for one in waived if one.knob == NEXT_BOOT] == [Outcome.WAIVED]


def test_the_points_of_a_boot_argument_are_its_values() -> None:
    points = {"asked": "2-3", "next_boot": "2-3", "this_boot": "2-3", "kernel": "not shown by the kernel"}
    assert judged(boot(booted=ISOLATED, upcoming=ISOLATED)).points == points
    assert judged(boot(booted=ISOLATED, upcoming=ISOLATED, **UNACCEPTED)).observed == "3"


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
        (Isolcpus(frozenset({"managed_irq", "domain"}), frozenset({1, 2, 3})), Outcome.COMPLIANT),
    ],
)
def test_isolcpus_needs_its_flags_and_all_its_cpus(booted: Isolcpus, outcome: Outcome) -> None:
    found = facts_of(booted=booted, upcoming=MANAGED)
    assert judged(planned("boot.isolcpus", MANAGED, read("boot.isolcpus", booted, facts=found))).outcome is outcome
