/* A whole run of `wake`, as its warnings and its document are made from it. */
#ifndef TUNECTL_WAKE_RUN_H
#define TUNECTL_WAKE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/document.h"
#include "lib/facts.h"
#include "wake/case.h"
#include "wake/options.h"
#include "wake/placement.h"
#include "wake/remote.h"
#include "wake/threads.h"

struct wake_run {
    const struct wake_options *options;
    struct host_facts facts;
    struct placement placement;
    struct cpu_list housekeeping;       /* where the main thread is; empty when no CPU is left for it */
    struct clock_span clock;
    struct clock_offset offset;
    struct wake_case *cases;
    size_t cases_n;
    struct warnings warnings;
    struct remote *remote;      /* NULL within one host */
    bool is_interrupted;
    bool is_locked;
    double duration_s;
    int64_t at_s;               /* CLOCK_REALTIME when the measuring began */
};

#endif
