/* What makes a result of `jitter` mean less than it seems to, one sentence each. */
#ifndef TUNECTL_JITTER_WARNINGS_H
#define TUNECTL_JITTER_WARNINGS_H

#include "jitter/run.h"
#include "lib/document.h"

/* Everything that can be said once the run is over and its counters are parsed. */
void jitter_warn(struct warnings *warnings, const struct jitter_run *run);

#endif
