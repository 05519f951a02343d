/* What standard output and standard error are told. */
#pragma once

#include <stdio.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* One line on standard error: "tunectl-probe: ", the message, a newline. Returns `status`, the exit status that goes with it. */
int print_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Has `write` write the result on standard output; it returns 0 or -ENOMEM. Returns the exit status, the reason being on stderr. */
int output_write(int (*write)(FILE *stream, const void *run), const void *run);
