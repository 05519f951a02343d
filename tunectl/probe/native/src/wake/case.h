/* One case of the matrix: what was asked for, and the figures. */
#ifndef TUNECTL_WAKE_CASE_H
#define TUNECTL_WAKE_CASE_H

#include <stddef.h>
#include <stdint.h>

#include "wake/exchange.h"
#include "lib/document.h"

struct percentile {
    const char *name;
    uint32_t parts;             /* of STATS_WHOLE */
};

enum { CASE_PERCENTILES = 6 };
extern const struct percentile case_percentiles[CASE_PERCENTILES];

/* Nearest-rank percentiles and the ends, in ticks; all 0 when n is 0. */
struct spread {
    size_t n;
    int64_t min;
    int64_t max;
    double mean;
    int64_t at[CASE_PERCENTILES];
};

/* Sorts `values`. Pure. */
struct spread spread_of(int64_t *values, size_t n);

/* A bucket of histogram.h that is not empty. */
struct case_bin {
    size_t index;
    uint64_t count;
};

struct wake_case {
    const struct mechanism *mechanism;
    const struct wait_method *method;
    double idle_ms;
    char reason[200];           /* why there are no figures; empty when there are */
    struct spread delay;        /* received - sent; between hosts of the message that came back */
    struct spread after_send;   /* received - sent_after */
    struct spread sending;      /* sent_after - sent: what the call itself took */
    struct spread late;         /* sent - due */
    struct spread remote;       /* between hosts: how long the other one had the message */
    struct spread one_way;      /* between hosts: half of the rest */
    struct case_bin *bins;      /* of `delay` */
    size_t bins_n;
    uint64_t period_ticks;
    size_t sent;
    size_t lost;
    uint64_t duplicates;
    uint64_t reordered;
    uint64_t negative;          /* received before sent: the counters of the two CPUs differ. Not in `delay` */
    uint64_t page_faults;
    uint64_t preemptions;
    double receiver_cpu_percent;
    unsigned napi_id;
    struct warnings warnings;
};

/* The figures of an exchange that is over. `scratch` has room for every message. Returns 0 or -ENOMEM. */
int wake_case_conclude(struct wake_case *c, const struct exchange *x, int64_t *scratch);
void wake_case_deinit(struct wake_case *c);

#endif
