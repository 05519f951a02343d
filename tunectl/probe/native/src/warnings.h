/* What makes a result mean less than it seems to, one sentence each. */
#ifndef TUNECTL_WARNINGS_H
#define TUNECTL_WARNINGS_H

#include <stddef.h>

#include "jitter.h"

struct warnings {
    char **texts;
    size_t n;
};

/* Adds a sentence. One that cannot be stored for want of memory ends the program: a missing warning is a false result. */
void warnings_add(struct warnings *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));
void warnings_deinit(struct warnings *warnings);

/* Everything that can be said once the run is over and its counters are parsed. */
void warnings_collect(struct warnings *warnings, const struct jitter_run *run);

#endif
