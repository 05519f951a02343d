#include "wake/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/loopback.h"
#include "lib/ticks.h"

enum { CHORE_TIMERS = 8, ENDLESS = -1, AT_ONCE = 0 };

/* All pages are there: none is missing while messages are under way. */
static int touched(unsigned char **memory, size_t bytes)
{
    *memory = malloc(bytes);
    if (*memory)
        memset(*memory, 1, bytes);
    return *memory ? 0 : -ENOMEM;
}

static int init(struct transport *t, const struct mechanism *mechanism, size_t bytes)
{
    *t = (struct transport){.mechanism = mechanism, .send_fd = -1, .receive_fd = -1, .epoll_fd = -1,
                            .receive_flags = MSG_DONTWAIT, .bytes = bytes};
    int rc = touched(&t->incoming, bytes);
    return rc || bytes == sizeof(struct message) ? rc : touched(&t->outgoing, bytes);
}

int transport_open(struct transport *t, const struct mechanism *mechanism, size_t bytes)
{
    int rc = init(t, mechanism, bytes);
    if (!rc && mechanism->open)
        rc = mechanism->open(t);
    /* Twice the slots: what is written is never what is read. */
    if (!rc && t->ring && t->outgoing)
        rc = touched(&t->payloads, 2 * RING_SLOTS * (bytes - sizeof(struct message)));
    return rc;
}

int transport_adopt(struct transport *t, const struct mechanism *mechanism, size_t bytes, int fd)
{
    int rc = init(t, mechanism, bytes);
    t->receive_fd = fd;
    t->send_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return rc ? rc : t->send_fd < 0 ? -errno : 0;
}

/* Sockets by the flag of each call, since a socket between hosts is sent on and received from; the others by descriptor. */
int transport_may_sleep(struct transport *t, bool may_sleep)
{
    t->receive_flags = may_sleep ? 0 : MSG_DONTWAIT;
    if (!(t->mechanism->traits & TRAIT_FILE))
        return 0;
    int flags = fcntl(t->receive_fd, F_GETFL);
    flags = may_sleep ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
    return fcntl(t->receive_fd, F_SETFL, flags) ? -errno : 0;
}

void transport_start_timer(struct transport *t, uint64_t period_ns)
{
    t->timer.period_ns = period_ns;
    t->timer.start_ns = clock_ns(CLOCK_MONOTONIC) + period_ns;
    struct itimerspec when = {timespec_of(period_ns), timespec_of(t->timer.start_ns)};
    if (t->receive_fd >= 0)
        (void)timerfd_settime(t->receive_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

const char *const waiting_names[WAITINGS] = {"sleeping", "spinning", "busy-poll"};

/* The set: idle descriptors, and the receiver's own as the last, behind which nothing is cheaper to find. */
static int make_set(struct transport *t, unsigned fds)
{
    t->polled = calloc(fds, sizeof(*t->polled));
    if (!t->polled)
        return -ENOMEM;
    for (uint32_t i = 0; i < fds; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        int fd = i + 1 < fds ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : t->receive_fd;
        if (fd < 0)
            return -errno;
        t->polled[t->polled_n++] = (struct pollfd){.fd = fd, .events = POLLIN};
        if (t->epoll_fd >= 0 && epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &event))
            return -errno;
    }
    return 0;
}

int wait_method_prepare(const struct wait_method *method, struct transport *t, unsigned fds, unsigned busy_poll_us)
{
    bool has_set = method->needs & (TRAIT_POLL | TRAIT_EPOLL);
    int rc = method->waiting == WAITING_BUSY_POLL ? socket_busy_poll(t->receive_fd, busy_poll_us) : 0;
    if (rc)
        return rc;
    t->timeout_ms = method->waiting == WAITING_SLEEPING ? ENDLESS : AT_ONCE;
    if (method->needs & TRAIT_EPOLL)
        t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (method->needs & TRAIT_EPOLL && t->epoll_fd < 0)
        return -errno;
    rc = has_set ? make_set(t, fds) : 0;
    return rc ? rc : transport_may_sleep(t, method->waiting != WAITING_SPINNING && !has_set);
}

static int block(struct transport *t, struct message *m)
{
    return t->mechanism->block(t, m);
}

/* Readiness is a hint: what counts is whether a whole message comes. */
static int by_poll(struct transport *t, struct message *m)
{
    for (;;) {
        if (poll(t->polled, t->polled_n, t->timeout_ms) <= 0)
            continue;
        int rc = t->mechanism->take(t, m);
        if (rc != -EAGAIN)
            return rc;
    }
}

static int by_epoll(struct transport *t, struct message *m)
{
    if (t->mechanism->traits & TRAIT_LOOP)
        return t->mechanism->block(t, m);
    for (;;) {
        struct epoll_event event;
        if (epoll_wait(t->epoll_fd, &event, 1, t->timeout_ms) <= 0)
            continue;
        int rc = t->mechanism->take(t, m);
        if (rc != -EAGAIN)
            return rc;
    }
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

static int loop_with_chores(struct transport *t, struct message *m)
{
    static _Thread_local struct chores chores;
    for (;;) {
        int rc = t->mechanism->take(t, m);
        if (rc != -EAGAIN)
            return rc;
        do_chores(&chores);
    }
}

static int loop_of_receives(struct transport *t, struct message *m)
{
    return t->mechanism->spin(t, m);
}

const struct wait_method wait_methods[] = {
    {"block", WAITING_SLEEPING, TRAIT_BLOCK, block},
    {"poll", WAITING_SLEEPING, TRAIT_POLL, by_poll},
    {"epoll", WAITING_SLEEPING, TRAIT_EPOLL, by_epoll},
    {"poll0", WAITING_SPINNING, TRAIT_POLL, by_poll},
    {"epoll0", WAITING_SPINNING, TRAIT_EPOLL, by_epoll},
    {"nonblock", WAITING_SPINNING, TRAIT_SPIN, loop_with_chores},
    {"minimal", WAITING_SPINNING, TRAIT_SPIN, loop_of_receives},
    {"busy-poll", WAITING_BUSY_POLL, TRAIT_NAPI, block},
};
const size_t wait_methods_n = sizeof(wait_methods) / sizeof(*wait_methods);
