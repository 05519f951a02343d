#include <unistd.h>

#include "lib/document.h"
#include "lib/ticks.h"
#include "wake/run.h"

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

struct differences {
    const struct exchange *x;
    enum difference which;
};

/* Of the messages that arrived. */
static bool take_difference(const void *context, size_t i, int64_t *value)
{
    const struct differences *of = context;
    *value = difference_of(of->x, of->which, i);
    return of->x->receiving.at[i] && !is_negative(of->x, i);
}

/* Sent while the receiver still made its caches cold after the one before. */
static size_t count_unready(const struct exchange *x)
{
    size_t n = 0;
    for (size_t i = 1; i < x->sending.n; i++)
        n += x->sending.before[i] < x->receiving.ready[i - 1];
    return n;
}

void occupancy_take(struct occupancy *occupancy, const struct pair *pair)
{
    struct snapshot *files = &occupancy->files;
    occupancy->tids[0] = (uint64_t)atomic_load(&pair->ends[RECEIVER].tid);
    occupancy->tids[1] = (uint64_t)atomic_load(&pair->ends[SENDER].tid);
    occupancy->tids[2] = (uint64_t)getpid();
    occupancy->ticks = ticks_now();
    snapshot_add(files, "", "/proc/schedstat");
    /* Without CONFIG_SCHEDSTATS */
    if (!files->files[0].text.length)
        snapshot_add(files, "", "/proc/stat");
    for (size_t i = 0; i < ENDS + 1; i++)
        snapshot_add(files, "", "/proc/self/task/%d/schedstat", (int)occupancy->tids[i]);
}

static void write_occupancy(struct json *j, const char *key, const struct occupancy *occupancy)
{
    json_open(j, key, '{');
    json_uint(j, "ticks", occupancy->ticks);
    json_uints(j, "tids", occupancy->tids, ENDS + 1);
    document_write_files(j, "files", &occupancy->files);
    json_close(j, '}');
}

static void write_counts(struct json *j, const struct exchange *x)
{
    const struct sending *s = &x->sending;
    const struct receiving *r = &x->receiving;
    const struct usage used = r->used;
    int error = s->error ? s->error : r->error;
    uint64_t negative = 0;
    for (size_t i = 0; i < s->n; i++)
        negative += is_negative(x, i);
    json_counts(j, {"sent", s->n}, {"arrived", atomic_load(&r->n)}, {"duplicates", r->duplicates}, {"reordered", r->reordered},
                {"negative", negative}, {"unready", count_unready(x)}, {"late_expirations", x->transport->timer.late},
                {"period_ticks", s->period_ticks},
                {"page_faults", s->used.minor_faults + s->used.major_faults + used.minor_faults + used.major_faults},
                {"preemptions", used.preemptions}, {"receiver_ns", used.cpu_ns}, {"receiver_ticks", used.ticks},
                {"napi_id", atomic_load(&x->napi_id)}, {"errno", (uint64_t)-error});
    json_bool(j, "has_no_napi", s->has_no_napi);
    json_string(j, "failed", !error ? "" : s->error ? "sending" : "receiving");
}

void wake_write_measured(struct json *j, void *context)
{
    const struct wake_run *run = context;
    const struct exchange *x = &run->exchange;
    struct differences of = {.x = x};
    enum difference end = exchange_is_of_a_timer(x) ? AFTER_SEND : x->remote_ratio > 0.0 ? DIFFERENCES : FAR;
    write_counts(j, x);
    for (of.which = DELAY; of.which < end; of.which++)
        values_write(j, names[of.which], 0, x->sending.n, take_difference, &of);
    write_occupancy(j, "before", &run->before);
    write_occupancy(j, "after", &run->after);
}

void wake_write_asked(struct json *j, const void *context)
{
    const struct wake_case *c = &((const struct wake_run *)context)->what;
    json_string(j, "mechanism", c->mechanism->name);
    json_string(j, "waiting", waiting_names[c->method->waiting]);
    json_string(j, "way", c->method->name);
    json_real(j, "idle_ms", c->idle_ms, 6);
}

void wake_write_run(struct json *j, const void *context)
{
    const struct options *o = ((const struct wake_run *)context)->pair.options;
    json_counts(j, {"messages", o->messages}, {"bytes", o->bytes}, {"fds", o->fds}, {"dirty_kib", o->dirty_kib});
    json_bool(j, "has_warm_sender", !o->has_cold_sender);
}
