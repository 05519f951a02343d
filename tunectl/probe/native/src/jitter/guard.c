#include "jitter/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/claims.h"
#include "lib/output.h"
#include "lib/stop.h"
#include "lib/tasks.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum { GIVEN_S = 10 };      /* for a worker to get its CPU, and, after the deadline, to be done */

struct guard {
    struct jitter_run *run;
    struct watch watch;
    struct claims *claims;          /* NULL where nobody makes a worker leave */
    pid_t *tids;                    /* of the workers that may be kept from their CPU; else 0 */
    struct longest *longest;        /* of each worker, as far as it is shown */
    uint64_t shown_ticks;           /* when a line of progress was written last */
};

/* Of one worker's listed gaps those that were looked at, and the longest of them. */
struct longest {
    size_t looked_at;
    struct gap gap;
};

static double seconds_since(const struct jitter_run *run, uint64_t ticks)
{
    uint64_t now = ticks_now();
    return now > ticks ? (double)(now - ticks) / run->clock.initial.hz : 0.0;
}

/* To a CPU that nobody measures. In a partition no such CPU is allowed: there the process that holds the workers leaves it. */
static void move_away(struct guard *g, struct worker *w)
{
    pid_t tid = atomic_load(&w->tid);
    if (tid && cpus_pin(tid, &g->run->housekeeping))
        partition_leave(&g->run->partition);
}

/* For the first reason that is given. */
__attribute__((format(printf, 3, 4)))
static void leave(struct guard *g, struct worker *w, const char *why, ...)
{
    va_list args;
    if (worker_has_left(w))
        return;
    va_start(args, why);
    (void)vsnprintf(w->why_left, sizeof(w->why_left), why, args);
    va_end(args);
    atomic_store(&w->left, true);
    atomic_store(&w->deadline, 0);
    move_away(g, w);
}

static void leave_all_near(const struct task *task, void *context)
{
    struct guard *g = context;
    char name[TASK_TEXT_SIZE];
    struct cpus core = host_core(&g->run->facts, task->cpu);
    for (size_t i = 0; i < g->run->n; i++)
        if (cpus_have(&core, g->run->workers[i].cpu))
            leave(g, &g->run->workers[i], "%s runs on CPU %u", task_format(task, name), task->cpu);
}

static bool is_at_work(const struct worker *w)
{
    return !worker_has_left(w) && atomic_load(&w->stage) != WORKER_IS_DONE;
}

static void look_at_claims(struct guard *g)
{
    for (size_t i = 0; i < g->run->n; i++)
        g->tids[i] = is_at_work(&g->run->workers[i]) ? atomic_load(&g->run->workers[i].tid) : 0;
    claims_poll(g->claims, g->tids);
}

static bool is_the_one(const struct task *task, void *context)
{
    struct task *holder = context;
    if (task->state == 'R' && task->cpu == holder->cpu && task->rt_priority >= holder->rt_priority)
        *holder = *task;
    return false;
}

/* Who holds the worker's CPU is the reason. */
static void leave_to_holder(struct guard *g, struct worker *w, const char *what)
{
    struct task holder = {.cpu = w->cpu};
    char name[TASK_TEXT_SIZE];
    (void)tasks_find(is_the_one, &holder);
    if (holder.tid)
        leave(g, w, "CPU %u was %s to the probe: thread %s holds it", w->cpu, what, task_format(&holder, name));
    else
        leave(g, w, "CPU %u was %s to the probe: what holds it cannot be seen", w->cpu, what);
}

/* Nothing can be waited for any more. */
static _Noreturn void end(struct guard *g)
{
    for (size_t i = 0; i < g->run->n; i++)
        move_away(g, &g->run->workers[i]);
    partition_end(&g->run->partition);
    _exit(EXIT_FAILED);
}

/* A worker whose CPU was not given for too long leaves it; if not even that ends it, the run ends. */
static void give_up(struct guard *g, struct worker *w, const char *what, double late_s)
{
    if (!worker_has_left(w)) {
        leave_to_holder(g, w, what);
    } else if (late_s > (double)GIVEN_S) {
        (void)print_error(EXIT_FAILED, "CPU %u: %s, and the probe's thread there cannot be ended", w->cpu, w->why_left);
        end(g);
    }
}

static void look_at_deadlines(struct guard *g)
{
    struct jitter_run *run = g->run;
    uint64_t started = atomic_load(&run->workers_started);
    double starting_s = started ? seconds_since(run, started) : 0.0;
    double late_s = run->deadline_ticks ? seconds_since(run, run->deadline_ticks) : 0.0;
    for (size_t i = 0; i < run->n; i++) {
        struct worker *w = &run->workers[i];
        int stage = atomic_load(&w->stage);
        if (stage == WORKER_STARTS && starting_s > (double)GIVEN_S)
            give_up(g, w, "never given", starting_s - (double)GIVEN_S);
        /* Also one that is only ready: it was let go, and did not run since. */
        else if (stage != WORKER_STARTS && stage != WORKER_IS_DONE && late_s >= 1.0)
            give_up(g, w, "not given back", late_s);
    }
}

/* A signal that ends the run is for all; the workers look at deadlines of their own. */
static void pass_on_stop(struct guard *g)
{
    for (size_t i = 0; stop_is_asked() && i < g->run->n; i++)
        atomic_store(&g->run->workers[i].deadline, 0);
}

/*
 * The listed gaps are read from another CPU, once a second, and never the one that is being written: that costs the worker a
 * cache line's way at most. Of gaps without a place in the list only the longest is known, and not when it began.
 */
static void look_at_gaps(const struct recorder *r, struct longest *longest)
{
    size_t listed = __atomic_load_n(&r->gaps_listed, __ATOMIC_RELAXED);
    for (; longest->looked_at < listed; longest->looked_at++) {
        const struct gap *gap = &r->gaps[longest->looked_at];
        if (gap->end - gap->start > longest->gap.end - longest->gap.start)
            longest->gap = *gap;
    }
    if (r->max_ticks > longest->gap.end - longest->gap.start)
        longest->gap = (struct gap){0, r->max_ticks};
}

/* "progress 3.0 2:12345@1.234 3:0@-1.000": seconds so far; for each CPU its longest gap in ns, and when it began, or -1. */
static void show_progress(struct guard *g)
{
    const struct jitter_run *run = g->run;
    uint64_t now = ticks_now();
    uint64_t start = run->control.start_ticks;
    double hz = run->clock.initial.hz;
    if (!run->options->shows_progress || !run->deadline_ticks || now < start || now > run->deadline_ticks ||
        (double)(now - g->shown_ticks) < hz)
        return;
    g->shown_ticks = now;
    (void)fprintf(stderr, "progress %.1f", (double)(now - start) / hz);
    for (size_t i = 0; i < run->n; i++) {
        if (worker_has_left(&run->workers[i]))
            continue;
        look_at_gaps(&run->workers[i].recorder, &g->longest[i]);
        const struct gap *gap = &g->longest[i].gap;
        double at_s = gap->start >= start ? (double)(gap->start - start) / hz : -1.0;
        (void)fprintf(stderr, " %u:%.0f@%.3f", run->workers[i].cpu, (double)(gap->end - gap->start) * 1e9 / hz, at_s);
    }
    (void)fputc('\n', stderr);
}

static void look(void *context)
{
    struct guard *g = context;
    if (parent_is_gone())
        end(g);
    if (g->claims)
        look_at_claims(g);
    pass_on_stop(g);
    look_at_deadlines(g);
    /* A worker that was on its way to the CPU when it was told to leave it. */
    for (size_t i = 0; i < g->run->n; i++)
        if (worker_has_left(&g->run->workers[i]) && atomic_load(&g->run->workers[i].stage) != WORKER_IS_DONE)
            move_away(g, &g->run->workers[i]);
    show_progress(g);
}

struct guard *guard_start(struct jitter_run *run)
{
    if (cpus_count(&run->housekeeping) == 0)
        return NULL;
    struct guard *g = calloc(1, sizeof(*g));
    if (!g)
        abort();
    *g = (struct guard){.run = run, .watch = {.look = look, .context = g}};
    g->tids = calloc(run->n, sizeof(*g->tids));
    g->longest = calloc(run->n, sizeof(*g->longest));
    if (!run->options->intrude)
        g->claims = claims_new(&run->cpus, &run->housekeeping, run->n, &run->facts, leave_all_near, g);
    if (!g->tids || !g->longest || (!run->options->intrude && !g->claims))
        abort();
    if (g->claims) {
        struct timespec pause = {.tv_nsec = CLAIMS_FIRST_LOOK_US * 1000L};
        (void)nanosleep(&pause, NULL);
        claims_look(g->claims);
        claims_search(g->claims);
    }
    watch_start(&g->watch);
    return g;
}

void guard_stop(struct guard *g)
{
    if (!g)
        return;
    watch_stop(&g->watch);
    claims_free(g->claims);
    free(g->tids);
    free(g->longest);
    free(g);
}
