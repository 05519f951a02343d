/* How a thread is set up. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

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

/* A thread on the CPUs of its starter that calls `look(context)` each millisecond. Aborts where it cannot be started. */
struct watch {
    void (*look)(void *context);
    void *context;
    pthread_t thread;
    atomic_bool is_over;
};

void watch_start(struct watch *watch);
void watch_stop(struct watch *watch);
