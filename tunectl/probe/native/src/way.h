/*
 * The ways of waiting for a message: one row of `ways` each. To add one, add a row.
 */
#ifndef TUNECTL_WAY_H
#define TUNECTL_WAY_H

#include <stddef.h>

#include "link.h"

enum waiting { WAITING_SLEEPING, WAITING_SPINNING, WAITING_BUSY_POLL, WAITINGS };

/* "sleeping", "spinning", "busy-poll" */
extern const char *const waiting_names[WAITINGS];

struct way {
    const char *name;
    enum waiting waiting;
    unsigned needs;             /* traits of the mechanism */
    const char *lack;           /* why it cannot be had without them */
    /* Once per link, before the first message. Returns 0 or -errno. */
    int (*prepare)(struct link *link, unsigned busy_poll_us);
    /* Waits for the next message and takes it. Returns 0 or -errno, never -EAGAIN. */
    int (*receive)(struct link *link, struct message *m);
};

extern const struct way ways[];
extern const size_t ways_n;

#endif
