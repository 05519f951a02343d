#include "jitter/run.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    GIVEN_S = 10,           /* for a worker to get its CPU, and, after the deadline, to be done */
    BREAK_MS = 500,         /* between two looks: this process, or the whole machine, was stopped */
};

static double seconds_since(const struct jitter_run *run, uint64_t ticks)
{
    uint64_t now = ticks_now();
    return now > ticks ? (double)(now - ticks) / run->clock.initial.hz : 0.0;
}

/* To a CPU that nobody measures. In a partition no such CPU is allowed: there the process that holds the workers leaves it. */
static void move_away(struct jitter_run *run, struct worker *w)
{
    pid_t tid = atomic_load(&w->tid);
    if (tid && cpus_pin(tid, &run->housekeeping))
        partition_leave(&run->partition);
}

/* For the first reason that is given. */
__attribute__((format(printf, 3, 4)))
static void leave(struct jitter_run *run, struct worker *w, const char *why, ...)
{
    va_list args;
    if (worker_has_left(w))
        return;
    va_start(args, why);
    (void)vsnprintf(w->why_left, sizeof(w->why_left), why, args);
    va_end(args);
    atomic_store(&w->left, true);
    atomic_store(&w->deadline, 0);
    move_away(run, w);
}

static void leave_all_near(const struct task *task, void *context)
{
    struct jitter_run *run = context;
    char name[TASK_TEXT_SIZE];
    struct cpus core = host_core(&run->facts, task->cpu);
    for (size_t i = 0; i < run->n; i++)
        if (cpus_have(&core, run->workers[i].cpu))
            leave(run, &run->workers[i], "%s runs on CPU %u", task_format(task, name), task->cpu);
}

static void look_at_claims(struct jitter_run *run)
{
    for (size_t i = 0; i < run->n; i++) {
        const struct worker *w = &run->workers[i];
        bool is_at_work = !worker_has_left(w) && atomic_load(&w->stage) != WORKER_IS_DONE;
        run->guard.tids[i] = is_at_work ? atomic_load(&w->tid) : 0;
    }
    claims_poll(run->guard.claims, run->guard.tids);
}

static void find_the_one(const struct task *task, void *context)
{
    struct task *holder = context;
    if (task->state == 'R' && task->cpu == holder->cpu && task->rt_priority >= holder->rt_priority)
        *holder = *task;
}

/*
 * Who holds the worker's CPU is the reason. It is looked for after the worker was moved: one that lost its CPU within a call like
 * mlock(2) holds the lock of this process's memory map, which whoever reads directories may need.
 */
static void leave_to_holder(struct jitter_run *run, struct worker *w, const char *what)
{
    struct task holder = {.cpu = w->cpu};
    char name[TASK_TEXT_SIZE];
    move_away(run, w);
    tasks_visit(find_the_one, &holder);
    if (holder.tid)
        leave(run, w, "CPU %u was %s to the probe: thread %s holds it", w->cpu, what, task_format(&holder, name));
    else
        leave(run, w, "CPU %u was %s to the probe: what holds it cannot be seen", w->cpu, what);
}

/* Nothing can be waited for any more. */
static _Noreturn void end(struct jitter_run *run)
{
    for (size_t i = 0; i < run->n; i++)
        move_away(run, &run->workers[i]);
    if (run->partition.child > 0)
        (void)kill(run->partition.child, SIGKILL);
    _exit(EXIT_FAILED);
}

/* A worker whose CPU was not given for too long leaves it; if not even that ends it, the run ends. */
static void give_up(struct jitter_run *run, struct worker *w, const char *what, double late_s)
{
    if (!worker_has_left(w)) {
        leave_to_holder(run, w, what);
    } else if (late_s > (double)GIVEN_S) {
        (void)print_error(EXIT_FAILED, "CPU %u: %s, and the probe's thread there cannot be ended", w->cpu, w->why_left);
        end(run);
    }
}

/* A worker that was stopped together with its guard was kept from its CPU by nobody: such time does not count. */
static void notice_break(struct jitter_run *run)
{
    struct guard *g = &run->guard;
    if (seconds_since(run, g->looked_ticks) * 1000 > (double)BREAK_MS)
        g->watching_ticks = ticks_now();
    g->looked_ticks = ticks_now();
}

static double seconds_watched_since(const struct jitter_run *run, uint64_t ticks)
{
    if (!ticks)
        return 0.0;
    return seconds_since(run, ticks > run->guard.watching_ticks ? ticks : run->guard.watching_ticks);
}

static void look_at_deadlines(struct jitter_run *run)
{
    double starting_s = seconds_watched_since(run, atomic_load(&run->workers_started));
    double late_s = seconds_watched_since(run, run->deadline_ticks);
    for (size_t i = 0; i < run->n; i++) {
        struct worker *w = &run->workers[i];
        int stage = atomic_load(&w->stage);
        if (stage == WORKER_STARTS && starting_s > (double)GIVEN_S)
            give_up(run, w, "never given", starting_s - (double)GIVEN_S);
        /* Also one that is only ready: it was let go, and did not run since. */
        else if (stage != WORKER_STARTS && stage != WORKER_IS_DONE && late_s >= 1.0)
            give_up(run, w, "not given back", late_s);
    }
}

/*
 * The listed gaps are read from another CPU, once a second, and never the one that is being written: that costs the worker a
 * cache line's way at most. Of gaps without a place in the list only the longest is known, and not when it began.
 */
static void look_at_gaps(struct worker *w)
{
    const struct recorder *r = &w->recorder;
    size_t listed = __atomic_load_n(&r->gaps_listed, __ATOMIC_RELAXED);
    for (; w->looked_at < listed; w->looked_at++) {
        const struct gap *gap = &r->gaps[w->looked_at];
        if (gap->end - gap->start > w->longest.end - w->longest.start)
            w->longest = *gap;
    }
    if (r->max_ticks > w->longest.end - w->longest.start)
        w->longest = (struct gap){0, r->max_ticks};
}

/* "progress 3.0 2:12345@1.234 3:0@-1.000": seconds so far; for each CPU its longest gap in ns, and when it began, or -1. */
static void show_progress(struct jitter_run *run)
{
    uint64_t now = ticks_now();
    uint64_t start = run->control.start_ticks;
    double hz = run->clock.initial.hz;
    if (!run->options->shows_progress || !run->deadline_ticks || now < start || now > run->deadline_ticks ||
        (double)(now - run->guard.shown_ticks) < hz)
        return;
    run->guard.shown_ticks = now;
    (void)fprintf(stderr, "progress %.1f", (double)(now - start) / hz);
    for (size_t i = 0; i < run->n; i++) {
        struct worker *w = &run->workers[i];
        const struct gap *gap = &w->longest;
        if (worker_has_left(w))
            continue;
        look_at_gaps(w);
        double at_s = gap->start >= start ? (double)(gap->start - start) / hz : -1.0;
        (void)fprintf(stderr, " %u:%.0f@%.3f", w->cpu, (double)(gap->end - gap->start) * 1e9 / hz, at_s);
    }
    (void)fputc('\n', stderr);
}

static void look(void *context)
{
    struct jitter_run *run = context;
    if (parent_is_gone())
        end(run);
    if (run->guard.claims)
        look_at_claims(run);
    notice_break(run);
    look_at_deadlines(run);
    for (struct worker *w = run->workers; w < run->workers + run->n; w++) {
        /* A signal that ends the run is for all; the workers look at deadlines of their own. */
        if (stop_is_asked())
            atomic_store(&w->deadline, 0);
        /* A worker that was on its way to the CPU when it was told to leave it. */
        if (worker_has_left(w) && atomic_load(&w->stage) != WORKER_IS_DONE)
            move_away(run, w);
    }
    show_progress(run);
}

void guard_start(struct jitter_run *run)
{
    struct guard *g = &run->guard;
    if (cpus_count(&run->housekeeping) == 0)
        return;
    *g = (struct guard){.watch = {.look = look, .context = run}, .tids = calloc(run->n, sizeof(*g->tids))};
    if (!run->options->intrude) {
        g->claims = claims_new(&run->cpus, &run->housekeeping, run->n, &run->facts, leave_all_near, run);
        if (!g->claims || !g->tids)
            abort();
        sleep_ns(CLAIMS_FIRST_LOOK_US * 1000);
        claims_look(g->claims);
        claims_search(g->claims);
    }
    watch_start(&g->watch);
}

void guard_stop(struct jitter_run *run)
{
    struct guard *g = &run->guard;
    if (g->watch.look)
        watch_stop(&g->watch);
    claims_free(g->claims);
    free(g->tids);
}
