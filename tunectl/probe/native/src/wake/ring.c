#include "wake/transport.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring *ring_new(void)
{
    struct ring *ring = aligned_alloc(RING_LINE, sizeof(*ring));
    if (ring)
        memset(ring, 0, sizeof(*ring));
    return ring;
}

/* What a message has beyond its head lies beside the ring. */
static unsigned char *payload_of(const struct transport *t, const struct message *m)
{
    return t->payloads + m->sequence % (2 * RING_SLOTS) * (t->bytes - sizeof(*m));
}

int ring_send(struct transport *t, const struct message *m)
{
    struct ring *ring = t->ring;
    uint64_t n = ring->sent;
    if (t->payloads)
        memcpy(payload_of(t, m), t->outgoing + sizeof(*m), t->bytes - sizeof(*m));
    if (n - atomic_load_explicit(&ring->taken, memory_order_acquire) == RING_SLOTS)
        return -EAGAIN;
    struct ring_slot *slot = &ring->slots[n % RING_SLOTS];
    slot->message = *m;
    /* release: who sees the turn sees the message */
    atomic_store_explicit(&slot->turn, n + 1, memory_order_release);
    ring->sent = n + 1;
    return 0;
}

static inline int take(struct ring *ring, struct message *m)
{
    uint64_t n = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    struct ring_slot *slot = &ring->slots[n % RING_SLOTS];
    if (atomic_load_explicit(&slot->turn, memory_order_acquire) != n + 1)
        return -EAGAIN;
    *m = slot->message;
    /* release: the slot is the sender's again once it sees this */
    atomic_store_explicit(&ring->taken, n + 1, memory_order_release);
    return 0;
}

static int with_payload(struct transport *t, const struct message *m, int rc)
{
    if (t->payloads && !rc)
        memcpy(t->incoming + sizeof(*m), payload_of(t, m), t->bytes - sizeof(*m));
    return rc;
}

int ring_take(struct transport *t, struct message *m)
{
    return with_payload(t, m, take(t->ring, m));
}

/*
 * No pause instruction: it gives a sibling thread room, which a spinner that has its core to itself need not, and costs
 * up to 140 cycles a turn.
 */
int ring_spin(struct transport *t, struct message *m)
{
    struct ring *ring = t->ring;
    int rc;
    do
        rc = take(ring, m);
    while (rc == -EAGAIN);
    return with_payload(t, m, rc);
}

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    (void)syscall(SYS_futex, (void *)word, operation, value, NULL, NULL, 0);
}

/*
 * Both sides exchange is_asleep, in one order for both: either the sender's comes later and finds the receiver asleep, or the
 * receiver's comes later, has then the sender's earlier stores before it, and finds the message.
 */
int ring_send_waking(struct transport *t, const struct message *m)
{
    struct ring *ring = t->ring;
    int rc = ring_send(t, m);
    if (!rc && atomic_exchange_explicit(&ring->is_asleep, 0, memory_order_acq_rel))
        futex(&ring->is_asleep, FUTEX_WAKE_PRIVATE, INT_MAX);
    return rc;
}

int ring_sleep(struct transport *t, struct message *m)
{
    struct ring *ring = t->ring;
    for (;;) {
        if (take(ring, m) == 0)
            return with_payload(t, m, 0);
        (void)atomic_exchange_explicit(&ring->is_asleep, 1, memory_order_acq_rel);
        if (take(ring, m) == 0)
            break;
        futex(&ring->is_asleep, FUTEX_WAIT_PRIVATE, 1);
    }
    atomic_store_explicit(&ring->is_asleep, 0, memory_order_relaxed);
    return with_payload(t, m, 0);
}
