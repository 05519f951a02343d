#include "jitter/periods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Gaps looked at, and followers of each: the work stays below some four million steps. */
enum { GAPS_MOST = 8192, FOLLOWERS_MOST = 512, REPEATS_LEAST = 3 };

/* In buckets: how much a heap takes in on either side, and the neighbourhood it has to stand out from. */
enum { HEAP_REACH = 1, NEAR = 4, FAR = 20 };

static const double least_s = 0.0005;
static const double most_s = 1.2;
static const double pause_s = 0.001;
static const double coverage_wanted = 0.7;
static const double deviations_wanted = 6.0;
static const double tolerance = 0.01;   /* of the period: a tick comes late behind a longer interruption */

struct search {
    struct histogram *distances;
    const struct gap **gaps;            /* those not yet explained by a period */
    size_t n;
    const uint32_t *labels;             /* of all gaps, or NULL */
    uint64_t least;
    uint64_t most;
};

static double observed_ticks(const struct search *s)
{
    return (double)(s->gaps[s->n - 1]->start - s->gaps[0]->start);
}

static void count_distances(struct search *s)
{
    memset(s->distances, 0, sizeof(*s->distances));
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = i + 1; j < s->n && j - i <= FOLLOWERS_MOST; j++) {
            uint64_t distance = s->gaps[j]->start - s->gaps[i]->start;
            if (distance > s->most)
                break;
            histogram_add(s->distances, distance);
        }
}

/* The buckets around `index`: a period near an edge falls on both sides of it. */
static struct histogram_bucket heap_at(const struct histogram *h, size_t index)
{
    struct histogram_bucket heap = {0};
    for (size_t i = index - HEAP_REACH; i <= index + HEAP_REACH; i++) {
        heap.count += h->buckets[i].count;
        heap.sum += h->buckets[i].sum;
    }
    return heap;
}

static double width_of(size_t first, size_t last)
{
    return (double)(histogram_last(last) - histogram_first(first) + 1);
}

/*
 * How many distances would lie in the heap at `index` without a period: as densely as on the denser side beside it. Bursts make
 * some distances more frequent than others, so that an average over the whole run would be too low.
 */
static double chance_at(const struct search *s, size_t index)
{
    uint64_t below = 0;
    uint64_t above = 0;
    for (size_t off = NEAR; off <= FAR; off++) {
        below += s->distances->buckets[index - off].count;
        above += s->distances->buckets[index + off].count;
    }
    double below_density = (double)below / width_of(index - FAR, index - NEAR);
    double above_density = (double)above / width_of(index + NEAR, index + FAR);
    double density = below_density > above_density ? below_density : above_density;
    return density * width_of(index - HEAP_REACH, index + HEAP_REACH);
}

static bool is_period(const struct search *s, size_t index)
{
    double chance = chance_at(s, index);
    double excess = (double)heap_at(s->distances, index).count - chance;
    double by_period = observed_ticks(s) / (double)histogram_first(index);
    return excess >= (double)REPEATS_LEAST - 0.5 && excess >= coverage_wanted * (double)(uint64_t)by_period &&
           excess * excess >= deviations_wanted * deviations_wanted * chance;
}

/* The bucket of the shortest period, in the middle of its heap; 0 when there is none. */
static size_t find_bucket(const struct search *s)
{
    for (size_t i = histogram_index(s->least); i <= histogram_index(s->most); i++) {
        if (!is_period(s, i))
            continue;
        size_t best = i;
        for (size_t j = i; j <= i + NEAR; j++)
            /* Beside a dense neighbourhood a bucket may hold more than the period, and still less than by chance. */
            if (is_period(s, j) && heap_at(s->distances, j).count > heap_at(s->distances, best).count)
                best = j;
        return best;
    }
    return 0;
}

static bool is_about(double value, double expected)
{
    double off = value > expected ? value - expected : expected - value;
    return off <= tolerance * expected;
}

/* Is there a gap one period after gap `i` (or, backwards, before it)? */
static bool has_partner(const struct search *s, size_t i, double ticks, int direction)
{
    for (size_t j = i;;) {
        if (direction < 0 ? j == 0 : j + 1 == s->n)
            return false;
        j = direction < 0 ? j - 1 : j + 1;
        uint64_t a = s->gaps[i]->start;
        uint64_t b = s->gaps[j]->start;
        double distance = (double)(a > b ? a - b : b - a);
        if (distance > (1.0 + tolerance) * ticks)
            return false;
        if (is_about(distance, ticks))
            return true;
    }
}

/* The distances near `rough`, in finer steps: the mean of those in the three fullest steps side by side. */
static double refined(const struct search *s, double rough)
{
    enum { STEPS = 80 };
    struct histogram_bucket steps[STEPS] = {0};
    struct histogram_bucket best = {0};
    double from = rough * (1.0 - 2.0 * tolerance);
    double step = rough * 4.0 * tolerance / (double)STEPS;
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = i + 1; j < s->n && j - i <= FOLLOWERS_MOST; j++) {
            uint64_t distance = s->gaps[j]->start - s->gaps[i]->start;
            double at = ((double)distance - from) / step;
            if (at >= (double)STEPS)
                break;
            if (at < 0.0)
                continue;
            steps[(size_t)at].count++;
            steps[(size_t)at].sum += distance;
        }
    for (size_t i = 1; i + 1 < STEPS; i++) {
        uint64_t count = steps[i - 1].count + steps[i].count + steps[i + 1].count;
        if (count > best.count)
            best = (struct histogram_bucket){count, steps[i - 1].sum + steps[i].sum + steps[i + 1].sum};
    }
    return best.count ? (double)best.sum / (double)best.count : rough;
}

/* Of the gaps that belong, the index of the first; with labels, of the first with the label most of them have. */
static size_t example_of(const struct search *s, const struct gap *all, const bool *belongs)
{
    uint32_t counts[PERIOD_LABELS] = {0};
    size_t example = 0;
    uint32_t best = 0;
    for (size_t i = 0; i < s->n; i++)
        if (belongs[i] && s->labels)
            counts[s->labels[s->gaps[i] - all]]++;
    for (size_t i = s->n; i-- > 0;) {
        size_t index = (size_t)(s->gaps[i] - all);
        uint32_t count = s->labels ? counts[s->labels[index]] : 0;
        if (belongs[i] && count >= best) {
            best = count;
            example = index;
        }
    }
    return example;
}

/* Describes the period at `bucket` and keeps only the gaps that are no part of it. */
static struct period take_out(struct search *s, const struct gap *all, size_t bucket, bool *belongs)
{
    struct histogram_bucket heap = heap_at(s->distances, bucket);
    struct period found = {.ticks = refined(s, (double)heap.sum / (double)heap.count)};
    double excess = (double)heap.count - chance_at(s, bucket);
    size_t members = 0;
    size_t kept = 0;
    found.count = (uint64_t)(excess + 0.5) + 1;
    found.coverage = excess / (double)(uint64_t)(observed_ticks(s) / found.ticks * (1.0 + tolerance));
    if (found.coverage > 1.0)
        found.coverage = 1.0;
    for (size_t i = 0; i < s->n; i++)
        belongs[i] = has_partner(s, i, found.ticks, 1) || has_partner(s, i, found.ticks, -1);
    found.example = example_of(s, all, belongs);
    for (size_t i = 0; i < s->n; i++) {
        const struct gap *gap = s->gaps[i];
        if (!belongs[i]) {
            s->gaps[kept++] = gap;
            continue;
        }
        members++;
        found.mean_length += (double)(gap->end - gap->start);
    }
    if (members)
        found.mean_length /= (double)members;
    else
        found.count = 0;
    s->n = kept;
    return found;
}

/* Some ticks came late and were no part of the tick's own chain; they are still so many ticks apart. */
static bool is_multiple(const struct period *found, size_t n, double ticks)
{
    for (size_t i = 0; i < n; i++) {
        double times = (double)(uint64_t)(ticks / found[i].ticks + 0.5);
        if (times > 1.5 && is_about(ticks, times * found[i].ticks))
            return true;
    }
    return false;
}

static void find_in(struct search *s, const struct gap *all, bool *belongs, struct period *periods, size_t *n)
{
    size_t first = *n;
    while (*n < PERIODS_MAX && s->n > REPEATS_LEAST) {
        count_distances(s);
        size_t bucket = find_bucket(s);
        if (!bucket)
            return;
        struct period found = take_out(s, all, bucket, belongs);
        if (!found.count)
            return;
        if (!is_multiple(periods + first, *n - first, found.ticks))
            periods[(*n)++] = found;
    }
}

static void choose(struct search *s, const struct gap *gaps, size_t n_gaps, bool pauses, uint64_t pause_ticks)
{
    s->n = 0;
    for (size_t i = 0; i < n_gaps; i++)
        if ((gaps[i].end - gaps[i].start >= pause_ticks) == pauses)
            s->gaps[s->n++] = &gaps[i];
}

int periods_find(struct period periods[PERIODS_MAX], size_t *n, const struct gap *gaps, size_t n_gaps, double hz,
                 const uint32_t *labels)
{
    struct search s = {.labels = labels, .least = (uint64_t)(least_s * hz), .most = (uint64_t)(most_s * hz)};
    size_t looked_at = n_gaps < GAPS_MOST ? n_gaps : GAPS_MOST;
    bool *belongs = calloc(looked_at + 1, sizeof(*belongs));
    s.distances = calloc(1, sizeof(*s.distances));
    s.gaps = calloc(looked_at + 1, sizeof(*s.gaps));
    int rc = s.distances && s.gaps && belongs ? 0 : -ENOMEM;
    *n = 0;
    for (int pauses = 1; pauses >= 0 && !rc; pauses--) {
        size_t before = *n;
        choose(&s, gaps, looked_at, pauses, (uint64_t)(pause_s * hz));
        find_in(&s, gaps, belongs, periods, n);
        for (size_t i = before; i < *n; i++)
            periods[i].is_pause = pauses;
    }
    free(belongs);
    free(s.distances);
    free(s.gaps);
    return rc;
}

const char *period_name(const struct period *period, double hz)
{
    static const struct {
        double seconds;
        bool is_pause;
        const char *name;
    } known[] = {
        {0.001, false, "a timer tick at HZ=1000"},
        {1.0 / 300.0, false, "a timer tick at HZ=300"},
        {0.004, false, "a timer tick at HZ=250"},
        {0.01, false, "a timer tick at HZ=100"},
        {1.0, true, "as long as RT throttling or the deadline fair server takes"},
        {1.0, false, "once a second, as vm.stat_interval and the kernel's own upkeep"},
    };
    /* Both mechanisms take 50 ms of each second by default; a pause of another length is not theirs. */
    double length_s = period->mean_length / hz;
    if (period->is_pause && (length_s < 0.03 || length_s > 0.08))
        return NULL;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].is_pause == period->is_pause && is_about(period->ticks / hz, known[i].seconds))
            return known[i].name;
    return NULL;
}
