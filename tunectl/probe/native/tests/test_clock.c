#include "check.h"
#include "lib/clock.h"

#include <math.h>
#include <time.h>

static void rate_of_made_up_pairs(void)
{
    struct clock_pair from = {.ticks = 1000, .half_width = 20, .raw_ns = 5000};
    struct clock_pair to = {.ticks = 1000 + 2600000000, .half_width = 30, .raw_ns = 5000 + 1000000000};
    struct clock_rate rate = clock_rate_between(from, to, 26);
    CHECK(fabs(rate.hz - 2.6e9) < 1e-3);
    CHECK(fabs(rate.error_ppm - 76.0 / 2600.0) < 1e-9);
    CHECK(clock_rate_between(to, from, 26).hz == 0.0);
    CHECK(clock_rate_between(from, from, 26).hz == 0.0);
}

static void the_real_counter(void)
{
    struct timespec pause = {.tv_nsec = 20000000};
    struct clock_pair from = clock_pair_now();
    (void)nanosleep(&pause, NULL);
    struct clock_rate rate = clock_rate_between(from, clock_pair_now(), clock_granule_ticks());
    CHECK(rate.hz > 1e6 && rate.hz < 1e10);
    CHECK(rate.error_ppm > 0.0);
    CHECK(clock_granule_ticks() >= 1);
    double khz = clock_core_cycles_per_tick() * rate.hz / 1e3;
    CHECK(khz > 1e5 && khz < 1e7);
}

void test_clock(void)
{
    rate_of_made_up_pairs();
    the_real_counter();
}
