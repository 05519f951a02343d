#include "cell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "histogram.h"
#include "stats.h"

const struct percentile cell_percentiles[CELL_PERCENTILES] = {
    {"50", 50000}, {"90", 90000}, {"95", 95000}, {"99", 99000}, {"99.9", 99900}, {"99.99", 99990},
};

static int compare_signed(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

struct spread spread_of(int64_t *values, size_t n)
{
    struct spread s = {.n = n};
    double sum = 0.0;
    if (n == 0)
        return s;
    qsort(values, n, sizeof(*values), compare_signed);
    for (size_t i = 0; i < n; i++)
        sum += (double)values[i];
    s.mean = sum / (double)n;
    s.min = values[0];
    s.max = values[n - 1];
    for (size_t i = 0; i < CELL_PERCENTILES; i++)
        s.at[i] = values[(n * cell_percentiles[i].parts + STATS_WHOLE - 1) / STATS_WHOLE - 1];
    return s;
}

/* One of the differences a cell is made of, for message `i`. */
typedef int64_t (*difference)(const struct exchange *x, size_t i);

static int64_t delay_of(const struct exchange *x, size_t i)
{
    return (int64_t)(x->receiving.at[i] - x->sending.before[i]);
}

static int64_t after_send_of(const struct exchange *x, size_t i)
{
    return (int64_t)(x->receiving.at[i] - x->sending.after[i]);
}

static int64_t sending_of(const struct exchange *x, size_t i)
{
    return (int64_t)(x->sending.after[i] - x->sending.before[i]);
}

static int64_t late_of(const struct exchange *x, size_t i)
{
    return (int64_t)(x->sending.before[i] - (x->sending.start_ticks + i * x->sending.period_ticks));
}

static int64_t far_of(const struct exchange *x, size_t i)
{
    return (int64_t)((double)x->receiving.far_ticks[i] * x->far_ratio);
}

static int64_t one_way_of(const struct exchange *x, size_t i)
{
    return (delay_of(x, i) - far_of(x, i)) / 2;
}

static bool has_arrived(const struct exchange *x, size_t i)
{
    return x->receiving.at[i] && delay_of(x, i) >= 0;
}

/* Over the messages that arrived. */
static struct spread spread_over(const struct exchange *x, int64_t *scratch, difference of)
{
    size_t n = 0;
    for (size_t i = 0; i < x->sending.n; i++)
        if (has_arrived(x, i))
            scratch[n++] = of(x, i);
    return spread_of(scratch, n);
}

/* `values` ascending, none negative. */
static int fill_bins(struct cell *cell, const int64_t *values, size_t n)
{
    size_t bins = 0;
    for (size_t i = 0; i < n; i++)
        bins += i == 0 || histogram_index((uint64_t)values[i]) != histogram_index((uint64_t)values[i - 1]);
    cell->bins = calloc(bins + 1, sizeof(*cell->bins));
    if (!cell->bins)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        size_t index = histogram_index((uint64_t)values[i]);
        if (cell->bins_n == 0 || cell->bins[cell->bins_n - 1].index != index)
            cell->bins[cell->bins_n++].index = index;
        cell->bins[cell->bins_n - 1].count++;
    }
    return 0;
}

static void count_negative(struct cell *cell, const struct exchange *x)
{
    for (size_t i = 0; i < x->sending.n; i++)
        cell->negative += x->receiving.at[i] && delay_of(x, i) < 0;
}

static void say_why_nothing(struct cell *cell, const struct exchange *x)
{
    int error = x->sending.error ? x->sending.error : x->link->is_cut ? 0 : x->receiving.error;
    if (x->sending.has_no_napi)
        (void)snprintf(cell->reason, sizeof(cell->reason), "the socket's NAPI id is 0: no device queue that the kernel could "
                       "poll feeds it (loopback has none), so SO_BUSY_POLL would change nothing");
    else if (error)
        (void)snprintf(cell->reason, sizeof(cell->reason), "%s failed: %s", x->sending.error ? "sending" : "receiving",
                       error == -EAGAIN ? "the queue stayed full for a second" : strerror(-error));
    else
        (void)snprintf(cell->reason, sizeof(cell->reason), "%s", x->sending.n ? "every message was lost"
                                                                              : "interrupted before the first message");
}

/* The kernel's clock and the counter differ a little: a spinner has no more than all of a CPU. */
static double share_percent(double cpu_ns, double elapsed_ns)
{
    return cpu_ns < elapsed_ns ? 100.0 * cpu_ns / elapsed_ns : 100.0;
}

int cell_conclude(struct cell *cell, const struct exchange *x, int64_t *scratch)
{
    const struct receiving *r = &x->receiving;
    double elapsed_ns = (double)(r->last_ticks - r->first_ticks) / x->ticks_per_ns;
    cell->napi_id = atomic_load(&x->napi_id);
    cell->period_ticks = x->sending.period_ticks;
    cell->sent = x->sending.n;
    cell->lost = x->sending.n > r->n ? x->sending.n - r->n : 0;
    cell->duplicates = r->duplicates + r->aliens;
    cell->reordered = r->reordered;
    cell->page_faults = x->sending.page_faults + r->last_faults - r->first_faults;
    cell->preemptions = r->last_preemptions - r->first_preemptions;
    count_negative(cell, x);
    cell->after_send = spread_over(x, scratch, after_send_of);
    cell->sending = spread_over(x, scratch, sending_of);
    cell->late = spread_over(x, scratch, late_of);
    if (x->far_ratio > 0.0) {
        cell->far = spread_over(x, scratch, far_of);
        cell->one_way = spread_over(x, scratch, one_way_of);
    }
    cell->delay = spread_over(x, scratch, delay_of);
    if (cell->delay.n == 0)
        say_why_nothing(cell, x);
    else if (elapsed_ns > 0.0)
        cell->receiver_cpu_percent = share_percent((double)(r->last_cpu_ns - r->first_cpu_ns), elapsed_ns);
    return fill_bins(cell, scratch, cell->delay.n);
}

void cell_deinit(struct cell *cell)
{
    free(cell->bins);
    warnings_deinit(&cell->warnings);
    *cell = (struct cell){0};
}
