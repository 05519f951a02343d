/* What this host is, as far as it decides whether a measurement means anything. Read before the run. */
#pragma once

#include "lib/cpus.h"
#include "lib/files.h"

struct host_facts {
    const char *root;
    struct cpus online;
    struct cpus isolated;       /* isolcpus=domain, and isolated cpuset partitions (Linux 6.7) */
    struct cpus nohz_full;
    struct snapshot files;      /* as they stand */
};

/* What cannot be read stays empty. */
void host_facts_init(struct host_facts *facts, const char *root);
void host_facts_deinit(struct host_facts *facts);

/* The hardware threads of its core, itself among them. */
struct cpus host_core(const struct host_facts *facts, unsigned cpu);

/*
 * Confines the calling thread, and the threads it will start, to online CPUs that are not in `measured`, so that the probe does
 * not disturb what it measures: to those that are not isolated either, or, where there are none or a cpuset allows none, to the
 * isolated ones. Returns these; none where no such CPU is left, and the thread then stays where it was.
 */
struct cpus housekeeping_move(const struct host_facts *facts, const struct cpus *measured);
