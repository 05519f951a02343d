#include "lib/claims.h"

#include <stdlib.h>

#include "lib/files.h"

/* A thread of somebody else that has nowhere else to run than on the run's CPUs. */
struct resident {
    struct task task;
    uint64_t slices;
};

struct claims {
    const struct cpu_list *cpus;
    const struct cpu_list *elsewhere;
    const struct host_facts *facts;
    struct cpu_list *cores;     /* of each of `cpus`: the hardware threads of its core; empty where that is not known */
    struct resident *residents;
    size_t n_residents;
};

/* Who is told, while every thread of the host is read. */
struct search {
    const struct claims *claims;
    claim_heard heard;
    void *context;
};

bool claims_is_near(const struct claims *claims, size_t index, unsigned cpu)
{
    return claims->cpus->ids[index] == cpu || cpu_list_has(&claims->cores[index], cpu);
}

static bool is_near(const struct claims *claims, unsigned cpu)
{
    for (size_t i = 0; i < claims->cpus->n; i++)
        if (claims_is_near(claims, i, cpu))
            return true;
    return false;
}

/* May it run where nobody measures? Then the scheduler moves it there, and takes nothing from it for longer than a moment. */
static bool has_elsewhere(const struct claims *claims, const struct task *task, bool *may_come_near)
{
    struct cpu_list allowed;
    bool elsewhere = false;
    *may_come_near = false;
    if (cpu_list_allowed(&allowed, task->tid))
        return true;
    for (size_t i = 0; i < allowed.n; i++) {
        elsewhere = elsewhere || cpu_list_has(claims->elsewhere, allowed.ids[i]);
        *may_come_near = *may_come_near || is_near(claims, allowed.ids[i]);
    }
    elsewhere = elsewhere || allowed.n == 0;
    cpu_list_deinit(&allowed);
    return elsewhere;
}

static bool keep_resident(const struct task *task, void *context)
{
    struct claims *claims = context;
    bool may_come_near;
    if (has_elsewhere(claims, task, &may_come_near) || !may_come_near)
        return false;
    struct resident *more = realloc(claims->residents, (claims->n_residents + 1) * sizeof(*more));
    if (!more)
        return true;
    claims->residents = more;
    claims->residents[claims->n_residents++] = (struct resident){*task, task_account(task->pid, task->tid).slices};
    return false;
}

struct claims *claims_new(const struct cpu_list *cpus, const struct cpu_list *elsewhere, const struct host_facts *facts)
{
    struct claims *claims = calloc(1, sizeof(*claims));
    if (!claims)
        return NULL;
    *claims = (struct claims){.cpus = cpus, .elsewhere = elsewhere, .facts = facts};
    claims->cores = calloc(cpus->n, sizeof(*claims->cores));
    bool is_short = !claims->cores;
    for (size_t i = 0; !is_short && i < cpus->n; i++)
        is_short = file_cpus(&claims->cores[i], facts->root, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
                             cpus->ids[i]);
    if (is_short) {
        claims_free(claims);
        return NULL;
    }
    (void)tasks_find(keep_resident, claims);
    return claims;
}

void claims_free(struct claims *claims)
{
    if (!claims)
        return;
    for (size_t i = 0; claims->cores && i < claims->cpus->n; i++)
        cpu_list_deinit(&claims->cores[i]);
    free(claims->cores);
    free(claims->residents);
    free(claims);
}

void claims_look(struct claims *claims, claim_heard heard, void *context)
{
    for (size_t i = 0; i < claims->n_residents; i++) {
        struct resident *r = &claims->residents[i];
        uint64_t slices = task_account(r->task.pid, r->task.tid).slices;
        struct task now;
        if (!task_read(&now, r->task.pid, r->task.tid))
            continue;
        if ((now.state == 'R' || slices != r->slices) && is_near(claims, now.cpu))
            heard(&now, context);
        r->slices = slices;
    }
}

/* On an isolated CPU nobody is moved away by the scheduler, wherever else he may run. */
static bool hear(const struct task *task, void *context)
{
    const struct search *search = context;
    bool may_come_near;
    if (task->state != 'R' || !is_near(search->claims, task->cpu))
        return false;
    bool stays = cpu_list_has(&search->claims->facts->isolated, task->cpu);
    if (stays || !has_elsewhere(search->claims, task, &may_come_near))
        search->heard(task, search->context);
    return false;
}

void claims_search(struct claims *claims, claim_heard heard, void *context)
{
    struct search search = {claims, heard, context};
    (void)tasks_find(hear, &search);
}

bool own_thread_is_kept(struct own_thread *thread, pid_t tid)
{
    struct task now;
    if (!tid || !task_read(&now, tid, tid))
        return false;
    /* Put on a CPU as often as it left one: it is not on one now. In this order, so that a switch in between reads as there. */
    uint64_t switches = task_switches(tid, tid);
    bool is_away = now.state == 'R' && task_account(tid, tid).slices <= switches;
    bool is_kept = is_away && switches == thread->switches;
    thread->switches = switches;
    return is_kept;
}
