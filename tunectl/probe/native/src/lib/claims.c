#include "lib/tasks.h"

#include <stdlib.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/options.h"

enum { SEARCH_PAUSE = 5 };  /* polls between two searches: a search reads every thread of the host */

/* A thread of somebody else that has nowhere else to run than on the run's CPUs, or was found running there. */
struct resident {
    struct task task;
    struct task_account account;
    uint64_t wanted_ns;     /* beyond its share: it ran, or waited for the CPU */
    uint64_t pending_ns;    /* of that, what the kernel has not accounted yet: it does so when a wait ends */
};

/* What all of them want of a core of the run, beyond their share: whose it was, and for how many turns, does not matter. */
struct demand {
    struct cpus core;
    uint64_t wanted_ns;
};

struct claims {
    const struct host_facts *facts;
    struct cpus near;           /* the run's CPUs, and the other hardware threads of their cores */
    struct cpus elsewhere;
    struct resident *residents;
    size_t n_residents;
    struct demand *demands;     /* of each of the run's CPUs */
    size_t n_demands;
    uint64_t looked_ns;
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

static void keep(struct claims *claims, const struct task *task)
{
    struct resident *more = realloc(claims->residents, (claims->n_residents + 1) * sizeof(*more));
    if (!more)
        return;
    claims->residents = more;
    claims->residents[claims->n_residents++] = (struct resident){.task = *task, .account = task_account(task->pid, task->tid)};
}

static void keep_resident(const struct task *task, void *context)
{
    struct claims *claims = context;
    struct cpus allowed = cpus_allowed(task->tid);
    struct cpus near = cpus_common(&allowed, &claims->near);
    if (cpus_count(&near) > 0 && !has_elsewhere(claims, &allowed))
        keep(claims, task);
}

struct claims *claims_new(const struct cpus *cpus, const struct cpus *elsewhere, size_t own, const struct host_facts *facts,
                          task_visitor heard, void *context)
{
    struct claims *claims = calloc(1, sizeof(*claims) + own * sizeof(*claims->switches));
    if (!claims)
        return NULL;
    *claims = (struct claims){.facts = facts, .elsewhere = *elsewhere, .heard = heard, .context = context, .own = own};
    claims->demands = calloc(cpus_count(cpus), sizeof(*claims->demands));
    for (unsigned cpu = cpus_next(cpus, 0); claims->demands && cpu < CPU_LIMIT; cpu = cpus_next(cpus, cpu + 1)) {
        struct cpus *core = &claims->demands[claims->n_demands++].core;
        *core = host_core(facts, cpu);
        CPU_OR_S(sizeof(*core), claims->near.sets, claims->near.sets, core->sets);
    }
    tasks_visit(keep_resident, claims);
    claims->looked_ns = clock_ns(CLOCK_MONOTONIC);
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
    if (claims) {
        free(claims->residents);
        free(claims->demands);
    }
    free(claims);
}

uint64_t claims_beyond_share(uint64_t beyond_ns, uint64_t wanted_ns, uint64_t passed_ns)
{
    uint64_t share_ns = passed_ns * 3 / 1000;
    uint64_t sum_ns = beyond_ns + wanted_ns;
    return sum_ns > share_ns ? sum_ns - share_ns : 0;
}

/* How long it wanted its CPU since the last look, `passed_ns` ago. A wait that goes on is in no account yet. */
static uint64_t read_wanted(struct resident *r, const struct task *now, uint64_t passed_ns)
{
    struct task_account account = task_account(r->task.pid, r->task.tid);
    uint64_t accounted_ns = account.ran_ns + account.waited_ns - r->account.ran_ns - r->account.waited_ns;
    uint64_t wanted_ns = 0;
    if (accounted_ns > 0) {
        wanted_ns = accounted_ns > r->pending_ns ? accounted_ns - r->pending_ns : 0;
        r->pending_ns = 0;
    } else if (now->state == 'R' && r->task.state == 'R' && account.slices == r->account.slices) {
        wanted_ns = passed_ns;
        r->pending_ns += passed_ns;
    }
    r->account = account;
    return wanted_ns;
}

/* What it wanted where it was not at both looks may have been another CPU's. */
static void add_wanted(struct claims *claims, struct resident *r, uint64_t passed_ns)
{
    struct task now;
    if (!task_read(&now, r->task.pid, r->task.tid)) {
        r->wanted_ns = 0;
        return;
    }
    uint64_t wanted_ns = read_wanted(r, &now, passed_ns);
    if (!cpus_have(&claims->near, r->task.cpu) || !cpus_have(&claims->near, now.cpu))
        wanted_ns = 0;
    for (struct demand *d = claims->demands; d < claims->demands + claims->n_demands; d++)
        d->wanted_ns += cpus_have(&d->core, now.cpu) ? wanted_ns : 0;
    r->wanted_ns = claims_beyond_share(r->wanted_ns, wanted_ns, passed_ns);
    r->task = now;
}

void claims_look(struct claims *claims)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t passed_ns = now_ns - claims->looked_ns;
    claims->looked_ns = now_ns;
    for (size_t i = 0; i < claims->n_residents; i++)
        add_wanted(claims, &claims->residents[i], passed_ns);
    for (struct demand *d = claims->demands; d < claims->demands + claims->n_demands; d++) {
        d->wanted_ns = claims_beyond_share(d->wanted_ns, 0, passed_ns);
        if (d->wanted_ns < CLAIMS_WANTED_NS)
            continue;
        const struct resident *first = NULL;    /* whose demand it is above all; of those that are still there */
        for (const struct resident *r = claims->residents; r < claims->residents + claims->n_residents; r++)
            if (cpus_have(&d->core, r->task.cpu) && r->wanted_ns > (first ? first->wanted_ns : 0))
                first = r;
        if (first)
            claims->heard(&first->task, claims->context);
    }
}

/* On an isolated CPU nobody is moved away by the scheduler, wherever else he may run. From now on it is looked at. */
static void watch_runner(const struct task *task, void *context)
{
    struct claims *claims = context;
    if (task->state != 'R' || !cpus_have(&claims->near, task->cpu))
        return;
    for (size_t i = 0; i < claims->n_residents; i++)
        if (claims->residents[i].task.tid == task->tid)
            return;
    struct cpus allowed = cpus_allowed(task->tid);
    if (cpus_have(&claims->facts->isolated, task->cpu) || !has_elsewhere(claims, &allowed))
        keep(claims, task);
}

void claims_search(struct claims *claims)
{
    tasks_visit(watch_runner, claims);
}

static bool is_kept_off(pid_t tid, uint64_t *switches_before)
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
        is_any_kept = is_kept_off(tids[i], &claims->switches[i]) || is_any_kept;
    claims->since_search++;
    if (is_any_kept && claims->since_search >= SEARCH_PAUSE) {
        claims->since_search = 0;
        claims_search(claims);
    }
}
