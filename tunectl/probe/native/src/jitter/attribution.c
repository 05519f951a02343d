#include "jitter/attribution.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jitter/tracestream.h"
#include "lib/files.h"
#include "lib/ticks.h"

/*
 * An isolated CPU makes a handful of events a second, one full of ordinary work some 10,000 of about 50 bytes. Beyond the
 * limit the buffer fills up: it keeps the beginning, as the list of gaps does, and says what it lost.
 */
enum { KIB_PER_S = 1024, KIB_LEAST = 4096, KIB_MOST = 64 * 1024, MEMORY_SHARE = 16 };

__attribute__((format(printf, 2, 3)))
static void give_up(struct attribution *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(a->reason, sizeof(a->reason), format, args);
    va_end(args);
}

static const char *why(int rc)
{
    return rc == -ENOENT ? "tracefs is not mounted (mount -t tracefs nodev /sys/kernel/tracing)" : strerror(-rc);
}

/*
 * Columns as the parser knows them, whatever options the host's main instance has. A kernel without an option has no such
 * column either.
 */
static void choose_format(const struct trace_instance *t)
{
    static const char *const options[] = {"nolatency-format", "noraw",    "nohex",        "nobin",        "nofields",
                                          "norecord-tgid",    "noverbose", "nostacktrace", "context-info", "record-cmd"};
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        (void)trace_instance_write(t, options[i], "trace_options");
}

static unsigned wanted_kib(const struct attribution_request *r)
{
    double available_kib = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1024.0;
    double kib = r->duration_s * (double)KIB_PER_S;
    double share_kib = available_kib / (double)MEMORY_SHARE / (double)r->cpus->n;
    if (kib > share_kib)
        kib = share_kib;
    if (kib > (double)KIB_MOST)
        kib = (double)KIB_MOST;
    return kib < (double)KIB_LEAST ? (unsigned)KIB_LEAST : (unsigned)kib;
}

/* Keeps the beginning rather than the end, as the list of gaps does: what is lost is then one stretch, and known. */
static int size_buffers(struct attribution *a)
{
    const struct cpu_list *cpus = a->request.cpus;
    char text[32];
    int rc = trace_instance_write(&a->instance, "0", "options/overwrite");
    a->buffer_kib = wanted_kib(&a->request);
    (void)snprintf(text, sizeof(text), "%u", a->buffer_kib);
    for (size_t i = 0; i < cpus->n && !rc; i++)
        rc = trace_instance_write(&a->instance, text, "per_cpu/cpu%u/buffer_size_kb", cpus->ids[i]);
    return rc;
}

static void enable_events(struct attribution *a)
{
    for (size_t i = 0; trace_events_wanted[i] && a->n_events < ATTRIBUTION_EVENTS_MAX; i++)
        if (trace_instance_write(&a->instance, "1", "events/%s/enable", trace_events_wanted[i]) == 0)
            a->events[a->n_events++] = trace_events_wanted[i];
}

static bool has_event(const struct attribution *a, const char *name)
{
    for (size_t i = 0; i < a->n_events; i++)
        if (strcmp(a->events[i], name) == 0)
            return true;
    return false;
}

static int compare_ticks(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The median length of a page fault taken on purpose, by the calling thread; 0 where that cannot be had. */
static uint64_t fault_ticks(void)
{
    enum { FAULTS = 501 };
    static uint64_t taken[FAULTS];
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 0;
    for (int i = 0; i < FAULTS; i++) {
        (void)madvise((void *)(uintptr_t)page, size, MADV_DONTNEED);
        uint64_t start = ticks_now();
        *page = 1;
        taken[i] = ticks_now() - start;
    }
    (void)munmap((void *)(uintptr_t)page, size);
    qsort(taken, FAULTS, sizeof(*taken), compare_ticks);
    return taken[FAULTS / 2];
}

/*
 * What one traced event costs: page faults are the one traced thing a thread can bring about at will, so they are timed
 * before the events are enabled and again while they are traced, on the CPU this thread is on. Away from the probed ones,
 * where there is any other.
 */
static void enable_and_time(struct attribution *a)
{
    (void)fault_ticks();
    uint64_t untraced = fault_ticks();
    enable_events(a);
    if (!has_event(a, "exceptions/page_fault_user") || trace_instance_confine(&a->instance, a->request.own) ||
        trace_instance_switch(&a->instance, true))
        return;
    uint64_t traced = fault_ticks();
    (void)trace_instance_switch(&a->instance, false);
    (void)trace_instance_write(&a->instance, "", "trace");
    if (traced > untraced && untraced)
        a->event_cost_ticks = (double)(traced - untraced);
}

static void prepare(struct attribution *a, const char *tracefs)
{
    struct trace_instance *t = &a->instance;
    int rc = trace_instance_init(t, tracefs, a->request.root);
    if (rc) {
        give_up(a, "an instance of the kernel's tracing cannot be made in %s: %s", tracefs, strerror(-rc));
        return;
    }
    rc = trace_instance_write(t, "x86-tsc", "trace_clock");
    if (rc) {
        give_up(a, "this kernel's tracing has no clock that can be compared with the probe's (x86-tsc): %s", strerror(-rc));
        return;
    }
    choose_format(t);
    enable_and_time(a);
    rc = a->n_events ? trace_instance_confine(t, a->request.cpus) : -ENOENT;
    if (!rc)
        rc = size_buffers(a);
    if (!rc)
        rc = trace_instance_switch(t, true);
    if (rc)
        give_up(a, a->n_events ? "tracing could not be set up: %s" : "this kernel has none of the events", strerror(-rc));
}

void attribution_begin(struct attribution *a, const struct attribution_request *request)
{
    char tracefs[PATH_MAX];
    *a = (struct attribution){.request = *request, .instance = {.switch_fd = -1}};
    int rc = tracefs_find(tracefs, request->root);
    if (!rc)
        tracefs_sweep(tracefs, request->root);
    if (!request->is_wanted)
        give_up(a, "not asked for");
    else if (rc)
        give_up(a, "%s", why(rc));
    else
        prepare(a, tracefs);
}

void attribution_end(struct attribution *a)
{
    if (!a->reason[0])
        (void)trace_instance_switch(&a->instance, false);
}

/* How many events the buffer of `cpu` had no room for. */
static uint64_t events_lost(const struct attribution *a, unsigned cpu)
{
    struct text stats;
    if (file_read(&stats, a->instance.path, "/per_cpu/cpu%u/stats", cpu))
        return 0;
    uint64_t lost = trace_stats_lost((struct span){stats.bytes, stats.length});
    text_deinit(&stats);
    return lost;
}

static int add_event(void *context, const struct trace_event *event)
{
    return causes_add(context, event);
}

static int collect_cpu(struct attribution *a, const struct worker *w, struct causes *c)
{
    char path[PATH_MAX + 64];
    int rc = causes_init(c, w->recorder.gaps, w->recorder.gaps_listed, (uint64_t)w->tid);
    if (rc)
        return rc;
    (void)snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/trace", a->instance.path, w->cpu);
    rc = tracestream_read(path, add_event, c);
    if (rc && rc != -ENOMEM)
        give_up(a, "the trace cannot be read: %s", strerror(-rc));
    return rc ? rc : causes_finish(c, events_lost(a, w->cpu));
}

int attribution_collect(struct attribution *a, const struct worker *workers)
{
    size_t n = a->request.cpus->n;
    int rc = 0;
    if (!a->reason[0]) {
        a->of_cpu = calloc(n, sizeof(*a->of_cpu));
        for (size_t i = 0; a->of_cpu && i < n && !rc; i++)
            rc = collect_cpu(a, &workers[i], &a->of_cpu[i]);
        rc = a->of_cpu ? rc : -ENOMEM;
    }
    a->is_left_behind = trace_instance_deinit(&a->instance) != 0;
    return rc == -ENOMEM ? rc : 0;
}

void attribution_deinit(struct attribution *a)
{
    (void)trace_instance_deinit(&a->instance);
    for (size_t i = 0; a->of_cpu && i < a->request.cpus->n; i++)
        causes_deinit(&a->of_cpu[i]);
    free(a->of_cpu);
    *a = (struct attribution){.instance = {.switch_fd = -1}};
}
