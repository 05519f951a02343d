"""Gathers verify, checks, probe and thermal state, and has gate.py decide."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tunectl.checking.outcomes import OF_CHECKS
from tunectl.checking.runner import Interrupted, run_checks, told_as_work, usual_s
from tunectl.checking.tick import judge_probe, with_longer_look
from tunectl.command import Command
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.errors import TunectlError
from tunectl.fix import NOTHING, Fix, to_type
from tunectl.host import occupants
from tunectl.host.cpus import read_node_cpus
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.fairserver import may_serve
from tunectl.host.hardware import FEWER_SMIS, counting_smis
from tunectl.host.identity import read_firmware, read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.topology import read_machine
from tunectl.hostfile.config import HostConfig, kernel_config
from tunectl.knobs import KNOBS
from tunectl.knobs.drivers.pseudofile import is_spared
from tunectl.model import Finding, HostId, NextBoot, Outcome, Plan, Scope
from tunectl.monitor.model import Snapshot
from tunectl.monitor.rules.history import Limits
from tunectl.monitor.sources import HEAT, take_snapshot
from tunectl.monitor.watched_host import WatchedHost
from tunectl.preflight import beside
from tunectl.preflight.feeding import SECONDS, Fed, measure_feed
from tunectl.preflight.gate import NO_PROBLEM, STOP, Parts, Problem, Reason, decide
from tunectl.preflight.headline import count_waivers, headline, stood
from tunectl.preflight.thermal import NAMES, judge_thermal, verdict_of_heat
from tunectl.preflight.unproved import to_feed, to_finish, to_load, to_prove
from tunectl.probe.budget import judge, suggested_s
from tunectl.probe.loaded import planned, refusal, under
from tunectl.probe.runner import run_jitter
from tunectl.shapes import FIGURES, SMIS, Firmware, Hardware, Jitter, LeftOut, Looser, Smis, Waivers, replaced
from tunectl.tuning.inspection import Inspection, config_or_proposal
from tunectl.tuning.journal import Journal, peek
from tunectl.tuning.plan import idle_waivers, waive
from tunectl.tuning.proved import of_this_boot
from tunectl.verdict import CLOCK, verdict_of
from tunectl.wording import PROBE
from tunectl.work import Tell, Work

_STOPPED = "interrupted while {}: what comes behind was not looked at, and nothing of it is judged"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be judged, and how."""

    root: Sysroot
    host_path: str
    host_required: bool  # the operator named the file: it must be there
    state: str
    invocation: tuple[str, ...]
    today: str
    duration_s: float | None  # of the probe; None for as long as its limits need
    window_s: float
    strict: bool
    tell: Tell
    intrude: bool  # go also where somebody else's threads run
    stay_off: Callable[[CpuSet], None]  # moves this process away from these CPUs
    load: tuple[str, ...] | None = None  # beside which it is measured once more; None for what the host file says
    feed: bool | None = None  # whether `probe feed` is measured, too; None for what the host file says
    tried: Inspection | None = None  # of a boot that is tried: what the next one has is not asked
    typed: Callable[[Finding], Finding] = lambda finding: finding  # the same finding, whose fix names this host


@dataclass
class Flight:
    """Everything preflight found."""

    identity: HostId
    verdict: str = "unknown"
    reasons: list[Reason] = field(default_factory=list)
    inspection: Inspection | None = None
    plan: Plan | None = None
    check: list[Finding] = field(default_factory=list)
    check_verdict: str = "unreadable"
    probe: Jitter | None = None
    probe_problem: Problem = NO_PROBLEM  # why nothing was measured or judged
    load: tuple[str, ...] = ()  # what was to be measured beside, too
    loaded: Jitter | None = None  # the probe once more, beside that load
    load_problem: Problem = NO_PROBLEM
    is_feed_asked: bool = False
    fed: Fed = field(default_factory=Fed)
    beside: list[beside.Beside] = field(default_factory=list)  # the CPUs that were left to somebody else
    thermal: dict[str, Any] = field(default_factory=dict)
    unproved: tuple[Fix, ...] = ()  # what to do so that the probe proves something
    notes: list[str] = field(default_factory=list)
    looser: tuple[Looser, ...] = ()
    waivers: Waivers = field(default_factory=Waivers)
    headline: str = ""
    scope: Scope | None = None
    machine: Hardware = field(default_factory=Hardware)
    firmware: Firmware = field(default_factory=Firmware)
    smis: Smis = field(default_factory=Smis)  # that came while it ran
    cores: list[str] = field(default_factory=list)  # the CPUs of each core that has several
    nodes: list[str] = field(default_factory=list)  # the CPUs of each node

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them, for formats that show nothing but findings."""
        verify = self.plan.findings if self.plan else ()
        return (*verify, *self.check, *self.thermal.get("findings", ()))


def run_preflight(request: Request) -> Flight:
    """Judges the host. UsageError for a bad host file; every other failure becomes a reason."""
    root = request.root
    flight = Flight(read_identity(root))
    facts = read_scope_facts(root)
    flight.machine, flight.firmware = read_machine(root, facts), read_firmware(root)
    flight.cores = [format_cpulist(core) for core in dict.fromkeys(facts.siblings.values()) if len(core) > 1]
    flight.nodes = [format_cpulist(cpus) for cpus in read_node_cpus(root)]
    inspection = _inspect(request, flight, facts)
    config = inspection.config
    flight.scope = config.scope
    request.stay_off(config.scope.isolated)
    flight.load = config.load if request.load is None else request.load
    flight.is_feed_asked = config.feed if request.feed is None else request.feed
    spared = config.scope.online - config.scope.isolated
    smis = counting_smis(root, spared)
    watched = WatchedHost(inspection)
    cool = take_snapshot(watched, HEAT)
    stopped = _gather(request, flight, config, facts)
    _look_longer(request, flight, config, facts)
    _thermal(flight, cool, take_snapshot(watched, HEAT), inspection)
    watched.close()
    flight.smis = smis()
    is_asked = flight.inspection and (root.live or flight.smis.count is not None)  # a recording has no counter
    smi_limit = config.budget.get(SMIS) if is_asked else None
    problem = flight.probe_problem
    flight.unproved = (
        *to_prove(
            root.live, problem, flight.probe, flight.beside, flight.load, is_guest=bool(flight.machine.hypervisor)
        ),
        *to_load(flight.load, flight.load_problem, flight.loaded),
        *to_feed(flight.fed.problem, flight.fed.result),
        *((FEWER_SMIS,) if smi_limit is not None and (flight.smis.per_s(0.0) or 0.0) > smi_limit else ()),
        *to_finish(stopped, flight.load),
    )
    parts = Parts(
        verify=tuple(map(request.typed, flight.plan.findings if flight.plan else ())),
        check=tuple(map(request.typed, flight.check)),
        thermal=tuple(map(request.typed, flight.thermal["findings"])),
        thermal_verdict=flight.thermal["verdict"],
        thermal_reason=flight.thermal.get("reason", ""),
        probe=flight.probe,
        probe_problem=problem,
        beside=tuple(beside.broken(flight.beside, config.budget)),
        not_measured=tuple(f"{one.shown}; {STOP}" for one in flight.beside),
        spared=frozenset(name for name, knob in KNOBS.items() if is_spared(knob.driver)),
        unlimited=tuple(key for key in FIGURES if key not in config.budget) if flight.inspection else (),
        loaded=flight.loaded,
        load_problem=flight.load_problem,
        feed=flight.fed.result,
        feed_problem=flight.fed.problem,
        smis=flight.smis,
        smi_limit=smi_limit,
        stopped=stopped,
    )
    flight.verdict, reasons = decide(parts, request.strict)
    flight.reasons = flight.reasons + reasons
    if not flight.inspection:
        flight.verdict = "no-go"
    flight.waivers = count_waivers(config.waivers, request.today)
    flight.looser = config.looser
    not_known = sum(
        finding.next is NextBoot.UNKNOWN and finding.outcome is Outcome.COMPLIANT for finding in flight.findings
    )
    fed = flight.fed.result.budget.verdict if flight.fed.result else "not-judged" if flight.is_feed_asked else ""
    clock = next((finding.outcome for finding in flight.check if finding.knob == CLOCK), None)
    terms = (flight.verdict, flight.looser, flight.waivers, flight.loaded, fed)
    still = tuple(stood(flight.smis, smi_limit, flight.probe))
    probes = [run for run in (flight.probe, flight.loaded) if run]
    flight.headline = headline(*terms, probes=probes, not_known=not_known, clock=clock, still=still)
    return flight


def _inspect(request: Request, flight: Flight, facts: CpuFacts) -> Inspection:
    """What is wanted, and the host's view of it; without a host file and a proposal nothing but the CPUs to measure.

    Where no CPU can be isolated, the last one is measured, and nothing was ever written.
    """
    root = request.root
    if request.tried:
        flight.inspection = request.tried
        return request.tried
    config, notes = config_or_proposal(root, request.host_path, facts, required=request.host_required)
    if config is None:
        flight.reasons += [Reason("", note) for note in notes]
        last = Scope(facts.present, facts.online, frozenset({max(facts.online)}), facts.nr_cpus)
        bare, journal = kernel_config(facts)._replace(scope=last), Journal(request.state)
        return Inspection(root, flight.identity, bare, journal, request.invocation, request.today)
    flight.notes += notes
    journal = peek(request.state)
    flight.inspection = Inspection(root, flight.identity, config, journal, request.invocation, request.today)
    return flight.inspection


def _gather(request: Request, flight: Flight, config: HostConfig, facts: CpuFacts) -> str:
    """All that is found, one thing after the other. Ctrl-C ends it: returns when that was, "" where it did not come."""
    probe_s = request.duration_s or suggested_s(config.budget)
    loaded_s, feed_s = probe_s if flight.load else 0.0, SECONDS if flight.is_feed_asked else 0.0
    # What is done, and the seconds that it takes.
    steps: tuple[tuple[str, float, Callable[[Request], None]], ...] = (
        ("the settings were read", 0.0, lambda part: _read_settings(part, flight)),
        ("the checks ran", usual_s(request.window_s), lambda part: _check(part, flight, config)),
        ("the probe measured", probe_s, lambda part: _measure(part, flight, config, facts)),
        ("it was measured under load", loaded_s, lambda part: _measure_loaded(part, flight, config, facts)),
        ("feed was measured", feed_s, lambda part: _measure_feed(part, flight, config)),
    )
    for place, (what, _, step) in enumerate(steps):

        def tell(work: Work, after_s: float = sum(seconds for _, seconds, _ in steps[place + 1 :])) -> None:
            request.tell(work.within(after_s=after_s))

        try:
            step(replace(request, tell=tell))
        except KeyboardInterrupt:
            return _STOPPED.format(what)
        if any(run and run.interrupted for run in (flight.probe, flight.loaded)):
            return _STOPPED.format(what)
    return ""


def _read_settings(request: Request, flight: Flight) -> None:
    if flight.inspection:
        request.tell(Work("reading the settings", 0.0))
        plan = flight.inspection.assess()
        flight.plan = plan._replace(findings=of_this_boot(plan.findings)) if request.tried else plan


def _check(request: Request, flight: Flight, config: HostConfig) -> None:
    whole = "check."
    try:
        findings = run_checks(
            request.root,
            config.scope,
            window_s=request.window_s,
            settings={setting.knob: setting.value for setting in config.settings},
            on_progress=told_as_work(request.tell),
            interfaces=config.interfaces,
            trading=config.threads,
            intrude=request.intrude,
            clock_limit_ns=config.clock.limit_ns,
        )
    except Interrupted as interrupted:
        flight.check = waive(interrupted.found, config.waivers, request.today)
        raise
    except TunectlError as error:
        findings, whole = [Finding("check", "", Outcome.UNREADABLE, reason=str(error), severity=OF_CHECKS)], ""
    flight.check = waive(findings, config.waivers, request.today, whole=whole)
    flight.check_verdict = verdict_of(flight.check, request.strict)


def _measure(request: Request, flight: Flight, config: HostConfig, facts: CpuFacts) -> None:
    """Measures: the free CPUs by the probe, those where somebody else's threads run by what the kernel counts there."""
    cpus = config.scope.isolated & config.scope.online
    if not request.root.live:
        flight.probe_problem = Problem(PROBE, "a recorded host cannot be measured")
        return
    if not cpus:
        flight.probe_problem = Problem(PROBE, "none of the isolated CPUs is online")
        return
    place = occupants.Place.of(facts, cpus, config.scope.isolated)
    found = {} if request.intrude else occupants.look(request.root, place, config.threads)
    before = _behold(request.root, found)
    try:
        duration_s = request.duration_s or suggested_s(config.budget)
        flight.probe_problem = _probe(request, flight, config, cpus - found.keys(), occupants.said(found), duration_s)
        left_s = before.at + duration_s - time.monotonic()
        if before.threads and left_s > 0:  # the CPUs that are not probed are watched for as long as a probe runs
            request.tell(Work("watching the CPUs of running engines", left_s))
            time.sleep(left_s)
    finally:
        flight.beside = beside.compare(before, _behold(request.root, found), found)


def _measure_loaded(request: Request, flight: Flight, config: HostConfig, facts: CpuFacts) -> None:
    """Measures the same CPUs once more beside the load that was asked for; why not, where it cannot be."""
    if not flight.load:
        return
    named = f"load {', '.join(flight.load)}"
    if not flight.probe:
        flight.load_problem = Problem(named, "not run: the probe measured nothing without it")
        return
    cpus, duration_s = frozenset(cpu.cpu for cpu in flight.probe.cpus), flight.probe.duration_requested_s
    isolated = config.scope.isolated
    try:
        if why := refusal(request.root, facts, cpus, isolated, config.threads):
            flight.load_problem = Problem(named, f"refused: {why}")
            return
        plan = planned(request.root, facts, flight.load, cpus, isolated)
        run = partial(run_jitter, cpus, duration_s, intrude=request.intrude)
        jitter = under(plan, duration_s, request.tell, lambda tell: run(on_progress=tell))
    except TunectlError as error:
        mending = to_type(error.hint) if isinstance(error.hint, Command) else NOTHING
        flight.load_problem = Problem(named, f"not run: {error}", mending=mending)
        return
    if nothing := jitter.nothing_measured:
        flight.load_problem = Problem(named, nothing)
        return
    flight.loaded = jitter.held(judge(jitter, config.budget))


def _measure_feed(request: Request, flight: Flight, config: HostConfig) -> None:
    """On CPUs that the probe was alone on: the ones that it left to somebody else are left to him once more."""
    if flight.is_feed_asked:
        measured = frozenset(cpu.cpu for cpu in flight.probe.cpus) if flight.probe else frozenset[int]()
        flight.fed = measure_feed(measured, config.feed_limits, request.intrude, request.tell)


def _behold(root: Sysroot, found: Mapping[int, list[occupants.Occupant]]) -> beside.Beheld:
    return beside.behold(root, time.monotonic(), found, os.sysconf("SC_CLK_TCK"))


def _probe(
    request: Request,
    flight: Flight,
    config: HostConfig,
    cpus: CpuSet,
    taken: Mapping[int, str],
    duration_s: float,
) -> Problem:
    if not cpus:
        return Problem(PROBE, "not run: somebody else's threads run on every isolated CPU", is_taken=True)
    try:
        result = run_jitter(cpus, duration_s, intrude=request.intrude, on_progress=request.tell)
    except TunectlError as error:
        return Problem(PROBE, str(error))
    left = [LeftOut(cpu, why) for cpu, why in taken.items()]
    result = replaced(result, not_measured=[*result.not_measured, *left])
    if nothing := result.nothing_measured:
        return Problem(PROBE, nothing, is_taken=True)
    flight.probe = result.held(judge(result, config.budget))
    return Problem(PROBE, f"not judged: {result.left_out}", is_taken=True) if result.not_measured else NO_PROBLEM


def _look_longer(request: Request, flight: Flight, config: HostConfig, facts: CpuFacts) -> None:
    """The probe was a spinner, too: what it saw of the tick goes into the check's findings."""
    if flight.probe:
        findings = judge_probe(flight.probe, facts.nohz_full, lambda cpu: may_serve(request.root, cpu))
        flight.check = with_longer_look(flight.check, waive(findings, config.waivers, request.today))
        flight.check_verdict = verdict_of(flight.check, request.strict)


def _thermal(flight: Flight, before: Snapshot, after: Snapshot, inspection: Inspection) -> None:
    config = inspection.config
    # The clock of each probed CPU, measured by itself before and after its run.
    both = {cpu.cpu: cpu.core_khz for cpu in (flight.probe.cpus if flight.probe else ())}
    clocks = {cpu: (clock.before, clock.after) if clock else (None, None) for cpu, clock in both.items()}
    judged, evidence = judge_thermal(before, after, Limits.of(config), clocks)
    findings = waive(judged, config.waivers, inspection.today)
    misspelt = [waiver for waiver in config.waivers if waiver.knob.startswith("thermal.") and waiver.knob not in NAMES]
    verdict, reason = verdict_of_heat(findings)
    whole = [*findings, *idle_waivers(misspelt, findings)]
    flight.thermal = {"verdict": verdict, "reason": reason, "findings": whole, "evidence": evidence}
