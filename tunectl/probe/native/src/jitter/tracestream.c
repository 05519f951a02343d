#include "jitter/tracestream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void keep(struct tracestream *s, const char *bytes, size_t length)
{
    if (length > sizeof(s->line) - s->length) {
        s->skipping = true;
        return;
    }
    memcpy(s->line + s->length, bytes, length);
    s->length += length;
}

static int finish_line(struct tracestream *s, int (*take)(void *, const struct trace_event *), void *context)
{
    struct trace_event event;
    bool is_event = !s->skipping && trace_event_parse(&event, (struct span){s->line, s->length});
    s->length = 0;
    s->skipping = false;
    return is_event ? take(context, &event) : 0;
}

int tracestream_feed(struct tracestream *s, const char *bytes, size_t length,
                     int (*take)(void *, const struct trace_event *), void *context)
{
    int rc = 0;
    while (length && !rc) {
        const char *newline = memchr(bytes, '\n', length);
        size_t piece = newline ? (size_t)(newline - bytes) : length;
        keep(s, bytes, piece);
        if (newline)
            rc = finish_line(s, take, context);
        piece += newline != NULL;
        bytes += piece;
        length -= piece;
    }
    return rc;
}

static int read_through(int fd, struct tracestream *s, int (*take)(void *, const struct trace_event *), void *context)
{
    char bytes[16 * 1024];
    int rc = 0;
    while (!rc) {
        ssize_t got = read(fd, bytes, sizeof(bytes));
        if (got == 0)
            break;
        if (got > 0)
            rc = tracestream_feed(s, bytes, (size_t)got, take, context);
        else if (errno != EINTR)
            rc = -errno;
    }
    return rc;
}

int tracestream_read(const char *path, int (*take)(void *, const struct trace_event *), void *context)
{
    struct tracestream *s = calloc(1, sizeof(*s));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = !s ? -ENOMEM : fd < 0 ? -errno : read_through(fd, s, take, context);
    if (fd >= 0)
        (void)close(fd);
    free(s);
    return rc;
}
