/* A whole run of `wake`: one case, a mechanism, a wait method and an idle time. */
#ifndef TUNECTL_WAKE_RUN_H
#define TUNECTL_WAKE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/facts.h"
#include "lib/options.h"
#include "wake/cell.h"

/* Which case says what, and which cannot be, is Python's to know and to explain. */
struct wake_case {
    const struct mechanism *mechanism;
    const struct wait_method *method;
    double idle_ms;
};

struct wake_run {
    const struct options *options;
    struct host_facts facts;
    struct wake_case what;
    unsigned ids[ENDS];             /* the sender's CPU and the receiver's */
    struct cpus cpus;               /* both */
    struct cpus housekeeping;       /* where the main thread is; empty when no CPU is left for it */
    struct clock_span clock;
    struct clock_offset offset;
    struct exchange exchange;
    struct occupancy before;
    struct occupancy after;
    char reason[128];               /* why it was not measured; empty where it was */
    uint64_t timer_slack_ns;
    bool is_interrupted;
    bool is_locked;
    double duration_s;
    int64_t at_s;                   /* CLOCK_REALTIME when the measuring began */
};

#endif
