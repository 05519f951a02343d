/* How a thread is set up. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Starts a thread with a small stack: mlockall counts stacks against `ulimit -l`. Returns 0 or -errno. */
int thread_start(pthread_t *thread, void *(*main)(void *), void *argument);

/* Confines the calling thread to one CPU. Returns 0 or -errno. */
int thread_pin(unsigned cpu);

/*
 * The calling thread to its CPU, and under SCHED_FIFO; priority 0 leaves its scheduling class alone. Returns 0, or -errno and
 * in `step` what it could not do, for a message.
 */
int thread_settle(unsigned cpu, int fifo_priority, const char **step);

/*
 * Local memory for the calling thread, even under `numactl --interleave`. An explicit policy also keeps NUMA balancing from
 * unmapping the probe's pages to see who faults on them. Kernels without NUMA have no such call and need none.
 */
void thread_use_local_memory(void);

/* Memory of zeros that nobody has touched, shared with processes forked later; NULL where there is none. munmap gives it back. */
void *memory_map(size_t bytes);

/* What a thread has used so far, and when. */
struct usage {
    uint64_t ticks;
    uint64_t cpu_ns;
    uint64_t minor_faults;
    uint64_t major_faults;
    uint64_t voluntary_switches;
    uint64_t preemptions;       /* involuntary switches */
};

/* Of the calling thread. */
struct usage usage_now(void);

/* What it has used since: `ticks` and the rest as differences. */
struct usage usage_since(const struct usage *before, const struct usage *after);

/* A thread on the CPUs of its starter that calls `look(context)` each millisecond. Aborts where it cannot be started. */
struct watch {
    void (*look)(void *context);
    void *context;
    pthread_t thread;
    atomic_bool is_over;
};

void watch_start(struct watch *watch);
void watch_stop(struct watch *watch);
