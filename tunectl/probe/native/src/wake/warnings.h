/* What makes a result of `wake` mean less than it seems to, one sentence each. */
#ifndef TUNECTL_WAKE_WARNINGS_H
#define TUNECTL_WAKE_WARNINGS_H

#include "wake/run.h"

/* Everything that can be said once the run is over. */
void wake_warn(struct wake_run *run);

/* Everything that can be said of a case that was measured. */
void wake_warn_case(struct wake_case *c, const struct wake_run *run, const struct exchange *x);

#endif
