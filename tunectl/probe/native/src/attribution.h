/* What each interruption was: the kernel's own trace of the probed CPUs, beside the run. */
#ifndef TUNECTL_ATTRIBUTION_H
#define TUNECTL_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>

#include "causes.h"
#include "tracefs.h"

enum { ATTRIBUTION_REASON_SIZE = 256, ATTRIBUTION_EVENTS_MAX = 32 };

struct jitter_run;

struct attribution {
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
 * Sweeps up what a killed probe left behind, and with `wanted` prepares an instance and switches it on. On the main thread,
 * before the workers are let go: enabling an event interrupts every CPU for a moment. A failure is no error
 * of the run: it leaves `reason`.
 */
void attribution_begin(struct attribution *a, const struct jitter_run *run, bool wanted);

/* Switches tracing off; nothing is read yet. */
void attribution_end(struct attribution *a);

/* Once the workers are gone: reads the trace, joins it with their gaps, and removes the instance. Returns 0 or -ENOMEM. */
int attribution_collect(struct attribution *a, const struct jitter_run *run);
void attribution_deinit(struct attribution *a, const struct jitter_run *run);

#endif
