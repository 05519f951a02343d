#include "check.h"
#include "selftest/recall.h"

static const struct gap gaps[] = {{100, 130}, {200, 260}, {300, 310}, {400, 500}};

enum { GAPS = sizeof(gaps) / sizeof(*gaps) };

static void record(struct recorder *r, size_t capacity)
{
    bool locked;
    CHECK(recorder_init(r, capacity, &locked) == 0);
    for (size_t i = 0; i < GAPS; i++)
        recorder_add(r, gaps[i].start, gaps[i].end);
    recorder_finish(r);
}

static struct recall judged(const struct gap *truths, size_t n, size_t capacity)
{
    struct recorder r;
    struct recall recall;
    record(&r, capacity);
    CHECK(recall_judge(&recall, truths, n, &r) == 0);
    CHECK(recall.injected == n && recall.found + recall.beyond + recall.missed == n);
    recorder_deinit(&r);
    return recall;
}

static void all_found(void)
{
    static const struct gap truths[] = {{105, 125}, {210, 220}, {230, 240}, {400, 500}};
    struct recall r = judged(truths, 4, 10);
    CHECK(r.found == 4 && r.gaps == 3 && r.shortest == 30 && r.shortfall == 0);
    CHECK(r.error_min == 0.0 && r.error_median == 50.0 && r.error_max == 50.0);
}

/* Between two gaps, before the first and after the last: a probe that sees nothing there has missed it. */
static void missed_ones_are_told(void)
{
    static const struct gap truths[] = {{10, 20}, {140, 150}, {205, 206}, {600, 700}};
    struct recall r = judged(truths, 4, 10);
    CHECK(r.found == 1 && r.missed == 3 && r.beyond == 0);
    r = judged(truths, 0, 10);
    CHECK(r.found == 0 && r.missed == 0 && r.error_max == 0.0);
}

static void a_gap_too_short_is_told(void)
{
    static const struct gap truths[] = {{90, 125}, {290, 320}};
    struct recall r = judged(truths, 2, 10);
    CHECK(r.found == 2 && r.shortfall == 20 && r.error_min == -20.0 && r.error_max == -5.0);
}

/* Behind a full list a truth counts as lost, but only where gaps were counted as lost, and never before the list's end. */
static void beyond_the_list_is_no_miss(void)
{
    static const struct gap truths[] = {{140, 150}, {205, 206}, {305, 306}, {405, 406}};
    struct recall r = judged(truths, 4, 2);
    CHECK(r.found == 1 && r.missed == 1 && r.beyond == 2);
    r = judged(truths, 4, 0);
    CHECK(r.found == 0 && r.missed == 0 && r.beyond == 4);
    static const struct gap late[] = {{600, 601}};
    r = judged(late, 1, GAPS);
    CHECK(r.missed == 1 && r.beyond == 0);
}

static void the_largest_overlap_counts(void)
{
    static const struct gap truths[] = {{120, 280}};
    struct recall r = judged(truths, 1, 10);
    CHECK(r.found == 1 && r.gaps == 1 && r.shortest == 60 && r.shortfall == 100);
}

void test_recall(void)
{
    all_found();
    missed_ones_are_told();
    a_gap_too_short_is_told();
    beyond_the_list_is_no_miss();
    the_largest_overlap_counts();
    CHECK(recall_outside(5.0, 4.0, 6.0) == 0.0 && recall_outside(1.0, 4.0, 6.0) == 3.0 && recall_outside(9.0, 4.0, 6.0) == 3.0);
}
