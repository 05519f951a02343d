/* The result of a run as JSON, schema tunectl.probe.jitter/1. */
#ifndef TUNECTL_DOCUMENT_H
#define TUNECTL_DOCUMENT_H

#include <stdio.h>

#include "jitter.h"

/* Returns 0 or -ENOMEM; errors of the stream are left in it for the caller's ferror. */
int document_write(FILE *stream, const struct jitter_run *run);

#endif
