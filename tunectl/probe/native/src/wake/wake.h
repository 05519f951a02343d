/* The experiment `wake`: how long until a waiting thread has a message, for each mechanism, wait method and idle time? */
#ifndef TUNECTL_WAKE_WAKE_H
#define TUNECTL_WAKE_WAKE_H

#include "wake/options.h"
#include "wake/run.h"

/*
 * Runs and writes the document, or serves as the other host. Returns the exit status, the reason being on stderr, or
 * OPTIONS_ARE_OVER.
 */
int wake_main(int argc, char **argv);

/* True for a method that would starve its own sender: a SCHED_FIFO spinner on the CPU the sender runs on. */
bool wake_would_starve(const struct wake_run *run, const struct wait_method *method);

/* How long the cases take by their schedules, in s. */
double wake_estimate_s(const struct wake_options *options, const struct wake_case *cases, size_t n);

#endif
