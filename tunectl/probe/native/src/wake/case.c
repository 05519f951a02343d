#include "wake/case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/histogram.h"
#include "lib/stats.h"

const struct percentile case_percentiles[CASE_PERCENTILES] = {
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
    for (size_t i = 0; i < CASE_PERCENTILES; i++)
        s.at[i] = values[(n * case_percentiles[i].parts + STATS_WHOLE - 1) / STATS_WHOLE - 1];
    return s;
}

/* One of the differences a case is made of, for message `i`. */
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

static int64_t remote_of(const struct exchange *x, size_t i)
{
    return (int64_t)((double)x->receiving.remote_ticks[i] * x->remote_ratio);
}

static int64_t one_way_of(const struct exchange *x, size_t i)
{
    return (delay_of(x, i) - remote_of(x, i)) / 2;
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
static int fill_bins(struct wake_case *c, const int64_t *values, size_t n)
{
    size_t bins = 0;
    for (size_t i = 0; i < n; i++)
        bins += i == 0 || histogram_index((uint64_t)values[i]) != histogram_index((uint64_t)values[i - 1]);
    c->bins = calloc(bins + 1, sizeof(*c->bins));
    if (!c->bins)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        size_t index = histogram_index((uint64_t)values[i]);
        if (c->bins_n == 0 || c->bins[c->bins_n - 1].index != index)
            c->bins[c->bins_n++].index = index;
        c->bins[c->bins_n - 1].count++;
    }
    return 0;
}

static void count_negative(struct wake_case *c, const struct exchange *x)
{
    for (size_t i = 0; i < x->sending.n; i++)
        c->negative += x->receiving.at[i] && delay_of(x, i) < 0;
}

static void say_why_nothing(struct wake_case *c, const struct exchange *x)
{
    int error = x->sending.error ? x->sending.error : x->transport->is_cut ? 0 : x->receiving.error;
    if (x->sending.has_no_napi)
        (void)snprintf(c->reason, sizeof(c->reason), "the socket's NAPI id is 0: no device queue that the kernel could "
                       "poll feeds it (loopback has none), so SO_BUSY_POLL would change nothing");
    else if (error)
        (void)snprintf(c->reason, sizeof(c->reason), "%s failed: %s", x->sending.error ? "sending" : "receiving",
                       error == -EAGAIN ? "the queue stayed full for a second" : strerror(-error));
    else
        (void)snprintf(c->reason, sizeof(c->reason), "%s", x->sending.n ? "every message was lost"
                       : "interrupted before the first message");
}

/* The kernel's clock and the counter differ a little: a spinner has no more than all of a CPU. */
static double share_percent(double cpu_ns, double elapsed_ns)
{
    return cpu_ns < elapsed_ns ? 100.0 * cpu_ns / elapsed_ns : 100.0;
}

int wake_case_conclude(struct wake_case *c, const struct exchange *x, int64_t *scratch)
{
    const struct receiving *r = &x->receiving;
    double elapsed_ns = (double)(r->last_ticks - r->first_ticks) / x->ticks_per_ns;
    c->napi_id = atomic_load(&x->napi_id);
    c->period_ticks = x->sending.period_ticks;
    c->sent = x->sending.n;
    c->lost = x->sending.n > r->n ? x->sending.n - r->n : 0;
    c->duplicates = r->duplicates + r->aliens;
    c->reordered = r->reordered;
    c->page_faults = x->sending.page_faults + r->last_faults - r->first_faults;
    c->preemptions = r->last_preemptions - r->first_preemptions;
    count_negative(c, x);
    c->after_send = spread_over(x, scratch, after_send_of);
    c->sending = spread_over(x, scratch, sending_of);
    c->late = spread_over(x, scratch, late_of);
    if (x->remote_ratio > 0.0) {
        c->remote = spread_over(x, scratch, remote_of);
        c->one_way = spread_over(x, scratch, one_way_of);
    }
    c->delay = spread_over(x, scratch, delay_of);
    if (c->delay.n == 0)
        say_why_nothing(c, x);
    else if (elapsed_ns > 0.0)
        c->receiver_cpu_percent = share_percent((double)(r->last_cpu_ns - r->first_cpu_ns), elapsed_ns);
    return fill_bins(c, scratch, c->delay.n);
}

void wake_case_deinit(struct wake_case *c)
{
    free(c->bins);
    warnings_deinit(&c->warnings);
    *c = (struct wake_case){0};
}
