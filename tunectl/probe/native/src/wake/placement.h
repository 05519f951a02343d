/* Which CPUs the two threads of the experiment `wake` run on, and where the main thread goes meanwhile. */
#ifndef TUNECTL_WAKE_PLACEMENT_H
#define TUNECTL_WAKE_PLACEMENT_H

#include <stdbool.h>

#include "lib/cpus.h"
#include "lib/facts.h"

struct placement {
    unsigned sender;
    unsigned receiver;
    bool is_fallback;           /* neither named nor isolated: some of the allowed CPUs */
    bool is_same_cpu;
    bool is_same_core;          /* two logical CPUs of one physical core */
    bool shares_main;           /* no CPU was left for the main thread: it is with the sender */
};

/*
 * "S,R", or the last two of the candidates that are on different physical cores, the receiver on the very last. Candidates: the
 * list `among`, else the isolated CPUs, else those this process may use. Returns EXIT_OK, EXIT_USAGE or EXIT_FAILED with the
 * reason on stderr.
 */
int placement_choose(struct placement *placement, const struct host_facts *facts, const char *cpus, const char *among);

/*
 * Moves the calling thread to housekeeping CPUs, which are `chosen`, to be freed by the caller; where there is none, to the
 * sender's. Returns EXIT_OK, or EXIT_FAILED.
 */
int placement_leave(struct placement *placement, const struct host_facts *facts, struct cpu_list *chosen);

#endif
