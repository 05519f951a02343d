/* The result of `jitter` as JSON, schema tunectl.probe.jitter/1. */
#ifndef TUNECTL_JITTER_DOCUMENT_H
#define TUNECTL_JITTER_DOCUMENT_H

#include <stdio.h>

/* `run` is a struct jitter_run. Returns 0 or -ENOMEM; errors of the stream are left in it for the caller's ferror. */
int jitter_document_write(FILE *stream, const void *run);

#endif
