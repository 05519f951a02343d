/*
 * Messages through shared memory, one sender to one receiver. Each slot has a cache line pair of its own, on which the
 * receiver spins: a message costs one transfer of that line, and nothing else moves between the two cores.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

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

/* Returns 0, or -EAGAIN while the ring is full. */
int ring_send(struct ring *ring, const struct message *m);

/* Returns 0, or -EAGAIN when no message is there. */
int ring_take(struct ring *ring, struct message *m);

/* ring_take in a loop, and nothing else in it. */
int ring_spin(struct ring *ring, struct message *m);

/* ring_send, and wakes a receiver that sleeps in ring_sleep. */
int ring_send_waking(struct ring *ring, const struct message *m);

/* Takes a message; while there is none, sleeps on a futex. */
int ring_sleep(struct ring *ring, struct message *m);
