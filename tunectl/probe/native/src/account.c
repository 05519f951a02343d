#include "account.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t to_ns(const struct jitter_run *run, uint64_t ticks)
{
    return clock_ticks_to_ns((double)ticks, run->clock.rate.hz);
}

static void write_events(struct json *j, const struct attribution *a)
{
    json_array_begin(j, "events");
    for (size_t i = 0; i < a->n_events; i++)
        json_string(j, NULL, a->events[i]);
    json_array_end(j);
}

void account_write_method(struct json *j, const struct jitter_run *run)
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
    json_uint(j, "total_ns", to_ns(run, row->total));
    json_uint(j, "max_ns", to_ns(run, row->max));
    json_object_end(j);
}

int account_write_cpu(struct json *j, const struct jitter_run *run, size_t index)
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

const char *account_cause(const struct jitter_run *run, size_t index, size_t gap)
{
    const struct attribution *a = &run->attribution;
    return a->of_cpu ? a->of_cpu[index].labels[a->of_cpu[index].of_gap[gap]] : "";
}
