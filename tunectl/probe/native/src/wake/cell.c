#include "wake/cell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/files.h"
#include "lib/histogram.h"
#include "lib/ticks.h"

/* Differences between the stamps of a message, in ticks. */
enum difference {
    DELAY,              /* received - sent; between hosts of the message that came back */
    AFTER_SEND,         /* received - sent_after */
    SEND_CALL,          /* sent_after - sent: what the call itself took */
    LATE,               /* sent - due */
    FAR,                /* between hosts: how long the other one had the message */
    AWAY,               /* between hosts: the rest */
    DIFFERENCES,
};

static const char *const names[DIFFERENCES] = {"delay", "after_send", "send_call", "late", "far", "away"};

/* Each value by itself, or each bucket of both signs. */
enum { PAIRS_MOST = 2 * HISTOGRAM_BUCKETS + 2 };

static int compare_signed(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static size_t count_different(const int64_t *sorted, size_t n)
{
    size_t different = n > 0;
    for (size_t i = 1; i < n; i++)
        different += sorted[i] != sorted[i - 1];
    return different;
}

static bool is_in_one_bucket(int64_t a, int64_t b)
{
    return (a < 0) == (b < 0) && histogram_index((uint64_t)llabs(a)) == histogram_index((uint64_t)llabs(b));
}

void cell_write_values(struct json *j, const char *key, int64_t *of, size_t n)
{
    static int64_t pairs[2 * PAIRS_MOST];
    size_t filled = 0;
    qsort(of, n, sizeof(*of), compare_signed);
    bool is_exact = count_different(of, n) <= CELL_VALUES_MOST;
    for (size_t from = 0, to; from < n; from = to) {
        bool is_alone = is_exact || of[from] == of[0];
        int64_t beyond = 0;
        for (to = from + 1; to < n; to++) {
            if (of[to] != of[from] && (is_alone || of[to] == of[n - 1] || !is_in_one_bucket(of[from], of[to])))
                break;
            beyond += of[to] - of[from];
        }
        int64_t count = (int64_t)(to - from);
        pairs[filled++] = of[from] + beyond / count;
        pairs[filled++] = count;
    }
    json_ints(j, key, pairs, filled);
}

static int64_t difference_of(const struct exchange *x, enum difference which, size_t i)
{
    int64_t delay = (int64_t)(x->receiving.at[i] - x->sending.before[i]);
    int64_t far = (int64_t)((double)x->receiving.remote_ticks[i] * x->remote_ratio);
    switch (which) {
    case AFTER_SEND:
        return (int64_t)(x->receiving.at[i] - x->sending.after[i]);
    case SEND_CALL:
        return (int64_t)(x->sending.after[i] - x->sending.before[i]);
    case LATE:
        return (int64_t)(x->sending.before[i] - (x->sending.start_ticks + i * x->sending.period_ticks));
    case FAR:
        return far;
    case AWAY:
        return delay - far;
    default:
        return delay;
    }
}

static bool is_negative(const struct exchange *x, size_t i)
{
    return x->receiving.at[i] && difference_of(x, DELAY, i) < 0;
}

/* Of the messages that arrived. */
static void write_differences(struct json *j, const struct exchange *x, enum difference which, int64_t *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < x->sending.n; i++)
        if (x->receiving.at[i] && !is_negative(x, i))
            scratch[n++] = difference_of(x, which, i);
    cell_write_values(j, names[which], scratch, n);
}

/* Sent while the receiver still made its caches cold after the one before. */
static size_t count_unready(const struct exchange *x)
{
    size_t n = 0;
    for (size_t i = 1; i < x->sending.n; i++)
        n += x->sending.before[i] < x->receiving.ready[i - 1];
    return n;
}

void occupancy_find_cpu(char line[OCCUPANCY_LINE], const char *text, unsigned cpu)
{
    char key[32];
    (void)snprintf(key, sizeof(key), "\ncpu%u ", cpu);
    const char *found = strstr(text, key);
    size_t length = found ? strcspn(found + 1, "\n") : 0;
    (void)snprintf(line, OCCUPANCY_LINE, "%.*s", (int)(length < OCCUPANCY_LINE ? length : OCCUPANCY_LINE - 1), found ? found + 1 : "");
}

static void read_cpu(struct occupancy *account, const char *path, unsigned cpu)
{
    struct text text = file_read("", "%s", path);
    occupancy_find_cpu(account->cpu, text.bytes ? text.bytes : "", cpu);
    text_deinit(&text);
}

void occupancy_take(struct occupancy *account, const struct wake_threads *threads)
{
    const struct wake_thread *receiver = &threads->ends[RECEIVER];
    const int tids[] = {atomic_load(&receiver->tid), atomic_load(&threads->ends[SENDER].tid), getpid()};
    account->ticks = ticks_now();
    read_cpu(account, "/proc/schedstat", receiver->cpu);
    account->has_slices = account->cpu[0] != '\0';
    if (!account->has_slices)
        read_cpu(account, "/proc/stat", receiver->cpu);
    for (size_t i = 0; i < OCCUPANCY_THREADS; i++)
        (void)line_of(file_read("", "/proc/self/task/%d/schedstat", tids[i]), account->threads[i], sizeof(account->threads[i]));
}

static void write_occupancy(struct json *j, const char *key, const struct occupancy *account)
{
    json_open(j, key, '{');
    json_uint(j, "ticks", account->ticks);
    json_string(j, account->has_slices ? "schedstat" : "stat", account->cpu);
    json_open(j, "threads", '[');
    for (size_t i = 0; i < OCCUPANCY_THREADS; i++)
        json_string(j, NULL, account->threads[i]);
    json_close(j, ']');
    json_close(j, '}');
}

static void write_counts(struct json *j, const struct exchange *x)
{
    const struct sending *s = &x->sending;
    const struct receiving *r = &x->receiving;
    int error = s->error ? s->error : r->error;
    uint64_t negative = 0;
    for (size_t i = 0; i < s->n; i++)
        negative += is_negative(x, i);
    json_uint(j, "sent", s->n);
    json_uint(j, "arrived", atomic_load(&r->n));
    json_uint(j, "duplicates", r->duplicates);
    json_uint(j, "reordered", r->reordered);
    json_uint(j, "negative", negative);
    json_uint(j, "unready", count_unready(x));
    json_uint(j, "late_expirations", x->transport->timer.late);
    json_uint(j, "period_ticks", s->period_ticks);
    json_uint(j, "page_faults", s->page_faults + r->last.page_faults - r->first.page_faults);
    json_uint(j, "preemptions", r->last.preemptions - r->first.preemptions);
    json_uint(j, "receiver_ns", r->last.cpu_ns - r->first.cpu_ns);
    json_uint(j, "receiver_ticks", r->last.ticks - r->first.ticks);
    json_uint(j, "napi_id", atomic_load(&x->napi_id));
    json_bool(j, "has_no_napi", s->has_no_napi);
    json_string(j, "failed", !error ? "" : s->error ? "sending" : "receiving");
    json_uint(j, "errno", (uint64_t)-error);
}

int cell_write(struct json *j, const struct exchange *x, const struct occupancy *before, const struct occupancy *after)
{
    enum difference end = exchange_is_of_a_timer(x) ? AFTER_SEND : x->remote_ratio > 0.0 ? DIFFERENCES : FAR;
    int64_t *scratch = calloc(x->messages, sizeof(*scratch));
    if (!scratch)
        return -ENOMEM;
    write_counts(j, x);
    for (enum difference which = DELAY; which < end; which++)
        write_differences(j, x, which, scratch);
    write_occupancy(j, "before", before);
    write_occupancy(j, "after", after);
    free(scratch);
    return 0;
}
