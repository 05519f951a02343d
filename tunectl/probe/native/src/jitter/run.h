/* A whole run of `jitter`, as its warnings and its document are made from it. */
#ifndef TUNECTL_JITTER_RUN_H
#define TUNECTL_JITTER_RUN_H

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

#endif
