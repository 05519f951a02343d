/* What each interruption was: the kernel's own trace of the probed CPUs, beside the run. */
#ifndef TUNECTL_JITTER_ATTRIBUTION_H
#define TUNECTL_JITTER_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>

#include "jitter/causes.h"
#include "jitter/tracefs.h"
#include "jitter/worker.h"
#include "lib/cpus.h"

enum { ATTRIBUTION_REASON_SIZE = 256, ATTRIBUTION_EVENTS_MAX = 32 };

/* What is to be traced. */
struct attribution_request {
    bool is_wanted;
    const char *root;
    double duration_s;
    const struct cpu_list *cpus;            /* the probed ones */
    const struct cpu_list *own;             /* those the calling thread may be on */
};

struct attribution {
    struct attribution_request request;
    struct trace_instance instance;
    char reason[ATTRIBUTION_REASON_SIZE];   /* why nothing was traced; empty when it was */
    bool is_left_behind;                    /* the instance could not be removed */
    const char *events[ATTRIBUTION_EVENTS_MAX];
    size_t n_events;
    unsigned buffer_kib;                    /* for each probed CPU */
    double event_cost_ticks;                /* what tracing adds to an event, caches warm; 0 when not measured */
    struct causes *of_cpu;                  /* one for each probed CPU; NULL when nothing was traced */
};

/*
 * Removes what a killed probe left behind, and, where that is wanted, prepares an instance and switches it on. On the main
 * thread, before the workers are let go: enabling an event interrupts every CPU for a moment. A failure is no error
 * of the run: it leaves `reason`.
 */
void attribution_begin(struct attribution *a, const struct attribution_request *request);

/* Switches tracing off; nothing is read yet. */
void attribution_end(struct attribution *a);

/*
 * Once the workers are gone: reads the trace, joins it with their gaps, and removes the instance. `workers`: one for each of
 * the probed CPUs. Returns 0 or -ENOMEM.
 */
int attribution_collect(struct attribution *a, const struct worker *workers);
void attribution_deinit(struct attribution *a);

#endif
