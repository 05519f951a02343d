/* One thread on one CPU: prepares, measures, and leaves its figures behind. */
#ifndef TUNECTL_JITTER_WORKER_H
#define TUNECTL_JITTER_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/clock.h"
#include "lib/loop.h"
#include "lib/recorder.h"

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
    int fifo_priority;          /* 0: leave the scheduling class alone */
};

struct worker {
    struct run_control *control;
    pthread_t thread;
    unsigned cpu;
    pid_t tid;                  /* its thread id, as the kernel's trace knows it */

    int error;                  /* -errno of `failed_step`, 0 when prepared */
    const char *failed_step;
    bool locked;

    struct recorder recorder;
    struct loop_totals totals;
    struct clock_pair before;   /* around the measured phase, taken on this CPU */
    struct clock_pair after;
    double step_ticks;          /* an undisturbed turn, before the measured phase */
    double recording_ticks;     /* what recording one gap adds to a turn, from a warm cache */
    double cycles_per_tick_before;
    double cycles_per_tick_after;
    uint64_t page_faults;
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;
};

/* From first to last stamp, in ticks. */
uint64_t worker_run_ticks(const struct worker *w);

/* loop_conservation_ppm of its run. */
double worker_conservation_ppm(const struct worker *w, double hz);

/* Starts the thread. Returns 0 or -errno. */
int worker_start(struct worker *w, struct run_control *control, unsigned cpu);
void worker_join(struct worker *w);
void worker_deinit(struct worker *w);

#endif
