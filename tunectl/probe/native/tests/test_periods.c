#include "check.h"
#include "jitter/periods.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 20000 };

static const double hz = 1e9;

static int compare_starts(const void *left, const void *right)
{
    uint64_t a = ((const struct gap *)left)->start;
    uint64_t b = ((const struct gap *)right)->start;
    return (a > b) - (a < b);
}

/* A gap every `period`, each up to `late` late, with `length`; from `n` on. Returns the new number. */
static size_t regular(struct gap *gaps, size_t n, uint64_t run, uint64_t period, uint64_t late, uint64_t length)
{
    uint64_t state = period;
    for (uint64_t at = 5000000; at < run && n < MOST; at += period) {
        uint64_t start = at + (late ? random_next(&state) % late : 0);
        gaps[n++] = (struct gap){start, start + length};
    }
    return n;
}

/* Gaps at random moments, `per_s` of them a second. */
static size_t irregular(struct gap *gaps, size_t n, uint64_t run, uint64_t per_s)
{
    uint64_t state = 11;
    for (uint64_t i = run / UINT64_C(1000000000) * per_s; i && n < MOST; i--) {
        uint64_t start = 1000 + random_next(&state) % run;
        gaps[n++] = (struct gap){start, start + 1500 + random_next(&state) % 2000};
    }
    return n;
}

static size_t find(struct period *periods, struct gap *gaps, size_t n)
{
    size_t found;
    qsort(gaps, n, sizeof(*gaps), compare_starts);
    CHECK(periods_find(periods, &found, gaps, n, hz, NULL) == 0);
    return found;
}

static bool is_near(double value, double expected, double share)
{
    return value > expected * (1.0 - share) && value < expected * (1.0 + share);
}

static void names(uint64_t period, const char *name)
{
    static struct gap gaps[MOST];
    struct period periods[PERIODS_MAX];
    uint64_t run = UINT64_C(5000000000);
    size_t n = regular(gaps, 0, run, period, period / 500, 3000);
    uint64_t ticks = n;
    n = irregular(gaps, n, run, 200);
    CHECK(find(periods, gaps, n) == 1);
    CHECK(is_near(periods[0].ticks, (double)period, 0.002));
    CHECK(is_near((double)periods[0].count, (double)ticks, 0.1));
    CHECK(periods[0].coverage > 0.9 && !periods[0].is_pause);
    const char *said = period_name(&periods[0], hz);
    CHECK(name ? said && strcmp(said, name) == 0 : !said);
}

static void chance_is_no_period(void)
{
    static struct gap gaps[MOST];
    struct period periods[PERIODS_MAX];
    CHECK(find(periods, gaps, 0) == 0);
    CHECK(find(periods, gaps, irregular(gaps, 0, UINT64_C(5000000000), 1)) == 0);
    CHECK(find(periods, gaps, irregular(gaps, 0, UINT64_C(5000000000), 30)) == 0);
    CHECK(find(periods, gaps, irregular(gaps, 0, UINT64_C(5000000000), 3000)) == 0);
}

static void pauses_are_seen_among_ticks(void)
{
    static struct gap gaps[MOST];
    struct period periods[PERIODS_MAX];
    uint64_t run = UINT64_C(6000000000);
    size_t n = regular(gaps, 0, run, 4000000, 8000, 3000);
    n = regular(gaps, n, run, 1000000000, 100000, 50000000);
    n = irregular(gaps, n, run, 500);
    CHECK(find(periods, gaps, n) == 2);
    CHECK(periods[0].is_pause && is_near(periods[0].ticks, 1e9, 0.002) && is_near(periods[0].mean_length, 5e7, 0.01));
    CHECK(strstr(period_name(&periods[0], hz), "RT throttling") != NULL);
    CHECK(gaps[periods[0].example].end - gaps[periods[0].example].start == 50000000);
    CHECK(strcmp(period_name(&periods[1], hz), "a timer tick at HZ=250") == 0);
}

/* A tick among noise: the example is a tick, though a gap of the noise may come first. */
static void the_example_has_the_common_label(void)
{
    static struct gap gaps[MOST];
    static uint32_t labels[MOST];
    struct period periods[PERIODS_MAX];
    uint64_t run = UINT64_C(5000000000);
    size_t found;
    size_t n = irregular(gaps, regular(gaps, 0, run, 4000000, 8000, 3000), run, 300);
    qsort(gaps, n, sizeof(*gaps), compare_starts);
    for (size_t i = 0; i < n; i++)
        labels[i] = gaps[i].end - gaps[i].start == 3000 ? 7 : (uint32_t)(i % 5);
    CHECK(periods_find(periods, &found, gaps, n, hz, labels) == 0 && found == 1);
    CHECK(labels[periods[0].example] == 7);
}

void test_periods(void)
{
    names(1000000, "a timer tick at HZ=1000");
    names(3333333, "a timer tick at HZ=300");
    names(4000000, "a timer tick at HZ=250");
    names(10000000, "a timer tick at HZ=100");
    names(7000000, NULL);
    names(20000000, NULL);
    chance_is_no_period();
    pauses_are_seen_among_ticks();
    the_example_has_the_common_label();
}
