/* The mode `wake`: how long until a waiting thread has a message, for each mechanism, way of waiting and idle time? */
#ifndef TUNECTL_WAKE_H
#define TUNECTL_WAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cell.h"
#include "clock.h"
#include "crew.h"
#include "facts.h"
#include "far.h"
#include "place.h"

enum { WAKE_IDLES_MOST = 16, WAKE_MESSAGES_MOST = 10000000, WAKE_IDLE_MOST_MS = 60000 };

struct wake_options {
    const char *cpus;           /* "S,R"; NULL: chosen */
    const char *among;          /* CPUs to choose from; NULL: the isolated ones, else the allowed ones */
    uint32_t mechanisms;        /* bit i: row i of `mechanisms` */
    uint32_t ways;
    double idle_ms[WAKE_IDLES_MOST];
    size_t idles;
    size_t messages;            /* in each cell */
    int fifo_priority;          /* 0: the scheduling class stays */
    unsigned busy_poll_us;
    bool has_cold_sender;
    const char *listen;         /* "ADDRESS:PORT": be the other host */
    const char *connect;        /* "ADDRESS:PORT": measure round trips to it */
    bool shows_progress;        /* a line on stderr for each cell; on a terminal always */
    const char *output;         /* NULL: standard output */
    const char *root;
};

/* A whole run, as the document is written from. */
struct wake_run {
    const struct wake_options *options;
    struct host_facts facts;
    struct place place;
    struct clock_span clock;
    struct clock_offset offset;
    struct cell *cells;
    size_t cells_n;
    struct warnings warnings;
    struct far *far;            /* NULL within one host */
    bool is_interrupted;
    bool is_locked;
    double duration_s;
    int64_t at_s;               /* CLOCK_REALTIME when the measuring began */
};

/* Parses what follows `tunectl-probe wake`. As options_parse; `*is_done` when only help was printed. */
int wake_options_parse(struct wake_options *options, int argc, char **argv, bool *is_done);

/* Runs and writes the document, or serves as the other host. Returns the exit status, the reason being on stderr. */
int wake_main(const struct wake_options *options);

/* True for a cell that would starve its own sender: a SCHED_FIFO spinner on the CPU the sender runs on. */
bool wake_would_starve(const struct wake_run *run, const struct way *way);

/* How long the cells take by their schedules, in s. */
double wake_estimate_s(const struct wake_options *options, const struct cell *cells, size_t n);

/* Everything that can be said once the run is over. */
void wake_warn(struct wake_run *run);
void wake_warn_cell(struct cell *cell, const struct wake_run *run, const struct exchange *x);

/* The result as JSON, schema tunectl.probe.wake/1. Returns 0; errors of the stream are left in it. */
int wake_document_write(FILE *stream, const void *run);

#endif
