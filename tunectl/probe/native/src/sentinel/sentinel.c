#include "sentinel/sentinel.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/host.h"
#include "lib/loop.h"
#include "lib/thread.h"
#include "lib/ticks.h"

/* Beyond these a histogram takes the gaps: percentiles are then off by less than HISTOGRAM_ERROR_PPM. */
enum { LIST = 4096 };

const struct command sentinel_command = {
    .name = "sentinel",
    .experiment = OF_SENTINEL,
    .about =
        "sentinel: stays on one CPU and prints a line of JSON (schema tunectl.probe.sentinel/1) each period: the clock the core\n"
        "really runs at, and how long the CPU went away while the sentinel spun. Ends with its parent, or when nobody reads.\n",
};

static void spin_slice(struct sentinel *s, uint64_t slice_ticks)
{
    struct loop_totals totals;
    _Atomic uint64_t deadline = ticks_now() + slice_ticks;
    loop_run(&s->recorder, s->threshold_ticks, &deadline, &totals);
    s->spin_ticks += totals.end - totals.start;
}

/* Spins and sleeps for one period, which ends at `end_ns`. */
static void spend_period(struct sentinel *s, uint64_t end_ns, uint64_t period_ns)
{
    uint64_t slice_ns = period_ns / SENTINEL_SLICES;
    double spin_s = s->options->period_s * (double)s->options->duty_percent / 100.0 / (double)SENTINEL_SLICES;
    recorder_reset(&s->recorder);
    s->spin_ticks = 0;
    for (unsigned i = 0; i < SENTINEL_SLICES && !stop_is_asked(); i++) {
        /* Each stretch lies at the end of its share, the last one at the end of the period: its clock is then not old. */
        uint64_t share_end_ns = end_ns - (SENTINEL_SLICES - 1 - i) * slice_ns;
        sleep_until(share_end_ns - (uint64_t)(spin_s * 1e9));
        if (!stop_is_asked())
            spin_slice(s, (uint64_t)(spin_s * s->rate.hz));
    }
    /* Behind the last stretch: a core that slept wakes up cold. */
    s->cycles_per_tick = clock_core_cycles_per_tick();
    recorder_finish(&s->recorder);
}

static void put_group(FILE *stream, const char **before, const struct histogram_bucket *bucket, double tick_ns)
{
    double ns = (double)bucket->sum / (double)bucket->count * tick_ns;
    (void)fprintf(stream, "%s[%.0f,%" PRIu64 "]", *before, ns, bucket->count);
    *before = ",";
}

/* One group for all the shorter gaps, then the longest by their buckets, each at the mean of its gaps. */
static void put_groups(FILE *stream, const struct histogram_bucket *buckets, double tick_ns)
{
    size_t from = HISTOGRAM_BUCKETS;
    struct histogram_bucket rest = {0};
    const char *before = "";
    for (size_t kept = 0; from > 0 && kept < SENTINEL_GROUPS_MOST;)
        kept += buckets[--from].count > 0;
    for (size_t i = 0; i < from; i++) {
        rest.sum += buckets[i].sum;
        rest.count += buckets[i].count;
    }
    if (rest.count)
        put_group(stream, &before, &rest, tick_ns);
    for (size_t i = from; i < HISTOGRAM_BUCKETS; i++)
        if (buckets[i].count)
            put_group(stream, &before, &buckets[i], tick_ns);
}

size_t sentinel_line(char *line, size_t size, const struct sentinel *s)
{
    FILE *stream = fmemopen(line, size, "w");
    double tick_ns = 1e9 / s->rate.hz;
    if (!stream)
        return 0;
    (void)fprintf(stream,
                  "{\"schema\":\"tunectl.probe.sentinel/1\",\"cpu\":%d,\"period_s\":%.3f,\"core_khz\":%.0f,"
                  "\"counter_khz\":%.0f,\"threshold_ns\":%" PRIu64 ",\"spin_ns\":%.0f,\"gaps\":%" PRIu64 ",\"max_ns\":%.0f,"
                  "\"lines_lost\":%" PRIu64 ",\"gap_ns\":[",
                  s->options->cpu, s->options->period_s, s->cycles_per_tick * s->rate.hz / 1e3, s->rate.hz / 1e3,
                  (uint64_t)((double)s->threshold_ticks * tick_ns), (double)s->spin_ticks * tick_ns, s->recorder.gaps_total,
                  (double)s->recorder.max_ticks * tick_ns, s->lines_lost);
    put_groups(stream, s->recorder.histogram->buckets, tick_ns);
    (void)fputs("]}\n", stream);
    long length = ftell(stream);
    bool fits = fclose(stream) == 0 && length > 0 && (size_t)length < size;
    return fits ? (size_t)length : 0;
}

/* A reader that is slow loses lines; the sentinel never waits for one. Returns EXIT_OK, or EXIT_FAILED when nobody reads. */
static int put_line(struct sentinel *s, const char *line, size_t length)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    ssize_t written;
    if (poll(&out, 1, 0) == 0) {
        s->lines_lost++;
        return EXIT_OK;
    }
    do
        written = write(STDOUT_FILENO, line, length);
    while (written < 0 && errno == EINTR);
    if (written == (ssize_t)length)
        return EXIT_OK;
    /* That the reader has gone is how a sentinel ends. */
    return written < 0 && errno != EPIPE ? print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno))
                                         : EXIT_FAILED;
}

static int report(struct sentinel *s)
{
    char line[SENTINEL_LINE_MOST];
    s->rate = clock_rate_between(s->clock.first, clock_pair_now(), s->clock.granule_ticks);
    size_t length = sentinel_line(line, sizeof(line), s);
    s->lines++;
    return put_line(s, line, length);
}

static bool is_over(const struct sentinel *s)
{
    return stop_is_asked() || (s->options->lines && s->lines >= s->options->lines);
}

static int keep_watch(struct sentinel *s)
{
    uint64_t period_ns = (uint64_t)(s->options->period_s * 1e9);
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    int status = EXIT_OK;
    while (!status && !is_over(s)) {
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        end_ns = end_ns + period_ns > now_ns ? end_ns + period_ns : now_ns + period_ns; /* a stopped host is not caught up with */
        spend_period(s, end_ns, period_ns);
        if (stop_is_asked())
            break;
        if (sched_getcpu() != s->options->cpu)
            return print_error(EXIT_FAILED, "CPU %d went away", s->options->cpu);
        status = report(s);
    }
    return status;
}

static int settle(struct sentinel *s)
{
    const struct options *o = s->options;
    (void)signal(SIGPIPE, SIG_IGN);
    stop_init();
    stop_listen();
    const char *step;
    int rc = thread_settle((unsigned)o->cpu, o->fifo_priority, &step);
    if (rc)
        return print_error(EXIT_FAILED, "on CPU %d the sentinel cannot %s: %s", o->cpu, step, strerror(-rc));
    if (recorder_map(&s->recorder, LIST))
        return print_error(EXIT_FAILED, "out of memory");
    (void)recorder_touch(&s->recorder);
    return EXIT_OK;
}

static int check_online(const struct options *options)
{
    struct host_facts facts;
    if (options->cpu < 0)
        return print_error(EXIT_USAGE, "sentinel: name the CPU it may use with --cpu N");
    host_facts_init(&facts, options->root);
    bool is_online = cpus_have(&facts.online, (unsigned)options->cpu);
    host_facts_deinit(&facts);
    return is_online ? EXIT_OK : print_error(EXIT_USAGE, "CPU %d is not online on this host", options->cpu);
}

static uint64_t default_threshold_ticks(const struct clock_span *clock)
{
    double tick_ns = 1e9 / clock->initial.hz;
    double step_ns = loop_first_step_ticks(clock->initial.hz) * tick_ns;
    return (uint64_t)((double)loop_default_threshold_ns(step_ns, (double)clock->granule_ticks * tick_ns) / tick_ns);
}

int sentinel_main(int argc, char **argv)
{
    struct options options;
    struct sentinel s = {.options = &options};
    int status = options_parse(&sentinel_command, &options, argc, argv);
    if (!status)
        status = check_online(&options);
    if (!status)
        status = settle(&s);
    if (status)
        return status;
    clock_span_begin(&s.clock);
    s.rate = s.clock.initial;
    s.threshold_ticks = options.threshold_ns ? (uint64_t)((double)options.threshold_ns * s.rate.hz / 1e9)
                                              : default_threshold_ticks(&s.clock);
    return keep_watch(&s);
}
