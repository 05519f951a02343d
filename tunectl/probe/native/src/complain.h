/* One clear line on standard error, and the exit status that goes with it. */
#ifndef TUNECTL_COMPLAIN_H
#define TUNECTL_COMPLAIN_H

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* "tunectl-probe: " + the message + newline. Returns `status`. */
int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
