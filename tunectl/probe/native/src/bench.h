/* The mode `bench`: what the real loop costs against the least one that could do the same. */
#ifndef TUNECTL_BENCH_H
#define TUNECTL_BENCH_H

#include <stdint.h>

struct bench_options {
    const char *cpus;       /* NULL: wherever the caller runs */
    unsigned rounds;
};

/* Alternates both loops and writes medians and their ratio as JSON to standard output. Returns the exit status. */
int bench_main(const struct bench_options *options);

#endif
