/*
 * The two threads of the experiment `wake`, each pinned to its CPU, and what the main thread has them do, step by step.
 *
 * SIGINT and its like are blocked in them: the main thread takes signals, and the sender looks at the flag. A receiver that
 * waits in vain is left waiting: it ends with the process.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "wake/exchange.h"

/* How far the receiver's counter is ahead of the sender's: a bound from both sides, by stamps sent to and fro. */
struct clock_offset {
    bool is_known;              /* not where both are on one CPU */
    int64_t least_ticks;        /* where least > most, the counters have no common time at all */
    int64_t most_ticks;
};

enum { SENDER, RECEIVER, ENDS };

/* One side's stamp, for the other to read. */
struct clock_stamp {
    _Alignas(RING_LINE) _Atomic uint64_t turn;
    uint64_t ticks;
};

struct wake_thread {
    struct wake_threads *threads;
    pthread_t thread;
    unsigned side;              /* SENDER or RECEIVER */
    unsigned cpu;
    _Atomic pid_t tid;          /* 0 before it has one */
    int status;                 /* EXIT_OK once it is where it belongs */
    sem_t is_over;
    struct clock_stamp stamp;
    int64_t nearest_ticks;      /* the least difference it has seen to a stamp of the other's */
};

struct wake_threads {
    pthread_barrier_t barrier;
    int fifo_priority;          /* 0: the scheduling class stays */
    uint64_t timer_slack_ns;    /* of the receiver */
    struct exchange *exchange;
    struct wake_thread ends[ENDS];
};

/* The calling thread, `name`, to its CPU and its scheduling class. Returns EXIT_OK, or EXIT_FAILED with the reason on stderr. */
int wake_thread_settle(const char *name, unsigned cpu, int fifo_priority);

/* Starts both threads and waits until they are prepared. Returns EXIT_OK, or EXIT_FAILED with the reason on stderr. */
int wake_threads_start(struct wake_threads *threads, struct exchange *x, const unsigned cpus[ENDS], int fifo_priority);

struct clock_offset wake_threads_compare_clocks(struct wake_threads *threads);

/*
 * Runs the exchange. A receiver that still waits a second after the sender is over (at a signal, less) is left: what it misses was
 * lost. A timer is given all the time it takes. Returns whether it came to its end; otherwise it is still there.
 */
bool wake_threads_exchange(struct wake_threads *threads);

/* Once both came to their end. */
void wake_threads_join(struct wake_threads *threads);
