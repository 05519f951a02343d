"""Kernel command line arguments. Configured is not effective: each is judged at four points.

asked (desired), what the next boot will have, what this boot had, and what the kernel accepted.
"""

from typing import Any

from tunectl.fix import NOTHING, REBOOT, Fix, add_words, reboot, to_decide
from tunectl.host.cpusets import ISOLATED
from tunectl.host.refusals import AS_ROOT, DENIED
from tunectl.knobs.codecs import CPULIST, INT, ISOLCPUS, WORD, Codec, flag
from tunectl.knobs.codecs import satisfies as matches
from tunectl.knobs.drivers.bootargs import MATCHES, BootArg, BootFacts, LeftOver
from tunectl.knobs.row import Absence, Facts, Judgement, Knob
from tunectl.model import Lifetime, Match, NextBoot, Outcome, Reading, Scalar, Severity

_Said = tuple[Outcome, str, Fix, bool]  # outcome, reason, fix, can apply do it
_UNDONE = "switched on again"
_ALWAYS = "always"
_UNKNOWN = "whether the next will have it is not known"
_PARAMETERS = "Documentation/admin-guide/kernel-parameters.txt"


def judge_boot(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """An argument that is wanted, at its four points; or one that we configured and that has to go."""
    if isinstance(reading.facts, LeftOver):
        return _left_over(knob, reading.facts, reading.value)
    found = reading.of_facts(BootFacts)

    def right(value: Any) -> bool:
        return value is not None and matches(knob.match, value, desired)

    def shown(value: Any) -> Scalar:
        return None if value is None else knob.codec.show(value)

    in_force = found.accepted and (right(found.booted) or found.by_effect)
    will_have = right(found.next.value) and not found.next.later
    points: dict[str, Scalar] = {
        "asked": shown(desired),
        "next_boot": shown(found.next.value) if found.next.known else "unknown",
        "this_boot": shown(found.booted),
        "kernel": found.kernel if found.evidence else "not shown by the kernel",
    }

    def judged(outcome: Outcome, reason: str, fix: Fix = NOTHING, changeable: bool = True) -> Judgement:
        by_line = right(found.booted) is in_force
        observed = shown(found.booted) if by_line else found.kernel
        observed = _UNDONE if found.undone else _ALWAYS if found.always else observed
        upcoming, says = _next(found, will_have)
        made = Judgement(outcome, observed, shown(desired), reason, fix, changeable, points=points)
        return made._replace(next=upcoming, next_from=says)

    name = knob.driver.describe()[0]
    argument = name.rstrip("=") if desired is True else name + knob.codec.encode(desired)
    if found.always:
        return judged(Outcome.COMPLIANT, found.always)
    if in_force and found.undone:
        reason = f"this boot had {argument}, and what it switches off is {_UNDONE}: {found.undone}"
        return judged(Outcome.DRIFTED, reason, found.ends, changeable=False)
    if in_force:
        return judged(*_in_force(found, argument, will_have=will_have))
    if right(found.booted):
        reason = f"this boot had {argument}, and the kernel did not accept it: {found.evidence}"
        return judged(Outcome.DRIFTED, reason, to_decide(f"{found.likely} (dmesg names the cause)"), changeable=False)
    if found.next.known and will_have:
        return judged(*_configured(found, facts, argument))
    return judged(*_not_in_force(knob, found, argument))


def _next(boot_facts: BootFacts, right: bool) -> tuple[NextBoot, str]:
    """(will the next boot have what is asked for, the file or the owner that says so, or why nobody does)."""
    if not boot_facts.next.known:
        return NextBoot.UNKNOWN, boot_facts.next.problem or boot_facts.refusal
    return NextBoot.SAME if right else NextBoot.OTHER, boot_facts.next.where or boot_facts.next.declared


def _in_force(boot_facts: BootFacts, argument: str, *, will_have: bool) -> _Said:
    """What this boot has as it should: will the next boot, too?"""
    if boot_facts.next.known and not will_have:
        return Outcome.DRIFTED, f"in force now, but {_lost(boot_facts)}", *_mend(boot_facts, argument)
    if boot_facts.next.known:
        return Outcome.COMPLIANT, boot_facts.beside or boot_facts.made, NOTHING, True
    reason = f"in force; whether the next boot has it is not known: {boot_facts.next.problem or boot_facts.refusal}"
    return Outcome.COMPLIANT, reason, _find_out(boot_facts), False


def _not_in_force(knob: Knob, boot_facts: BootFacts, argument: str) -> _Said:
    """What neither this boot has nor, as far as that is known, the next."""
    reason = f"this boot had {_what(knob, boot_facts.booted)}" + (f" ({boot_facts.made})" if boot_facts.made else "")
    hidden = boot_facts.next.errno in DENIED
    if boot_facts.refusal and not hidden:
        others = "its boot loader's settings are not tunectl's to write"
        reason += f", and {boot_facts.refusal if boot_facts.place else others}"
    elif not boot_facts.next.known and boot_facts.next.problem and (hidden or not boot_facts.obstacle):
        reason += f"; {_UNKNOWN}: {boot_facts.next.problem}"
        return Outcome.DRIFTED, reason, _find_out(boot_facts), False
    else:
        why = boot_facts.obstacle or boot_facts.next.problem
        but = ", but " if boot_facts.next.later else ": "
        will_have = f"the next will have {_what(knob, boot_facts.next.value)}"
        reason += f"; {will_have if boot_facts.next.known else _UNKNOWN}" + (f"{but}{why}" if why else "")
    return Outcome.DRIFTED, reason, *_mend(boot_facts, argument)


def _lost(boot_facts: BootFacts) -> str:
    """Which boot will not have what this one has, and why."""
    upcoming = boot_facts.next
    if not upcoming.later:
        why = boot_facts.obstacle or upcoming.problem or f"{upcoming.where or 'the configuration'} has not"
        return f"the next boot will not have it: {why}"
    if boot_facts.obstacle:
        return f"the next kernel's entry would not have it: {boot_facts.obstacle}"
    return upcoming.problem


def _find_out(boot_facts: BootFacts) -> Fix:
    """What makes known what the next boot has."""
    if boot_facts.next.errno in DENIED:
        return AS_ROOT
    if boot_facts.refusal:
        return to_decide(boot_facts.advice)
    return boot_facts.next.fix or to_decide("look at it yourself: tunectl cannot tell what boots there")


def _left_over(knob: Knob, left_over: LeftOver, booted: Any) -> Judgement:
    """The boot configuration still asks for an argument of ours that nobody wants now, or that does nothing here."""
    argument = knob.name.removeprefix("boot.")
    reason = f"the boot configuration still asks for {argument}, as tunectl wrote it, and {left_over.why}"
    asked = booted if left_over.written is None else left_over.written
    observed = None if asked is None else knob.codec.show(asked)
    return Judgement(Outcome.DRIFTED, observed, None, reason)


def _configured(boot_facts: BootFacts, facts: Facts, argument: str) -> _Said:
    """The next boot will have it: it waits for that boot, or this one should have had it already."""
    if facts.configured_in in ("", facts.boot_id):
        note = "" if facts.live else ", once the boot loader's program has run (none was: a recorded host)"
        return Outcome.PENDING_REBOOT, f"the next boot will have {argument}{note}", REBOOT, True
    reason = f"{argument} was configured before this boot, and yet this boot did not have it"
    return Outcome.DRIFTED, reason, reboot("into the boot menu's default entry, unedited"), False


def _mend(boot_facts: BootFacts, argument: str) -> tuple[Fix, bool]:
    """(fix, can apply do it): without a fix `tunectl apply` is one."""
    if boot_facts.refusal:
        return add_words(argument, boot_facts.place), False
    return boot_facts.remedy, not boot_facts.obstacle


def _what(knob: Knob, value: Any) -> str:
    name = knob.driver.describe()[0].rstrip("=")
    return f"no {name}" if value is None else f"{name}={knob.codec.show(value)}"


def _arg(name: str, severity: Severity, codec: Codec, why: str, risk: str, **driver: Any) -> Knob:
    source, absence = driver.pop("source", ""), driver.pop("absence", Absence())
    return Knob(
        f"boot.{name}",
        BootArg(name, **driver),
        codec,
        severity,
        lifetime=Lifetime.BOOT,
        match=MATCHES.get(name, Match.EQUAL),
        judge=judge_boot,
        why=why,
        risk=risk,
        source=f"{_PARAMETERS} ({name}){source}",
        absence=absence,
    )


KNOBS = (
    _arg(
        "isolcpus",
        Severity.STALL,
        ISOLCPUS,
        "The scheduler balances no thread onto these CPUs, and managed interrupts avoid them where they can. Any flag "
        "drops the default `domain`, so both are written.",
        "only a reboot undoes it; threads must be pinned to these CPUs by hand",
        kernel=ISOLATED,
        likely="the list or a flag is not what the kernel takes, `domain` is missing, or an earlier isolcpus= won",
        source="; kernel/sched/isolation.c",
    ),
    _arg(
        "nohz_full",
        Severity.INTERRUPT,
        CPULIST,
        "With one runnable thread the tick stops on these CPUs: no timer interrupt hundreds of times a second.",
        "system calls cost more there; one more runnable thread brings the tick back",
        kernel="sys/devices/system/cpu/nohz_full",
        config="CONFIG_NO_HZ_FULL",
        likely="the list differs from another housekeeping argument's, or names the boot CPU",
        source="; Documentation/timers/no_hz.rst",
    ),
    _arg(
        "rcu_nocbs",
        Severity.INTERRUPT,
        CPULIST,
        "RCU callbacks of these CPUs run in threads on other CPUs, not in softirqs here.",
        "none known",
        rcu_threads=True,
        likely="the kernel lacks CONFIG_RCU_NOCB_CPU, or the list was bad",
        source="; kernel/rcu/tree_nocb.h",
    ),
    _arg(
        "irqaffinity",
        Severity.INTERRUPT,
        CPULIST,
        "The default mask of every interrupt, from before the first driver is set up.",
        "none known",
        source="; kernel/irq/irqdesc.c",
    ),
    _arg(
        "skew_tick",
        Severity.INTERRUPT,
        INT,
        "The ticks of the CPUs are spread out, and do not contend for the same locks at one moment.",
        "a little more power when idle",
    ),
    _arg(
        "nosoftlockup",
        Severity.INTERRUPT,
        flag("nosoftlockup"),
        "The soft-lockup detector is off: it takes a timer and a high-priority thread on each CPU it watches, and a "
        "spinner is no lockup.",
        "a soft lockup is no longer noticed by the kernel",
        switch="kernel.soft_watchdog",
        on_cpus="proc/sys/kernel/watchdog_cpumask",
        source="; kernel/watchdog.c, proc_watchdog_common()",
    ),
    _arg(
        "tsc",
        Severity.INTERRUPT,
        WORD,
        "`reliable` stops the clocksource watchdog, whose timer visits every CPU in turn.",
        "a TSC that is not reliable is no longer noticed by the kernel",
        absence=Absence(with_tsc=True),
    ),
    _arg(
        "mitigations",
        Severity.SLOWER,
        WORD,
        "Defences against leaks through speculation cost time in every system call, interrupt and switch of context; a "
        "thread that spins in user space pays next to nothing. Changed only where a host file spells it out: no "
        "profile sets it. /sys/devices/system/cpu/vulnerabilities says what is in force.",
        "`off`: any program on this host, a sandboxed one too, may read memory that is not its own",
        source="; Documentation/admin-guide/hw-vuln",
    ),
    _arg(
        "intel_pstate",
        Severity.SLOWER,
        WORD,
        "`disable` leaves the clock to acpi-cpufreq, `passive` to the kernel's governors, from the first moment on; "
        "cpufreq.intel_pstate changes the mode while the host runs. A site's choice: no profile sets it.",
        "`disable`: no hardware-managed P-states, and turbo as the firmware's tables have it",
        source="; Documentation/admin-guide/pm/intel_pstate.rst",
    ),
    _arg(
        "amd_pstate",
        Severity.SLOWER,
        WORD,
        "The mode AMD's driver starts in, or `disable` for acpi-cpufreq. A site's choice: no profile sets it.",
        "`disable`: three P-states of the firmware's tables instead of a continuous scale",
        source="; Documentation/admin-guide/pm/amd-pstate.rst",
    ),
    _arg(
        "pcie_aspm",
        Severity.SLOWER,
        WORD,
        "`off` leaves every link as the firmware set it up; it does not wake links that the firmware lets sleep: "
        "pcie.aspm_policy does. A site's choice: no profile sets it.",
        "links stay in the states the firmware chose",
        source="; drivers/pci/pcie/aspm.c",
    ),
    _arg(
        "threadirqs",
        Severity.INTERRUPT,
        flag("threadirqs"),
        "Each device interrupt runs in a thread of its own (irq/N-NAME, SCHED_FIFO 50) instead of at once: a trading "
        "thread of a higher priority is interrupted for the moment only in which that thread is woken. PREEMPT_RT does "
        "so without being asked. A site's choice: no profile sets it.",
        "each interrupt costs a wake-up and a switch of context; a SCHED_FIFO thread that spins keeps the threads of "
        "its own network card, and what ksoftirqd does for it, from running on its CPU (check.trading_outranks)",
        irq_threads=True,
        likely="the kernel was built without CONFIG_IRQ_FORCED_THREADING",
        source="; kernel/irq/manage.c",
    ),
)
