/* A thread that spins as the probe's workers do, until it is stopped: known interruptions happen to it. */
#ifndef TUNECTL_SELFTEST_VICTIM_H
#define TUNECTL_SELFTEST_VICTIM_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/clock.h"
#include "lib/loop.h"

struct victim {
    unsigned cpu;
    uint64_t threshold_ticks;
    pthread_t thread;
    _Atomic int state;          /* 0: not yet spinning, 1: spinning; -errno: cannot */
    _Atomic uint64_t deadline;
    struct recorder recorder;
    struct loop_totals totals;
    struct clock_pair before;
    struct clock_pair after;
};

/* Spins on `cpu` with a list of `capacity` gaps, at most `limit_ticks` long. Returns 0 or -errno once it does. */
int victim_start(struct victim *v, unsigned cpu, uint64_t threshold_ticks, size_t capacity, uint64_t limit_ticks);

/* Ends it; its recorder is then finished. victim_deinit frees the recorder. */
void victim_stop(struct victim *v);
void victim_deinit(struct victim *v);

/*
 * The recorder's account against the loop's own, which share no variable: every turn that was no quiet one is a gap, or part of
 * one, and all ticks but those of quiet turns are in gaps. A gap lost without being counted breaks both.
 */
bool victim_account_is_exact(const struct victim *v);

/* How far loops and gaps together miss the run's length on CLOCK_MONOTONIC_RAW, in ppm. */
double victim_conservation_ppm(const struct victim *v, double hz);

#endif
