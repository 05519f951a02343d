/* What the experiment `sentinel` is asked for. */
#ifndef TUNECTL_SENTINEL_OPTIONS_H
#define TUNECTL_SENTINEL_OPTIONS_H

#include <stdint.h>

#include "lib/options.h"

enum { SENTINEL_NO_CPU = -1 };

struct sentinel_options {
    long cpu;                   /* SENTINEL_NO_CPU: none was named */
    double period_s;
    unsigned duty_percent;      /* how much of the time it spins */
    uint64_t threshold_ns;      /* 0: loop_default_threshold_ticks */
    int fifo_priority;          /* 0: the scheduling class stays */
    uint64_t lines;             /* 0: without end */
    const char *root;
};

extern const struct command sentinel_command;

/* As options_parse, defaults included. */
int sentinel_options_parse(struct sentinel_options *options, int argc, char **argv);

#endif
