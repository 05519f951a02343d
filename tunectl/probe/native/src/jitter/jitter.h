/* The experiment `jitter`: how long do the probed CPUs go away, how often, and what did the host count meanwhile? */
#ifndef TUNECTL_JITTER_JITTER_H
#define TUNECTL_JITTER_JITTER_H

#include "lib/options.h"

extern const struct command jitter_command;

/* Runs and writes the document. Returns the exit status, the reason being on stderr, or OPTIONS_ARE_OVER. */
int jitter_main(int argc, char **argv);

#endif
