/*
 * The other host, for round trips over a real network.
 *
 * The host of --listen sends back each message with its own two stamps. A control connection (lines of text) tells it, for
 * each cell, how to wait; messages have a connection of their own. Nothing is authenticated: it is for two hosts on a wire
 * one owns.
 */
#ifndef TUNECTL_FAR_H
#define TUNECTL_FAR_H

#include <stdbool.h>
#include <stddef.h>

#include "lines.h"
#include "link.h"
#include "way.h"

struct wake_options;

/* The other host, as the one that measures sees it. */
struct far {
    struct lines lines;         /* the control connection */
    const char *address;        /* as given */
    double hz;                  /* of its counter */
    unsigned cpu;               /* that its thread runs on */
    bool is_gone;
};

/* Connects and greets. Returns the exit status, the reason being on stderr. */
int far_connect(struct far *far, const char *address);
void far_deinit(struct far *far);

/* Makes a link whose messages come back, each host waiting by `way`. Returns 0, or -1 with the reason in `reason`. */
int far_open(struct far *far, struct link *link, const struct mechanism *mechanism, const struct way *way,
             unsigned busy_poll_us, char *reason, size_t size);

/* Ends the other host's part of the cell. */
void far_close(struct far *far);

/* Serves until a signal. Returns the exit status. */
int far_serve(const struct wake_options *options);

#endif
