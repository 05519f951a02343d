/* The experiment `wake`: how long until a waiting thread has a message? A run is one case: a mechanism, a wait method, an idle time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/clock.h"
#include "lib/facts.h"
#include "lib/options.h"
#include "lib/pair.h"
#include "wake/cell.h"

/* Which case says what, and which cannot be, is Python's to know and to explain. */
struct wake_case {
    const struct mechanism *mechanism;
    const struct wait_method *method;
    double idle_ms;
};

struct wake_run {
    const struct options *options;
    struct host_facts facts;
    struct wake_case what;
    struct pair pair;
    struct clock_span clock;
    struct exchange exchange;
    struct occupancy before;
    struct occupancy after;
    char reason[128];               /* why it was not measured; empty where it was */
    bool is_interrupted;
    double duration_s;
    int64_t at_s;                   /* CLOCK_REALTIME when the measuring began */
};

extern const struct command wake_command;

/* "tcp:block:10". False for a text that names no case that can be. */
bool wake_case_parse(struct wake_case *c, const char *text);

/* Runs and writes what it counted, or is the other host's end. Returns the exit status, or OPTIONS_ARE_OVER. */
int wake_main(int argc, char **argv);

/*
 * The other host's end of a round trip. Says in a line of JSON how fast its counter is, then sends every message that comes over
 * --socket back with its own two stamps, until the connection or the process is ended; without a --socket, it is done. Returns
 * the exit status.
 */
int reflector_serve(const struct wake_run *run);

/* The document of a struct wake_run, tunectl.probe.wake.raw/1. For output_write. */
int wake_document_write(FILE *stream, const void *run);
