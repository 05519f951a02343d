/*
 * The experiment `sentinel`: resident on one CPU at a low duty cycle, it prints a line a period: the clock the core really runs at,
 * and how long the CPU went away while the sentinel spun. It ends when its parent dies or nobody reads its output any more.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/histogram.h"
#include "lib/options.h"

extern const struct command sentinel_command;

enum {
    SENTINEL_SLICES = 10,       /* stretches of spinning in a period, evenly spread */
    SENTINEL_GROUPS_MOST = 96,  /* buckets listed in a line */
    SENTINEL_LINE_MOST = 4096,  /* PIPE_BUF: a line is written whole or not at all */
};

/* One period. Times in ns unless named otherwise. */
struct sentinel_reading {
    unsigned cpu;
    double period_s;
    double core_khz;            /* at the end of the period's last stretch */
    double counter_khz;
    uint64_t threshold_ns;
    double spin_ns;             /* how long it spun, gaps included */
    uint64_t gaps;
    double max_ns;
    uint64_t lines_lost;        /* not written so far, because nobody read */
    const struct histogram *histogram;  /* in ticks; SENTINEL_GROUPS_MOST of its longest buckets are listed, the others as one */
    double tick_ns;
};

/* The reading as a line of JSON, schema tunectl.probe.sentinel/1. Returns its length; 0 when it does not fit. */
size_t sentinel_line(char *line, size_t size, const struct sentinel_reading *reading);

/* Runs until it is stopped. Returns the exit status, the reason being on stderr, or OPTIONS_ARE_OVER. */
int sentinel_main(int argc, char **argv);
