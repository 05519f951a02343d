/*
 * The experiment `sentinel`: resident on one CPU at a low duty cycle, it prints a line a period: the clock the core really runs at,
 * and how long the CPU went away while the sentinel spun. It ends when its parent dies or nobody reads its output any more.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/options.h"
#include "lib/recorder.h"

extern const struct command sentinel_command;

enum {
    SENTINEL_SLICES = 10,       /* stretches of spinning in a period, evenly spread */
    SENTINEL_GROUPS_MOST = 96,  /* buckets listed in a line */
    SENTINEL_LINE_MOST = 4096,  /* PIPE_BUF: a line is written whole or not at all */
};

struct sentinel {
    const struct options *options;
    struct recorder recorder;   /* SENTINEL_GROUPS_MOST of its longest buckets are listed, the others as one */
    struct clock_span clock;
    struct clock_rate rate;     /* since the start: it grows more exact */
    uint64_t threshold_ticks;
    uint64_t spin_ticks;        /* of this period, gaps included */
    double cycles_per_tick;     /* at the end of its last stretch */
    uint64_t lines;
    uint64_t lines_lost;        /* not written so far, because nobody read */
};

/* Its period as a line of JSON, schema tunectl.probe.sentinel/1. Returns its length; 0 when it does not fit. */
size_t sentinel_line(char *line, size_t size, const struct sentinel *sentinel);

/* Runs until it is stopped. Returns the exit status, the reason being on stderr, or OPTIONS_ARE_OVER. */
int sentinel_main(int argc, char **argv);
