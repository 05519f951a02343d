/*
 * A log-linear histogram over the whole uint64 range.
 *
 * Below 128 every value has a bucket of its own; above, each power of two is cut into 128 equal buckets, so a bucket is
 * never wider than 1/128 (0.79 %) of its values. The last bucket ends at UINT64_MAX: there is no overflow bucket.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
