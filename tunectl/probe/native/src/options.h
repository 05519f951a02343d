/* The command line. */
#ifndef TUNECTL_OPTIONS_H
#define TUNECTL_OPTIONS_H

#include "bench.h"
#include "jitter.h"

enum command { COMMAND_NONE, COMMAND_JITTER, COMMAND_BENCH };

struct options {
    enum command command;       /* COMMAND_NONE: help or version was printed, nothing is left to do */
    struct jitter_options jitter;
    struct bench_options bench;
};

/* Returns EXIT_OK, or EXIT_USAGE with the reason on standard error. Strings point into `argv`. */
int options_parse(struct options *options, int argc, char **argv);

#endif
