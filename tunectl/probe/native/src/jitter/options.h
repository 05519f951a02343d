/* What the experiment `jitter` is asked for. */
#ifndef TUNECTL_JITTER_OPTIONS_H
#define TUNECTL_JITTER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/options.h"

struct jitter_options {
    const char *cpus;           /* NULL: the isolated CPUs, else the nohz_full ones */
    double duration_s;
    uint64_t threshold_ns;      /* 0: loop_default_threshold_ticks */
    int fifo_priority;          /* 0: the scheduling class stays */
    size_t gaps_capacity;       /* listed gaps per CPU */
    bool intrude;               /* spin also where somebody else wants to run */
    int group;                  /* an open cgroup.procs for the workers; -1: none */
    bool attribute;             /* trace the kernel, to name each gap's cause */
    const char *output;         /* NULL: standard output */
    const char *root;
};

extern const struct command jitter_command;

/* As options_parse, defaults included. */
int jitter_options_parse(struct jitter_options *options, int argc, char **argv);

#endif
