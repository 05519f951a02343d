/*
 * Which interruptions come at regular intervals: what returns every 4.000 ms is a tick. Pure but for memory.
 *
 * The distances from each gap's start to the starts of the gaps after it are counted in a log-linear histogram. Chance spreads
 * them evenly over a neighbourhood; a period heaps them at one distance, as many as it fits into the time observed. The
 * shortest such heap is the period; its gaps are then taken out, and the search goes on with the rest. Pauses of a millisecond and
 * more are searched by themselves: they are few, and the many short gaps around them would drown them.
 */
#ifndef TUNECTL_JITTER_PERIODS_H
#define TUNECTL_JITTER_PERIODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/recorder.h"

enum { PERIODS_MAX = 4, PERIOD_LABELS = 1024 };

struct period {
    double ticks;           /* from start to start, the mean over the chain */
    uint64_t count;         /* gaps in the chain: pairs one period apart, those that chance explains left out, and one */
    double coverage;        /* of the times the period fits into the time observed, the share that had a gap; at most 1 */
    double mean_length;     /* of the gaps with another one period before or after them, in ticks */
    size_t example;         /* the index of one of them; with labels, one of the most frequent label among them */
    bool is_pause;          /* they last a millisecond or more */
};

/*
 * The periods from 0.5 ms to 1.2 s in the first 8192 gaps of a list in the order of time, up to PERIODS_MAX of them: those
 * of pauses, then those of shorter gaps, the shortest period first. `labels`, one below PERIOD_LABELS for each gap, or NULL.
 * Returns 0 or -ENOMEM, and their number in `*n`.
 */
int periods_find(struct period periods[PERIODS_MAX], size_t *n, const struct gap *gaps, size_t n_gaps, double hz,
                 const uint32_t *labels);

/* What is known to come so often, "a timer tick at HZ=250"; NULL for nothing. */
const char *period_name(const struct period *period, double hz);

#endif
