#include "jitter/warnings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/files.h"
#include "lib/stats.h"
#include "lib/ticks.h"

enum { LIST_SIZE = 256 };

static const double ticks_per_s_allowed = 5;        /* nohz_full leaves about one a second, skew and chance a few more */
static const double sibling_busy_percent_named = 2;
static const double steal_ppm_named = 1000;
static const double clock_drift_ppm_allowed = 20;
static const double conservation_ppm_allowed = 1000;

static const struct worker *worker_of(const struct jitter_run *run, unsigned cpu)
{
    const struct worker *w = run->workers;
    while (w->cpu != cpu)
        w++;
    return w;
}

/* Whose CPU nobody else wanted. */
static bool is_measured(unsigned cpu, const void *context)
{
    const struct jitter_run *run = context;
    return !worker_has_left(worker_of(run, cpu));
}

/* Adds `before`, "CPUs 2-3" and `after`, for the probed CPUs for which `keep` holds; nothing when it holds for none. */
static void add_for_cpus(struct warnings *warnings, const struct jitter_run *run, bool (*keep)(unsigned, const void *),
                         const char *before, const char *after)
{
    struct cpu_list measured;
    struct cpu_list hit;
    char text[LIST_SIZE];
    if (cpu_list_filter(&measured, &run->cpus, is_measured, run) || cpu_list_filter(&hit, &measured, keep, run))
        abort();
    if (hit.n)
        warnings_add(warnings, "%s%s%s%s", before, hit.n > 1 ? "CPUs " : "CPU ",
                     cpu_list_format(&hit, text, sizeof(text)), after);
    cpu_list_deinit(&measured);
    cpu_list_deinit(&hit);
}

static double run_seconds(const struct jitter_run *run, const struct worker *w)
{
    return (double)worker_run_ticks(w) / run->clock.rate.hz;
}

static bool is_not_isolated(unsigned cpu, const void *run)
{
    return !cpu_list_has(&((const struct jitter_run *)run)->facts.isolated, cpu);
}

static bool is_not_nohz_full(unsigned cpu, const void *run)
{
    return !cpu_list_has(&((const struct jitter_run *)run)->facts.nohz_full, cpu);
}

static bool is_not_locked(unsigned cpu, const void *run)
{
    return !worker_of(run, cpu)->locked;
}

static bool is_not_performance(unsigned cpu, const void *context)
{
    const struct jitter_run *run = context;
    char governor[64];
    file_line(governor, sizeof(governor), run->facts.root, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu);
    return governor[0] && strcmp(governor, "performance") != 0;
}

static bool has_tick(unsigned cpu, const void *context)
{
    const struct jitter_run *run = context;
    const struct worker *w = worker_of(run, cpu);
    double count = (double)counters_timer_interrupts(&run->counters, (size_t)(w - run->workers));
    return count > 3 && count > ticks_per_s_allowed * run_seconds(run, w);
}

static bool is_near_recording(unsigned cpu, const void *context)
{
    const struct jitter_run *run = context;
    const struct worker *w = worker_of(run, cpu);
    return (double)run->control.threshold_ticks < 2.0 * (w->step_ticks + w->recording_ticks);
}

static bool has_lost_events(unsigned cpu, const void *run)
{
    return worker_of(run, cpu)->recorder.gaps_lost > 0;
}

static bool has_lost_trace(unsigned cpu, const void *context)
{
    const struct jitter_run *run = context;
    const struct causes *of_cpu = run->attribution.of_cpu;
    return of_cpu && of_cpu[worker_of(run, cpu) - run->workers].events_lost > 0;
}

static bool has_steps_back(unsigned cpu, const void *run)
{
    return worker_of(run, cpu)->totals.steps_back > 0;
}

static bool has_page_faults(unsigned cpu, const void *run)
{
    return worker_of(run, cpu)->page_faults > 0;
}

static bool has_steal(unsigned cpu, const void *context)
{
    const struct jitter_run *run = context;
    struct cpu_times moved;
    if (!counters_cpu_times(&run->counters, cpu, &moved))
        return false;
    double seconds = (double)moved.steal / (double)sysconf(_SC_CLK_TCK);
    return seconds * 1e6 > steal_ppm_named * run_seconds(run, worker_of(run, cpu));
}

static bool is_isolated(unsigned cpu, const void *run)
{
    return !is_not_isolated(cpu, run);
}

/* Where the probe's own threads are that do not measure, if that is not where it should be. */
static void warn_main_thread(struct warnings *warnings, const struct jitter_run *run)
{
    struct cpu_list others;
    struct cpu_list isolated;
    char text[LIST_SIZE];
    if (cpu_list_without(&others, &run->facts.online, &run->cpus) ||
        cpu_list_filter(&isolated, &run->housekeeping, is_isolated, run))
        abort();
    if (run->housekeeping.n == 0 && others.n == 0)
        warnings_add(warnings, "every online CPU is probed: the probe's own main thread shares one of them, and nobody watches "
                     "whether somebody else wants them");
    else if (run->housekeeping.n == 0)
        warnings_add(warnings, "%zu of %zu online CPUs are probed, and the probe may use no other (not %s): its own main thread "
                     "shares one of them, and nobody watches whether somebody else wants them", run->cpus.n,
                     run->facts.online.n, cpu_list_format(&others, text, sizeof(text)));
    else if (isolated.n)
        warnings_add(warnings, "the probe's own main thread is on isolated CPUs, %s: it may use no other",
                     cpu_list_format(&run->housekeeping, text, sizeof(text)));
    cpu_list_deinit(&others);
    cpu_list_deinit(&isolated);
}

static void warn_isolation(struct warnings *warnings, const struct jitter_run *run)
{
    add_for_cpus(warnings, run, is_not_isolated, "not isolated: ",
                 "; ordinary threads can be scheduled there and interrupt the probe");
    add_for_cpus(warnings, run, is_not_nohz_full, "nohz_full is not in force on ", "");
    add_for_cpus(warnings, run, has_tick, "more than five timer interrupts a second on ",
                 ": the scheduler's tick, or a timer of somebody's (a POSIX CPU timer, a perf event); --attribute names them");
    warn_main_thread(warnings, run);
}

static void warn_clock(struct warnings *warnings, const struct jitter_run *run)
{
    const struct host_facts *facts = &run->facts;
    const char *wanted = strcmp(TICKS_SOURCE, "tsc") == 0 ? "tsc" : "arch_sys_counter";
    double drift_ppm = (run->clock.rate.hz / run->clock.initial.hz - 1.0) * 1e6;
    if (facts->clocksource[0] && strcmp(facts->clocksource, wanted) != 0)
        warnings_add(warnings, "the kernel's clocksource is %s, not %s: it may not trust the counter the probe reads",
                     facts->clocksource, wanted);
    if (!facts->has_stable_tsc)
        warnings_add(warnings, "the TSC is not constant_tsc and nonstop_tsc: its ticks are no unit of time");
    if (drift_ppm > clock_drift_ppm_allowed || drift_ppm < -clock_drift_ppm_allowed)
        warnings_add(warnings, "the counter's rate moved by %.1f ppm between the start and the end of the run", drift_ppm);
    add_for_cpus(warnings, run, has_steps_back, "the counter went backwards on ", "");
}

static void warn_machine(struct warnings *warnings, const struct jitter_run *run)
{
    if (run->facts.is_virtual)
        warnings_add(warnings, "this is a virtual machine: the hypervisor takes the CPUs away unseen, and time differs "
                     "from hardware");
    add_for_cpus(warnings, run, has_steal, "the hypervisor stole more than 0.1 % of the run from ", "");
    add_for_cpus(warnings, run, is_not_performance, "the frequency governor is not performance on ", "");
    add_for_cpus(warnings, run, is_not_locked, "memory could not be locked for ", " (see `ulimit -l`)");
}

static void warn_result(struct warnings *warnings, const struct jitter_run *run)
{
    if (run->is_interrupted)
        warnings_add(warnings, "a signal ended the run early: rarer interruptions had less chance to show");
    if (run->counters.irq_after.n_rows == 0)
        warnings_add(warnings, "/proc/interrupts could not be read: interrupts, the tick among them, were not counted");
    add_for_cpus(warnings, run, has_lost_events, "the list of events was too short for ",
                 ": histogram and totals hold every interruption, `events` does not (see --events)");
    add_for_cpus(warnings, run, has_page_faults, "the probe itself took page faults while measuring on ", "");
    add_for_cpus(warnings, run, is_near_recording, "the threshold is close to the cost of recording on ",
                 ": some interruptions may be the probe's own");
    for (size_t i = 0; i < run->cpus.n; i++) {
        const struct worker *w = &run->workers[i];
        double ppm = jitter_is_void(run, i) ? 0.0 : worker_conservation_ppm(w, run->clock.rate.hz);
        if (ppm > conservation_ppm_allowed || ppm < -conservation_ppm_allowed)
            warnings_add(warnings, "on CPU %u loops and gaps add up to %.0f ppm more than the run's length on the kernel's clock",
                         w->cpu, ppm);
    }
}

static void warn_attribution(struct warnings *warnings, const struct jitter_run *run)
{
    const struct attribution *a = &run->attribution;
    if (run->options->attribute && a->reason[0])
        warnings_add(warnings, "single interruptions have no named cause: %s; only the kernel's counters tell what happened "
                     "meanwhile", a->reason);
    add_for_cpus(warnings, run, has_lost_trace, "the trace buffer filled up on ",
                 ": the causes of the interruptions after that are not known");
    if (a->is_left_behind)
        warnings_add(warnings, "%s could not be removed (does somebody read it?); the next probe will try again, or rmdir it",
                     a->instance.path);
}

/* What is known of a clock that seems slower. It is timed by a chain of instructions: time that is stolen lengthens that, too. */
static const char *why_slower(const struct jitter_run *run, unsigned cpu)
{
    struct cpu_times moved;
    if (counters_cpu_times(&run->counters, cpu, &moved) && moved.steal > 0)
        return "the hypervisor took time from this CPU meanwhile, which looks the same";
    if (run->facts.is_virtual)
        return "this is a virtual machine, where time that is taken unseen looks the same";
    if (is_not_performance(cpu, run))
        return "its frequency governor may lower it";
    return "why is not seen here; `tunectl preflight` looks at heat and power limits";
}

/* Before against after, and against the counter's rate, which on x86 hardware is the core's base clock. */
static void warn_core_clock(struct warnings *warnings, const struct jitter_run *run)
{
    static const double fall_named = 0.95;
    static const double base_named = 0.9;
    for (size_t i = 0; i < run->cpus.n; i++) {
        const struct worker *w = &run->workers[i];
        double before_mhz = w->cycles_per_tick_before * run->clock.rate.hz / 1e6;
        double after_mhz = w->cycles_per_tick_after * run->clock.rate.hz / 1e6;
        if (jitter_is_void(run, i))
            continue;
        if (w->cycles_per_tick_after < fall_named * w->cycles_per_tick_before)
            warnings_add(warnings, "the core clock of CPU %u seemed to fall during the run, from %.0f to %.0f MHz: %s", w->cpu,
                         before_mhz, after_mhz, why_slower(run, w->cpu));
        else if (strcmp(TICKS_SOURCE, "tsc") == 0 && !run->facts.is_virtual && w->cycles_per_tick_after < base_named)
            warnings_add(warnings, "CPU %u ran at %.0f MHz, below its base clock of %.0f MHz", w->cpu, after_mhz,
                         run->clock.rate.hz / 1e6);
    }
}

static double sibling_busy_percent(const struct jitter_run *run, unsigned sibling)
{
    struct cpu_times moved;
    if (!counters_cpu_times(&run->counters, sibling, &moved) || moved.busy + moved.idle == 0)
        return 0.0;
    return 100.0 * (double)moved.busy / (double)(moved.busy + moved.idle);
}

static void warn_sibling(struct warnings *warnings, const struct jitter_run *run, unsigned cpu, unsigned sibling)
{
    double busy_percent = sibling_busy_percent(run, sibling);
    if (!cpu_list_has(&run->facts.online, sibling))
        return;
    if (cpu_list_has(&run->cpus, sibling)) {
        if (cpu < sibling)
            warnings_add(warnings, "CPU %u and CPU %u are one physical core: two spinners there slow each other", cpu, sibling);
        return;
    }
    if (busy_percent >= sibling_busy_percent_named)
        warnings_add(warnings, "CPU %u, on the same physical core as CPU %u, was busy %.0f %% of the run", sibling, cpu,
                     busy_percent);
}

static void warn_smt(struct warnings *warnings, const struct jitter_run *run)
{
    for (size_t i = 0; i < run->cpus.n; i++) {
        struct cpu_list siblings;
        if (jitter_is_void(run, i))
            continue;
        if (host_siblings(&siblings, &run->facts, run->cpus.ids[i]))
            abort();
        for (size_t s = 0; s < siblings.n; s++)
            warn_sibling(warnings, run, run->cpus.ids[i], siblings.ids[s]);
        cpu_list_deinit(&siblings);
    }
}

/* What the deadline fair server of `cpu` gives to starving ordinary threads each second; 0 when none can be seen. */
static double fair_server_ms(const struct jitter_run *run, unsigned cpu)
{
    char line[64];
    file_line(line, sizeof(line), run->facts.root, "/sys/kernel/debug/sched/fair_server/cpu%u/runtime", cpu);
    return strtod(line, NULL) / 1e6;
}

static double throttled_ms(const struct host_facts *facts)
{
    return facts->rt_runtime_us < 0 ? 0.0 : (double)(facts->rt_period_us - facts->rt_runtime_us) / 1e3;
}

static bool has_fair_server(unsigned cpu, const void *run)
{
    return fair_server_ms(run, cpu) > 0.0;
}

/* Pauses as long and as far apart as the scheduler makes them; both mechanisms take 50 ms of each second by default. */
static bool has_scheduler_pauses(unsigned cpu, const void *context)
{
    const struct jitter_run *run = context;
    const struct recorder *r = &worker_of(run, cpu)->recorder;
    double ms_ticks = run->clock.rate.hz / 1e3;
    double period_ms = (double)run->facts.rt_period_us / 1e3;
    const struct { double length_ms; double period_ms; } pauses[] = {
        {throttled_ms(&run->facts), period_ms}, {fair_server_ms(run, cpu), 1000.0}, {50.0, 1000.0},
    };
    for (size_t i = 0; i < sizeof(pauses) / sizeof(*pauses); i++)
        if (pauses[i].length_ms > 0.0 &&
            stats_count_periodic(r->gaps, r->gaps_listed, (uint64_t)(pauses[i].length_ms * ms_ticks),
                                 (uint64_t)(pauses[i].period_ms * ms_ticks)))
            return true;
    return false;
}

/*
 * Up to 6.11, and with RT_GROUP_SCHED still, the kernel throttles a FIFO spinner for the rest of each period; since 6.12
 * the deadline fair server gives the same share to starving ordinary threads, where there are any. Which of the two is
 * at work cannot be told from the sysctl, so both are named.
 */
static void warn_fifo(struct warnings *warnings, const struct jitter_run *run)
{
    const struct host_facts *facts = &run->facts;
    if (throttled_ms(facts) > 0.0)
        warnings_add(warnings, "sched_rt_runtime_us is %lld of %lld: the kernel may take the CPU from a SCHED_FIFO spinner "
                     "for %.0f ms of every %lld ms", facts->rt_runtime_us, facts->rt_period_us,
                     throttled_ms(facts), facts->rt_period_us / 1000);
    add_for_cpus(warnings, run, has_fair_server, "the deadline fair server can take the CPU from a SCHED_FIFO spinner on ",
                 " for the sake of starving ordinary threads");
    add_for_cpus(warnings, run, has_scheduler_pauses, "pauses of some 50 ms, a second apart, on ",
                 ": that is RT throttling or the deadline fair server acting on the SCHED_FIFO probe, not the machine");
}

static void warn_void(struct warnings *warnings, const struct jitter_run *run)
{
    for (size_t i = 0; i < run->cpus.n; i++)
        if (jitter_is_void(run, i))
            warnings_add(warnings, "CPU %u was not measured: %s; stop that, or say --intrude", run->cpus.ids[i],
                         run->workers[i].why_left);
}

void jitter_warn(struct warnings *warnings, const struct jitter_run *run)
{
    warn_void(warnings, run);
    warn_result(warnings, run);
    warn_attribution(warnings, run);
    warn_isolation(warnings, run);
    warn_smt(warnings, run);
    warn_machine(warnings, run);
    warn_core_clock(warnings, run);
    warn_clock(warnings, run);
    if (run->options->fifo_priority)
        warn_fifo(warnings, run);
}
