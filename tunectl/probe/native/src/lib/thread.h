/* How a thread is set up, and when it ends. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
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

/* Of the calling thread; and what it has used since, `ticks` and the rest as differences. */
struct usage usage_now(void);
struct usage usage_since(const struct usage *before);

/* A thread on the CPUs of its starter that calls `look(context)` each millisecond. Aborts where it cannot be started. */
struct watch {
    void (*look)(void *context);
    void *context;
    pthread_t thread;
    atomic_bool is_over;
};

void watch_start(struct watch *watch);
void watch_stop(struct watch *watch);

/*
 * When the measuring ends: a deadline that SIGINT, SIGTERM and SIGHUP bring forward to now. And a probe ends with the program
 * that started it: nothing of ours stays behind on a CPU that somebody trades on.
 *
 * Installs the handlers and blocks the signals in the calling thread, which must be the only one yet. Threads that measure
 * call stop_listen: they take the signals themselves, because under SCHED_FIFO on a shared CPU no other thread would run.
 */
void stop_init(void);
void stop_listen(void);

/* Sets the deadline, in ticks, unless a signal came first. */
void stop_at(uint64_t deadline);

/* As a signal does. */
void stop_now(void);

/* Is the run ended before its deadline? */
bool stop_is_asked(void);

/* For loop_run. Before stop_at it lies in the endless future. */
const _Atomic uint64_t *stop_deadline(void);

/* Sleeps until then on CLOCK_MONOTONIC, or until the run is ended. */
void sleep_until(uint64_t ns);

/*
 * The parent's process id, where the starter gives it: a starter that dies before parent_follow is then noticed, too. Without
 * it, a program that ignores SIGHUP (nohup) is meant to outlive whoever started it.
 */
#define PARENT_VARIABLE "TUNECTL_PROBE_PARENT"

/* From now on SIGTERM comes when the parent ends. Once, before any thread is started. False where the parent has ended already. */
bool parent_follow(void);

/* Has the parent ended since? Never true where nobody is followed. */
bool parent_is_gone(void);
