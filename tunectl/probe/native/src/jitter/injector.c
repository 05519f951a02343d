#include "jitter/run.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/ticks.h"

static struct gap hold_cpu(uint64_t length_ticks)
{
    struct gap truth = {.start = ticks_now()};
    do
        truth.end = ticks_now();
    while (truth.end - truth.start < length_ticks);
    return truth;
}

static void *preempting_main(void *argument)
{
    struct injection *i = argument;
    const char *step;
    i->error = thread_settle(i->cpu, 1, &step);
    for (; !i->error && i->done < i->n && !stop_is_asked(); i->done++) {
        sleep_until(clock_ns(CLOCK_MONOTONIC) + i->pause_ns);
        i->truths[i->done] = hold_cpu(i->length_ticks);
    }
    return NULL;
}

static int inject_by_preemption(struct injection *i)
{
    pthread_t thread;
    int rc = thread_start(&thread, preempting_main, i);
    if (!rc)
        (void)pthread_join(thread, NULL);
    return rc ? rc : i->error;
}

static int inject_by_ipi(struct injection *i)
{
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
        return -errno;
    for (; i->done < i->n && !stop_is_asked(); i->done++) {
        struct gap *truth = &i->truths[i->done];
        sleep_until(clock_ns(CLOCK_MONOTONIC) + i->pause_ns);
        truth->start = ticks_now();
        if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
            return -errno;
        truth->end = ticks_now();
    }
    return 0;
}

int injection_init(struct injection *i, const char *text, unsigned cpu, double hz)
{
    enum { MOST = 1000000 };
    char kind[16];
    unsigned long long length_ns;
    unsigned long long pause_ns;
    char rest;
    *i = (struct injection){.cpu = cpu};
    if (!text)
        return EXIT_OK;
    bool is_read = sscanf(text, "%15[a-z],%zu,%llu,%llu%c", kind, &i->n, &length_ns, &pause_ns, &rest) == 4 && i->n <= MOST;
    if (is_read && strcmp(kind, "preemption") == 0)
        i->inject = inject_by_preemption;
    if (is_read && strcmp(kind, "ipi") == 0)
        i->inject = inject_by_ipi;
    if (!i->inject)
        return print_error(EXIT_USAGE, "--inject %s: expected preemption or ipi, how often, how long and how far apart in ns", text);
    i->length_ticks = (uint64_t)((double)length_ns * hz / 1e9);
    i->pause_ns = pause_ns;
    i->truths = calloc(i->n + 1, sizeof(*i->truths));
    return i->truths ? EXIT_OK : print_error(EXIT_FAILED, "out of memory");
}
