/* Where a result is written, and where errors are. */
#ifndef TUNECTL_LIB_OUTPUT_H
#define TUNECTL_LIB_OUTPUT_H

#include <stdio.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* One line on standard error: "tunectl-probe: ", the message, a newline. Returns `status`, the exit status that goes with it. */
int print_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

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
