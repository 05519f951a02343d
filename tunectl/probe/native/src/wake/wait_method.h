/*
 * How a receiver can wait for a message: one row of `wait_methods` each. To add one, add a row.
 */
#pragma once

#include <stddef.h>

#include "wake/transport.h"

enum waiting { WAITING_SLEEPING, WAITING_SPINNING, WAITING_BUSY_POLL, WAITINGS };

/* "sleeping", "spinning", "busy-poll" */
extern const char *const waiting_names[WAITINGS];

struct wait_method {
    const char *name;
    enum waiting waiting;
    unsigned needs;             /* traits of the mechanism */
    /* Waits for the next message and takes it. Returns 0 or -errno, never -EAGAIN. */
    int (*receive)(struct transport *t, struct message *m);
};

extern const struct wait_method wait_methods[];
extern const size_t wait_methods_n;

/* Once per transport, before the first message. `fds`: in a poll or epoll set, its own and idle ones. Returns 0 or -errno. */
int wait_method_prepare(const struct wait_method *method, struct transport *t, unsigned fds, unsigned busy_poll_us);
