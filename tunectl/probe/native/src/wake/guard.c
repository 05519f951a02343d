#include "wake/run.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib/claims.h"
#include "lib/output.h"
#include "lib/thread.h"

struct wake_guard {
    const struct wake_run *run;
    const struct wake_thread *ends;
    struct claims *claims;
    struct watch watch;
};

static void give_up(const struct task *task, void *context)
{
    struct wake_guard *g = context;
    char name[TASK_TEXT_SIZE];
    for (size_t i = 0; i < ENDS; i++)
        (void)cpus_pin(atomic_load(&g->ends[i].tid), &g->run->housekeeping);
    (void)print_error(EXIT_FAILED, "%s runs on CPU %u, which was left to it: nothing was measured", task_format(task, name),
                      task->cpu);
    _exit(EXIT_FAILED);
}

static void look(void *context)
{
    struct wake_guard *g = context;
    claims_poll(g->claims, (pid_t[]){atomic_load(&g->ends[SENDER].tid), atomic_load(&g->ends[RECEIVER].tid)});
}

struct wake_guard *wake_guard_start(const struct wake_run *run, const struct wake_threads *threads)
{
    if (run->options->intrude || cpus_count(&run->housekeeping) == 0)
        return NULL;
    struct wake_guard *g = calloc(1, sizeof(*g));
    if (!g)
        abort();
    *g = (struct wake_guard){.run = run, .ends = threads->ends, .watch = {.look = look, .context = g}};
    g->claims = claims_new(&run->cpus, &run->housekeeping, ENDS, &run->facts, give_up, g);
    if (!g->claims)
        abort();
    claims_search(g->claims);
    watch_start(&g->watch);
    return g;
}

void wake_guard_stop(struct wake_guard *guard)
{
    if (!guard)
        return;
    watch_stop(&guard->watch);
    claims_free(guard->claims);
    free(guard);
}
