/* Interruptions that are known, held against the gaps that were recorded. Pure but for memory. */
#ifndef TUNECTL_SELFTEST_RECALL_H
#define TUNECTL_SELFTEST_RECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/recorder.h"

struct recall {
    uint64_t injected;
    uint64_t found;         /* in a listed gap */
    uint64_t beyond;        /* after the list of gaps was full, and gaps were counted as lost */
    uint64_t missed;        /* neither */
    uint64_t gaps;          /* listed gaps that hold any of them: fewer than found where the CPU did not come back between two */
    uint64_t shortest;      /* gap with a known interruption in it, in ticks */
    double error_min;       /* the gap's length less the truth's, in ticks; never below 0 where the truth is within the gap */
    double error_median;
    double error_max;
    uint64_t shortfall;     /* the most that a gap left out of the truth, in ticks */
};

/*
 * `truths` and the recorder's listed gaps, each in the order of time. A truth is found when a gap overlaps it, and its error is
 * taken from the gap with the largest overlap. Returns 0 or -ENOMEM.
 */
int recall_judge(struct recall *recall, const struct gap *truths, size_t n, const struct recorder *r);

/* How far `value` lies outside from..to. */
double recall_outside(double value, double from, double to);

#endif
