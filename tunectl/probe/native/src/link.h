/*
 * The ways a message can travel: one row of `mechanisms` (mechanisms.c) each. To add one, add a row.
 *
 * A link is one connection made by such a row; it is used by one sending and one receiving thread.
 */
#ifndef TUNECTL_LINK_H
#define TUNECTL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message.h"
#include "ring.h"

struct mechanism;

struct link {
    const struct mechanism *mechanism;
    int send_fd;                /* -1 where there is none */
    int receive_fd;
    int epoll_fd;
    int receive_flags;          /* of recv: MSG_DONTWAIT, or 0 to sleep */
    struct ring *ring;          /* channel and eventfd only */
    unsigned char partial[sizeof(struct message)];  /* a stream may hand out a message in pieces */
    size_t partial_bytes;
    bool is_remote;             /* the other end is on another host, and link_end cannot write there */
    _Atomic bool is_cut;        /* by link_end: an error of the receiver's is then none */
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
    /* Makes both ends. Returns 0 or -errno; what was opened before is closed by link_close. */
    int (*open)(struct link *link);
    /* Never sleeps. Returns 0, -EAGAIN (no room) or -errno. */
    int (*send)(struct link *link, const struct message *m);
    /* One receive. Returns 0, -EAGAIN (no whole message yet) or -errno. Sleeps only after link_may_sleep(link, true). */
    int (*take)(struct link *link, struct message *m);
    /* `take` in a loop, and nothing else in it. */
    int (*spin)(struct link *link, struct message *m);
    /* The blocking receive. */
    int (*block)(struct link *link, struct message *m);
};

extern const struct mechanism mechanisms[];
extern const size_t mechanisms_n;

/* Makes a link that does not sleep in `take`. Returns 0 or -errno; link_close is needed either way. */
int link_open(struct link *link, const struct mechanism *mechanism);
void link_close(struct link *link);

/* Whether a receive sleeps until there is something. Returns 0 or -errno. */
int link_may_sleep(struct link *link, bool may_sleep);

/*
 * Makes a receiver that waits leave, however it waits: by SEQUENCE_END, or, between hosts and `by_force`, by taking its
 * descriptor away. From a third thread, while nobody sends.
 */
void link_end(struct link *link, bool by_force);

/* The id of the NAPI instance (the receive queue of a device) that fed the socket last; 0 when none did. */
unsigned link_napi_id(const struct link *link);

#endif
