#include "selftest/recall.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t length_of(const struct gap *gap)
{
    return gap->end - gap->start;
}

static uint64_t overlap_of(const struct gap *a, const struct gap *b)
{
    uint64_t start = a->start > b->start ? a->start : b->start;
    uint64_t end = a->end < b->end ? a->end : b->end;
    return end > start ? end - start : 0;
}

/* The listed gap that overlaps `truth` most, from `*at` on, which moves to the first that can matter for later truths. */
static const struct gap *best_match(const struct recorder *r, const struct gap *truth, size_t *at)
{
    const struct gap *best = NULL;
    while (*at < r->gaps_listed && r->gaps[*at].end <= truth->start)
        (*at)++;
    for (size_t i = *at; i < r->gaps_listed && r->gaps[i].start < truth->end; i++)
        if (!best || overlap_of(&r->gaps[i], truth) > overlap_of(best, truth))
            best = &r->gaps[i];
    return best;
}

static int compare_reals(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static void account(struct recall *recall, const struct gap *truth, const struct gap *gap)
{
    uint64_t shortfall = length_of(truth) - overlap_of(truth, gap);
    if (!recall->found || length_of(gap) < recall->shortest)
        recall->shortest = length_of(gap);
    if (shortfall > recall->shortfall)
        recall->shortfall = shortfall;
}

int recall_judge(struct recall *recall, const struct gap *truths, size_t n, const struct recorder *r)
{
    const struct gap *last_match = NULL;
    uint64_t listed_until = r->gaps_listed ? r->gaps[r->gaps_listed - 1].end : 0;
    double *errors = calloc(n + 1, sizeof(*errors));
    size_t at = 0;
    *recall = (struct recall){.injected = n};
    if (!errors)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct gap *gap = best_match(r, &truths[i], &at);
        if (!gap) {
            bool is_beyond = r->gaps_lost && truths[i].start >= listed_until;
            recall->beyond += is_beyond;
            recall->missed += !is_beyond;
            continue;
        }
        account(recall, &truths[i], gap);
        errors[recall->found++] = (double)length_of(gap) - (double)length_of(&truths[i]);
        recall->gaps += gap != last_match;
        last_match = gap;
    }
    if (recall->found) {
        qsort(errors, recall->found, sizeof(*errors), compare_reals);
        recall->error_min = errors[0];
        recall->error_median = errors[recall->found / 2];
        recall->error_max = errors[recall->found - 1];
    }
    free(errors);
    return 0;
}

double recall_outside(double value, double from, double to)
{
    return value < from ? from - value : value > to ? value - to : 0.0;
}
