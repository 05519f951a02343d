/* One cell of the matrix: what was asked for, and the figures. */
#ifndef TUNECTL_CELL_H
#define TUNECTL_CELL_H

#include <stddef.h>
#include <stdint.h>

#include "exchange.h"
#include "warnings.h"

struct percentile {
    const char *name;
    uint32_t parts;             /* of STATS_WHOLE */
};

enum { CELL_PERCENTILES = 6 };
extern const struct percentile cell_percentiles[CELL_PERCENTILES];

/* Nearest-rank percentiles and the ends, in ticks; all 0 when n is 0. */
struct spread {
    size_t n;
    int64_t min;
    int64_t max;
    double mean;
    int64_t at[CELL_PERCENTILES];
};

/* Sorts `values`. Pure. */
struct spread spread_of(int64_t *values, size_t n);

/* A bucket of histogram.h that is not empty. */
struct cell_bin {
    size_t index;
    uint64_t count;
};

struct cell {
    const struct mechanism *mechanism;
    const struct way *way;
    double idle_ms;
    char reason[200];           /* why there are no figures; empty when there are */
    struct spread delay;        /* received - sent; between hosts of the message that came back */
    struct spread after_send;   /* received - sent_after */
    struct spread sending;      /* sent_after - sent: what the call itself took */
    struct spread late;         /* sent - due */
    struct spread far;          /* between hosts: how long the other one had the message */
    struct spread one_way;      /* between hosts: half of the rest */
    struct cell_bin *bins;      /* of `delay` */
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
int cell_conclude(struct cell *cell, const struct exchange *x, int64_t *scratch);
void cell_deinit(struct cell *cell);

#endif
