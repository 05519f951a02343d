/* Where a result goes. */
#ifndef TUNECTL_OUTPUT_H
#define TUNECTL_OUTPUT_H

#include <stdio.h>

/* Opened before the run, so that a path that cannot be written fails at once. NULL: standard output. NULL with errno set. */
FILE *output_open(const char *path);

/*
 * Empties the file only now that the result is there, has `write` write it, and closes the stream. Returns the exit status,
 * the reason being on stderr. `write` returns 0 or -ENOMEM.
 */
int output_write(FILE *stream, const char *path, int (*write)(FILE *stream, const void *run), const void *run);

/* Closes a stream nothing was written to. */
void output_abandon(FILE *stream);

#endif
