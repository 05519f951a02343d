/*
 * The thread that watches over a run of `wake`, on a housekeeping CPU: a thread of somebody else that wakes on the sender's CPU
 * or the receiver's, or on another hardware thread of their cores, gets it. Both are moved away, which needs no time on the CPUs
 * that they leave, and the program ends with the reason: what was measured is void.
 */
#ifndef TUNECTL_WAKE_GUARD_H
#define TUNECTL_WAKE_GUARD_H

#include "wake/run.h"

struct wake_guard;

/*
 * Before the threads measure; they are started. NULL where no CPU is left for it, or with `run->options->intrude`: then nobody
 * watches.
 */
struct wake_guard *wake_guard_start(const struct wake_run *run, const struct wake_threads *threads);

/* Before the threads are stopped. */
void wake_guard_stop(struct wake_guard *guard);

#endif
