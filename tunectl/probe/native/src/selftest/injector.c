#include "selftest/injector.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/cpus.h"
#include "lib/ticks.h"

static struct timespec now_plus(uint64_t ns)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t total = (uint64_t)t.tv_nsec + ns;
    t.tv_sec += (time_t)(total / UINT64_C(1000000000));
    t.tv_nsec = (long)(total % UINT64_C(1000000000));
    return t;
}

static void pause_for(uint64_t ns)
{
    struct timespec until = now_plus(ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

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
    for (size_t at = 0; at < i->n; at++) {
        pause_for(i->pause_ns);
        i->truths[at] = hold_cpu(i->length_ticks);
    }
    return NULL;
}

/* The attributes of a SCHED_FIFO thread on the CPU, from its first instruction on. */
static int preempting_attributes(pthread_attr_t *attributes, unsigned cpu)
{
    struct sched_param param = {.sched_priority = 1};
    cpu_set_t *set = CPU_ALLOC((size_t)cpu + 1);
    size_t bytes = CPU_ALLOC_SIZE((size_t)cpu + 1);
    if (!set)
        return -ENOMEM;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(cpu, bytes, set);
    int rc = pthread_attr_init(attributes);
    if (!rc) {
        rc = pthread_attr_setaffinity_np(attributes, bytes, set);
        rc = rc ? rc : pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
        rc = rc ? rc : pthread_attr_setschedpolicy(attributes, SCHED_FIFO);
        rc = rc ? rc : pthread_attr_setschedparam(attributes, &param);
    }
    CPU_FREE(set);
    return -rc;
}

int inject_by_preemption(struct injection *i)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int rc = preempting_attributes(&attributes, i->cpu);
    if (rc)
        return rc;
    rc = -pthread_create(&thread, &attributes, preempting_main, i);
    (void)pthread_attr_destroy(&attributes);
    if (!rc)
        (void)pthread_join(thread, NULL);
    return rc;
}

int inject_by_ipi(struct injection *i)
{
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
        return -errno;
    for (size_t at = 0; at < i->n; at++) {
        pause_for(i->pause_ns);
        i->truths[at].start = ticks_now();
        if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
            return -errno;
        i->truths[at].end = ticks_now();
    }
    return 0;
}
