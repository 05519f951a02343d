/* The command line. */
#ifndef TUNECTL_OPTIONS_H
#define TUNECTL_OPTIONS_H

#include "bench.h"
#include "jitter.h"
#include "selftest.h"
#include "sentinel.h"
#include "wake.h"

enum command { COMMAND_NONE, COMMAND_JITTER, COMMAND_BENCH, COMMAND_WAKE, COMMAND_SELFTEST, COMMAND_SENTINEL };

struct options {
    enum command command;       /* COMMAND_NONE: help or version was printed, nothing is left to do */
    struct jitter_options jitter;
    struct bench_options bench;
    struct wake_options wake;
    struct selftest_options selftest;
    struct sentinel_options sentinel;
};

/* Returns EXIT_OK, or EXIT_USAGE with the reason on standard error. Strings point into `argv`. */
int options_parse(struct options *options, int argc, char **argv);

/* A whole number, `name` being the option's. Returns EXIT_OK, or EXIT_USAGE with the reason on standard error. */
int parse_uint(const char *name, const char *text, uint64_t from, uint64_t to, uint64_t *value);

#endif
