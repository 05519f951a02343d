/*
 * The two threads of the experiment `wake`, each pinned to its CPU, and what the main thread has them do.
 *
 * Between tasks both sleep at a barrier. SIGINT and its like are blocked in them: the main thread takes signals, the sender
 * looks at the flag, and a receiver that waits in vain is sent SEQUENCE_END.
 */
#ifndef TUNECTL_WAKE_THREADS_H
#define TUNECTL_WAKE_THREADS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "wake/exchange.h"

/* How far the receiver's counter is ahead of the sender's: a bound from both sides, by stamps sent to and fro. */
struct clock_offset {
    bool is_known;
    int64_t least_ticks;        /* where least > most, the counters have no common time at all */
    int64_t most_ticks;
};

enum wake_task { TASK_EXCHANGE, TASK_COMPARE_CLOCKS, TASK_LEAVE };

struct wake_threads;

struct wake_thread {
    struct wake_threads *threads;
    pthread_t thread;
    unsigned cpu;
    _Atomic pid_t tid;          /* 0 before it has one */
    bool is_receiver;
    int error;                  /* -errno of `failed_step`, 0 when prepared */
    const char *failed_step;
};

/* One side's stamp, for the other to read. */
struct clock_stamp {
    _Alignas(RING_LINE) _Atomic uint64_t turn;
    uint64_t ticks;
};

struct wake_threads {
    pthread_barrier_t barrier;
    sem_t sender_is_over;
    sem_t receiver_is_over;
    enum wake_task task;
    int fifo_priority;          /* 0: the scheduling class stays */
    struct exchange *exchange;
    struct wake_thread sender;
    struct wake_thread receiver;
    struct clock_stamp stamps[2];
    int64_t nearest_ticks[2];   /* the least difference each side has seen to a stamp of the other's */
};

/* Starts both threads and waits until they are prepared. Returns 0, or EXIT_FAILED with the reason on stderr. */
int wake_threads_start(struct wake_threads *threads, struct exchange *x, unsigned sender_cpu, unsigned receiver_cpu,
                       int fifo_priority);

/*
 * Runs the exchange as it was reset. A receiver that still waits a second after the sender is over (at a signal, less) is
 * made to leave; what it misses was lost.
 */
void wake_threads_exchange(struct wake_threads *threads);

/* Only for two different CPUs. */
struct clock_offset wake_threads_compare_clocks(struct wake_threads *threads);

void wake_threads_stop(struct wake_threads *threads);

#endif
