/* What is derived from the recorded gaps of one CPU. Pure. */
#ifndef TUNECTL_LIB_STATS_H
#define TUNECTL_LIB_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/recorder.h"

/* Percentiles are named in parts per 100,000, so that 99.999 is a whole number: 99999. */
enum { STATS_WHOLE = 100000 };

/* Gaps of (about) one length, in ticks. */
struct gap_group {
    double length;
    uint64_t count;
};

/* Groups in ascending order of length. `exact` when each group holds gaps of exactly its length. */
struct gap_lengths {
    struct gap_group *groups;
    size_t n;
    uint64_t gaps;
    bool exact;
};

/*
 * The lengths of all gaps: from the list while it is complete, and then exact; otherwise from the histogram, each bucket
 * at the mean of its gaps, off by less than the bucket's width (HISTOGRAM_ERROR_PPM). Returns 0 or -ENOMEM.
 */
int gap_lengths_init(struct gap_lengths *lengths, const struct recorder *r);
void gap_lengths_deinit(struct gap_lengths *lengths);

/* The nearest-rank percentile of the gaps' lengths, in ticks; 0 when there is none. */
double gap_percentile(const struct gap_lengths *lengths, uint32_t parts);

/*
 * The wait that `parts` of all arrivals do not exceed, in ticks. A message arrives at a uniformly random moment of the run
 * of `run_ticks`; in a gap it waits for the rest of the gap, else not at all: P(wait > x) = sum(max(0, L - x)) / run.
 */
double arrival_percentile(const struct gap_lengths *lengths, uint64_t run_ticks, uint32_t parts);

/*
 * How many gaps of about `pause_ticks` (within 20 %) begin one `period_ticks` (within 5 %) after another such gap: the mark of
 * RT throttling or of the deadline fair server under a SCHED_FIFO spinner. `gaps` in order of time.
 */
size_t stats_count_periodic(const struct gap *gaps, size_t n, uint64_t pause_ticks, uint64_t period_ticks);

#endif
