#include "jitter/run.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/ticks.h"

enum { STACK_TOUCHED = 64 * 1024 };

static void touch_stack(void)
{
    volatile char page[STACK_TOUCHED];
    for (size_t i = 0; i < sizeof(page); i += 1024)
        page[i] = 0;
}

static void prepare(struct worker *w)
{
    atomic_store(&w->tid, (pid_t)syscall(SYS_gettid));
    w->error = thread_settle(w->cpu, w->control->fifo_priority, &w->failed_step);
    if (w->error)
        return;
    thread_use_local_memory();
    w->locked = recorder_touch(&w->recorder);
    touch_stack();
    w->first_step_ticks = loop_first_step_ticks((double)w->control->microsecond_ticks * 1e6);
}

/*
 * What recording one gap takes from a warm cache: the cheapest of many batches of made-up gaps that do not touch. The loop
 * itself runs as well, so that the way from it to the recorder is known to the branch predictor.
 */
static double measure_recording(struct worker *w, uint64_t batch_ticks)
{
    enum { BATCH = 256 };
    double best = 0.0;
    for (int i = 0; i < 50; i++) {
        struct loop_totals totals;
        _Atomic uint64_t deadline = ticks_now() + batch_ticks;
        loop_run(&w->recorder, 0, &deadline, &totals);
        recorder_reset(&w->recorder);
        uint64_t start = ticks_now();
        for (uint64_t at = 1; at <= BATCH; at++)
            recorder_add(&w->recorder, 4 * at, 4 * at + 2);
        double each = (double)(ticks_now() - start) / (double)BATCH;
        if (best == 0.0 || each < best)
            best = each;
    }
    return best;
}

/* Runs every path once, so that the measured phase finds its code and data in the caches and the core at its clock. */
static void warm_up(struct worker *w)
{
    uint64_t batch_ticks = 10 * w->control->microsecond_ticks;
    w->step_ticks = loop_step_ticks(w->control->threshold_ticks, 50, batch_ticks);
    w->recording_ticks = measure_recording(w, batch_ticks);
    w->cycles_per_tick_before = clock_core_cycles_per_tick();
    recorder_reset(&w->recorder);
}

static void measure(struct worker *w)
{
    uint64_t start = w->control->start_ticks;
    uint64_t first;
    w->account_before = account_now();
    w->before = clock_pair_now();
    struct usage before = usage_now();
    series_begin(&w->recorder.series, start, w->control->stretch_ticks);
    w->recorder.until_ticks = w->control->until_ticks;
    w->recorder.long_ticks = w->control->long_ticks;
    do
        first = ticks_now();
    while (first < start && !worker_has_left(w));
    /* A plain store, just before it is true: a system call could cost it the CPU in between. */
    atomic_store(&w->stage, WORKER_MEASURES);
    /* A CPU that was not given to us until after the start was taken away until then. Less is our own way to the loop. */
    loop_run_from(first > start + w->control->microsecond_ticks ? start : first, &w->recorder, w->control->threshold_ticks,
                  w->control->is_guarded ? &w->deadline : stop_deadline(), &w->totals);
    if (worker_has_left(w))
        return;
    if (recorder_has_reached(&w->recorder)) {
        stop_now(); /* for all: the guard passes it on to those who look at deadlines of their own */
        w->reached = w->recorder.open;
    }
    w->used = usage_since(&before);
    w->after = clock_pair_now();
    w->account_after = account_now();
    recorder_finish(&w->recorder);
    w->cycles_per_tick_after = clock_core_cycles_per_tick();
}

void worker_run(struct worker *w)
{
    struct run_control *control = w->control;
    stop_listen();
    if (!worker_has_left(w))
        prepare(w);
    atomic_store(&w->stage, WORKER_IS_READY);
    (void)pthread_barrier_wait(&control->barrier);
    (void)pthread_barrier_wait(&control->barrier);
    if (control->cancelled)
        return;
    if (!worker_has_left(w))
        warm_up(w);
    if (!worker_has_left(w))
        measure(w);
    atomic_store(&w->stage, WORKER_IS_DONE);
    (void)pthread_barrier_wait(&control->barrier);
    (void)pthread_barrier_wait(&control->barrier);
}
