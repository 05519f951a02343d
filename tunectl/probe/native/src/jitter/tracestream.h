/* Reads a trace of any length in pieces, so that memory stays bounded however much was traced. */
#ifndef TUNECTL_JITTER_TRACESTREAM_H
#define TUNECTL_JITTER_TRACESTREAM_H

#include <stddef.h>

#include "jitter/tracetext.h"

/* Lines beyond this are no events of ours and are skipped. */
enum { TRACESTREAM_LINE = 4096 };

struct tracestream {
    char line[TRACESTREAM_LINE];
    size_t length;      /* of the unfinished line */
    bool skipping;      /* the line at hand is too long */
};

/* Hands every event in `bytes`, and in what was kept of earlier pieces, to `take`; stops at its first non-zero and returns that. */
int tracestream_feed(struct tracestream *s, const char *bytes, size_t length,
                     int (*take)(void *, const struct trace_event *), void *context);

/* The whole file at `path`, from the first event on. Returns 0, what `take` returned, or -errno. */
int tracestream_read(const char *path, int (*take)(void *, const struct trace_event *), void *context);

#endif
