#include "jitter/explanation.h"

#include <errno.h>
#include <stdlib.h>

#include "jitter/periods.h"

_Static_assert((int)CAUSE_LABELS_MAX <= (int)PERIOD_LABELS, "every cause is a label to the search for periods");

const char *explanation_cause(const struct jitter_run *run, size_t index, size_t gap)
{
    const struct attribution *a = &run->attribution;
    return a->of_cpu ? a->of_cpu[index].labels[a->of_cpu[index].of_gap[gap]] : "";
}

static void write_events(struct json *j, const struct attribution *a)
{
    json_array_begin(j, "events");
    for (size_t i = 0; i < a->n_events; i++)
        json_string(j, NULL, a->events[i]);
    json_array_end(j);
}

void explanation_write_method(struct json *j, const struct jitter_run *run)
{
    const struct attribution *a = &run->attribution;
    if (!run->options->attribute) {
        json_null(j, "attribution");
        return;
    }
    json_object_begin(j, "attribution");
    json_string(j, "method", a->of_cpu ? "trace" : "counters");
    json_string(j, "reason", a->reason);
    if (a->of_cpu) {
        json_string(j, "clock", "x86-tsc");
        json_uint(j, "buffer_kib", a->buffer_kib);
        if (a->event_cost_ticks > 0.0)
            json_real(j, "event_cost_ns", a->event_cost_ticks * 1e9 / run->clock.rate.hz, 1);
        else
            json_null(j, "event_cost_ns");
        write_events(j, a);
    }
    json_object_end(j);
}

static void write_row(struct json *j, const struct jitter_run *run, const struct causes *c, const struct cause_row *row)
{
    json_object_begin(j, NULL);
    json_string(j, "cause", c->labels[row->label]);
    json_uint(j, "count", row->count);
    json_uint(j, "total_ns", jitter_ns(run, (double)row->total));
    json_uint(j, "max_ns", jitter_ns(run, (double)row->max));
    json_object_end(j);
}

static int write_causes(struct json *j, const struct jitter_run *run, size_t index)
{
    if (!run->attribution.of_cpu)
        return 0;
    const struct causes *c = &run->attribution.of_cpu[index];
    struct cause_row *rows = calloc(CAUSE_LABELS_MAX, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    size_t n = causes_table(rows, c, &run->workers[index].recorder);
    json_array_begin(j, "causes");
    for (size_t i = 0; i < n; i++)
        write_row(j, run, c, &rows[i]);
    json_array_end(j);
    free(rows);
    json_object_begin(j, "trace");
    json_uint(j, "events", c->events);
    json_uint(j, "events_apart", c->events_apart);
    json_uint(j, "events_lost", c->events_lost);
    json_object_end(j);
    return 0;
}

static void write_series(struct json *j, const struct jitter_run *run, const struct worker *w)
{
    const struct series *s = &w->recorder.series;
    json_object_begin(j, "series");
    json_uint(j, "tsc_start", s->start);
    json_uint(j, "interval_s", run->stretch_s);
    json_array_begin(j, "intervals");
    for (size_t i = 0; i < SERIES_STRETCHES && s->start + i * s->length < w->totals.end; i++) {
        const struct series_stretch *stretch = &s->stretches[i];
        uint64_t stolen_ns = jitter_ns(run, (double)stretch->stolen);
        json_uints(j, NULL, (uint64_t[]){stretch->gaps, stolen_ns, jitter_ns(run, (double)stretch->max)}, 3);
    }
    json_array_end(j);
    json_object_end(j);
}

static void write_period(struct json *j, const struct jitter_run *run, size_t index, const struct period *period)
{
    const char *name = period_name(period, run->clock.rate.hz);
    json_object_begin(j, NULL);
    json_uint(j, "period_ns", jitter_ns(run, period->ticks));
    json_uint(j, "count", period->count);
    json_real(j, "coverage", period->coverage, 3);
    json_uint(j, "mean_ns", jitter_ns(run, period->mean_length));
    json_string(j, "name", name ? name : "");
    json_string(j, "cause", explanation_cause(run, index, period->example));
    json_object_end(j);
}

static int write_periods(struct json *j, const struct jitter_run *run, size_t index)
{
    const struct recorder *r = &run->workers[index].recorder;
    struct period periods[PERIODS_MAX];
    size_t n;
    const struct causes *of_cpu = run->attribution.of_cpu;
    const uint32_t *labels = of_cpu ? of_cpu[index].of_gap : NULL;
    int rc = periods_find(periods, &n, r->gaps, r->gaps_listed, run->clock.rate.hz, labels);
    json_array_begin(j, "periods");
    for (size_t i = 0; i < n; i++)
        write_period(j, run, index, &periods[i]);
    json_array_end(j);
    return rc;
}

int explanation_write_cpu(struct json *j, const struct jitter_run *run, size_t index)
{
    int rc = write_causes(j, run, index);
    write_series(j, run, &run->workers[index]);
    return rc ? rc : write_periods(j, run, index);
}
