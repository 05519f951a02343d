#include "selftest/selftest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/cpus.h"
#include "lib/housekeeping.h"
#include "lib/loop.h"
#include "lib/output.h"
#include "selftest/document.h"
#include "selftest/injector.h"
#include "selftest/phases.h"
#include "selftest/stopping.h"
#include "selftest/victim.h"

enum { SHORTFALL_NS = 50, STOP_ERROR_NS = 1000000, CONSERVATION_PPM = 1000, LIST = 65536, ATTEMPTS = 3 };

/* Injected before those that count: a victim that says it spins may still have to wait for its CPU. */
enum { SPARE = 32 };

static const double stop_s = 2.5;
static const double victim_limit_s = 120.0;

/* The stop comes first: it forks, and a process should do that while it has one thread. */
static const struct phase all_phases[SELFTEST_PHASES] = {
    {PHASE_STOP, .name = "stopped for 2.5 s", .asked_ns = 2500000000, .injected = 1},
    {PHASE_IPI, .name = "interrupt from another CPU", .injected = 500, .pause_ns = 200000, .list_capacity = LIST},
    {PHASE_PREEMPTION, .name = "20 us", .asked_ns = 20000, .injected = 200, .pause_ns = 1000000, .list_capacity = LIST},
    {PHASE_PREEMPTION, .name = "100 us", .asked_ns = 100000, .injected = 200, .pause_ns = 1000000, .list_capacity = LIST},
    {PHASE_PREEMPTION, .name = "500 us", .asked_ns = 500000, .injected = 200, .pause_ns = 1000000, .list_capacity = LIST},
    {PHASE_COUNT, .name = "50,000 in a row", .injected = 50000, .pause_ns = 95000, .list_capacity = LIST},
    {PHASE_LOSS, .name = "5,000 with room for 1,000", .injected = 5000, .pause_ns = 95000, .list_capacity = 1000},
};

__attribute__((format(printf, 2, 3)))
static void say_why(struct phase *p, const char *format, ...)
{
    va_list args;
    if (p->reason[0])
        return;
    va_start(args, format);
    (void)vsnprintf(p->reason, sizeof(p->reason), format, args);
    va_end(args);
}

static double ticks_to_ns(const struct selftest *t, double ticks)
{
    return ticks * 1e9 / t->clock.initial.hz;
}

/* The bars. What is wrong first is the reason. */
static void judge(const struct selftest *t, struct phase *p)
{
    const struct recall *r = &p->recall;
    if (!p->is_exact)
        say_why(p, "the recorder's account differs from the loop's: gaps went missing without being counted");
    if (p->conservation_ppm > CONSERVATION_PPM || p->conservation_ppm < -CONSERVATION_PPM)
        say_why(p, "loops and gaps miss the run's length by %.0f ppm", p->conservation_ppm);
    if (r->missed)
        say_why(p, "%llu of %llu were not found", (unsigned long long)r->missed, (unsigned long long)r->injected);
    if (p->kind != PHASE_IPI && ticks_to_ns(t, (double)r->shortfall) > (double)SHORTFALL_NS)
        say_why(p, "a gap was %.0f ns shorter than the truth", ticks_to_ns(t, (double)r->shortfall));
    if ((p->kind == PHASE_PREEMPTION || p->kind == PHASE_IPI) && r->beyond)
        say_why(p, "this host interrupts so often that the list of gaps was full before the end");
    if (p->kind == PHASE_LOSS && !p->gaps_lost)
        say_why(p, "the list of gaps was never full: nothing had to be counted as lost");
    p->passed = !p->reason[0];
}

static void judge_stop(struct phase *p)
{
    if (p->max_error_ns > (double)STOP_ERROR_NS)
        say_why(p, "the longest gap is %.3f ms off", p->max_error_ns / 1e6);
    if (p->percentile_error_ns > (double)STOP_ERROR_NS)
        say_why(p, "a percentile is %.3f ms off", p->percentile_error_ns / 1e6);
    p->passed = !p->reason[0];
}

/* A virtual machine may itself be stopped meanwhile, which nothing in it can tell: the best of three. */
static void run_stop(const struct selftest *t, struct phase *p)
{
    for (int i = 0; i < ATTEMPTS && !p->passed; i++) {
        struct stopping s = {.cpu = t->cpu, .threshold_ticks = t->threshold_ticks, .hz = t->clock.initial.hz, .stop_s = stop_s};
        int rc = stopping_run(&s);
        p->reason[0] = '\0';
        p->did_run = rc == 0;
        if (rc) {
            say_why(p, "the process to stop could not be run: %s", strerror(-rc));
            return;
        }
        p->truth_ns = s.truth_ns;
        p->max_ns = s.max_ns;
        p->max_error_ns = s.max_error_ns;
        p->percentile_error_ns = s.percentile_error_ns;
        judge_stop(p);
    }
}

static int inject(const struct phase *p, struct injection *injection)
{
    return p->kind == PHASE_IPI ? inject_by_ipi(injection) : inject_by_preemption(injection);
}

static const char *why_not(const struct phase *p, int rc)
{
    if (p->kind == PHASE_IPI)
        return rc == -ENOSYS || rc == -EINVAL || rc == -EPERM ? "this kernel has no membarrier(2) that interrupts" : strerror(-rc);
    return rc == -EPERM ? "SCHED_FIFO is not allowed: it needs CAP_SYS_NICE or `ulimit -r`" : strerror(-rc);
}

/* The first of the truths that happened to a spinning victim; at most SPARE of them happened before. */
static const struct gap *first_that_counts(const struct gap *truths, const struct victim *v)
{
    size_t skipped = 0;
    while (skipped < SPARE && truths[skipped].start < v->totals.start)
        skipped++;
    return truths + skipped;
}

static int compare(const struct selftest *t, struct phase *p, const struct victim *v, const struct gap *truths)
{
    p->did_run = true;
    p->gaps_total = v->recorder.gaps_total;
    p->gaps_lost = v->recorder.gaps_lost;
    p->is_exact = victim_account_is_exact(v);
    p->conservation_ppm = victim_conservation_ppm(v, clock_rate_between(t->clock.first, v->after, t->clock.granule_ticks).hz);
    return recall_judge(&p->recall, first_that_counts(truths, v), p->injected, &v->recorder);
}

static void run_injections(const struct selftest *t, struct phase *p)
{
    struct victim v;
    double hz = t->clock.initial.hz;
    struct injection injection = {.cpu = t->cpu, .n = p->injected + SPARE, .pause_ns = p->pause_ns};
    injection.length_ticks = (uint64_t)((double)p->asked_ns * hz / 1e9);
    injection.truths = calloc(injection.n, sizeof(*injection.truths));
    int rc = injection.truths ? victim_start(&v, t->cpu, t->threshold_ticks, p->list_capacity, (uint64_t)(victim_limit_s * hz))
                              : -ENOMEM;
    if (rc) {
        say_why(p, "no thread could spin on CPU %u: %s", t->cpu, strerror(-rc));
    } else {
        int refused = inject(p, &injection);
        victim_stop(&v);
        rc = refused ? 0 : compare(t, p, &v, injection.truths);
        if (refused || rc)
            say_why(p, "%s", refused ? why_not(p, refused) : strerror(-rc));
        if (p->did_run)
            judge(t, p);
        victim_deinit(&v);
    }
    free(injection.truths);
}

static void run_phase(const struct selftest *t, struct phase *p)
{
    if (p->kind == PHASE_STOP)
        run_stop(t, p);
    else if (p->kind == PHASE_IPI && !t->has_other_cpu)
        say_why(p, "there is no other CPU to interrupt from");
    else
        run_injections(t, p);
}

/* The last CPU this process may use: the first ones do the kernel's own work. */
static int choose_allowed(struct selftest *t)
{
    struct cpu_list allowed;
    int status = EXIT_OK;
    if (host_allowed_cpus(&allowed))
        return print_error(EXIT_FAILED, "out of memory");
    if (allowed.n)
        t->cpu = allowed.ids[allowed.n - 1];
    else
        status = print_error(EXIT_FAILED, "cannot tell which CPUs are allowed");
    cpu_list_deinit(&allowed);
    return status;
}

static int choose_cpu(struct selftest *t)
{
    const struct cpu_list *isolated = &t->facts.isolated;
    struct cpu_list named;
    if (!t->options->cpus) {
        if (isolated->n == 0)
            return choose_allowed(t);
        t->cpu = isolated->ids[isolated->n - 1];
        return EXIT_OK;
    }
    if (cpu_list_parse(&named, t->options->cpus) || named.n != 1) {
        cpu_list_deinit(&named);
        return print_error(EXIT_USAGE, "--cpus %s: selftest takes one CPU, like 3", t->options->cpus);
    }
    t->cpu = named.ids[0];
    cpu_list_deinit(&named);
    if (!cpu_list_has(&t->facts.online, t->cpu))
        return print_error(EXIT_USAGE, "CPU %u is not online on this host", t->cpu);
    return EXIT_OK;
}

static int leave_tested_cpu(struct selftest *t)
{
    struct cpu_list own = {&t->cpu, 1};
    struct cpu_list chosen;
    if (housekeeping_move(&chosen, &t->facts, &own))
        return print_error(EXIT_FAILED, "out of memory");
    t->has_other_cpu = chosen.n > 0;
    cpu_list_deinit(&chosen);
    return EXIT_OK;
}

static void prepare(struct selftest *t)
{
    struct timespec now;
    clock_span_begin(&t->clock);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    t->at_s = now.tv_sec;
    t->threshold_ticks = loop_default_threshold_ticks(&t->clock);
    memcpy(t->phases, all_phases, sizeof(all_phases));
}

static int run_and_write(struct selftest *t)
{
    FILE *stream = output_open(t->options->output);
    if (!stream)
        return print_error(EXIT_FAILED, "cannot open %s: %s", t->options->output, strerror(errno));
    prepare(t);
    for (size_t i = 0; i < SELFTEST_PHASES; i++)
        run_phase(t, &t->phases[i]);
    clock_span_end(&t->clock);
    int status = output_write(stream, t->options->output, selftest_document_write, t);
    return status ? status : selftest_passed(t) ? EXIT_OK : EXIT_FAILED;
}

int selftest_main(int argc, char **argv)
{
    struct selftest_options options;
    struct selftest t = {.options = &options};
    int status = selftest_options_parse(&options, argc, argv);
    if (status)
        return status;
    if (host_facts_init(&t.facts, options.root))
        return print_error(EXIT_FAILED, "out of memory");
    status = choose_cpu(&t);
    if (!status)
        status = leave_tested_cpu(&t);
    if (!status)
        status = run_and_write(&t);
    host_facts_deinit(&t.facts);
    return status;
}
