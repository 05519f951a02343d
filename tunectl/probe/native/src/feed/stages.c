#include <math.h>
#include <string.h>

#include "feed/run.h"
#include "lib/recorder.h"

static const char *const names[STAGES] = {"send", "wire", "kernel", "read", "batch", "frame", "parse", "book"};

void feed_stages(struct feed_run *run, size_t i, bool is_stamped, int64_t stages[STAGES])
{
    const struct arrival *a = &run->receiver.arrivals[i];
    uint64_t sent = run->sender.sent[i];
    uint64_t here = is_stamped ? stamps_ticks(&run->stamps, a->stamp_ns) : sent;
    uint64_t begun = (int64_t)(a->read_begun - here) > 0 ? a->read_begun : here;
    stages[STAGE_SEND] = (int64_t)(sent - feed_due(run, i));
    stages[STAGE_WIRE] = (int64_t)(here - sent);
    stages[STAGE_KERNEL] = (int64_t)(begun - here);
    stages[STAGE_READ] = (int64_t)(a->read_over - begun);
    stages[STAGE_BATCH] = (int64_t)(a->turn - a->read_over);
    stages[STAGE_FRAME] = (int64_t)(a->framed - a->turn);
    stages[STAGE_PARSE] = (int64_t)(a->parsed - a->framed);
    stages[STAGE_BOOK] = (int64_t)(a->booked - a->parsed);
}

static bool has_come(const struct feed_run *run, size_t i)
{
    return run->receiver.arrivals[i].booked && run->sender.sent[i];
}

static int64_t total_of(const struct feed_run *run, size_t i)
{
    return (int64_t)(run->receiver.arrivals[i].booked - feed_due(run, i));
}

/* All measured messages that came have a stamp, and no clock was set. */
static bool is_stamped(const struct feed_run *run, size_t end)
{
    if (!run->stamps.is_on || run->stamps.is_stepped)
        return false;
    for (size_t i = run->warm_ups; i < end; i++)
        if (has_come(run, i) && !run->receiver.arrivals[i].stamp_ns)
            return false;
    return true;
}

/* The messages that count, up to `end`, as they are taken apart. */
struct counted {
    struct feed_run *run;
    size_t end;
    bool stamped;
    size_t stage;               /* or with STAGES the total */
};

struct stages_sum {
    uint64_t count;
    int64_t stages[STAGES];
};

/*
 * By the bucket of the total, the stages added up: so that a bar can be made of messages that took so long. And how often each stage was
 * less than nothing by more than a stamp may be off.
 */
static void write_profile(struct json *j, const struct counted *c)
{
    static struct stages_sum buckets[HISTOGRAM_BUCKETS];
    uint64_t negative[STAGES] = {0};
    for (size_t i = c->run->warm_ups; i < c->end; i++) {
        int64_t stages[STAGES];
        int64_t total = total_of(c->run, i);
        if (!has_come(c->run, i))
            continue;
        struct stages_sum *bucket = &buckets[histogram_index(total < 0 ? 0 : (uint64_t)total)];
        feed_stages(c->run, i, c->stamped, stages);
        bucket->count++;
        for (size_t s = 0; s < STAGES; s++) {
            bucket->stages[s] += stages[s];
            negative[s] += stages[s] < -(int64_t)(c->stamped ? c->run->stamps.doubt_ticks : 0);
        }
    }
    json_open(j, "profile", '[');
    for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
        int64_t row[3 + STAGES] = {(int64_t)histogram_first(b), (int64_t)histogram_first(b + 1), (int64_t)buckets[b].count};
        memcpy(row + 3, buckets[b].stages, sizeof(buckets[b].stages));
        if (buckets[b].count)
            json_ints(j, NULL, row, 3 + STAGES);
    }
    json_close(j, ']');
    json_open(j, "negative", '{');
    for (size_t s = 0; s < STAGES; s++)
        json_uint(j, names[s], negative[s]);
    json_close(j, '}');
}

/* Of the messages that were due in each part of the run: how many came, their totals, and the longest. */
static void write_series(struct json *j, const struct counted *c)
{
    const struct feed_run *run = c->run;
    enum { PARTS = 200 };
    uint64_t start = feed_due(run, run->warm_ups);
    uint64_t length = (run->end_ticks - start) / PARTS + 1;
    int64_t parts[PARTS][3] = {{0}};
    for (size_t i = run->warm_ups; i < c->end; i++) {
        int64_t *part = parts[(feed_due(run, i) - start) / length];
        int64_t total = total_of(run, i);
        if (!has_come(run, i))
            continue;
        part[0]++;
        part[1] += total;
        part[2] = total > part[2] ? total : part[2];
    }
    json_open(j, "series", '{');
    json_uint(j, "start", start);
    json_uint(j, "interval_ticks", length);
    json_open(j, "intervals", '[');
    for (size_t p = 0; p < PARTS; p++)
        json_ints(j, NULL, parts[p], 3);
    json_close(j, ']');
    json_close(j, '}');
}

/* One stage of a message that came, or the total. */
static bool take_stage(const void *context, size_t i, int64_t *value)
{
    const struct counted *c = context;
    int64_t stages[STAGES + 1];
    if (!has_come(c->run, i))
        return false;
    feed_stages(c->run, i, c->stamped, stages);
    stages[STAGES] = total_of(c->run, i);
    *value = stages[c->stage];
    return true;
}

static void write_stage(struct json *j, const char *key, struct counted *c, size_t stage)
{
    c->stage = stage;
    /* Without a stamp what it took on the wire is in the next stage. */
    values_write(j, key, c->run->warm_ups, stage == STAGE_WIRE && !c->stamped ? c->run->warm_ups : c->end, take_stage, c);
}

/* What was due, and not sent when the run ended: it took at least so long. */
static bool take_unsent(const void *context, size_t i, int64_t *value)
{
    const struct feed_run *run = context;
    *value = (int64_t)(run->end_ticks - feed_due(run, i));
    return !run->sender.sent[i];
}

static void write_batches(struct json *j, const struct feed_receiver *r)
{
    json_open(j, "batch_sizes", '[');
    for (size_t size = 1; size <= FEED_BATCH_MOST; size++) {
        if (!r->batches[size])
            continue;
        json_uint(j, NULL, size);
        json_uint(j, NULL, r->batches[size]);
    }
    json_close(j, ']');
}

static void write_stamps(struct json *j, const struct feed_run *run, bool stamped)
{
    const struct options *o = run->pair.options;
    json_bool(j, "stamped", stamped);
    json_open(j, "stamps", '{');
    json_string(j, "asked", o->phc ? "hw" : o->has_no_stamps ? "off" : "sw");
    json_string(j, "kind", !run->stamps.is_on ? "off" : run->stamps.is_hardware ? "hw" : "sw");
    json_string(j, "reason", run->stamps_reason);
    json_real(j, "uncertainty_ticks", run->stamps.is_on ? (double)run->stamps.doubt_ticks : NAN, 0);
    if (run->stamps.were_on < 0)
        json_real(j, "were_on", NAN, 0);
    else
        json_bool(j, "were_on", run->stamps.were_on);
    json_bool(j, "stepped", run->stamps.is_stepped);
    json_close(j, '}');
}

static void write_counts(struct json *j, const struct feed_run *run, size_t end)
{
    const struct feed_sender *s = &run->sender;
    const struct feed_receiver *r = &run->receiver;
    int error = s->error ? s->error : r->error;
    bool has_drops = r->drops[0] >= 0 && r->drops[1] >= r->drops[0];
    uint64_t sent = 0;
    uint64_t arrived = 0;
    uint64_t shared = 0;
    for (size_t i = run->warm_ups; i < end; i++) {
        sent += run->sender.sent[i] != 0;
        arrived += has_come(run, i);
        shared += r->arrivals[i].in_read > 1;
    }
    json_counts(j, {"warm_ups", run->warm_ups}, {"grown", run->grown}, {"due", end - run->warm_ups}, {"sent", sent},
                {"arrived", arrived}, {"unsent", end - run->warm_ups - sent}, {"doubled", r->doubled}, {"reordered", r->reordered},
                {"strangers", r->strangers}, {"reads", r->reads}, {"stamp_shared", shared}, {"allocations", r->allocations},
                {"minor_faults", r->used.minor_faults}, {"major_faults", r->used.major_faults},
                {"involuntary_switches", r->used.preemptions}, {"voluntary_switches", r->used.voluntary_switches},
                {"sender_involuntary_switches", s->used.preemptions},
                {"sender_voluntary_switches", s->used.voluntary_switches}, {"receiver_ns", r->used.cpu_ns},
                {"receiver_ticks", r->used.ticks}, {"close_code", r->close_code}, {"napi_id", r->napi_id},
                {"rcvbuf_bytes", run->connection.rcvbuf}, {"errno", (uint64_t)-error});
    json_bool(j, "is_replayed", run->pair.options->plan != NULL);
    json_string(j, "failed", !error ? "" : s->error ? "sending" : "receiving");
    json_open(j, "drops", '{');
    json_real(j, "socket", has_drops ? (double)(r->drops[1] - r->drops[0]) : NAN, 0);
    json_close(j, '}');
}

void feed_write_measured(struct json *j, void *context)
{
    struct feed_run *run = context;
    size_t end = run->warm_ups + feed_due_n(run);
    struct counted c = {.run = run, .end = end, .stamped = is_stamped(run, end)};
    write_counts(j, run, end);
    values_write(j, "unsent_ticks", run->warm_ups, end, take_unsent, run);
    write_batches(j, &run->receiver);
    write_stamps(j, run, c.stamped);
    write_stage(j, "total", &c, STAGES);
    write_stage(j, "late", &c, STAGE_SEND);
    json_open(j, "stages", '{');
    for (size_t s = 0; s < STAGES; s++)
        write_stage(j, names[s], &c, s);
    json_close(j, '}');
    write_profile(j, &c);
    write_series(j, &c);
}

void feed_write_asked(struct json *j, const void *context)
{
    const struct feed_run *run = context;
    const struct options *o = run->pair.options;
    json_string(j, "transport", run->transport->name);
    json_string(j, "format", run->format->name);
    json_string(j, "waiting", run->waiting->name);
    json_string(j, "tls", o->has_tls ? "ktls" : "off");
    json_counts(j, {"symbols", o->symbols}, {"rate", o->rate}, {"burst", o->burst}, {"alloc", o->alloc});
}
