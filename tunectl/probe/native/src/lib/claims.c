#include "lib/tasks.h"

#include <stdlib.h>

#include "lib/options.h"

enum { SEARCH_PAUSE = 5 };  /* polls between two searches: a search reads every thread of the host */

/* A thread of somebody else that has nowhere else to run than on the run's CPUs. */
struct resident {
    struct task task;
    uint64_t slices;
};

struct claims {
    const struct host_facts *facts;
    struct cpus near;           /* the run's CPUs, and the other hardware threads of their cores */
    struct cpus elsewhere;
    struct resident *residents;
    size_t n_residents;
    task_visitor heard;
    void *context;
    unsigned since_search;
    size_t own;
    uint64_t switches[];        /* of each of our own threads: how often it had left a CPU at the last poll */
};

/* May it run where nobody measures? Then the scheduler moves it there, and takes nothing from it for longer than a moment. */
static bool has_elsewhere(const struct claims *claims, const struct cpus *allowed)
{
    struct cpus common = cpus_common(allowed, &claims->elsewhere);
    return cpus_count(&common) > 0 || cpus_count(allowed) == 0;
}

static void keep_resident(const struct task *task, void *context)
{
    struct claims *claims = context;
    struct cpus allowed = cpus_allowed(task->tid);
    struct cpus near = cpus_common(&allowed, &claims->near);
    if (cpus_count(&near) == 0 || has_elsewhere(claims, &allowed))
        return;
    struct resident *more = realloc(claims->residents, (claims->n_residents + 1) * sizeof(*more));
    if (!more)
        return;
    claims->residents = more;
    claims->residents[claims->n_residents++] = (struct resident){*task, task_account(task->pid, task->tid).slices};
}

struct claims *claims_new(const struct cpus *cpus, const struct cpus *elsewhere, size_t own, const struct host_facts *facts,
                          task_visitor heard, void *context)
{
    struct claims *claims = calloc(1, sizeof(*claims) + own * sizeof(*claims->switches));
    if (!claims)
        return NULL;
    *claims = (struct claims){.facts = facts, .elsewhere = *elsewhere, .heard = heard, .context = context, .own = own};
    for (unsigned cpu = cpus_next(cpus, 0); cpu < CPU_LIMIT; cpu = cpus_next(cpus, cpu + 1)) {
        struct cpus core = host_core(facts, cpu);
        CPU_OR_S(sizeof(core), claims->near.sets, claims->near.sets, core.sets);
    }
    tasks_visit(keep_resident, claims);
    return claims;
}

int claims_check(void)
{
    if (tasks_are_all_seen())
        return EXIT_OK;
    return print_error(EXIT_FAILED, "not every thread of this host can be seen here (hidepid= of /proc, or a PID namespace), so nobody "
                       "can say whose the CPUs are: run it as root on the host itself, or say --intrude");
}

void claims_free(struct claims *claims)
{
    if (claims)
        free(claims->residents);
    free(claims);
}

void claims_look(struct claims *claims)
{
    for (size_t i = 0; i < claims->n_residents; i++) {
        struct resident *r = &claims->residents[i];
        uint64_t slices = task_account(r->task.pid, r->task.tid).slices;
        struct task now;
        if (!task_read(&now, r->task.pid, r->task.tid))
            continue;
        if ((now.state == 'R' || slices != r->slices) && cpus_have(&claims->near, now.cpu))
            claims->heard(&now, claims->context);
        r->slices = slices;
    }
}

/* On an isolated CPU nobody is moved away by the scheduler, wherever else he may run. */
static void hear(const struct task *task, void *context)
{
    const struct claims *claims = context;
    if (task->state != 'R' || !cpus_have(&claims->near, task->cpu))
        return;
    struct cpus allowed = cpus_allowed(task->tid);
    if (cpus_have(&claims->facts->isolated, task->cpu) || !has_elsewhere(claims, &allowed))
        claims->heard(task, claims->context);
}

void claims_search(struct claims *claims)
{
    tasks_visit(hear, claims);
}

static bool is_kept(pid_t tid, uint64_t *switches_before)
{
    struct task now;
    if (!tid || !task_read(&now, tid, tid))
        return false;
    /* Put on a CPU as often as it left one: it is not on one now. In this order, so that a switch in between reads as there. */
    uint64_t switches = task_switches(tid, tid);
    bool is_away = now.state == 'R' && task_account(tid, tid).slices <= switches;
    bool is_as_before = switches == *switches_before;
    *switches_before = switches;
    return is_away && is_as_before;
}

void claims_poll(struct claims *claims, const pid_t *tids)
{
    bool is_any_kept = false;
    claims_look(claims);
    for (size_t i = 0; i < claims->own; i++)
        is_any_kept = is_kept(tids[i], &claims->switches[i]) || is_any_kept;
    claims->since_search++;
    if (is_any_kept && claims->since_search >= SEARCH_PAUSE) {
        claims->since_search = 0;
        claims_search(claims);
    }
}
