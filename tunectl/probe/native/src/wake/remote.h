/*
 * The other host, for round trips over a real network.
 *
 * The host of --listen sends back each message with its own two stamps. A control connection (lines of text) tells it, for
 * each case, how to wait; messages have a connection of their own. Nothing is authenticated: it is for two hosts on a wire
 * one owns.
 */
#ifndef TUNECTL_WAKE_REMOTE_H
#define TUNECTL_WAKE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "wake/lines.h"
#include "wake/transport.h"
#include "wake/wait_method.h"

/* The other host, as the one that measures sees it. */
struct remote {
    struct lines lines;         /* the control connection */
    const char *address;        /* as given */
    double hz;                  /* of its counter */
    unsigned cpu;               /* that its thread runs on */
    bool is_gone;
};

/* Connects and greets. Returns the exit status, the reason being on stderr. */
int remote_connect(struct remote *remote, const char *address);
void remote_deinit(struct remote *remote);

/* Makes a transport whose messages come back, each host waiting by `method`. Returns 0, or -1 with the reason in `reason`. */
int remote_open(struct remote *remote, struct transport *transport, const struct mechanism *mechanism,
                const struct wait_method *method, unsigned busy_poll_us, char *reason, size_t size);

/* Ends the other host's part of the case. */
void remote_close(struct remote *remote);

#endif
