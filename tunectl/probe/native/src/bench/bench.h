/* The experiment `bench`: what the real loop costs against the least one that could do the same. */
#ifndef TUNECTL_BENCH_BENCH_H
#define TUNECTL_BENCH_BENCH_H

#include "lib/options.h"

extern const struct command bench_command;

/*
 * Alternates both loops and writes medians and their ratio as JSON to standard output. Returns the exit status, or
 * OPTIONS_ARE_OVER.
 */
int bench_main(int argc, char **argv);

#endif
