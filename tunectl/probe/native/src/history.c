#include "history.h"

#include "account.h"
#include "periods.h"

_Static_assert((int)CAUSE_LABELS_MAX <= (int)PERIOD_LABELS, "every cause is a label to the search for periods");

static uint64_t to_ns(const struct jitter_run *run, double ticks)
{
    return clock_ticks_to_ns(ticks, run->clock.rate.hz);
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
        json_uints(j, NULL, (uint64_t[]){stretch->gaps, to_ns(run, (double)stretch->stolen), to_ns(run, (double)stretch->max)}, 3);
    }
    json_array_end(j);
    json_object_end(j);
}

static void write_period(struct json *j, const struct jitter_run *run, size_t index, const struct period *period)
{
    const char *name = period_name(period, run->clock.rate.hz);
    json_object_begin(j, NULL);
    json_uint(j, "period_ns", to_ns(run, period->ticks));
    json_uint(j, "count", period->count);
    json_real(j, "coverage", period->coverage, 3);
    json_uint(j, "mean_ns", to_ns(run, period->mean_length));
    json_string(j, "name", name ? name : "");
    json_string(j, "cause", account_cause(run, index, period->example));
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

int history_write(struct json *j, const struct jitter_run *run, size_t index)
{
    write_series(j, run, &run->workers[index]);
    return write_periods(j, run, index);
}
