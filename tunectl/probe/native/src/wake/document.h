#ifndef TUNECTL_WAKE_DOCUMENT_H
#define TUNECTL_WAKE_DOCUMENT_H

#include <stdio.h>

/* The document of a struct wake_run, tunectl.probe.wake.raw/1. For output_write. */
int wake_document_write(FILE *stream, const void *run);

#endif
