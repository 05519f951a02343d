/* A whole run of `jitter`, as its warnings and its document are made from it. */
#ifndef TUNECTL_JITTER_RUN_H
#define TUNECTL_JITTER_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jitter/attribution.h"
#include "jitter/counters.h"
#include "jitter/options.h"
#include "jitter/partition.h"
#include "jitter/worker.h"
#include "lib/clock.h"
#include "lib/cpus.h"
#include "lib/document.h"
#include "lib/facts.h"

struct jitter_run {
    const struct jitter_options *options;
    struct host_facts facts;
    struct cpu_list cpus;
    struct cpu_list housekeeping;       /* where the main thread is; empty when no CPU is left for it */
    struct clock_span clock;
    struct run_control control;
    struct worker *workers;             /* one for each of `cpus` */
    struct counters counters;
    struct attribution attribution;
    unsigned stretch_s;                 /* of the series */
    struct warnings warnings;
    struct partition partition;
    _Atomic uint64_t workers_started;   /* in ticks */
    _Atomic uint64_t deadline_ticks;    /* 0 before the measuring is begun */
    uint64_t threshold_ns;
    bool is_interrupted;
    int64_t at_s;                       /* CLOCK_REALTIME when the measuring began */
};

/* The CPUs that were left to somebody else, of the workers: theirs are no results. */
static inline bool jitter_is_void(const struct jitter_run *run, size_t index)
{
    return worker_has_left(&run->workers[index]);
}

/* Whole ns, rounded down. */
static inline uint64_t jitter_ns(const struct jitter_run *run, double ticks)
{
    return clock_ticks_to_ns(ticks, run->clock.rate.hz);
}

#endif
