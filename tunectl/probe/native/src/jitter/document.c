#include <math.h>
#include <unistd.h>

#include "jitter/run.h"
#include "lib/document.h"

static void write_counters(struct json *j, const struct worker *w)
{
    json_open(j, "counters", '{');
    json_open(j, "context_switches", '{');
    json_counts(j, {"voluntary", w->used.voluntary_switches}, {"involuntary", w->used.preemptions});
    json_close(j, '}');
    json_uint(j, "page_faults", w->used.minor_faults + w->used.major_faults);
    json_close(j, '}');
}

/* From the first value of a bucket to the first of the next; how many gaps it has; their sum. */
static void write_histogram(struct json *j, const struct histogram *h)
{
    json_open(j, "histogram", '[');
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const struct histogram_bucket *bucket = &h->buckets[i];
        uint64_t to = i + 1 < HISTOGRAM_BUCKETS ? histogram_first(i + 1) : UINT64_MAX;
        if (bucket->count)
            json_uints(j, NULL, (uint64_t[]){histogram_first(i), to, bucket->count, bucket->sum}, 4);
    }
    json_close(j, ']');
}

/* Of each stretch: the gaps that began in it, the stolen ticks, and the longest gap that took any of it. */
static void write_series(struct json *j, const struct jitter_run *run, const struct worker *w)
{
    const struct series *s = &w->recorder.series;
    json_open(j, "series", '{');
    json_uint(j, "tsc_start", s->start);
    json_uint(j, "interval_s", run->stretch_s);
    json_open(j, "intervals", '[');
    for (size_t i = 0; i < SERIES_STRETCHES && s->start + i * s->length < w->totals.end; i++) {
        const struct series_stretch *stretch = &s->stretches[i];
        json_uints(j, NULL, (uint64_t[]){stretch->gaps, stretch->stolen, stretch->max}, 3);
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void write_events(struct json *j, const struct recorder *r)
{
    json_open(j, "events", '[');
    for (size_t i = 0; i < r->gaps_listed; i++)
        json_uints(j, NULL, (uint64_t[]){r->gaps[i].start, r->gaps[i].end, 0}, 3);
    json_close(j, ']');
}

/* Of the gaps that were not listed the last ones, in the order of time. */
static void write_latest(struct json *j, const struct recorder *r)
{
    json_open(j, "latest", '[');
    for (uint64_t n = r->gaps_lost > GAPS_LATEST ? r->gaps_lost - GAPS_LATEST : 0; n < r->gaps_lost; n++)
        json_uints(j, NULL, (uint64_t[]){r->latest[n % GAPS_LATEST].start, r->latest[n % GAPS_LATEST].end}, 2);
    json_close(j, ']');
}

/* What --until was asked for, and the gap that ended the run. */
static void write_until(struct json *j, const struct jitter_run *run)
{
    if (!run->options->until_ns) {
        json_real(j, "until", NAN, 0);
        return;
    }
    json_open(j, "until", '{');
    json_uint(j, "least_ns", run->options->until_ns);
    json_open(j, "reached", '[');
    if (run->reached) {
        json_uint(j, NULL, run->reached->cpu);
        json_uint(j, NULL, run->reached->reached.start);
        json_uint(j, NULL, run->reached->reached.end);
    }
    json_close(j, ']');
    json_close(j, '}');
}

/* Both clocks just before and just after the measured time, read on this CPU. */
static void write_readings(struct json *j, const struct worker *w)
{
    const struct clock_pair *const pairs[] = {&w->before, &w->after};
    json_open(j, "clock_readings", '[');
    for (size_t i = 0; i < 2; i++)
        json_uints(j, NULL, (uint64_t[]){pairs[i]->ticks, pairs[i]->raw_ns}, 2);
    json_close(j, ']');
    json_uints(j, "clock_half_widths", (uint64_t[]){w->before.half_width, w->after.half_width}, 2);
}

static void write_loop(struct json *j, const struct worker *w)
{
    const struct loop_totals *t = &w->totals;
    json_counts(j, {"turns", t->turns}, {"turns_merged", w->recorder.turns_merged}, {"quiet_turns", t->quiet_turns},
                {"quiet_ticks", t->quiet_ticks}, {"steps_back", t->steps_back});
    json_real(j, "step_ticks", w->step_ticks, 3);
    json_real(j, "recording_ticks", w->recording_ticks, 3);
    json_real(j, "cycles_per_tick_before", w->cycles_per_tick_before, 6);
    json_real(j, "cycles_per_tick_after", w->cycles_per_tick_after, 6);
}

/* What this CPU and this thread were like, for who has to know what the figures mean. */
static void write_conditions(struct json *j, const struct jitter_run *run, const struct worker *w)
{
    const char *root = run->facts.root;
    json_bool(j, "memory_locked", w->locked);
    json_bool(j, "stayed", w->account_before.cpu == w->cpu && w->account_after.cpu == w->cpu);
    bool is_known = w->account_before.migrations != ACCOUNT_UNKNOWN;
    json_known(j, "migrations", is_known ? w->account_after.migrations - w->account_before.migrations : ACCOUNT_UNKNOWN);
    json_uint(j, "waited_ns", w->account_after.waited_ns - w->account_before.waited_ns);
    document_write_line(j, "fair_server_runtime", file_read(root, "/sys/kernel/debug/sched/fair_server/cpu%u/runtime", w->cpu));
    document_write_cpu(j, root, w->cpu);
}

static void write_cpu(struct json *j, const struct jitter_run *run, const struct worker *w)
{
    const struct recorder *r = &w->recorder;
    json_open(j, NULL, '{');
    json_counts(j, {"cpu", w->cpu}, {"tsc_start", w->totals.start}, {"tsc_end", w->totals.end}, {"interruptions", r->gaps_total},
                {"stolen_ticks", r->stolen_ticks}, {"max_ticks", r->max_ticks}, {"events_lost", r->gaps_lost},
                {"events_lost_max_ticks", r->lost_max_ticks},
                {"complete_until", r->gaps_lost ? r->first_lost_ticks : w->totals.end});
    write_loop(j, w);
    write_readings(j, w);
    write_conditions(j, run, w);
    write_counters(j, w);
    write_histogram(j, r->histogram);
    write_series(j, run, w);
    write_latest(j, r);
    write_events(j, r);
    json_close(j, '}');
}

static void write_cpus(struct json *j, const char *key, const struct cpus *cpus)
{
    json_open(j, key, '[');
    for (unsigned cpu = cpus_next(cpus, 0); cpu < CPU_LIMIT; cpu = cpus_next(cpus, cpu + 1))
        json_uint(j, NULL, cpu);
    json_close(j, ']');
}

static void write_facts(struct json *j, const struct jitter_run *run)
{
    const struct host_facts *facts = &run->facts;
    json_open(j, "facts", '{');
    write_cpus(j, "online", &facts->online);
    write_cpus(j, "isolated", &facts->isolated);
    write_cpus(j, "nohz_full", &facts->nohz_full);
    write_cpus(j, "main_thread", &run->housekeeping);
    json_known(j, "throttled_us", run->throttled_us);
    json_uint(j, "user_hz", (uint64_t)sysconf(_SC_CLK_TCK));
    json_close(j, '}');
}

/* What was done to the first of the CPUs on purpose, from the first stamp to the last. */
static void write_injected(struct json *j, const struct injection *injection)
{
    json_open(j, "injected", '{');
    json_uint(j, "errno", (uint64_t)-injection->error);
    json_open(j, "truths", '[');
    for (size_t i = 0; i < injection->done; i++)
        json_uints(j, NULL, (uint64_t[]){injection->truths[i].start, injection->truths[i].end}, 2);
    json_close(j, ']');
    json_close(j, '}');
}

/* The CPUs that were left to somebody else: nothing that was counted there is a result. */
static void write_not_measured(struct json *j, const struct jitter_run *run)
{
    json_open(j, "not_measured", '[');
    for (size_t i = 0; i < run->n; i++) {
        if (!worker_has_left(&run->workers[i]))
            continue;
        json_open(j, NULL, '{');
        json_uint(j, "cpu", run->workers[i].cpu);
        json_string(j, "reason", run->workers[i].why_left);
        json_close(j, '}');
    }
    json_close(j, ']');
}

int jitter_write(const struct jitter_run *run)
{
    struct json j = document_begin(&jitter_command, &run->facts, run->at_s);
    json_counts(&j, {"threshold_ns", run->threshold_ns}, {"default_threshold_ns", run->default_threshold_ns},
                {"threshold_ticks", run->control.threshold_ticks}, {"long_ticks", run->control.long_ticks},
                {"fifo_priority", (uint64_t)run->options->fifo_priority});
    json_real(&j, "duration_requested_s", run->options->duration_s, 6);
    json_bool(&j, "interrupted", run->is_interrupted);
    write_until(&j, run);
    json_open(&j, "clock", '{');
    document_write_clock(&j, &run->clock, &run->facts);
    json_close(&j, '}');
    write_facts(&j, run);
    document_write_files(&j, "files_before", &run->before);
    document_write_files(&j, "files_after", &run->after);
    json_open(&j, "cpus", '[');
    for (size_t i = 0; i < run->n; i++)
        if (!worker_has_left(&run->workers[i]))
            write_cpu(&j, run, &run->workers[i]);
    json_close(&j, ']');
    write_not_measured(&j, run);
    if (run->injection.inject)
        write_injected(&j, &run->injection);
    return document_end(&j);
}
