#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

int complain(int status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    (void)fprintf(stderr, "tunectl-probe: %s\n", message);
    return status;
}
