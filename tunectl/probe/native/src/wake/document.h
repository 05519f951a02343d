/* The result of `wake` as JSON, schema tunectl.probe.wake/1. */
#ifndef TUNECTL_WAKE_DOCUMENT_H
#define TUNECTL_WAKE_DOCUMENT_H

#include <stdio.h>

/* `run` is a struct wake_run. Returns 0; errors of the stream are left in it. */
int wake_document_write(FILE *stream, const void *run);

#endif
