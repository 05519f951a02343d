/*
 * Where one CPU's gaps go: a bounded list of their stamps, and a histogram, a series and totals that hold every gap.
 *
 * All memory is given beforehand. While measuring, a gap costs one write to the list and nothing else, so that recording
 * stays shorter than what is looked for; gaps the list has no room for go into histogram and series at once, and are
 * counted in `gaps_lost`; the last GAPS_LATEST of them are kept. recorder_finish then adds the listed ones to histogram,
 * series and totals.
 *
 * Short gaps come by the thousand a second, long ones are few, and they are what matters. So short ones leave the last
 * eighth of the list to long ones, which then stand in it over the whole run. It stays one list, in the order of time.
 *
 * Gaps that touch are one interruption. Behind an interruption the caches are cold, and the turn in which it was recorded
 * may be longer than the threshold itself: counted by itself, it would be an interruption of our own making. So
 * the CPU counts as back only after one whole quiet turn.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A log-linear histogram over the whole uint64 range.
 *
 * Below 128 every value has a bucket of its own; above, each power of two is cut into 128 equal buckets, so a bucket is
 * never wider than 1/128 (0.79 %) of its values. The last bucket ends at UINT64_MAX: there is no overflow bucket.
 */
enum {
    HISTOGRAM_SUB_BITS = 7,
    HISTOGRAM_SUB_COUNT = 1 << HISTOGRAM_SUB_BITS,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUB_COUNT,
    /* the widest a bucket can be against the values in it, in parts per million, rounded up */
    HISTOGRAM_ERROR_PPM = 7813,
};

/* Count and sum side by side: one cache line is touched for each gap recorded. */
struct histogram_bucket {
    uint64_t count;
    uint64_t sum;
};

struct histogram {
    struct histogram_bucket buckets[HISTOGRAM_BUCKETS];
};

/* The bucket that holds `value`. */
static inline size_t histogram_index(uint64_t value)
{
    if (value < HISTOGRAM_SUB_COUNT)
        return (size_t)value;
    unsigned shift = 63U - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
    return ((size_t)(shift + 1) << HISTOGRAM_SUB_BITS) + (size_t)((value >> shift) & (HISTOGRAM_SUB_COUNT - 1));
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
    struct histogram_bucket *bucket = &h->buckets[histogram_index(value)];
    bucket->count++;
    bucket->sum += value;
}

/* The smallest value of bucket `index`. The largest is one less than the next bucket's smallest, or UINT64_MAX. */
static inline uint64_t histogram_first(size_t index)
{
    if (index < HISTOGRAM_SUB_COUNT)
        return index;
    uint64_t mantissa = HISTOGRAM_SUB_COUNT + (index & (HISTOGRAM_SUB_COUNT - 1));
    return mantissa << ((index >> HISTOGRAM_SUB_BITS) - 1);
}

/* What happened in each stretch of a run: so that it can be plotted over time. Memory is bounded however long the run. */
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

/* An interruption: the last stamp before it and the first after it, in ticks. */
struct gap {
    uint64_t start;
    uint64_t end;
};

enum { GAPS_LATEST = 64 };

struct recorder {
    struct histogram *histogram;
    struct series series;       /* none is kept until series_begin */
    struct gap *gaps;
    size_t gaps_capacity;
    struct gap *latest;         /* a ring: gap n of those without a place in the list is at n % GAPS_LATEST */
    void *arena;                /* which holds all of these */
    size_t arena_bytes;
    uint64_t until_ticks;       /* a gap so long ends the loop; UINT64_MAX: none does */
    uint64_t long_ticks;        /* a gap so long may have the last eighth of the list; 0: any may */
    struct gap open;            /* the latest gap, which may still grow; end 0 when there is none */
    uint64_t turns_merged;      /* gaps that were added to the one before */
    size_t gaps_listed;
    uint64_t gaps_lost;
    uint64_t first_lost_ticks;  /* where the first of them began: all gaps before are listed */
    uint64_t gaps_total;        /* this and the rest are right after recorder_finish */
    uint64_t stolen_ticks;
    uint64_t max_ticks;
    uint64_t lost_ticks;        /* of the gaps that were not listed: their sum, and the longest */
    uint64_t lost_max_ticks;
};

/*
 * Memory for `gaps_capacity` listed gaps, mapped by one process and shared with those it forks. Returns 0 or -errno. The one that measures
 * touches it, so that it lies on its node, and locks it; returns whether mlock succeeded: the recorder is usable without.
 */
int recorder_map(struct recorder *r, size_t gaps_capacity);
bool recorder_touch(struct recorder *r);

/* Forgets every gap; memory stays. */
void recorder_reset(struct recorder *r);

/* One gap into the histogram, the series and the totals. */
static inline void recorder_account(struct recorder *r, const struct gap *gap)
{
    uint64_t length = gap->end - gap->start;
    series_add(&r->series, gap->start, gap->end);
    histogram_add(r->histogram, length);
    r->gaps_total++;
    r->stolen_ticks += length;
    if (length > r->max_ticks)
        r->max_ticks = length;
}

/* How many gaps the list may have before one of this length is left out. */
static inline size_t recorder_room(const struct recorder *r, uint64_t length)
{
    return length < r->long_ticks ? r->gaps_capacity - r->gaps_capacity / 8 : r->gaps_capacity;
}

static inline void recorder_commit(struct recorder *r)
{
    if (r->gaps_listed >= recorder_room(r, r->open.end - r->open.start)) {
        if (!r->gaps_lost)
            r->first_lost_ticks = r->open.start;
        r->latest[r->gaps_lost++ % GAPS_LATEST] = r->open;
        recorder_account(r, &r->open);
        return;
    }
    r->gaps[r->gaps_listed++] = r->open;
    /* The next slot is fetched now, while nobody waits. */
    __builtin_prefetch(&r->gaps[r->gaps_listed], 1);
}

/* Gaps come in the order of time, `start` and `end` in ticks, end > start > 0. */
static inline void recorder_add(struct recorder *r, uint64_t start, uint64_t end)
{
    if (start == r->open.end) {
        r->open.end = end;
        r->turns_merged++;
        return;
    }
    if (r->open.end)
        recorder_commit(r);
    r->open = (struct gap){start, end};
}

/* Is the latest gap so long that it ends the loop? */
static inline bool recorder_has_reached(const struct recorder *r)
{
    return r->open.end - r->open.start >= r->until_ticks;
}

/* Once, after the last gap. */
void recorder_finish(struct recorder *r);
