/* The experiment `jitter`: how long do the probed CPUs go away, how often, and what did the host count meanwhile? */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jitter/injector.h"
#include "jitter/partition.h"
#include "jitter/worker.h"
#include "lib/clock.h"
#include "lib/cpus.h"
#include "lib/document.h"
#include "lib/facts.h"
#include "lib/files.h"
#include "lib/options.h"

struct jitter_run {
    const struct options *options;
    struct host_facts facts;
    struct cpus cpus;
    struct cpus housekeeping;           /* where the main thread is; empty when no CPU is left for it */
    struct clock_span clock;
    struct run_control control;
    size_t n;
    struct worker *workers;             /* one for each of `cpus` */
    struct snapshot before;             /* the kernel's counters around the run */
    struct snapshot after;
    unsigned stretch_s;                 /* of the series */
    struct partition partition;
    struct injection injection;
    _Atomic uint64_t workers_started;   /* in ticks */
    _Atomic uint64_t deadline_ticks;    /* 0 before the measuring is begun */
    uint64_t threshold_ns;
    uint64_t default_threshold_ns;      /* by the loops of this run */
    uint64_t throttled_us;              /* by a cgroup's cpu.max, of the run */
    const struct worker *reached;       /* whose gap ended the run, the first of those that were so long; NULL: none was */
    bool is_interrupted;
    int64_t at_s;                       /* CLOCK_REALTIME when the measuring began */
};

/* The CPUs that were left to somebody else, of the workers: theirs are no results. */
static inline bool jitter_is_void(const struct jitter_run *run, size_t index)
{
    return worker_has_left(&run->workers[index]);
}

extern const struct command jitter_command;

/* Runs and writes the document. Returns the exit status, the reason being on stderr, or OPTIONS_ARE_OVER. */
int jitter_main(int argc, char **argv);

/*
 * The thread that watches over a run, on a housekeeping CPU, so that the run disturbs nobody and ends whatever happens.
 *
 * - Somebody else's thread that wakes on a probed CPU, or on another hardware thread of its core, gets it: the worker leaves
 *   at once, and what it measured is void. A runnable thread is moved away without its CPU having to do anything
 *   (sched_setaffinity), so a worker leaves even a CPU that a SCHED_FIFO thread never gives up.
 * - A worker that never gets its CPU ends the run with the reason; one that is kept from it at the end is moved away.
 * - A parent that has ended ends the process, its workers moved away first: a thread that waits for a CPU cannot die.
 *
 * The measured loop knows nothing of it: the guard reads the kernel's account of threads, once a millisecond.
 */
struct guard;

/*
 * Starts it, once its first look has marked the workers whose CPU is taken; before the workers are started. NULL where there is no
 * CPU for it, and nobody watches then. With `run->options->intrude` nobody makes a worker leave but the deadline.
 */
struct guard *guard_start(struct jitter_run *run);

/* The workers are gone. */
void guard_stop(struct guard *guard);

/*
 * With --wait-for-go: whoever started the program may prepare something between the start of its threads and the measuring,
 * such as a trace of the kernel. Lines on standard error, and answers on standard input:
 *
 *     ready 700 2:701 3:702    the main thread, and of each CPU the thread that will measure there
 *     fault                    (asked) measure a page fault
 *     fault 1234               the median of 501, in ticks of the counter, on the CPU of the main thread, caches warm
 *     go                       (asked) measure
 *     until 3 123 456          a gap of that length (--until) ended the run: on CPU 3, with its first and last stamp
 *     done                     measured
 *
 * dialogue_await_go is called once the workers stand ready. Returns the exit status, not 0 where standard input ended before "go";
 * the reason is on stderr.
 */
int dialogue_await_go(const struct jitter_run *run);
void dialogue_say_done(void);

/* With or without --wait-for-go. */
void dialogue_say_until(const struct worker *reached);

/* The result of a struct jitter_run, tunectl.probe.jitter.raw/1. For output_write. */
int jitter_document_write(FILE *stream, const void *run);
