#include "lib/clock.h"

#include <stdlib.h>

#include "lib/ticks.h"

enum { PAIR_ATTEMPTS = 200, GRANULE_SAMPLES = 20000, CALIBRATION_NS = 20 * 1000 * 1000 };

uint64_t ns_of_timespec(struct timespec t)
{
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* By the vDSO: no system call while the clocksource is the counter itself. */
uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return ns_of_timespec(t);
}

struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / UINT64_C(1000000000)), (long)(ns % UINT64_C(1000000000))};
}

void sleep_ns(uint64_t ns)
{
    struct timespec pause = timespec_of(ns);
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

int64_t ticks_sort(int64_t *ticks, size_t n)
{
    qsort(ticks, n, sizeof(*ticks), compare);
    return n ? ticks[n / 2] : 0;
}

struct clock_pair clock_pair_of(clockid_t clock)
{
    struct clock_pair best = {.half_width = UINT64_MAX};
    for (int i = 0; i < PAIR_ATTEMPTS; i++) {
        uint64_t before = ticks_now();
        uint64_t raw_ns = clock_ns(clock);
        uint64_t half = (ticks_now() - before) / 2;
        if (half < best.half_width)
            best = (struct clock_pair){before + half, half, raw_ns};
    }
    return best;
}

struct clock_pair clock_pair_now(void)
{
    return clock_pair_of(CLOCK_MONOTONIC_RAW);
}

struct clock_rate clock_rate_between(struct clock_pair from, struct clock_pair to, uint64_t granule_ticks)
{
    double ticks = (double)(to.ticks - from.ticks);
    double ns = (double)(to.raw_ns - from.raw_ns);
    if (to.ticks <= from.ticks || to.raw_ns <= from.raw_ns)
        return (struct clock_rate){0};
    double doubt = (double)(from.half_width + to.half_width + granule_ticks);
    return (struct clock_rate){ticks * 1e9 / ns, doubt * 1e6 / ticks};
}

void clock_span_begin(struct clock_span *span)
{
    span->granule_ticks = clock_granule_ticks();
    span->first = clock_pair_now();
    sleep_ns(CALIBRATION_NS);
    span->initial = clock_rate_between(span->first, clock_pair_now(), span->granule_ticks);
}

void clock_span_end(struct clock_span *span)
{
    span->last = clock_pair_now();
    span->rate = clock_rate_between(span->first, span->last, span->granule_ticks);
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t clock_granule_ticks(void)
{
    uint64_t granule = 0;
    uint64_t last = ticks_now();
    for (int i = 0; i < GRANULE_SAMPLES; i++) {
        uint64_t now = ticks_now();
        if (now > last)
            granule = greatest_common_divisor(now - last, granule);
        last = now;
    }
    return granule ? granule : 1;
}

enum { CHAIN_TURNS = 1024, CHAIN_ROUNDS = 16 };

double clock_core_cycles_per_tick(void)
{
    uint64_t best = UINT64_MAX;
    for (unsigned i = 0; i < CHAIN_ROUNDS; i++) {
        uint64_t ticks = chain_ticks(CHAIN_TURNS);
        if (ticks && ticks < best)
            best = ticks;
    }
    return (double)(CHAIN_TURNS * CHAIN_ADDS) / (double)best;
}
