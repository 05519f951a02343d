/* A process that is stopped for a known time while it probes: how right are the longest gap and every percentile? */
#ifndef TUNECTL_SELFTEST_STOPPING_H
#define TUNECTL_SELFTEST_STOPPING_H

#include <stdint.h>

struct stopping {
    unsigned cpu;
    uint64_t threshold_ticks;
    double hz;
    double stop_s;
    double truth_ns;        /* filled in: how long the stop took at least */
    double max_ns;          /* the longest gap */
    double max_error_ns;    /* how far outside what the stop explains */
    double percentile_error_ns;     /* the same, the worst of all percentiles of gaps and arrivals */
};

/*
 * Forks, probes in the child, stops and continues it. To be called while the process has one thread. Returns 0 or -errno.
 * Runs for stop_s and some 0.6 s more.
 */
int stopping_run(struct stopping *s);

#endif
