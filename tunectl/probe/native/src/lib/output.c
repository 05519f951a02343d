#include "lib/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

FILE *output_open(const char *path)
{
    if (!path)
        return stdout;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (!stream && fd >= 0)
        (void)close(fd);
    return stream;
}

static int write_all(FILE *stream, const char *path, int (*write)(FILE *, const void *), const void *run)
{
    const char *name = path ? path : "standard output";
    struct stat status;
    if (path && fstat(fileno(stream), &status) == 0 && S_ISREG(status.st_mode) && ftruncate(fileno(stream), 0))
        return print_error(EXIT_FAILED, "cannot empty %s: %s", name, strerror(errno));
    if (write(stream, run))
        return print_error(EXIT_FAILED, "out of memory while writing the result");
    if (fflush(stream) || ferror(stream))
        return print_error(EXIT_FAILED, "cannot write %s: %s", name, strerror(errno));
    return EXIT_OK;
}

int output_write(FILE *stream, const char *path, int (*write)(FILE *stream, const void *run), const void *run)
{
    int status = write_all(stream, path, write, run);
    if (stream != stdout && fclose(stream) && !status)
        status = print_error(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    return status;
}

void output_abandon(FILE *stream)
{
    if (stream != stdout)
        (void)fclose(stream);
}
