/* The mode `jitter`: how long do the probed CPUs go away, how often, and what did the host count meanwhile? */
#ifndef TUNECTL_JITTER_H
#define TUNECTL_JITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution.h"
#include "clock.h"
#include "counters.h"
#include "cpus.h"
#include "facts.h"
#include "worker.h"

/*
 * The threshold when none is given: this many times the cost of a turn, or this many granules of a coarse counter.
 * Anything shorter than a few turns is the loop itself; recording a gap costs about one turn from a warm cache and
 * some ten from a cold one; and the shortest way into the kernel and back takes longer than 16 turns.
 */
enum { DEFAULT_THRESHOLD_STEPS = 16, DEFAULT_THRESHOLD_GRANULES = 4 };

struct jitter_options {
    const char *cpus;           /* NULL: the isolated CPUs, else the nohz_full ones */
    double duration_s;
    uint64_t threshold_ns;      /* 0: the default above */
    int fifo_priority;          /* 0: the scheduling class stays */
    size_t gaps_capacity;       /* listed gaps per CPU */
    bool attribute;             /* trace the kernel, to name each gap's cause */
    const char *output;         /* NULL: standard output */
    const char *root;
};

struct warnings;

/* A whole run, as the document is written from. */
struct jitter_run {
    const struct jitter_options *options;
    struct host_facts facts;
    struct cpu_list cpus;
    struct cpu_list housekeeping;       /* where the main thread stays; empty when no CPU is left for it */
    struct clock_span clock;
    struct run_control control;
    struct worker *workers;             /* one for each of `cpus` */
    struct counters counters;
    struct attribution attribution;
    unsigned stretch_s;                 /* of the series */
    struct warnings *warnings;
    uint64_t deadline_ticks;
    uint64_t threshold_ns;
    bool is_interrupted;
    int64_t at_s;                       /* CLOCK_REALTIME when the measuring began */
};

/* The default above, found by running the loop on the CPU the caller is on. */
uint64_t jitter_default_threshold_ticks(const struct clock_span *clock);

/* Runs and writes the document. Returns the exit status, the reason being on stderr. */
int jitter_main(const struct jitter_options *options);

/* A worker's run from first to last stamp, in ticks. */
uint64_t worker_run_ticks(const struct worker *w);

/*
 * How far quiet turns and gaps together miss the length of the run on CLOCK_MONOTONIC_RAW, in ppm. The two sides share
 * nothing but the calibrated rate: turns and gaps were added up one by one, the length is read off another clock.
 */
double jitter_conservation_ppm(const struct jitter_run *run, const struct worker *w);

#endif
