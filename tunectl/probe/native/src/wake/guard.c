#include "wake/guard.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/claims.h"
#include "lib/output.h"
#include "lib/thread.h"

enum {
    POLL_US = 1000,
    SEARCH_PAUSE = 5,       /* polls between two searches: a search reads every thread of the host */
};

struct wake_guard {
    const struct wake_run *run;
    const struct wake_thread *ends;
    struct claims *claims;
    struct own_thread looked_at[ENDS];
    unsigned since_search;
    pthread_t thread;
    atomic_bool is_over;
};

static void give_up(const struct task *task, void *context)
{
    struct wake_guard *g = context;
    char name[TASK_TEXT_SIZE];
    for (size_t i = 0; i < ENDS; i++)
        (void)cpu_list_pin_thread(atomic_load(&g->ends[i].tid), &g->run->housekeeping);
    (void)print_error(EXIT_FAILED, "%s runs on CPU %u, which was left to it: nothing was measured", task_format(task, name),
                      task->cpu);
    _exit(EXIT_FAILED);
}

static void look(struct wake_guard *g)
{
    bool is_kept = false;
    claims_look(g->claims, give_up, g);
    for (size_t i = 0; i < ENDS; i++)
        is_kept = own_thread_is_kept(&g->looked_at[i], atomic_load(&g->ends[i].tid)) || is_kept;
    g->since_search++;
    if (is_kept && g->since_search >= SEARCH_PAUSE) {
        g->since_search = 0;
        claims_search(g->claims, give_up, g);
    }
}

static void *guard_main(void *argument)
{
    struct wake_guard *g = argument;
    struct timespec pause = {0, POLL_US * 1000L};
    while (!atomic_load(&g->is_over)) {
        look(g);
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

struct wake_guard *wake_guard_start(const struct wake_run *run, const struct wake_threads *threads)
{
    if (run->options->intrude || run->housekeeping.n == 0)
        return NULL;
    struct wake_guard *g = calloc(1, sizeof(*g));
    if (!g)
        abort();
    g->run = run;
    g->ends = threads->ends;
    g->claims = claims_new(&run->cpus, &run->housekeeping, &run->facts);
    if (!g->claims)
        abort();
    claims_search(g->claims, give_up, g);
    if (thread_start(&g->thread, guard_main, g))
        abort();
    return g;
}

void wake_guard_stop(struct wake_guard *guard)
{
    if (!guard)
        return;
    atomic_store(&guard->is_over, true);
    (void)pthread_join(guard->thread, NULL);
    claims_free(guard->claims);
    free(guard);
}
