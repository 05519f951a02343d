#include "selftest/victim.h"

#include <stdatomic.h>
#include <time.h>

#include "lib/thread.h"
#include "lib/ticks.h"

/* A plain store says that it spins, immediately before it does: a system call could cost it the CPU in between. */
static void *victim_main(void *argument)
{
    struct victim *v = argument;
    int rc = thread_pin(v->cpu);
    if (rc) {
        atomic_store(&v->state, rc);
        return NULL;
    }
    (void)loop_step_ticks(v->threshold_ticks, 5, 10000);
    v->before = clock_pair_now();
    atomic_store(&v->state, 1);
    loop_run(&v->recorder, v->threshold_ticks, &v->deadline, &v->totals);
    v->after = clock_pair_now();
    return NULL;
}

int victim_start(struct victim *v, unsigned cpu, uint64_t threshold_ticks, size_t capacity, uint64_t limit_ticks)
{
    struct timespec pause = {.tv_nsec = 1000000};
    bool locked;
    *v = (struct victim){.cpu = cpu, .threshold_ticks = threshold_ticks};
    int rc = recorder_init(&v->recorder, capacity, &locked);
    if (rc)
        return rc;
    atomic_store(&v->deadline, ticks_now() + limit_ticks);
    rc = thread_start(&v->thread, victim_main, v);
    if (rc) {
        victim_deinit(v);
        return rc;
    }
    while ((rc = atomic_load(&v->state)) == 0)
        (void)nanosleep(&pause, NULL);
    if (rc > 0)
        return 0;
    (void)pthread_join(v->thread, NULL);
    victim_deinit(v);
    return rc;
}

void victim_stop(struct victim *v)
{
    atomic_store_explicit(&v->deadline, 0, memory_order_relaxed);
    (void)pthread_join(v->thread, NULL);
    recorder_finish(&v->recorder);
}

void victim_deinit(struct victim *v)
{
    recorder_deinit(&v->recorder);
}

bool victim_account_is_exact(const struct victim *v)
{
    const struct recorder *r = &v->recorder;
    const struct loop_totals *t = &v->totals;
    return t->turns - t->quiet_turns == r->gaps_total + r->turns_merged + t->steps_back &&
           t->end - t->start == t->quiet_ticks + r->stolen_ticks && r->gaps_total == r->gaps_listed + r->gaps_lost;
}

double victim_conservation_ppm(const struct victim *v, double hz)
{
    return loop_conservation_ppm(&v->totals, &v->recorder, &v->before, &v->after, hz);
}
