/* What messages go through, and how a receiver waits for them. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

/*
 * Messages through shared memory, one sender to one receiver. Each slot has a cache line pair of its own, on which the
 * receiver spins: a message costs one transfer of that line, and nothing else moves between the two cores.
 */
/* A sequence number that is no message's: it is sent before measuring begins. */
#define SEQUENCE_WARM_UP UINT64_MAX

/* What goes from the sender to the receiver. */
struct message {
    uint64_t sequence;
    uint64_t sent;              /* the sender's counter just before it called send */
    uint64_t remote_received;   /* on the other host, in its counter's ticks: just after its receive */
    uint64_t remote_sent;       /* and just before it sent the message back; both 0 within one host */
};

/* Two lines, as the neighbour of a line is prefetched along with it. */
enum { RING_SLOTS = 1024, RING_LINE = 128 };

struct ring_slot {
    _Alignas(RING_LINE) _Atomic uint64_t turn;  /* the number of the message in it, from 1 */
    struct message message;
};

struct ring {
    struct ring_slot slots[RING_SLOTS];
    _Alignas(RING_LINE) uint64_t sent;          /* the sender's */
    _Alignas(RING_LINE) _Atomic uint64_t taken; /* written by the receiver, read by the sender when the ring seems full */
    _Alignas(RING_LINE) _Atomic uint32_t is_asleep;
};

/* Memory for one, all zero; NULL when there is none. */
struct ring *ring_new(void);

/*
 * A transport is one connection, made by a row of `mechanisms`. One thread sends on it, and one receives. A timer's has no
 * sender: the kernel makes it expire by a schedule, and each expiration is a message that was sent when it was due.
 */
enum { LOOP_EVENTS = 64 };

struct mechanism;

/* Expiration k is due at start + k * period, on CLOCK_MONOTONIC. The first of them is a warm-up. */
struct timer {
    uint64_t start_ns;
    uint64_t period_ns;
    uint64_t expired;           /* as far as the kernel has said */
    uint64_t taken;
    uint64_t late;              /* had expired before the receiver came to wait for them */
};

struct transport {
    const struct mechanism *mechanism;
    int send_fd;                /* -1 where there is none */
    int receive_fd;
    int epoll_fd;
    int receive_flags;          /* of recv: MSG_DONTWAIT, or 0 to sleep */
    int timeout_ms;             /* of poll and epoll_wait */
    struct ring *ring;          /* channel, eventfd and eventloop only */
    size_t bytes;               /* of a message */
    unsigned char *outgoing;    /* a message with all its bytes; NULL where it has no more than its head */
    unsigned char *incoming;    /* a stream may hand out a message in pieces */
    size_t incoming_bytes;
    unsigned char *payloads;    /* beside the ring: what its messages have beyond their heads */
    struct pollfd *polled;      /* a poll or epoll set, the receiver's own descriptor last */
    size_t polled_n;
    struct epoll_event ready[LOOP_EVENTS];  /* of an event loop: its queue of tasks that can go on */
    int ready_n;
    struct timer timer;
};

/* What a mechanism's receiver can be done with. */
enum trait {
    TRAIT_BLOCK = 1,            /* there is one call that sleeps until there is something */
    TRAIT_SPIN = 2,             /* and one that does not sleep */
    TRAIT_POLL = 4,             /* there is a descriptor to poll */
    TRAIT_EPOLL = 8,
    TRAIT_FILE = 16,            /* that descriptor is no socket: whether it sleeps is its own mode, not a flag of the call */
    TRAIT_NAPI = 32,            /* a socket that a network device can feed, so that the kernel can poll the device */
    TRAIT_LOOP = 64,            /* its receiver is an event loop */
    TRAIT_TIMER = 128,          /* the kernel is the sender */
};

struct mechanism {
    const char *name;
    unsigned traits;
    int socket_type;            /* between hosts; 0 where it stays within one */
    /* Makes both ends. Returns 0 or -errno. NULL: nothing to open. */
    int (*open)(struct transport *t);
    /* Never sleeps. Returns 0, -EAGAIN (no room) or -errno. NULL for a timer. */
    int (*send)(struct transport *t, const struct message *m);
    /* One receive. Returns 0, -EAGAIN (no whole message yet) or -errno. Sleeps only after transport_may_sleep(t, true). */
    int (*take)(struct transport *t, struct message *m);
    /* `take` in a loop, and nothing else in it. */
    int (*spin)(struct transport *t, struct message *m);
    /* The blocking receive; in an event loop, the loop. */
    int (*block)(struct transport *t, struct message *m);
    /* Makes a pair of descriptors (loopback.h) where that is how both ends come to be. NULL: `open` does otherwise. */
    int (*connect)(int fds[2]);
};

/* To add a mechanism, add a row. */
extern const struct mechanism mechanisms[];
extern const size_t mechanisms_n;

/* Makes a transport that does not sleep in `take`. It stays as long as the program. Returns 0 or -errno. */
int transport_open(struct transport *t, const struct mechanism *mechanism, size_t bytes);

/* Makes one of a connected socket, whose other end is on another host. As transport_open. */
int transport_adopt(struct transport *t, const struct mechanism *mechanism, size_t bytes, int fd);

/* Whether a receive sleeps until there is something. Returns 0 or -errno. */
int transport_may_sleep(struct transport *t, bool may_sleep);

/* The first expiration is a period from now. */
void transport_start_timer(struct transport *t, uint64_t period_ns);

/* How a receiver can wait for a message: one row of `wait_methods` each. To add one, add a row. */
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

/* The rows of a transport with a ring. */

/* Returns 0, or -EAGAIN while the ring is full. */
int ring_send(struct transport *t, const struct message *m);

/* Returns 0, or -EAGAIN when no message is there. */
int ring_take(struct transport *t, struct message *m);

/* ring_take in a loop, and nothing else in it. */
int ring_spin(struct transport *t, struct message *m);

/* ring_send, and wakes a receiver that sleeps in ring_sleep. */
int ring_send_waking(struct transport *t, const struct message *m);

/* Takes a message; while there is none, sleeps on a futex. */
int ring_sleep(struct transport *t, struct message *m);
