#include <math.h>
#include <string.h>

#include "feed/run.h"
#include "lib/document.h"
#include "lib/histogram.h"
#include "lib/json.h"
#include "lib/values.h"

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

struct stages_sum {
    uint64_t count;
    int64_t stages[STAGES];
};

/* By the bucket of the total, the stages added up: so that a bar can be made of messages that took so long. */
static void write_profile(struct json *j, struct feed_run *run, size_t end, bool stamped)
{
    static struct stages_sum buckets[HISTOGRAM_BUCKETS];
    for (size_t i = run->warm_ups; i < end; i++) {
        int64_t stages[STAGES];
        int64_t total = total_of(run, i);
        if (!has_come(run, i))
            continue;
        struct stages_sum *bucket = &buckets[histogram_index(total < 0 ? 0 : (uint64_t)total)];
        feed_stages(run, i, stamped, stages);
        bucket->count++;
        for (size_t s = 0; s < STAGES; s++)
            bucket->stages[s] += stages[s];
    }
    json_open(j, "profile", '[');
    for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
        int64_t row[3 + STAGES] = {(int64_t)histogram_first(b), (int64_t)histogram_first(b + 1), (int64_t)buckets[b].count};
        memcpy(row + 3, buckets[b].stages, sizeof(buckets[b].stages));
        if (buckets[b].count)
            json_ints(j, NULL, row, 3 + STAGES);
    }
    json_close(j, ']');
}

/* Of the messages that were due in each part of the run: how many came, their totals, and the longest. */
static void write_series(struct json *j, const struct feed_run *run, size_t end)
{
    enum { PARTS = 200 };
    uint64_t start = feed_due(run, run->warm_ups);
    uint64_t length = (run->end_ticks - start) / PARTS + 1;
    int64_t parts[PARTS][3] = {{0}};
    for (size_t i = run->warm_ups; i < end; i++) {
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

/* One stage of all that came, or with STAGES their total. */
static size_t collect(struct feed_run *run, size_t end, bool stamped, size_t which, int64_t *scratch)
{
    size_t n = 0;
    for (size_t i = run->warm_ups; i < end; i++) {
        int64_t stages[STAGES + 1];
        if (!has_come(run, i))
            continue;
        feed_stages(run, i, stamped, stages);
        stages[STAGES] = total_of(run, i);
        scratch[n++] = stages[which];
    }
    return n;
}

static void write_negative(struct json *j, const uint64_t negative[STAGES])
{
    json_open(j, "negative", '{');
    for (size_t s = 0; s < STAGES; s++)
        json_uint(j, names[s], negative[s]);
    json_close(j, '}');
}

/* Each stage, and how many were less than nothing by more than a stamp may be off. */
static void write_stages(struct json *j, struct feed_run *run, size_t end, bool stamped, int64_t *scratch)
{
    uint64_t negative[STAGES] = {0};
    json_open(j, "stages", '{');
    for (size_t s = 0; s < STAGES; s++) {
        size_t n = s == STAGE_WIRE && !stamped ? 0 : collect(run, end, stamped, s, scratch);
        for (size_t i = 0; i < n; i++)
            negative[s] += scratch[i] < -(int64_t)(stamped ? run->stamps.doubt_ticks : 0);
        values_write(j, names[s], scratch, n);
    }
    json_close(j, '}');
    write_negative(j, negative);
}

/* What was due, and not sent when the run ended: it took at least so long. */
static void write_unsent(struct json *j, const struct feed_run *run, size_t end, int64_t *scratch)
{
    size_t n = 0;
    for (size_t i = run->warm_ups; i < end; i++)
        if (!run->sender.sent[i])
            scratch[n++] = (int64_t)(run->end_ticks - feed_due(run, i));
    json_uint(j, "unsent", n);
    values_write(j, "unsent_ticks", scratch, n);
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

static void write_stamps(struct json *j, const struct feed_run *run, size_t end, bool stamped)
{
    uint64_t shared = 0;
    for (size_t i = run->warm_ups; i < end; i++)
        shared += run->receiver.arrivals[i].in_read > 1;
    json_bool(j, "stamped", stamped);
    json_uint(j, "stamp_shared", shared);
    json_open(j, "stamps", '{');
    json_string(j, "asked", run->options->phc ? "hw" : run->options->stamps);
    json_string(j, "kind", !run->stamps.is_on ? "off" : run->stamps.is_hardware ? "hw" : "sw");
    json_string(j, "reason", run->stamps_reason);
    json_real(j, "uncertainty_ticks", run->stamps.is_on ? (double)run->stamps.doubt_ticks : NAN, 0);
    if (run->stamps.were_on < 0)
        json_null(j, "were_on");
    else
        json_bool(j, "were_on", run->stamps.were_on);
    json_bool(j, "stepped", run->stamps.is_stepped);
    json_close(j, '}');
}

static void write_drops(struct json *j, const int64_t drops[2])
{
    json_open(j, "drops", '{');
    if (drops[0] < 0 || drops[1] < drops[0])
        json_null(j, "socket");
    else
        json_uint(j, "socket", (uint64_t)(drops[1] - drops[0]));
    json_close(j, '}');
}

static void write_counts(struct json *j, const struct feed_run *run, size_t end)
{
    const struct feed_sender *s = &run->sender;
    const struct feed_receiver *r = &run->receiver;
    int error = s->error ? s->error : r->error;
    uint64_t sent = 0;
    uint64_t arrived = 0;
    for (size_t i = run->warm_ups; i < end; i++) {
        sent += run->sender.sent[i] != 0;
        arrived += has_come(run, i);
    }
    json_uint(j, "warm_ups", run->warm_ups);
    json_bool(j, "is_replayed", run->options->plan != NULL);
    json_uint(j, "grown", run->grown);
    json_uint(j, "due", end - run->warm_ups);
    json_uint(j, "sent", sent);
    json_uint(j, "arrived", arrived);
    json_uint(j, "doubled", r->doubled);
    json_uint(j, "reordered", r->reordered);
    json_uint(j, "strangers", r->strangers);
    json_uint(j, "reads", r->reads);
    json_uint(j, "allocations", r->allocations);
    json_uint(j, "minor_faults", r->used.minor_faults);
    json_uint(j, "major_faults", r->used.major_faults);
    json_uint(j, "involuntary_switches", r->used.preemptions);
    json_uint(j, "voluntary_switches", r->used.voluntary_switches);
    json_uint(j, "sender_involuntary_switches", s->used.preemptions);
    json_uint(j, "receiver_ns", r->used.cpu_ns);
    json_uint(j, "receiver_ticks", r->used.ticks);
    json_uint(j, "close_code", r->close_code);
    json_uint(j, "napi_id", r->napi_id);
    json_string(j, "failed", !error ? "" : s->error ? "sending" : "receiving");
    json_uint(j, "errno", (uint64_t)-error);
}

static int write_measured(struct json *j, struct feed_run *run)
{
    size_t end = run->warm_ups + feed_due_n(run);
    bool stamped = is_stamped(run, end);
    int64_t *scratch = memory_map(run->messages * sizeof(*scratch));
    if (!scratch)
        return -1;
    write_counts(j, run, end);
    json_uint(j, "throttled_us", run->pair.throttled_us);
    write_unsent(j, run, end, scratch);
    write_batches(j, &run->receiver);
    write_stamps(j, run, end, stamped);
    write_drops(j, run->receiver.drops);
    values_write(j, "total", scratch, collect(run, end, stamped, STAGES, scratch));
    values_write(j, "late", scratch, collect(run, end, stamped, STAGE_SEND, scratch));
    write_stages(j, run, end, stamped, scratch);
    write_profile(j, run, end, stamped);
    write_series(j, run, end);
    return 0;
}

static int write_cells(struct json *j, struct feed_run *run)
{
    const struct options *o = run->options;
    int rc = 0;
    json_open(j, "cells", '[');
    json_open(j, NULL, '{');
    json_string(j, "transport", run->transport->name);
    json_string(j, "format", run->format->name);
    json_uint(j, "symbols", o->symbols);
    json_uint(j, "rate", o->rate);
    json_uint(j, "burst", o->burst);
    json_string(j, "waiting", run->waiting->name);
    json_string(j, "tls", o->tls);
    json_uint(j, "alloc", o->alloc);
    json_string(j, "reason", run->reason);
    if (!run->reason[0])
        rc = write_measured(j, run);
    json_close(j, '}');
    json_close(j, ']');
    return rc;
}

int feed_document_write(FILE *stream, const void *context)
{
    /* Reading a stamp moves a place in the clocks' readings, and nothing else. */
    struct feed_run *run = (struct feed_run *)(uintptr_t)context;
    struct json j = {.stream = stream};
    json_open(&j, NULL, '{');
    document_write_header(&j, "tunectl.probe.feed.raw/1", &run->facts, run->at_s);
    json_string(&j, "holds", "what was counted, in ticks of the clock; each value and how often it came, in turns. `tunectl probe feed` "
                "makes figures, bars and warnings of it");
    json_real(&j, "duration_s", run->duration_s, 3);
    json_bool(&j, "interrupted", run->is_interrupted);
    json_uint(&j, "fifo_priority", (uint64_t)run->options->fifo_priority);
    json_uint(&j, "busy_poll_us", run->options->busy_poll_us);
    pair_write(&j, &run->pair, &run->clock, &run->facts);
    int rc = write_cells(&j, run);
    json_close(&j, '}');
    return rc;
}
