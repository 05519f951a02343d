#include "check.h"
#include "lib/cpus.h"
#include "selftest/victim.h"

#include <math.h>
#include <sched.h>
#include <time.h>

/* Any run is exact; a gap taken away from it, or one too many, or a tick, is noticed. */
static void an_account_that_lies_is_noticed(void)
{
    struct victim v;
    struct timespec pause = {.tv_nsec = 20000000};
    int cpu = sched_getcpu();
    CHECK(cpu >= 0 && victim_start(&v, (unsigned)cpu, 300, 16, UINT64_C(100000000000)) == 0);
    (void)nanosleep(&pause, NULL);
    victim_stop(&v);
    CHECK(victim_account_is_exact(&v));
    double hz = clock_rate_between(v.before, v.after, 1).hz;
    CHECK(fabs(victim_conservation_ppm(&v, hz)) < 1000.0);
    CHECK(fabs(victim_conservation_ppm(&v, hz * 1.01)) > 5000.0);
    struct recorder right = v.recorder;
    v.recorder.gaps_total++;
    CHECK(!victim_account_is_exact(&v));
    v.recorder = right;
    v.recorder.stolen_ticks++;
    CHECK(!victim_account_is_exact(&v));
    v.recorder = right;
    v.totals.turns++;
    CHECK(!victim_account_is_exact(&v));
    victim_deinit(&v);
}

static void a_cpu_that_is_not_there_is_an_error(void)
{
    struct victim v;
    CHECK(victim_start(&v, CPU_LIMIT - 1, 300, 16, 1000) < 0);
}

void test_victim(void)
{
    an_account_that_lies_is_noticed();
    a_cpu_that_is_not_there_is_an_error();
}
