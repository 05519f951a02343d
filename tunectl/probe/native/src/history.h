/* The part of a CPU's result that says when: its series, and what came at regular intervals. */
#ifndef TUNECTL_HISTORY_H
#define TUNECTL_HISTORY_H

#include "jitter.h"
#include "json.h"

/* Returns 0 or -ENOMEM. */
int history_write(struct json *j, const struct jitter_run *run, size_t index);

#endif
