/* What `selftest` does one after the other, and what came of each. */
#ifndef TUNECTL_SELFTEST_PHASES_H
#define TUNECTL_SELFTEST_PHASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/facts.h"
#include "selftest/options.h"
#include "selftest/recall.h"

enum phase_kind { PHASE_PREEMPTION, PHASE_IPI, PHASE_COUNT, PHASE_LOSS, PHASE_STOP };

enum { SELFTEST_PHASES = 7, SELFTEST_REASON_SIZE = 200 };

struct phase {
    enum phase_kind kind;
    const char *name;
    uint64_t asked_ns;          /* how long each interruption is at least; 0: as short as they come */
    uint64_t injected;
    uint64_t pause_ns;
    size_t list_capacity;       /* gaps the recorder may list */

    bool did_run;
    bool passed;
    char reason[SELFTEST_REASON_SIZE];  /* why it did not run, or did not pass */
    struct recall recall;
    uint64_t gaps_total;
    uint64_t gaps_lost;
    bool is_exact;              /* recorder and loop agree to the turn and to the tick */
    double conservation_ppm;
    double truth_ns;            /* PHASE_STOP only, this and the rest */
    double max_ns;
    double max_error_ns;
    double percentile_error_ns;
};

struct selftest {
    const struct selftest_options *options;
    struct host_facts facts;
    struct clock_span clock;
    unsigned cpu;
    bool has_other_cpu;
    uint64_t threshold_ticks;
    int64_t at_s;
    struct phase phases[SELFTEST_PHASES];
};

#endif
