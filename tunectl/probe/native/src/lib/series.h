/* What happened in each stretch of a run: so that it can be plotted over time. Memory is bounded however long the run. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* At most so many stretches; a run of up to this many seconds has one for each second. */
enum { SERIES_STRETCHES = 1024 };

struct series_stretch {
    uint64_t gaps;          /* that began in it */
    uint64_t stolen;        /* ticks of any gap that fell into it */
    uint64_t max;           /* the longest gap of which any part fell into it, whole, in ticks */
};

struct series {
    struct series_stretch *stretches;   /* SERIES_STRETCHES of them */
    uint64_t start;
    uint64_t length;        /* of a stretch, in ticks; 0: no series is kept */
    size_t at;              /* where the latest gap began; gaps come in the order of time */
};

/* How long a stretch of a run of `duration_s` is, in whole seconds. */
unsigned series_stretch_s(double duration_s);

/* Begins at `start`; all counts are 0 already. */
void series_begin(struct series *s, uint64_t start, uint64_t length);

/*
 * One gap. Gaps come in the order of time, and once more from the start after series_rewind. The last stretch takes what comes
 * after its end. No division: this runs while a probe measures whose list is full.
 */
void series_add(struct series *s, uint64_t start, uint64_t end);
void series_rewind(struct series *s);
