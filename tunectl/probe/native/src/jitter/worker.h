/* One thread on one CPU: prepares, measures, and leaves its figures behind. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/clock.h"
#include "lib/loop.h"
#include "lib/recorder.h"
#include "lib/tasks.h"
#include "lib/thread.h"

/*
 * What all workers and the main thread share. The barrier is passed four times: ready (everything allocated), go (start is
 * set), done (measured), leave (the main thread has read the host's counters; only now may threads exit, because
 * an exit is work on the CPU it happens on).
 */
struct run_control {
    pthread_barrier_t barrier;
    bool cancelled;             /* set between ready and go: a worker could not prepare */
    uint64_t start_ticks;       /* the moment all begin at */
    uint64_t threshold_ticks;
    uint64_t microsecond_ticks;
    uint64_t stretch_ticks;     /* of the series */
    size_t gaps_capacity;
    uint64_t until_ticks;       /* a gap so long ends the run of all; UINT64_MAX: none does */
    bool is_guarded;            /* somebody watches over the workers, and tells each when to stop */
    int fifo_priority;          /* 0: leave the scheduling class alone */
};

enum worker_stage {
    WORKER_STARTS,              /* its CPU was not given to it yet */
    WORKER_IS_READY,
    WORKER_MEASURES,            /* it spins */
    WORKER_IS_DONE,
};

enum { WORKER_WHY_SIZE = 256 };

/* In memory that a worker in a process of its own shares with the main thread. */
struct worker {
    struct run_control *control;
    pthread_t thread;
    unsigned cpu;
    _Atomic pid_t tid;          /* its thread id, as the kernel's trace knows it; 0 before it has one */

    /* Between worker and guard. On a cache line of their own: the loop reads the deadline in each turn. */
    _Alignas(128) _Atomic uint64_t deadline;    /* in ticks; 0: leave at once */
    _Alignas(128) atomic_int stage;
    atomic_bool left;           /* the CPU was left to somebody else: nothing of this worker is a result */
    char why_left[WORKER_WHY_SIZE];

    int error;                  /* -errno of `failed_step`, 0 when prepared */
    const char *failed_step;
    bool locked;

    struct recorder recorder;
    struct gap reached;         /* the gap that ended its loop; end 0: none did */
    struct loop_totals totals;
    struct clock_pair before;   /* around the measured phase, taken on this CPU */
    struct clock_pair after;
    struct account account_before;
    struct account account_after;
    double first_step_ticks;    /* a turn on this CPU, before a threshold was known */
    double step_ticks;          /* an undisturbed turn, before the measured phase */
    double recording_ticks;     /* what recording one gap adds to a turn, from a warm cache */
    double cycles_per_tick_before;
    double cycles_per_tick_after;
    struct usage used;          /* while it measured */
};

bool worker_has_left(const struct worker *w);

/* With memory for its gaps, which the worker itself touches. Returns 0 or -errno. */
int worker_init(struct worker *w, struct run_control *control, unsigned cpu);

/* Starts the thread. Returns 0 or -errno. worker_run is the same in the calling thread, and returns when all is over. */
int worker_start(struct worker *w);
void worker_run(struct worker *w);
void worker_join(struct worker *w);
void worker_deinit(struct worker *w);
