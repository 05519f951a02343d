#include "lib/output.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

int print_error(int status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    (void)fprintf(stderr, "tunectl-probe: %s\n", message);
    return status;
}

int output_write(int (*write)(FILE *stream, const void *run), const void *run)
{
    if (write(stdout, run))
        return print_error(EXIT_FAILED, "out of memory while writing the result");
    if (putchar('\n') == EOF || fflush(stdout) || ferror(stdout))
        return print_error(EXIT_FAILED, "cannot write standard output: %s", strerror(errno));
    return EXIT_OK;
}
