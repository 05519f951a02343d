/* What the experiment `selftest` is asked for. */
#ifndef TUNECTL_SELFTEST_OPTIONS_H
#define TUNECTL_SELFTEST_OPTIONS_H

#include "lib/options.h"

struct selftest_options {
    const char *cpus;       /* NULL: the last isolated CPU, else the last one this process may use */
    const char *output;     /* NULL: standard output */
    const char *root;
};

extern const struct command selftest_command;

/* As options_parse, defaults included. */
int selftest_options_parse(struct selftest_options *options, int argc, char **argv);

#endif
