/* The CPUs for the threads that do not measure, so that the probe does not disturb what it measures. */
#ifndef TUNECTL_LIB_HOUSEKEEPING_H
#define TUNECTL_LIB_HOUSEKEEPING_H

#include "lib/cpus.h"
#include "lib/facts.h"

/*
 * Confines the calling thread, and the threads it will start, to online CPUs that are not in `measured`: to those that are not
 * isolated either, or, where there are none or a cpuset allows none, to the isolated ones. `chosen` is the list it is confined
 * to, to be freed by the caller; empty where no such CPU is left, and the thread then stays where it was.
 * Returns 0 or -ENOMEM.
 */
int housekeeping_move(struct cpu_list *chosen, const struct host_facts *facts, const struct cpu_list *measured);

#endif
