/* The part of a CPU's result that says why and when: causes, the series, and what came at regular intervals. */
#ifndef TUNECTL_JITTER_EXPLANATION_H
#define TUNECTL_JITTER_EXPLANATION_H

#include "jitter/run.h"
#include "lib/json.h"

/* `attribution`, for the whole run: how causes were found, or why not; null when they were not asked for. */
void explanation_write_method(struct json *j, const struct jitter_run *run);

/*
 * For the CPU with this index: `causes` and `trace`, where it was traced, `series` and `periods`. Returns 0 or -ENOMEM.
 */
int explanation_write_cpu(struct json *j, const struct jitter_run *run, size_t index);

/* The cause of listed gap `gap`; empty where none is known. */
const char *explanation_cause(const struct jitter_run *run, size_t index, size_t gap);

#endif
