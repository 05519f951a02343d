#include "selftest/stopping.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/files.h"
#include "lib/loop.h"
#include "lib/span.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/ticks.h"
#include "selftest/recall.h"

enum { LIST = 65536, LEAD_MS = 300 };

static const uint32_t gap_parts[] = {50000, 99000, 99900, 99990};
static const uint32_t arrival_parts[] = {50000, 99000, 99900, 99990, 99999};

/* What the child found, in memory of both. */
struct child_report {
    _Atomic int state;          /* 0: not yet spinning, 1: spinning, 2: done; -errno: failed */
    uint64_t run_ticks;
    uint64_t gaps;
    uint64_t max_ticks;
    uint64_t second_ticks;      /* the longest of the other gaps */
    double gap_ticks[sizeof(gap_parts) / sizeof(*gap_parts)];
    double arrival_ticks[sizeof(arrival_parts) / sizeof(*arrival_parts)];
};

static int fill_report(struct child_report *report, const struct recorder *r, const struct loop_totals *totals)
{
    struct gap_lengths lengths;
    int rc = gap_lengths_init(&lengths, r);
    if (rc)
        return rc;
    report->run_ticks = totals->end - totals->start;
    report->gaps = r->gaps_total;
    report->max_ticks = r->max_ticks;
    for (size_t i = 0; i < r->gaps_listed; i++) {
        uint64_t length = r->gaps[i].end - r->gaps[i].start;
        if (length != r->max_ticks && length > report->second_ticks)
            report->second_ticks = length;
    }
    for (size_t i = 0; i < sizeof(gap_parts) / sizeof(*gap_parts); i++)
        report->gap_ticks[i] = gap_percentile(&lengths, gap_parts[i]);
    for (size_t i = 0; i < sizeof(arrival_parts) / sizeof(*arrival_parts); i++)
        report->arrival_ticks[i] = arrival_percentile(&lengths, report->run_ticks, arrival_parts[i]);
    gap_lengths_deinit(&lengths);
    return 0;
}

static int spin_and_report(const struct stopping *s, struct child_report *report)
{
    struct recorder r;
    struct loop_totals totals;
    bool locked;
    int rc = thread_pin(s->cpu);
    if (!rc)
        rc = recorder_init(&r, LIST, &locked);
    if (rc)
        return rc;
    /* Where it may, so that a continued child does not first wait for a CPU that others want as well. */
    (void)thread_use_fifo(1);
    _Atomic uint64_t deadline = ticks_now() + (uint64_t)((s->stop_s + 2.0 * LEAD_MS / 1e3) * s->hz);
    atomic_store(&report->state, 1);
    loop_run(&r, s->threshold_ticks, &deadline, &totals);
    recorder_finish(&r);
    rc = fill_report(report, &r, &totals);
    recorder_deinit(&r);
    return rc;
}

static void child_main(const struct stopping *s, struct child_report *report)
{
    /* A stopped child would outlive a parent that is killed. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int rc = spin_and_report(s, report);
    atomic_store(&report->state, rc ? rc : 2);
    _exit(0);
}

static void sleep_ms(uint64_t ms)
{
    struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    while (nanosleep(&pause, &pause) && errno == EINTR)
        continue;
}

/* How long the process has been ready and not running: a child that is continued may have to wait for its CPU. */
static double waited_ns(pid_t pid)
{
    struct text text;
    uint64_t ns = 0;
    if (file_read(&text, "", "/proc/%d/schedstat", (int)pid))
        return 0.0;
    struct span rest = {text.bytes, text.length};
    (void)span_word(&rest);
    if (!span_number(span_word(&rest), &ns))
        ns = 0;
    text_deinit(&text);
    return (double)ns;
}

/* The least and the most the stop can have taken, by stamps on either side of both signals. */
static int stop_and_continue(const struct stopping *s, pid_t pid, double *least_ns, double *most_ns)
{
    int status;
    double tick_ns = 1e9 / s->hz;
    sleep_ms(LEAD_MS / 2);
    uint64_t before_stop = ticks_now();
    if (kill(pid, SIGSTOP) || waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
        return -ECHILD;
    uint64_t after_stop = ticks_now();
    sleep_ms((uint64_t)(s->stop_s * 1e3));
    double waited = waited_ns(pid);
    uint64_t before_continue = ticks_now();
    if (kill(pid, SIGCONT))
        return -errno;
    uint64_t after_continue = ticks_now();
    sleep_ms(LEAD_MS / 2);
    *least_ns = (double)(before_continue - after_stop) * tick_ns;
    *most_ns = (double)(after_continue - before_stop) * tick_ns + waited_ns(pid) - waited;
    return 0;
}

/*
 * A single gap of length L dominates: P(wait > x) = (L - x) / run as long as x is longer than every other gap, so each
 * percentile of arrivals is L less the share of the run that may wait longer. Of the gaps' own percentiles, those whose rank is
 * the last are L itself.
 */
static double worst_percentile_ns(const struct stopping *s, const struct child_report *report, double least_ns, double most_ns)
{
    double tick_ns = 1e9 / s->hz;
    double run_ns = (double)report->run_ticks * tick_ns;
    double worst = 0.0;
    for (size_t i = 0; i < sizeof(gap_parts) / sizeof(*gap_parts); i++) {
        if ((report->gaps * gap_parts[i] + STATS_WHOLE - 1) / STATS_WHOLE < report->gaps)
            continue;
        double off = recall_outside(report->gap_ticks[i] * tick_ns, least_ns, most_ns);
        worst = off > worst ? off : worst;
    }
    for (size_t i = 0; i < sizeof(arrival_parts) / sizeof(*arrival_parts); i++) {
        double shorter_ns = run_ns * (double)(STATS_WHOLE - arrival_parts[i]) / (double)STATS_WHOLE;
        if (least_ns - shorter_ns <= (double)report->second_ticks * tick_ns)
            continue;
        double off = recall_outside(report->arrival_ticks[i] * tick_ns, least_ns - shorter_ns, most_ns - shorter_ns);
        worst = off > worst ? off : worst;
    }
    return worst;
}

static int observe(struct stopping *s, struct child_report *report, pid_t pid)
{
    double least_ns = 0.0;
    double most_ns = 0.0;
    int status;
    while (atomic_load(&report->state) == 0 && waitpid(pid, &status, WNOHANG) == 0)
        sleep_ms(1);
    int rc = atomic_load(&report->state) == 1 ? stop_and_continue(s, pid, &least_ns, &most_ns) : atomic_load(&report->state);
    if (rc)
        (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    if (rc || atomic_load(&report->state) != 2)
        return rc < 0 ? rc : -ECHILD;
    s->truth_ns = least_ns;
    s->max_ns = (double)report->max_ticks * 1e9 / s->hz;
    s->max_error_ns = recall_outside(s->max_ns, least_ns, most_ns);
    s->percentile_error_ns = worst_percentile_ns(s, report, least_ns, most_ns);
    return 0;
}

int stopping_run(struct stopping *s)
{
    struct child_report *report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        child_main(s, report);
    int rc = pid < 0 ? -errno : observe(s, report, pid);
    (void)munmap(report, sizeof(*report));
    return rc;
}
