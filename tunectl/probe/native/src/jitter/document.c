#include "jitter/document.h"

#include <unistd.h>

#include "jitter/explanation.h"
#include "jitter/run.h"
#include "lib/json.h"
#include "lib/stats.h"

struct percentile {
    const char *name;
    uint32_t parts;     /* of STATS_WHOLE */
};

static const struct percentile percentiles[] = {
    {"50", 50000}, {"99", 99000}, {"99.9", 99900}, {"99.99", 99990}, {"99.999", 99999},
};

enum { GAP_PERCENTILES = 4, ARRIVAL_PERCENTILES = 5 };

/* Judging is not the probe's business; the block stands so that every document has the same shape. */
static void write_unjudged_budget(struct json *j)
{
    json_object_begin(j, "budget");
    json_object_begin(j, "limits");
    json_object_end(j);
    json_string(j, "verdict", "not-judged");
    json_array_begin(j, "broken");
    json_array_end(j);
    json_object_end(j);
}

static bool has_moved(const struct counters *c, size_t row, size_t n_cpus)
{
    for (size_t cpu = 0; cpu < n_cpus; cpu++)
        if (counter_delta(&c->irq_before, &c->irq_after, row, cpu))
            return true;
    return false;
}

static void write_irq_descriptions(struct json *j, const struct jitter_run *run)
{
    const struct counter_table *table = &run->counters.irq_after;
    json_object_begin(j, "irq_descriptions");
    for (size_t row = 0; row < table->n_rows; row++) {
        if (!has_moved(&run->counters, row, run->cpus.n))
            continue;
        json_key_n(j, table->rows[row].key.at, table->rows[row].key.length);
        json_string_n(j, NULL, table->rows[row].description.at, table->rows[row].description.length);
    }
    json_object_end(j);
}

static void write_deltas(struct json *j, const char *key, const struct counter_table *before,
                         const struct counter_table *after, size_t cpu)
{
    json_object_begin(j, key);
    for (size_t row = 0; row < after->n_rows; row++) {
        uint64_t delta = counter_delta(before, after, row, cpu);
        if (!delta)
            continue;
        json_key_n(j, after->rows[row].key.at, after->rows[row].key.length);
        json_uint(j, NULL, delta);
    }
    json_object_end(j);
}

static void write_counters(struct json *j, const struct jitter_run *run, size_t index)
{
    const struct counters *c = &run->counters;
    const struct worker *w = &run->workers[index];
    struct cpu_times moved = {0};
    (void)counters_cpu_times(c, w->cpu, &moved);
    json_object_begin(j, "counters");
    write_deltas(j, "irq", &c->irq_before, &c->irq_after, index);
    write_deltas(j, "softirq", &c->softirq_before, &c->softirq_after, index);
    json_object_begin(j, "context_switches");
    json_uint(j, "voluntary", w->voluntary_switches);
    json_uint(j, "involuntary", w->involuntary_switches);
    json_object_end(j);
    json_uint(j, "page_faults", w->page_faults);
    json_uint(j, "steal_ns", moved.steal * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK)));
    json_object_end(j);
}

/*
 * Bucket bounds in ns: from the floor of the first value to the floor of the next bucket's. Where a bucket is narrower than
 * a nanosecond its bounds would be equal, so it is merged with those that follow.
 */
static void write_histogram(struct json *j, const struct jitter_run *run, const struct histogram *h)
{
    json_array_begin(j, "histogram");
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t count = h->buckets[i].count;
        uint64_t from_ns = jitter_ns(run, (double)histogram_first(i));
        uint64_t to = jitter_ns(run, (double)(i + 1 < HISTOGRAM_BUCKETS ? histogram_first(i + 1) : UINT64_MAX));
        for (; to == from_ns && i + 2 < HISTOGRAM_BUCKETS; i++) {
            count += h->buckets[i + 1].count;
            to = jitter_ns(run, (double)histogram_first(i + 2));
        }
        if (count)
            json_uints(j, NULL, (uint64_t[]){from_ns, to, count}, 3);
    }
    json_array_end(j);
}

static void write_events(struct json *j, const struct jitter_run *run, size_t index)
{
    const struct recorder *r = &run->workers[index].recorder;
    json_array_begin(j, "events");
    for (size_t i = 0; i < r->gaps_listed; i++)
        json_event(j, r->gaps[i].start, r->gaps[i].end, explanation_cause(run, index, i));
    json_array_end(j);
}

static int write_percentiles(struct json *j, const struct jitter_run *run, const struct worker *w)
{
    struct gap_lengths lengths;
    int rc = gap_lengths_init(&lengths, &w->recorder);
    if (rc)
        return rc;
    json_object_begin(j, "gap_ns");
    for (int i = 0; i < GAP_PERCENTILES; i++)
        json_uint(j, percentiles[i].name,
                  jitter_ns(run, gap_percentile(&lengths, percentiles[i].parts)));
    json_object_end(j);
    json_object_begin(j, "arrival_ns");
    for (int i = 0; i < ARRIVAL_PERCENTILES; i++)
        json_uint(j, percentiles[i].name,
                  jitter_ns(run, arrival_percentile(&lengths, worker_run_ticks(w), percentiles[i].parts)));
    json_object_end(j);
    json_uint(j, "percentile_error_ppm", lengths.exact ? 0 : HISTOGRAM_ERROR_PPM);
    gap_lengths_deinit(&lengths);
    return 0;
}

static void write_core_khz(struct json *j, const struct jitter_run *run, const struct worker *w)
{
    json_object_begin(j, "core_khz");
    json_uint(j, "before", (uint64_t)(w->cycles_per_tick_before * run->clock.rate.hz / 1e3));
    json_uint(j, "after", (uint64_t)(w->cycles_per_tick_after * run->clock.rate.hz / 1e3));
    json_object_end(j);
}

/* A turn merged into the gap before it is part of that interruption, so that loops - interruptions are the quiet turns. */
static void write_loop(struct json *j, const struct jitter_run *run, const struct worker *w)
{
    double tick_ns = 1e9 / run->clock.rate.hz;
    uint64_t quiet_turns = w->totals.quiet_turns;
    uint64_t quiet_ticks = worker_run_ticks(w) - w->recorder.stolen_ticks;
    double mean_ticks = quiet_turns ? (double)quiet_ticks / (double)quiet_turns : 0.0;
    /* The core's clock may rise after the step was measured; a mean below it is then the better bound. */
    bool is_faster = quiet_turns && mean_ticks < w->step_ticks;
    json_uint(j, "loops", quiet_turns + w->recorder.gaps_total);
    json_object_begin(j, "loop_ns");
    json_real(j, "mean", mean_ticks * tick_ns, 3);
    json_real(j, "min", (is_faster ? mean_ticks : w->step_ticks) * tick_ns, 3);
    json_real(j, "recording", w->recording_ticks * tick_ns, 3);
    json_object_end(j);
}

static int write_cpu(struct json *j, const struct jitter_run *run, size_t index)
{
    const struct worker *w = &run->workers[index];
    const struct recorder *r = &w->recorder;
    uint64_t run_ticks = worker_run_ticks(w);
    json_object_begin(j, NULL);
    json_uint(j, "cpu", w->cpu);
    json_uint(j, "duration_ns", jitter_ns(run, (double)run_ticks));
    json_uint(j, "tsc_start", w->totals.start);
    json_uint(j, "tsc_end", w->totals.end);
    write_loop(j, run, w);
    json_uint(j, "interruptions", r->gaps_total);
    json_uint(j, "stolen_ns", jitter_ns(run, (double)r->stolen_ticks));
    json_real(j, "stolen_ppm", run_ticks ? (double)r->stolen_ticks * 1e6 / (double)run_ticks : 0.0, 3);
    json_uint(j, "max_ns", jitter_ns(run, (double)r->max_ticks));
    int rc = write_percentiles(j, run, w);
    if (rc)
        return rc;
    json_real(j, "conservation_ppm", worker_conservation_ppm(w, run->clock.rate.hz), 3);
    write_core_khz(j, run, w);
    write_counters(j, run, index);
    write_histogram(j, run, r->histogram);
    json_uint(j, "events_lost", r->gaps_lost);
    rc = explanation_write_cpu(j, run, index);
    write_events(j, run, index);
    json_object_end(j);
    return rc;
}

static double longest_run_s(const struct jitter_run *run)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < run->cpus.n; i++)
        if (!jitter_is_void(run, i) && worker_run_ticks(&run->workers[i]) > longest)
            longest = worker_run_ticks(&run->workers[i]);
    return (double)longest / run->clock.rate.hz;
}

/* The CPUs that were left to somebody else: nothing that was counted there is a result. */
static void write_not_measured(struct json *j, const struct jitter_run *run)
{
    json_array_begin(j, "not_measured");
    for (size_t i = 0; i < run->cpus.n; i++) {
        if (!jitter_is_void(run, i))
            continue;
        json_object_begin(j, NULL);
        json_uint(j, "cpu", run->cpus.ids[i]);
        json_string(j, "reason", run->workers[i].why_left);
        json_object_end(j);
    }
    json_array_end(j);
}

int jitter_document_write(FILE *stream, const void *context)
{
    const struct jitter_run *run = context;
    struct json j;
    int rc = 0;
    json_init(&j, stream);
    json_object_begin(&j, NULL);
    document_write_header(&j, "tunectl.probe.jitter/1", &run->facts, run->at_s);
    json_uint(&j, "threshold_ns", run->threshold_ns);
    json_real(&j, "duration_s", longest_run_s(run), 6);
    json_real(&j, "duration_requested_s", run->options->duration_s, 6);
    json_bool(&j, "interrupted", run->is_interrupted);
    json_uint(&j, "fifo_priority", (uint64_t)run->options->fifo_priority);
    json_object_begin(&j, "clock");
    document_write_clock(&j, &run->clock, &run->facts);
    json_object_end(&j);
    document_write_warnings(&j, &run->warnings);
    write_unjudged_budget(&j);
    write_irq_descriptions(&j, run);
    explanation_write_method(&j, run);
    json_array_begin(&j, "cpus");
    for (size_t i = 0; i < run->cpus.n && !rc; i++)
        if (!jitter_is_void(run, i))
            rc = write_cpu(&j, run, i);
    json_array_end(&j);
    write_not_measured(&j, run);
    json_object_end(&j);
    return rc;
}
