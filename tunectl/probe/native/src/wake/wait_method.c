#include "wake/wait_method.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/ticks.h"

enum { CHORE_TIMERS = 8, ENDLESS = -1, AT_ONCE = 0 };

const char *const waiting_names[WAITINGS] = {"sleeping", "spinning", "busy-poll"};

static int may_sleep(struct transport *transport, unsigned busy_poll_us)
{
    (void)busy_poll_us;
    return transport_may_sleep(transport, true);
}

static int may_not_sleep(struct transport *transport, unsigned busy_poll_us)
{
    (void)busy_poll_us;
    return transport_may_sleep(transport, false);
}

static int prepare_epoll(struct transport *transport, unsigned busy_poll_us)
{
    struct epoll_event event = {.events = EPOLLIN};
    transport->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (transport->epoll_fd < 0 || epoll_ctl(transport->epoll_fd, EPOLL_CTL_ADD, transport->receive_fd, &event))
        return -errno;
    return may_not_sleep(transport, busy_poll_us);
}

static int prepare_busy_poll(struct transport *transport, unsigned busy_poll_us)
{
    int us = (int)busy_poll_us;
    if (setsockopt(transport->receive_fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof(us)))
        return -errno;
    return may_sleep(transport, busy_poll_us);
}

static int block(struct transport *transport, struct message *m)
{
    int rc;
    do
        rc = transport->mechanism->block(transport, m);
    while (rc == -EAGAIN);
    return rc;
}

/* Readiness is a hint: what counts is whether a whole message comes. */
static inline int poll_with(struct transport *transport, struct message *m, int timeout_ms)
{
    for (;;) {
        struct pollfd one = {.fd = transport->receive_fd, .events = POLLIN};
        if (poll(&one, 1, timeout_ms) <= 0)
            continue;
        int rc = transport->mechanism->take(transport, m);
        if (rc != -EAGAIN)
            return rc;
    }
}

static int poll_sleeping(struct transport *transport, struct message *m)
{
    return poll_with(transport, m, ENDLESS);
}

static int poll_spinning(struct transport *transport, struct message *m)
{
    return poll_with(transport, m, AT_ONCE);
}

static inline int epoll_with(struct transport *transport, struct message *m, int timeout_ms)
{
    for (;;) {
        struct epoll_event event;
        if (epoll_wait(transport->epoll_fd, &event, 1, timeout_ms) <= 0)
            continue;
        int rc = transport->mechanism->take(transport, m);
        if (rc != -EAGAIN)
            return rc;
    }
}

static int epoll_sleeping(struct transport *transport, struct message *m)
{
    return epoll_with(transport, m, ENDLESS);
}

static int epoll_spinning(struct transport *transport, struct message *m)
{
    return epoll_with(transport, m, AT_ONCE);
}

/*
 * What an I/O thread does in each turn beside its receive: it reads the clock, looks whether one of its timers is due, and
 * whether anything waits to be cleaned up.
 */
struct chores {
    uint64_t due[CHORE_TIMERS];
    const void *retired[CHORE_TIMERS];
    uint64_t done;
};

static void do_chores(struct chores *chores)
{
    const uint64_t period = UINT64_C(1) << 22;     /* in ticks: a millisecond or so */
    uint64_t now = ticks_now();
    for (unsigned i = 0; i < CHORE_TIMERS; i++) {
        if (now >= chores->due[i]) {
            chores->due[i] = now + period + i;
            chores->done++;
        }
        if (*(const void *volatile *)&chores->retired[i])
            chores->done++;
    }
}

static int loop_with_chores(struct transport *transport, struct message *m)
{
    static _Thread_local struct chores chores;
    for (;;) {
        int rc = transport->mechanism->take(transport, m);
        if (rc != -EAGAIN)
            return rc;
        do_chores(&chores);
    }
}

static int loop_of_receives(struct transport *transport, struct message *m)
{
    return transport->mechanism->spin(transport, m);
}

static const char no_descriptor[] = "there is no descriptor to poll";
static const char no_device[] = "no network device feeds it: there is nothing the kernel could poll";

const struct wait_method wait_methods[] = {
    {"block", WAITING_SLEEPING, 0, "", may_sleep, block},
    {"poll", WAITING_SLEEPING, TRAIT_FD, no_descriptor, may_not_sleep, poll_sleeping},
    {"epoll", WAITING_SLEEPING, TRAIT_FD, no_descriptor, prepare_epoll, epoll_sleeping},
    {"poll0", WAITING_SPINNING, TRAIT_FD, no_descriptor, may_not_sleep, poll_spinning},
    {"epoll0", WAITING_SPINNING, TRAIT_FD, no_descriptor, prepare_epoll, epoll_spinning},
    {"nonblock", WAITING_SPINNING, 0, "", may_not_sleep, loop_with_chores},
    {"minimal", WAITING_SPINNING, 0, "", may_not_sleep, loop_of_receives},
    {"busy-poll", WAITING_BUSY_POLL, TRAIT_NAPI, no_device, prepare_busy_poll, block},
};
const size_t wait_methods_n = sizeof(wait_methods) / sizeof(*wait_methods);
