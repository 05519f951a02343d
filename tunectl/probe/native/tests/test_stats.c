#include "check.h"
#include "lib/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A gap of each given length, far enough apart. */
static void record(struct recorder *r, size_t capacity, const uint64_t *lengths, size_t n)
{
    bool locked;
    uint64_t at = 1;
    CHECK(recorder_init(r, capacity, &locked) == 0);
    for (size_t i = 0; i < n; i++) {
        recorder_add(r, at, at + lengths[i]);
        at += lengths[i] + 1000;
    }
    recorder_finish(r);
}

static int compare_lengths(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The definition itself: the share of the run in which an arrival waits longer than x. */
static long double share_waiting_longer(const uint64_t *lengths, size_t n, long double run, long double x)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++)
        if ((long double)lengths[i] > x)
            sum += (long double)lengths[i] - x;
    return sum / run;
}

/* Bisection on that definition: nothing in common with the code under test. */
static long double naive_arrival(const uint64_t *lengths, size_t n, long double run, long double may_exceed)
{
    long double low = 0;
    long double high = 2e19L;
    if (share_waiting_longer(lengths, n, run, 0) <= may_exceed)
        return 0;
    for (int i = 0; i < 200; i++) {
        long double middle = (low + high) / 2;
        if (share_waiting_longer(lengths, n, run, middle) > may_exceed)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static const uint32_t all_parts[] = {50000, 99000, 99900, 99990, 99999};

static void check_against_naive(uint64_t *lengths, size_t n, size_t capacity, uint64_t run, double tolerance)
{
    struct recorder r;
    struct gap_lengths g;
    record(&r, capacity, lengths, n);
    CHECK(gap_lengths_init(&g, &r) == 0);
    CHECK(g.exact == (capacity >= n));
    qsort(lengths, n, sizeof(*lengths), compare_lengths);
    for (size_t i = 0; i < sizeof(all_parts) / sizeof(*all_parts); i++) {
        uint32_t parts = all_parts[i];
        size_t rank = (n * parts + STATS_WHOLE - 1) / STATS_WHOLE;
        double truth = n ? (double)lengths[rank - 1] : 0.0;
        CHECK(fabs(gap_percentile(&g, parts) - truth) <= tolerance * truth);
        long double naive = naive_arrival(lengths, n, (long double)run, (long double)(STATS_WHOLE - parts) / 100000.0L);
        double found = arrival_percentile(&g, run, parts);
        /* outside the bucket that holds x both sums are exact, so only that bucket's width is lost; doubles lose 1e-9 */
        double longest = n ? (double)lengths[n - 1] : 0.0;
        CHECK(fabs(found - (double)naive) <= tolerance * (double)naive + 1e-9 * longest + 1e-6);
    }
    gap_lengths_deinit(&g);
    recorder_deinit(&r);
}

static void agrees_with_the_definition(void)
{
    enum { N = 5000 };
    static uint64_t lengths[N];
    uint64_t state = 42;
    for (unsigned shape = 0; shape < 12; shape++) {
        uint64_t total = 0;
        size_t n = shape == 0 ? 0 : shape == 1 ? 1 : shape == 2 ? 2 : N;
        for (size_t i = 0; i < n; i++) {
            lengths[i] = 300 + (random_next(&state) >> (34 + random_next(&state) % (shape < 6 ? 1 : 20)));
            total += lengths[i];
        }
        uint64_t run = shape % 2 ? total + 1 : total * 50 + 1000000;
        check_against_naive(lengths, n, N, run, 0.0);
        check_against_naive(lengths, n, n / 3, run, n > 2 || n == 0 ? 0.0079 : 0.0);
    }
}

static void one_long_gap_by_hand(void)
{
    uint64_t lengths[] = {2500000};
    struct recorder r;
    struct gap_lengths g;
    record(&r, 1, lengths, 1);
    CHECK(gap_lengths_init(&g, &r) == 0);
    /* run 10,000,000: a quarter of it is this gap. 1 % may wait longer than x: (2,500,000 - x) = 100,000. */
    CHECK(arrival_percentile(&g, 10000000, 99000) == 2400000.0);
    CHECK(arrival_percentile(&g, 10000000, 99999) == 2499900.0);
    CHECK(arrival_percentile(&g, 10000000, 50000) == 0.0);
    CHECK(gap_percentile(&g, 50000) == 2500000.0);
    gap_lengths_deinit(&g);
    recorder_deinit(&r);
}

/* 2.5 s in ticks of 3 GHz is past 2^31: no comparison may go through an int. */
static void long_gaps_sort_right(void)
{
    uint64_t lengths[] = {7500000000, 3000, 6000, 12000000000, 5000};
    struct recorder r;
    struct gap_lengths g;
    record(&r, 5, lengths, 5);
    CHECK(gap_lengths_init(&g, &r) == 0);
    CHECK(gap_percentile(&g, 50000) == 6000.0);
    CHECK(gap_percentile(&g, 99000) == 12000000000.0);
    CHECK(r.max_ticks == 12000000000);
    gap_lengths_deinit(&g);
    recorder_deinit(&r);
}

static void counts_a_series_of_pauses(void)
{
    struct gap gaps[] = {
        {1000, 1050}, {1500, 1503}, {2000, 2049}, {3010, 3060}, {3500, 3552}, {9000, 9010},
    };
    CHECK(stats_count_periodic(gaps, 6, 50, 1000) == 2);
    CHECK(stats_count_periodic(gaps, 0, 50, 1000) == 0);
    CHECK(stats_count_periodic(gaps, 6, 500, 1000) == 0);
}

void test_stats(void)
{
    agrees_with_the_definition();
    one_long_gap_by_hand();
    long_gaps_sort_right();
    counts_a_series_of_pauses();
}
