#include "lib/stats.h"

#include <errno.h>
#include <stdlib.h>

static int compare_groups(const void *left, const void *right)
{
    double a = ((const struct gap_group *)left)->length;
    double b = ((const struct gap_group *)right)->length;
    return (a > b) - (a < b);
}

static size_t groups_from_list(struct gap_group *groups, const struct recorder *r)
{
    for (size_t i = 0; i < r->gaps_listed; i++)
        groups[i] = (struct gap_group){(double)(r->gaps[i].end - r->gaps[i].start), 1};
    qsort(groups, r->gaps_listed, sizeof(*groups), compare_groups);
    return r->gaps_listed;
}

static size_t groups_from_histogram(struct gap_group *groups, const struct recorder *r)
{
    size_t n = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const struct histogram_bucket *b = &r->histogram->buckets[i];
        if (b->count)
            groups[n++] = (struct gap_group){(double)b->sum / (double)b->count, b->count};
    }
    return n;
}

int gap_lengths_init(struct gap_lengths *lengths, const struct recorder *r)
{
    bool complete = r->gaps_lost == 0;
    size_t capacity = complete ? r->gaps_listed + 1 : HISTOGRAM_BUCKETS;
    *lengths = (struct gap_lengths){.gaps = r->gaps_total, .exact = complete};
    lengths->groups = calloc(capacity, sizeof(*lengths->groups));
    if (!lengths->groups)
        return -ENOMEM;
    lengths->n = complete ? groups_from_list(lengths->groups, r) : groups_from_histogram(lengths->groups, r);
    return 0;
}

void gap_lengths_deinit(struct gap_lengths *lengths)
{
    free(lengths->groups);
    *lengths = (struct gap_lengths){0};
}

/* ceil(gaps * parts / whole) without overflow: no run has 2^47 gaps, but a product is cheap to keep safe. */
static uint64_t nearest_rank(uint64_t gaps, uint32_t parts)
{
    uint64_t whole = gaps / STATS_WHOLE * parts;
    uint64_t rest = gaps % STATS_WHOLE * parts;
    return whole + (rest + STATS_WHOLE - 1) / STATS_WHOLE;
}

double gap_percentile(const struct gap_lengths *lengths, uint32_t parts)
{
    uint64_t rank = nearest_rank(lengths->gaps, parts);
    uint64_t seen = 0;
    for (size_t i = 0; i < lengths->n; i++) {
        seen += lengths->groups[i].count;
        if (seen >= rank)
            return lengths->groups[i].length;
    }
    return 0.0;
}

/*
 * sum(max(0, L - x)) falls as x rises, linearly between two neighbouring lengths. Walking down from the longest, `sum` and
 * `count` are those of the gaps longer than x; the first stretch in which the sum reaches the share that may wait longer
 * holds the answer.
 */
double arrival_percentile(const struct gap_lengths *lengths, uint64_t run_ticks, uint32_t parts)
{
    double may_exceed = (double)run_ticks * (double)(STATS_WHOLE - parts) / (double)STATS_WHOLE;
    double sum = 0.0;
    double count = 0.0;
    for (size_t i = lengths->n; i-- > 0;) {
        const struct gap_group *g = &lengths->groups[i];
        sum += g->length * (double)g->count;
        count += (double)g->count;
        double next = i ? lengths->groups[i - 1].length : 0.0;
        if (sum - count * next > may_exceed)
            return (sum - may_exceed) / count;
    }
    return 0.0;
}

static bool is_about(uint64_t value, uint64_t expected, uint64_t percent)
{
    uint64_t distance = value > expected ? value - expected : expected - value;
    return distance <= expected * percent / 100;
}

size_t stats_count_periodic(const struct gap *gaps, size_t n, uint64_t pause_ticks, uint64_t period_ticks)
{
    size_t found = 0;
    uint64_t last_start = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_about(gaps[i].end - gaps[i].start, pause_ticks, 20))
            continue;
        if (last_start && is_about(gaps[i].start - last_start, period_ticks, 5))
            found++;
        last_start = gaps[i].start;
    }
    return found;
}
