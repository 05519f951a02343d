#include "wake/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/loopback.h"
#include "lib/thread.h"

/* A stop and continue of the process interrupts some calls: that is no error, the receiver looks again. */
static int error_of_call(void)
{
    return errno == EINTR || errno == EAGAIN ? -EAGAIN : -errno;
}

/* What spins and what sleeps is the same for a descriptor: transport_may_sleep has said which of the two it is. */
static int take_until(struct transport *t, struct message *m)
{
    int rc;
    do
        rc = t->mechanism->take(t, m);
    while (rc == -EAGAIN);
    return rc;
}

/* ---- channel: shared memory, and a futex to sleep on */

static int channel_open(struct transport *t)
{
    t->ring = ring_new();
    return t->ring ? 0 : -ENOMEM;
}

/* ---- eventfd: says that there is a message, which lies in shared memory */

static int ring_and_eventfd(struct transport *t, int flags)
{
    t->receive_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | flags);
    if (t->receive_fd < 0)
        return -errno;
    t->send_fd = fcntl(t->receive_fd, F_DUPFD_CLOEXEC, 0);
    return t->send_fd < 0 ? -errno : channel_open(t);
}

/* A semaphore, so that the descriptor stays readable until as many were read as were written. */
static int eventfd_open(struct transport *t)
{
    return ring_and_eventfd(t, EFD_SEMAPHORE);
}

static int announce(struct transport *t)
{
    uint64_t one = 1;
    return write(t->send_fd, &one, sizeof(one)) < 0 ? -errno : 0;
}

static int eventfd_send(struct transport *t, const struct message *m)
{
    int rc = ring_send(t, m);
    return rc ? rc : announce(t);
}

static int eventfd_take(struct transport *t, struct message *m)
{
    uint64_t count;
    ssize_t got = read(t->receive_fd, &count, sizeof(count));
    if (got <= 0)
        return got ? error_of_call() : -ECONNRESET;
    return ring_take(t, m);
}

/* ---- eventloop: a queue of messages, and one loop that asks epoll which tasks can go on, and lets them, one by one */

static int eventloop_open(struct transport *t)
{
    return ring_and_eventfd(t, 0);
}

/* A loop that is awake looks into the queue before it sleeps: only one that sleeps is woken (as in ring_send_waking). */
static int eventloop_send(struct transport *t, const struct message *m)
{
    int rc = ring_send(t, m);
    return !rc && atomic_exchange_explicit(&t->ring->is_asleep, 0, memory_order_acq_rel) ? announce(t) : rc;
}

static int eventloop_run(struct transport *t, struct message *m)
{
    uint64_t count;
    for (;;) {
        for (; t->ready_n > 0; t->ready_n--)
            /* The last descriptor's task is the one that has messages; its event is acknowledged before it goes on. */
            if (t->ready[t->ready_n - 1].data.u32 + 1 == t->polled_n)
                (void)!read(t->receive_fd, &count, sizeof(count));
        if (ring_take(t, m) == 0)
            return 0;
        (void)atomic_exchange_explicit(&t->ring->is_asleep, 1, memory_order_acq_rel);
        if (ring_take(t, m) == 0)
            break;
        t->ready_n = epoll_wait(t->epoll_fd, t->ready, LOOP_EVENTS, t->timeout_ms);
    }
    atomic_store_explicit(&t->ring->is_asleep, 0, memory_order_relaxed);
    return 0;
}

/* ---- pipe, and sockets */

static int stream_send(struct transport *t, const struct message *m)
{
    const void *all = t->outgoing ? memcpy(t->outgoing, m, sizeof(*m)) : m;
    bool is_file = t->mechanism->traits & TRAIT_FILE;
    ssize_t sent = is_file ? write(t->send_fd, all, t->bytes) : send(t->send_fd, all, t->bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0)
        return error_of_call();
    /* No message is longer than what a pipe takes whole (PIPE_BUF); a socket so full that it cuts one is said. */
    return sent == (ssize_t)t->bytes ? 0 : -EMSGSIZE;
}

/* A closed stream gives 0 bytes. */
static int stream_take(struct transport *t, struct message *m)
{
    void *at = t->incoming + t->incoming_bytes;
    size_t room = t->bytes - t->incoming_bytes;
    bool is_file = t->mechanism->traits & TRAIT_FILE;
    ssize_t got = is_file ? read(t->receive_fd, at, room) : recv(t->receive_fd, at, room, t->receive_flags);
    if (got <= 0)
        return got ? error_of_call() : -ECONNRESET;
    t->incoming_bytes += (size_t)got;
    if (t->incoming_bytes < t->bytes)
        return -EAGAIN;
    memcpy(m, t->incoming, sizeof(*m));
    t->incoming_bytes = 0;
    return 0;
}

/* What has two descriptors, and both of them at once. */
static int ends_open(struct transport *t)
{
    int fds[LOOPBACK_ENDS] = {-1, -1};
    int rc = t->mechanism->connect(fds);
    t->receive_fd = fds[LOOPBACK_RECEIVES];
    t->send_fd = fds[LOOPBACK_SENDS];
    return rc;
}

static int connect_pipe(int fds[LOOPBACK_ENDS])
{
    return pipe2(fds, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

static int connect_unix(int fds[LOOPBACK_ENDS])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) ? -errno : 0;
}

/* ---- timers */

static int next_expiration(struct transport *t, struct message *m)
{
    struct timer *timer = &t->timer;
    *m = (struct message){.sequence = timer->taken ? timer->taken - 1 : SEQUENCE_WARM_UP,
                          .sent = timer->start_ns + timer->taken * timer->period_ns};
    timer->taken++;
    return 0;
}

static int timerfd_open(struct transport *t)
{
    t->receive_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return t->receive_fd < 0 ? -errno : 0;
}

/* One read may say that several have expired. */
static int timerfd_take(struct transport *t, struct message *m)
{
    struct timer *timer = &t->timer;
    uint64_t count;
    if (timer->taken == timer->expired) {
        if (read(t->receive_fd, &count, sizeof(count)) < 0)
            return error_of_call();
        timer->expired += count;
        timer->late += count - 1;
    }
    return next_expiration(t, m);
}

static int nanosleep_take(struct transport *t, struct message *m)
{
    struct timer *timer = &t->timer;
    uint64_t due = timer->start_ns + timer->taken * timer->period_ns;
    timer->late += clock_ns(CLOCK_MONOTONIC) >= due;
    sleep_until(due);
    return next_expiration(t, m);
}

enum { FD = TRAIT_BLOCK | TRAIT_SPIN | TRAIT_POLL | TRAIT_EPOLL };

const struct mechanism mechanisms[] = {
    {"channel", TRAIT_BLOCK | TRAIT_SPIN, 0, channel_open, ring_send_waking, ring_take, ring_spin, ring_sleep, NULL},
    {"eventfd", FD | TRAIT_FILE, 0, eventfd_open, eventfd_send, eventfd_take, take_until, take_until, NULL},
    {"pipe", FD | TRAIT_FILE, 0, ends_open, stream_send, stream_take, take_until, take_until, connect_pipe},
    {"unix", FD, 0, ends_open, stream_send, stream_take, take_until, take_until, connect_unix},
    {"tcp", FD | TRAIT_NAPI, SOCK_STREAM, ends_open, stream_send, stream_take, take_until, take_until, loopback_tcp},
    {"udp", FD | TRAIT_NAPI, SOCK_DGRAM, ends_open, stream_send, stream_take, take_until, take_until, loopback_udp},
    {"vsock", FD, 0, ends_open, stream_send, stream_take, take_until, take_until, loopback_vsock},
    {"eventloop", TRAIT_EPOLL | TRAIT_LOOP, 0, eventloop_open, eventloop_send, ring_take, NULL, eventloop_run, NULL},
    {"timerfd", FD | TRAIT_FILE | TRAIT_TIMER, 0, timerfd_open, NULL, timerfd_take, take_until, take_until, NULL},
    {"clock_nanosleep", TRAIT_BLOCK | TRAIT_TIMER, 0, NULL, NULL, nanosleep_take, NULL, nanosleep_take, NULL},
};
const size_t mechanisms_n = sizeof(mechanisms) / sizeof(*mechanisms);
