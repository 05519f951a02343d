/* The part of a CPU's result that says why: the table of causes, and how complete it is. */
#ifndef TUNECTL_ACCOUNT_H
#define TUNECTL_ACCOUNT_H

#include "jitter.h"
#include "json.h"

/* `attribution`, for the whole run: how causes were found, or why not; null when they were not asked for. */
void account_write_method(struct json *j, const struct jitter_run *run);

/* `causes` and `trace` of the CPU with this index; nothing where it was not traced. Returns 0 or -ENOMEM. */
int account_write_cpu(struct json *j, const struct jitter_run *run, size_t index);

/* The cause of listed gap `gap`; empty where none is known. */
const char *account_cause(const struct jitter_run *run, size_t index, size_t gap);

#endif
