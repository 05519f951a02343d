#include "jitter/guard.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/claims.h"
#include "lib/output.h"
#include "lib/parent.h"
#include "lib/stop.h"
#include "lib/tasks.h"
#include "lib/thread.h"
#include "lib/ticks.h"

enum {
    POLL_US = 1000,
    SEARCH_PAUSE = 5,       /* polls between two searches for who has a CPU: a search reads every thread of the host */
    GIVEN_S = 10,           /* for a worker to get its CPU, and, after the deadline, to be done */
};

struct guard {
    struct jitter_run *run;
    pthread_t thread;
    atomic_bool is_over;
    struct claims *claims;          /* NULL where nobody makes a worker leave */
    struct own_thread *looked_at;   /* the worker of each CPU, as it was at the last poll */
    unsigned since_search;
};

static void pause_us(long us)
{
    struct timespec pause = {0, us * 1000};
    (void)nanosleep(&pause, NULL);
}

static double seconds_since(const struct jitter_run *run, uint64_t ticks)
{
    uint64_t now = ticks_now();
    return now > ticks ? (double)(now - ticks) / run->clock.initial.hz : 0.0;
}

/* To a CPU that nobody measures. In a partition no such CPU is allowed: there the process that holds the workers leaves it. */
static void move_away(struct guard *g, struct worker *w)
{
    pid_t tid = atomic_load(&w->tid);
    if (tid && cpu_list_pin_thread(tid, &g->run->housekeeping))
        partition_leave(&g->run->partition);
}

static void leave(struct guard *g, struct worker *w, const char *why)
{
    if (worker_has_left(w))
        return;
    (void)snprintf(w->why_left, sizeof(w->why_left), "%.*s", WORKER_WHY_SIZE - 1, why);
    atomic_store(&w->left, true);
    atomic_store(&w->deadline, 0);
    move_away(g, w);
}

static void leave_to(struct guard *g, struct worker *w, const struct task *task)
{
    char name[TASK_TEXT_SIZE];
    char why[WORKER_WHY_SIZE];
    (void)snprintf(why, sizeof(why), "%s runs on CPU %u", task_format(task, name), task->cpu);
    leave(g, w, why);
}

/* The worker whose core holds this CPU; NULL where none is there any more. */
static struct worker *worker_near(const struct guard *g, unsigned cpu)
{
    for (size_t i = 0; i < g->run->cpus.n; i++)
        if (claims_is_near(g->claims, i, cpu) && !worker_has_left(&g->run->workers[i]))
            return &g->run->workers[i];
    return NULL;
}

static void leave_all_near(const struct task *task, void *context)
{
    struct guard *g = context;
    for (struct worker *w; (w = worker_near(g, task->cpu));)
        leave_to(g, w, task);
}

static bool is_kept_away(struct guard *g, size_t index)
{
    const struct worker *w = &g->run->workers[index];
    if (worker_has_left(w) || atomic_load(&w->stage) == WORKER_IS_DONE)
        return false;
    return own_thread_is_kept(&g->looked_at[index], atomic_load(&w->tid));
}

static void look_at_workers(struct guard *g)
{
    bool is_any = false;
    for (size_t i = 0; i < g->run->cpus.n; i++)
        is_any = is_kept_away(g, i) || is_any;
    g->since_search++;
    if (is_any && g->since_search >= SEARCH_PAUSE) {
        g->since_search = 0;
        claims_search(g->claims, leave_all_near, g);
    }
}

static bool is_the_one(const struct task *task, void *context)
{
    struct task *holder = context;
    if (task->state == 'R' && task->cpu == holder->cpu && task->rt_priority >= holder->rt_priority) {
        *holder = *task;
        holder->pid = task->pid;
    }
    return false;
}

/* "thread engine (tid 77, SCHED_FIFO 50) holds it" */
static const char *who_holds(unsigned cpu, char text[WORKER_WHY_SIZE])
{
    struct task holder = {.cpu = cpu};
    char name[TASK_TEXT_SIZE];
    (void)tasks_find(is_the_one, &holder);
    if (holder.tid)
        (void)snprintf(text, WORKER_WHY_SIZE, "thread %s holds it", task_format(&holder, name));
    else
        (void)snprintf(text, WORKER_WHY_SIZE, "what holds it cannot be seen");
    return text;
}

/* Nothing can be waited for any more. */
static _Noreturn void end(struct guard *g)
{
    for (size_t i = 0; i < g->run->cpus.n; i++)
        move_away(g, &g->run->workers[i]);
    partition_end(&g->run->partition);
    attribution_end(&g->run->attribution);
    _exit(EXIT_FAILED);
}

static void look_at_deadlines(struct guard *g)
{
    struct jitter_run *run = g->run;
    uint64_t deadline = run->deadline_ticks;
    for (size_t i = 0; i < run->cpus.n; i++) {
        struct worker *w = &run->workers[i];
        char who[WORKER_WHY_SIZE];
        char why[WORKER_WHY_SIZE + 64];
        int stage = atomic_load(&w->stage);
        uint64_t started = atomic_load(&run->workers_started);
        if (stage == WORKER_STARTS && started && seconds_since(run, started) > GIVEN_S) {
            (void)print_error(EXIT_FAILED, "CPU %u was never given to the probe: %s", w->cpu, who_holds(w->cpu, who));
            end(g);
        }
        /* Also one that is only ready: it was let go, and did not run since. */
        if (stage == WORKER_IS_DONE || !deadline || seconds_since(run, deadline) < 1.0)
            continue;
        if (!worker_has_left(w)) {
            (void)snprintf(why, sizeof(why), "CPU %u was not given back to the probe: %s", w->cpu, who_holds(w->cpu, who));
            leave(g, w, why);
        } else if (seconds_since(run, deadline) > GIVEN_S) {
            (void)print_error(EXIT_FAILED, "CPU %u: %s, and the probe's thread there cannot be ended", w->cpu, w->why_left);
            end(g);
        }
    }
}

/* A signal that ends the run is for all; the workers look at deadlines of their own. */
static void pass_on_stop(struct guard *g)
{
    for (size_t i = 0; stop_is_asked() && i < g->run->cpus.n; i++)
        atomic_store(&g->run->workers[i].deadline, 0);
}

static void look(struct guard *g)
{
    if (parent_is_gone())
        end(g);
    if (g->claims) {
        claims_look(g->claims, leave_all_near, g);
        look_at_workers(g);
    }
    pass_on_stop(g);
    look_at_deadlines(g);
    /* A worker that was on its way to the CPU when it was told to leave it. */
    for (size_t i = 0; i < g->run->cpus.n; i++)
        if (worker_has_left(&g->run->workers[i]) && atomic_load(&g->run->workers[i].stage) != WORKER_IS_DONE)
            move_away(g, &g->run->workers[i]);
}

static void *guard_main(void *argument)
{
    struct guard *g = argument;
    while (!atomic_load(&g->is_over)) {
        look(g);
        pause_us(POLL_US);
    }
    return NULL;
}

struct guard *guard_start(struct jitter_run *run)
{
    if (run->housekeeping.n == 0)
        return NULL;
    struct guard *g = calloc(1, sizeof(*g));
    if (!g)
        abort();
    *g = (struct guard){.run = run, .looked_at = calloc(run->cpus.n, sizeof(*g->looked_at))};
    if (!g->looked_at)
        abort();
    if (!run->options->intrude) {
        g->claims = claims_new(&run->cpus, &run->housekeeping, &run->facts);
        if (!g->claims)
            abort();
        pause_us(CLAIMS_FIRST_LOOK_US);
        claims_look(g->claims, leave_all_near, g);
        claims_search(g->claims, leave_all_near, g);
    }
    if (thread_start(&g->thread, guard_main, g))
        abort();
    return g;
}

void guard_stop(struct guard *g)
{
    if (!g)
        return;
    atomic_store(&g->is_over, true);
    (void)pthread_join(g->thread, NULL);
    claims_free(g->claims);
    free(g->looked_at);
    free(g);
}
