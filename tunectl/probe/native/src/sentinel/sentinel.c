#include "sentinel/sentinel.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/facts.h"
#include "lib/loop.h"
#include "lib/output.h"
#include "lib/recorder.h"
#include "lib/stop.h"
#include "lib/thread.h"
#include "lib/ticks.h"

/* Beyond these a histogram takes the gaps: percentiles are then off by less than HISTOGRAM_ERROR_PPM. */
enum { LIST = 4096, NS = 1000000000 };

struct sentinel {
    const struct sentinel_options *options;
    struct recorder recorder;
    struct clock_span clock;
    struct clock_rate rate;     /* since the start: it grows more exact */
    uint64_t threshold_ticks;
    uint64_t spin_ticks;        /* of this period, this and the rest */
    double cycles_per_tick;
    uint64_t lines;
    uint64_t lines_lost;
};

static void sleep_until(uint64_t ns)
{
    struct timespec at = {(time_t)(ns / NS), (long)(ns % NS)};
    while (!stop_is_asked() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

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

/* The lengths from `from` on, then one group for all the shorter ones. */
static size_t put_groups(char *line, size_t size, const struct sentinel_reading *r)
{
    const struct gap_lengths *lengths = r->lengths;
    size_t from = lengths->n > SENTINEL_GROUPS_MOST ? lengths->n - SENTINEL_GROUPS_MOST : 0;
    size_t used = 0;
    double sum = 0.0;
    uint64_t count = 0;
    for (size_t i = 0; i < from; i++) {
        sum += lengths->groups[i].length * (double)lengths->groups[i].count;
        count += lengths->groups[i].count;
    }
    for (size_t i = from ? from - 1 : 0; i < lengths->n && used < size; i++) {
        bool is_rest = i + 1 == from;
        double ns = (is_rest ? sum / (double)count : lengths->groups[i].length) * r->tick_ns;
        uint64_t n = is_rest ? count : lengths->groups[i].count;
        used += (size_t)snprintf(line + used, size - used, "%s[%.0f,%llu]", used ? "," : "", ns, (unsigned long long)n);
    }
    return used;
}

size_t sentinel_line(char *line, size_t size, const struct sentinel_reading *r)
{
    int head = snprintf(line, size,
                        "{\"schema\":\"tunectl.probe.sentinel/1\",\"cpu\":%u,\"period_s\":%.3f,\"core_khz\":%.0f,"
                        "\"counter_khz\":%.0f,\"threshold_ns\":%llu,\"spin_ns\":%.0f,\"gaps\":%llu,\"max_ns\":%.0f,"
                        "\"gap_p99_9_ns\":%.0f,\"arrival_p99_9_ns\":%.0f,\"lines_lost\":%llu,\"gap_ns\":[",
                        r->cpu, r->period_s, r->core_khz, r->counter_khz, (unsigned long long)r->threshold_ns, r->spin_ns,
                        (unsigned long long)r->gaps, r->max_ns, r->gap_p99_9_ns, r->arrival_p99_9_ns,
                        (unsigned long long)r->lines_lost);
    size_t used = head > 0 ? (size_t)head : size;
    if (used < size)
        used += put_groups(line + used, size - used, r);
    if (used + sizeof("]}\n") > size)
        return 0;
    memcpy(line + used, "]}\n", sizeof("]}\n"));
    return used + sizeof("]}\n") - 1;
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
    struct gap_lengths lengths;
    char line[SENTINEL_LINE_MOST];
    s->rate = clock_rate_between(s->clock.first, clock_pair_now(), s->clock.granule_ticks);
    if (gap_lengths_init(&lengths, &s->recorder))
        return print_error(EXIT_FAILED, "out of memory");
    double tick_ns = 1e9 / s->rate.hz;
    struct sentinel_reading reading = {
        .cpu = (unsigned)s->options->cpu,
        .period_s = s->options->period_s,
        .core_khz = s->cycles_per_tick * s->rate.hz / 1e3,
        .counter_khz = s->rate.hz / 1e3,
        .threshold_ns = (uint64_t)((double)s->threshold_ticks * tick_ns),
        .spin_ns = (double)s->spin_ticks * tick_ns,
        .gaps = s->recorder.gaps_total,
        .max_ns = (double)s->recorder.max_ticks * tick_ns,
        .gap_p99_9_ns = gap_percentile(&lengths, 99900) * tick_ns,
        .arrival_p99_9_ns = arrival_percentile(&lengths, s->spin_ticks, 99900) * tick_ns,
        .lines_lost = s->lines_lost,
        .lengths = &lengths,
        .tick_ns = tick_ns,
    };
    size_t length = sentinel_line(line, sizeof(line), &reading);
    gap_lengths_deinit(&lengths);
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
    uint64_t end_ns = monotonic_ns();
    int status = EXIT_OK;
    while (!status && !is_over(s)) {
        uint64_t now_ns = monotonic_ns();
        end_ns = end_ns + period_ns > now_ns ? end_ns + period_ns : now_ns + period_ns; /* a stopped host is not caught up with */
        spend_period(s, end_ns, period_ns);
        if (stop_is_asked())
            break;
        if ((long)sched_getcpu() != s->options->cpu)
            return print_error(EXIT_FAILED, "CPU %ld went away", s->options->cpu);
        status = report(s);
    }
    return status;
}

static int settle(struct sentinel *s)
{
    const struct sentinel_options *o = s->options;
    bool locked;
    (void)signal(SIGPIPE, SIG_IGN);
    stop_init();
    stop_listen();
    int rc = thread_pin((unsigned)o->cpu);
    if (rc)
        return print_error(EXIT_FAILED, "cannot run on CPU %ld (is it in this cgroup's cpuset?): %s", o->cpu, strerror(-rc));
    rc = thread_use_fifo(o->fifo_priority);
    if (rc)
        return print_error(EXIT_FAILED, "cannot use SCHED_FIFO (it needs CAP_SYS_NICE or `ulimit -r`): %s", strerror(-rc));
    rc = recorder_init(&s->recorder, LIST, &locked);
    return rc ? print_error(EXIT_FAILED, "out of memory") : EXIT_OK;
}

static int check_online(const struct sentinel_options *options)
{
    struct host_facts facts;
    if (options->cpu == SENTINEL_NO_CPU)
        return print_error(EXIT_USAGE, "sentinel: name the CPU it may use with --cpu N");
    if (host_facts_init(&facts, options->root))
        return print_error(EXIT_FAILED, "out of memory");
    bool is_online = cpu_list_has(&facts.online, (unsigned)options->cpu);
    host_facts_deinit(&facts);
    return is_online ? EXIT_OK : print_error(EXIT_USAGE, "CPU %ld is not online on this host", options->cpu);
}

int sentinel_main(int argc, char **argv)
{
    struct sentinel_options options;
    struct sentinel s = {.options = &options};
    int status = sentinel_options_parse(&options, argc, argv);
    if (!status)
        status = check_online(&options);
    if (!status)
        status = settle(&s);
    if (status)
        return status;
    clock_span_begin(&s.clock);
    s.rate = s.clock.initial;
    s.threshold_ticks = options.threshold_ns ? (uint64_t)((double)options.threshold_ns * s.rate.hz / 1e9)
                                              : loop_default_threshold_ticks(&s.clock);
    status = keep_watch(&s);
    recorder_deinit(&s.recorder);
    return status;
}
