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
#ifndef TUNECTL_JITTER_GUARD_H
#define TUNECTL_JITTER_GUARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "jitter/run.h"

struct guard;

/*
 * Starts it, once its first look has marked the workers whose CPU is taken; before the workers are started. NULL where there is no
 * CPU for it, and nobody watches then. With `run->options->intrude` nobody makes a worker leave but the deadline.
 */
struct guard *guard_start(struct jitter_run *run);

/* The workers are gone. */
void guard_stop(struct guard *guard);

#endif
