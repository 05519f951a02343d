/*
 * A transport is one connection, made by a row of `mechanisms` (mechanisms.h). One thread sends on it, and one receives.
 */
#ifndef TUNECTL_WAKE_TRANSPORT_H
#define TUNECTL_WAKE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ring.h"

struct mechanism;

struct transport {
    const struct mechanism *mechanism;
    int send_fd;                /* -1 where there is none */
    int receive_fd;
    int epoll_fd;
    int receive_flags;          /* of recv: MSG_DONTWAIT, or 0 to sleep */
    struct ring *ring;          /* channel and eventfd only */
    unsigned char partial[sizeof(struct message)];  /* a stream may hand out a message in pieces */
    size_t partial_bytes;
    bool is_remote;             /* the other end is on another host, and transport_end cannot write there */
    _Atomic bool is_cut;        /* by transport_end: an error of the receiver's is then none */
};

/* What a mechanism's receiver can be done with. */
enum trait {
    TRAIT_FD = 1,               /* there is a descriptor to poll */
    TRAIT_FILE = 2,             /* that descriptor is no socket: whether it sleeps is its own mode, not a flag of the call */
    TRAIT_NAPI = 4,             /* a socket that a network device can feed, so that the kernel can poll the device */
};

struct mechanism {
    const char *name;
    unsigned traits;
    int socket_type;            /* between hosts; 0 where it stays within one */
    /* Makes both ends. Returns 0 or -errno; what was opened before is closed by transport_close. */
    int (*open)(struct transport *transport);
    /* Never sleeps. Returns 0, -EAGAIN (no room) or -errno. */
    int (*send)(struct transport *transport, const struct message *m);
    /* One receive. Returns 0, -EAGAIN (no whole message yet) or -errno. Sleeps only after transport_may_sleep(transport, true). */
    int (*take)(struct transport *transport, struct message *m);
    /* `take` in a loop, and nothing else in it. */
    int (*spin)(struct transport *transport, struct message *m);
    /* The blocking receive. */
    int (*block)(struct transport *transport, struct message *m);
};

/* Makes a transport that does not sleep in `take`. Returns 0 or -errno; transport_close is needed either way. */
int transport_open(struct transport *transport, const struct mechanism *mechanism);
void transport_close(struct transport *transport);

/* Whether a receive sleeps until there is something. Returns 0 or -errno. */
int transport_may_sleep(struct transport *transport, bool may_sleep);

/*
 * Makes a receiver that waits leave, however it waits: by SEQUENCE_END, or, between hosts and `by_force`, by taking its
 * descriptor away. From a third thread, while nobody sends.
 */
void transport_end(struct transport *transport, bool by_force);

/* The id of the NAPI instance (the receive queue of a device) that fed the socket last; 0 when none did. */
unsigned transport_napi_id(const struct transport *transport);

#endif
