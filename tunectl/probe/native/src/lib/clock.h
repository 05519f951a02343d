/* The tick counter against CLOCK_MONOTONIC_RAW. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* One moment on both clocks; the true moment lies within `half_width` ticks of `ticks`. */
struct clock_pair {
    uint64_t ticks;
    uint64_t half_width;
    uint64_t raw_ns;
};

struct clock_rate {
    double hz;
    double error_ppm;   /* bound: both brackets and one granule, against the distance between the pairs */
};

/* The tightest of 200 (ticks, raw, ticks) brackets: an interruption only widens a bracket, and a wide one is dropped. */
struct clock_pair clock_pair_now(void);

/* The same with another clock in the place of CLOCK_MONOTONIC_RAW. */
struct clock_pair clock_pair_of(clockid_t clock);

/* The counter's rate between two pairs. Pure. `granule_ticks` bounds how much one reading can lag. */
struct clock_rate clock_rate_between(struct clock_pair from, struct clock_pair to, uint64_t granule_ticks);

/* What a run knows of the counter: two pairs before it and one behind. */
struct clock_span {
    struct clock_pair first;
    struct clock_pair last;
    struct clock_rate initial;  /* over the 20 ms before the run */
    struct clock_rate rate;     /* over everything: what results are converted with */
    uint64_t granule_ticks;
};

/* Takes some 20 ms, asleep. */
void clock_span_begin(struct clock_span *span);
void clock_span_end(struct clock_span *span);

/* A clock; a time or a length as the kernel takes and gives one. */
uint64_t clock_ns(clockid_t clock);
struct timespec timespec_of(uint64_t ns);
uint64_t ns_of_timespec(struct timespec t);

/* At most so long: a signal ends it. */
void sleep_ns(uint64_t ns);

/* Ascending, in place. Returns the median; 0 where there are none. */
int64_t ticks_sort(int64_t *ticks, size_t n);

/* The greatest common divisor of the steps the counter makes, in ticks: the finest difference it can show. */
uint64_t clock_granule_ticks(void);

/*
 * The clock the core really runs at, without a privileged read: core cycles per tick of the counter, from the fastest of 16
 * timed chains of dependent additions (about 0.3 ms in all).
 */
double clock_core_cycles_per_tick(void);
