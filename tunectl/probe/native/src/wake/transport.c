#include "wake/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/clock.h"

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
    t->timer.start_ns = monotonic_ns() + period_ns;
    struct itimerspec when = {timespec_of(period_ns), timespec_of(t->timer.start_ns)};
    if (t->receive_fd >= 0)
        (void)timerfd_settime(t->receive_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

unsigned transport_napi_id(const struct transport *t)
{
    unsigned id = 0;
    socklen_t length = sizeof(id);
    if (!(t->mechanism->traits & TRAIT_NAPI) || getsockopt(t->receive_fd, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &length))
        return 0;
    return id;
}
