#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "jitter/run.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    LEAD_US = 20000,    /* from "go" to the common start: the warm-up takes 3 ms, the rest is for CPUs that are shared */
    /*
     * Ticks, interrupts and softirqs take a few us and come by the thousand; what takes ten times as long is few. It is also what
     * hides what else would have come meanwhile, and a search over the whole run has to know all of that (periods.py).
     */
    LONG_US = 50,
};

/* What the kernel counted is read before and after, and written as it stands: Python takes the difference. */
static void take_counters(struct snapshot *counters, const char *root)
{
    snapshot_add(counters, root, "/proc/interrupts");
    snapshot_add(counters, root, "/proc/softirqs");
    snapshot_add(counters, root, "/proc/stat");
}

const struct command jitter_command = {
    .name = "jitter",
    .experiment = OF_JITTER,
    .about =
        "jitter: one spinning thread per CPU; every gap between two of its counter readings that is longer than the\n"
        "threshold is an interruption. The result is a JSON document (schema tunectl.probe.jitter.raw/1).\n",
    .holds = "what was measured, in ticks of the counter (clock.hz a second); `tunectl report` and `tunectl compare` read it, and say "
             "what it means",
};

static int choose_cpus(struct jitter_run *run)
{
    const char *text = run->options->cpus;
    if (text && cpus_parse(&run->cpus, text))
        return print_error(EXIT_USAGE, "--cpus %s is not a CPU list; write one like 2-5,8", text);
    if (!text)
        run->cpus = cpus_count(&run->facts.isolated) ? run->facts.isolated : run->facts.nohz_full;
    run->n = cpus_count(&run->cpus);
    if (run->n == 0)
        return print_error(EXIT_USAGE, text ? "--cpus names no CPU"
                           : "no CPU is isolated on this host; name the CPUs to probe with --cpus");
    struct cpus missing = cpus_without(&run->cpus, &run->facts.online);
    if (cpus_count(&missing) > 0)
        return print_error(EXIT_USAGE, "CPU %u is not online on this host", cpus_next(&missing, 0));
    return run->options->intrude ? EXIT_OK : claims_check();
}

/* Of the slowest of the loops on the probed CPUs, in ticks. */
static double slowest_step(const struct jitter_run *run)
{
    double most = 0.0;
    for (const struct worker *w = run->workers; w < run->workers + run->n; w++)
        if (!worker_has_left(w) && w->first_step_ticks > most)
            most = w->first_step_ticks;
    return most;
}

/* By the loops on the probed CPUs: a core of another kind, or at another clock, needs another one. */
static int choose_threshold(struct jitter_run *run)
{
    double tick_ns = 1e9 / run->clock.initial.hz;
    double step_ns = slowest_step(run) * tick_ns;
    double granule_ns = (double)run->clock.granule_ticks * tick_ns;
    run->threshold_ns = run->options->threshold_ns;
    run->default_threshold_ns = loop_default_threshold_ns(step_ns, granule_ns);
    if (!run->threshold_ns)
        run->threshold_ns = run->default_threshold_ns;
    else if ((double)run->threshold_ns < 2.0 * step_ns || (double)run->threshold_ns < 2.0 * granule_ns)
        return print_error(EXIT_USAGE, "--threshold-ns %llu: at least twice a turn of the loop (%.1f ns here) and twice the "
                           "counter's granule (%.1f ns)", (unsigned long long)run->threshold_ns, step_ns, granule_ns);
    uint64_t until_ns = run->options->until_ns;
    if (until_ns && until_ns < run->threshold_ns)
        return print_error(EXIT_USAGE, "--until %llu: at least the threshold, which is %llu ns: shorter gaps are not seen",
                           (unsigned long long)until_ns, (unsigned long long)run->threshold_ns);
    double ticks = (double)run->threshold_ns / tick_ns;
    run->control.threshold_ticks = ticks < 1e18 ? (uint64_t)ticks : UINT64_C(1000000000000000000);
    run->control.until_ticks = until_ns ? (uint64_t)((double)until_ns / tick_ns) : UINT64_MAX;
    return EXIT_OK;
}

/* Waits until all workers prepared; the first failure is the one reported. */
static int await_ready(struct jitter_run *run)
{
    (void)pthread_barrier_wait(&run->control.barrier);
    for (size_t i = 0; i < run->n; i++) {
        const struct worker *w = &run->workers[i];
        if (w->error && !worker_has_left(w))
            return print_error(EXIT_FAILED, "on CPU %u the probe cannot %s: %s", w->cpu, w->failed_step, strerror(-w->error));
    }
    return choose_threshold(run);
}

/* What the guard has told a worker already stands. */
static void set_deadlines(struct jitter_run *run)
{
    for (size_t i = 0; i < run->n; i++) {
        uint64_t unset = UINT64_MAX;
        (void)atomic_compare_exchange_strong(&run->workers[i].deadline, &unset, run->deadline_ticks);
    }
}

/* Several CPUs may come back from such a gap before they hear of each other. */
static void find_reached(struct jitter_run *run)
{
    for (size_t i = 0; i < run->n; i++) {
        const struct worker *w = &run->workers[i];
        if (w->reached.end && !worker_has_left(&run->workers[i]) && (!run->reached || w->reached.end < run->reached->reached.end))
            run->reached = w;
    }
}

/* Once the first worker spins; the run is over when that is done. */
static void interrupt(struct jitter_run *run)
{
    while (atomic_load(&run->workers[0].stage) < WORKER_MEASURES)
        sleep_ns(1000000);
    run->injection.error = run->injection.inject(&run->injection);
    stop_now();
}

static struct throttle throttle_now(const struct jitter_run *run)
{
    struct throttle throttle = throttle_read("", atomic_load(&run->workers[0].tid));
    for (size_t i = 0; i < run->n; i++)
        throttle_add_wait(&throttle, atomic_load(&run->workers[i].tid));
    return throttle;
}

/* Everything between here and "done" happens on the main thread only while no worker measures. */
static void conduct(struct jitter_run *run)
{
    struct run_control *control = &run->control;
    /* Libraries and stacks as well; where the limit forbids it, the workers have locked what they write to. */
    (void)mlockall(MCL_CURRENT);
    take_counters(&run->before, run->options->root);
    struct throttle before = throttle_now(run);
    run->at_s = time(NULL);
    control->start_ticks = ticks_now() + LEAD_US * control->microsecond_ticks;
    run->deadline_ticks = control->start_ticks + (uint64_t)(run->options->duration_s * run->clock.initial.hz);
    stop_at(run->deadline_ticks);
    set_deadlines(run);
    (void)pthread_barrier_wait(&control->barrier);
    if (run->injection.inject)
        interrupt(run);
    (void)pthread_barrier_wait(&control->barrier);
    find_reached(run);
    if (run->reached)
        (void)fprintf(stderr, "until %u %" PRIu64 " %" PRIu64 " " TICKS_SOURCE "\n", run->reached->cpu, run->reached->reached.start,
                      run->reached->reached.end);
    if (run->options->wait_for_go)
        (void)fputs("done\n", stderr);
    take_counters(&run->after, run->options->root);
    struct throttle after = throttle_now(run);
    run->throttled_us = throttled_us(&before, &after);
    (void)pthread_barrier_wait(&control->barrier);
}

static int init_barrier(struct jitter_run *run)
{
    pthread_barrierattr_t shared;
    int rc = pthread_barrierattr_init(&shared);
    if (rc)
        return rc;
    (void)pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    rc = pthread_barrier_init(&run->control.barrier, &shared, (unsigned)run->n + 1);
    return rc;
}

static int init_workers(struct jitter_run *run)
{
    run->workers = memory_map(run->n * sizeof(*run->workers));
    if (!run->workers || init_barrier(run))
        return print_error(EXIT_FAILED, "out of memory");
    run->control.gaps_capacity = run->options->gaps_capacity;
    run->control.long_ticks = LONG_US * run->control.microsecond_ticks;
    run->control.fifo_priority = run->options->fifo_priority;
    run->control.is_guarded = cpus_count(&run->housekeeping) > 0;
    run->stretch_s = series_stretch_s(run->options->duration_s);
    run->control.stretch_ticks = (uint64_t)((double)run->stretch_s * run->clock.initial.hz);
    unsigned cpu = cpus_next(&run->cpus, 0);
    for (size_t i = 0; i < run->n; i++, cpu = cpus_next(&run->cpus, cpu + 1)) {
        struct worker *w = &run->workers[i];
        *w = (struct worker){.control = &run->control, .cpu = cpu, .deadline = UINT64_MAX};
        int rc = recorder_map(&w->recorder, run->control.gaps_capacity);
        if (rc)
            return print_error(EXIT_FAILED, "on CPU %u the probe cannot allocate memory (fewer --events need less): %s",
                               cpu, strerror(-rc));
    }
    return EXIT_OK;
}

static void *worker_main(void *argument)
{
    worker_run(argument);
    return NULL;
}

/* The workers already started wait at a barrier that will never open; the process ends and takes them along. */
static void start_workers(struct jitter_run *run, size_t from)
{
    for (size_t i = from; i < run->n; i++) {
        int rc = thread_start(&run->workers[i].thread, worker_main, &run->workers[i]);
        if (rc)
            exit(print_error(EXIT_FAILED, "cannot start a thread for CPU %u: %s", run->workers[i].cpu, strerror(-rc)));
    }
}

/* The process in the partition: its threads are the workers, the first one among them. */
static _Noreturn void be_the_workers(struct jitter_run *run)
{
    start_workers(run, 1);
    worker_run(&run->workers[0]);
    for (size_t i = 1; i < run->n; i++)
        (void)pthread_join(run->workers[i].thread, NULL);
    _exit(EXIT_OK);
}

static int release_workers(struct jitter_run *run)
{
    run->workers_started = ticks_now();
    if (run->options->group < 0) {
        start_workers(run, 0);
        return EXIT_OK;
    }
    pid_t child = partition_fork(&run->partition, &run->cpus);
    if (child == 0)
        be_the_workers(run);
    if (child < 0)
        return print_error(EXIT_FAILED, "cannot start a process for these CPUs: %s", strerror((int)-child));
    return EXIT_OK;
}

static void join_workers(struct jitter_run *run)
{
    if (run->partition.child > 0)
        (void)waitpid(run->partition.child, NULL, 0);
    for (size_t i = 0; run->partition.child == 0 && i < run->n; i++)
        (void)pthread_join(run->workers[i].thread, NULL);
}

static int measure_all(struct jitter_run *run)
{
    int status = init_workers(run);
    if (status)
        return status;
    guard_start(run);
    status = release_workers(run);
    if (status)
        return status;
    status = await_ready(run);
    if (!status && run->options->wait_for_go)
        status = dialogue_await_go(run);
    if (status) {
        run->control.cancelled = true;
        (void)pthread_barrier_wait(&run->control.barrier);
    } else {
        conduct(run);
    }
    join_workers(run);
    guard_stop(run);
    return status;
}

static int run_and_write(struct jitter_run *run)
{
    stop_init();
    /* Where no CPU is left, or a cpuset allows none, the main thread shares a probed CPU, which works and is said. */
    run->housekeeping = housekeeping_move(&run->facts, &run->cpus);
    run->partition.procs = run->options->group;
    if (run->options->group >= 0)
        partition_open_home(&run->partition);
    clock_span_begin(&run->clock);
    run->control.microsecond_ticks = (uint64_t)(run->clock.initial.hz / 1e6);
    int status = injection_init(&run->injection, run->options->inject, cpus_next(&run->cpus, 0), run->clock.initial.hz);
    if (!status)
        status = measure_all(run);
    if (status)
        return status;
    clock_span_end(&run->clock);
    for (size_t i = 0; i < run->n; i++)
        if (!worker_has_left(&run->workers[i]) && run->workers[i].totals.end < run->deadline_ticks)
            run->is_interrupted = !run->reached;
    return jitter_write(run);
}

int jitter_main(int argc, char **argv)
{
    struct options options;
    int status = options_parse(&jitter_command, &options, argc, argv);
    if (status)
        return status;
    struct jitter_run *run = memory_map(sizeof(*run));
    if (!run)
        return print_error(EXIT_FAILED, "out of memory");
    run->options = &options;
    host_facts_init(&run->facts, options.root);
    status = choose_cpus(run);
    if (!status)
        status = run_and_write(run);
    snapshot_deinit(&run->before);
    snapshot_deinit(&run->after);
    host_facts_deinit(&run->facts);
    free(run->injection.truths);
    return status;
}
