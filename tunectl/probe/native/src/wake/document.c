#include "wake/document.h"

#include <math.h>
#include <stdlib.h>

#include "lib/histogram.h"
#include "lib/json.h"
#include "wake/mechanisms.h"
#include "wake/run.h"

static uint64_t to_ns(const struct wake_run *run, int64_t ticks)
{
    return clock_ticks_to_ns((double)ticks, run->clock.rate.hz);
}

static bool is_measured(const struct wake_case *c)
{
    return c->delay.n > 0;
}

/* A spread as members min, mean, the percentiles and max, in ns; null where there is none. May be negative. */
static void write_spread(struct json *j, const char *key, const struct spread *s, double hz)
{
    double tick_ns = 1e9 / hz;
    if (s->n == 0) {
        json_null(j, key);
        return;
    }
    json_object_begin(j, key);
    json_real(j, "min", floor((double)s->min * tick_ns), 0);
    json_real(j, "mean", s->mean * tick_ns, 1);
    for (size_t i = 0; i < CASE_PERCENTILES; i++)
        json_real(j, case_percentiles[i].name, floor((double)s->at[i] * tick_ns), 0);
    json_real(j, "max", floor((double)s->max * tick_ns), 0);
    json_object_end(j);
}

static void write_delay(struct json *j, const struct wake_run *run, const struct wake_case *c)
{
    const struct spread *s = &c->delay;
    if (!is_measured(c)) {
        json_null(j, "min_ns");
        json_null(j, "mean_ns");
        json_null(j, "percentiles_ns");
        json_null(j, "max_ns");
        return;
    }
    json_uint(j, "min_ns", to_ns(run, s->min));
    json_real(j, "mean_ns", s->mean * 1e9 / run->clock.rate.hz, 1);
    json_object_begin(j, "percentiles_ns");
    for (size_t i = 0; i < CASE_PERCENTILES; i++)
        json_uint(j, case_percentiles[i].name, to_ns(run, s->at[i]));
    json_object_end(j);
    json_uint(j, "max_ns", to_ns(run, s->max));
}

/* Buckets narrower than a nanosecond would have equal bounds: they are merged with those that follow. */
static void write_histogram(struct json *j, const struct wake_run *run, const struct wake_case *c)
{
    json_array_begin(j, "histogram");
    for (size_t i = 0; i < c->bins_n; i++) {
        uint64_t from_ns = to_ns(run, (int64_t)histogram_first(c->bins[i].index));
        uint64_t to = to_ns(run, (int64_t)histogram_first(c->bins[i].index + 1));
        uint64_t count = c->bins[i].count;
        for (; i + 1 < c->bins_n && to_ns(run, (int64_t)histogram_first(c->bins[i + 1].index)) == from_ns; i++) {
            to = to_ns(run, (int64_t)histogram_first(c->bins[i + 1].index + 1));
            count += c->bins[i + 1].count;
        }
        json_uints(j, NULL, (uint64_t[]){from_ns, to > from_ns ? to : from_ns + 1, count}, 3);
    }
    json_array_end(j);
}

static void write_case(struct json *j, const struct wake_run *run, const struct wake_case *c)
{
    double hz = run->clock.rate.hz;
    json_object_begin(j, NULL);
    json_string(j, "mechanism", c->mechanism->name);
    json_string(j, "waiting", waiting_names[c->method->waiting]);
    json_string(j, "way", c->method->name);
    json_real(j, "idle_ms", c->idle_ms, 6);
    json_uints(j, "cpus", (uint64_t[]){run->placement.sender, run->placement.receiver}, 2);
    json_bool(j, "is_round_trip", run->remote != NULL);
    json_string(j, "reason", is_measured(c) ? "" : c->reason);
    json_uint(j, "n", c->delay.n);
    json_uint(j, "sent", c->sent);
    json_uint(j, "lost", c->lost);
    json_uint(j, "duplicates", c->duplicates);
    json_uint(j, "reordered", c->reordered);
    write_delay(j, run, c);
    write_spread(j, "after_send_ns", &c->after_send, hz);
    write_spread(j, "send_call_ns", &c->sending, hz);
    write_spread(j, "late_ns", &c->late, hz);
    write_spread(j, "far_ns", &c->remote, hz);
    /* An estimate: nothing says that both directions take the same. */
    write_spread(j, "one_way_estimate_ns", &c->one_way, hz);
    json_uint(j, "period_ns", to_ns(run, (int64_t)c->period_ticks));
    if (is_measured(c))
        json_real(j, "receiver_cpu_percent", c->receiver_cpu_percent, 2);
    else
        json_null(j, "receiver_cpu_percent");
    json_uint(j, "napi_id", c->napi_id);
    write_histogram(j, run, c);
    document_write_warnings(j, &c->warnings);
    json_object_end(j);
}

/* The case that another one is compared with: the first that slept, of the same mechanism and idle time, and was measured. */
static const struct wake_case *sleeping_like(const struct wake_run *run, const struct wake_case *c)
{
    for (size_t i = 0; i < run->cases_n; i++) {
        const struct wake_case *other = &run->cases[i];
        bool is_like = other->mechanism == c->mechanism && fabs(other->idle_ms - c->idle_ms) < 1e-9;
        if (is_like && other->method->waiting == WAITING_SLEEPING && is_measured(other))
            return other;
    }
    return NULL;
}

static double ratio(double sleeping, double other)
{
    return other > 0.0 ? sleeping / other : NAN;
}

static void write_speedup(struct json *j, const struct wake_case *c, const struct wake_case *over)
{
    json_object_begin(j, NULL);
    json_string(j, "mechanism", c->mechanism->name);
    json_real(j, "idle_ms", c->idle_ms, 6);
    json_string(j, "waiting", waiting_names[c->method->waiting]);
    json_string(j, "way", c->method->name);
    json_string(j, "over", over->method->name);
    json_real(j, "mean", ratio(over->delay.mean, c->delay.mean), 3);
    json_object_begin(j, "percentiles");
    for (size_t i = 0; i < CASE_PERCENTILES; i++)
        json_real(j, case_percentiles[i].name, ratio((double)over->delay.at[i], (double)c->delay.at[i]), 3);
    json_object_end(j);
    json_real(j, "max", ratio((double)over->delay.max, (double)c->delay.max), 3);
    json_object_end(j);
}

static void write_speedups(struct json *j, const struct wake_run *run)
{
    json_array_begin(j, "speedups");
    for (size_t i = 0; i < run->cases_n; i++) {
        const struct wake_case *c = &run->cases[i];
        const struct wake_case *over = sleeping_like(run, c);
        if (over && is_measured(c) && c->method->waiting != WAITING_SLEEPING)
            write_speedup(j, c, over);
    }
    json_array_end(j);
}

static void write_clock(struct json *j, const struct wake_run *run)
{
    double tick_ns = 1e9 / run->clock.rate.hz;
    json_object_begin(j, "clock");
    document_write_clock(j, &run->clock, &run->facts);
    if (run->offset.is_known) {
        json_real(j, "offset_least_ns", (double)run->offset.least_ticks * tick_ns, 1);
        json_real(j, "offset_most_ns", (double)run->offset.most_ticks * tick_ns, 1);
    }
    json_object_end(j);
}

static void write_peer(struct json *j, const struct wake_run *run)
{
    if (!run->remote) {
        json_null(j, "peer");
        return;
    }
    json_object_begin(j, "peer");
    json_string(j, "address", run->remote->address);
    json_real(j, "hz", run->remote->hz, 0);
    json_uint(j, "cpu", run->remote->cpu);
    json_object_end(j);
}

int wake_document_write(FILE *stream, const void *context)
{
    const struct wake_run *run = context;
    struct json j;
    json_init(&j, stream);
    json_object_begin(&j, NULL);
    document_write_header(&j, "tunectl.probe.wake/1", &run->facts, run->at_s);
    json_real(&j, "duration_s", run->duration_s, 3);
    json_bool(&j, "interrupted", run->is_interrupted);
    json_uint(&j, "messages", run->options->messages);
    json_uint(&j, "fifo_priority", (uint64_t)run->options->fifo_priority);
    json_uint(&j, "busy_poll_us", run->options->busy_poll_us);
    json_bool(&j, "has_warm_sender", !run->options->has_cold_sender);
    write_clock(&j, run);
    write_peer(&j, run);
    document_write_warnings(&j, &run->warnings);
    json_array_begin(&j, "cells");
    for (size_t i = 0; i < run->cases_n; i++)
        write_case(&j, run, &run->cases[i]);
    json_array_end(&j);
    write_speedups(&j, run);
    json_object_end(&j);
    return 0;
}
