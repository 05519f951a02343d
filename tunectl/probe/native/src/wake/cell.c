#include "wake/cell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/files.h"
#include "lib/ticks.h"
#include "lib/values.h"

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
    values_write(j, names[which], scratch, n);
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

void occupancy_take(struct occupancy *account, const struct pair *pair)
{
    const struct pair_thread *receiver = &pair->ends[RECEIVER];
    const int tids[] = {atomic_load(&receiver->tid), atomic_load(&pair->ends[SENDER].tid), getpid()};
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
    struct usage used = usage_since(&r->first, &r->last);
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
    json_uint(j, "page_faults", s->used.minor_faults + s->used.major_faults + used.minor_faults + used.major_faults);
    json_uint(j, "preemptions", used.preemptions);
    json_uint(j, "receiver_ns", used.cpu_ns);
    json_uint(j, "receiver_ticks", used.ticks);
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
