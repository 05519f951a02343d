#include "wake/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int set_nonblocking(int fd, bool is_nonblocking)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    flags = is_nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags) ? -errno : 0;
}

int transport_open(struct transport *transport, const struct mechanism *mechanism)
{
    *transport = (struct transport){.mechanism = mechanism, .send_fd = -1, .receive_fd = -1, .epoll_fd = -1,
                          .receive_flags = MSG_DONTWAIT};
    return mechanism->open(transport);
}

void transport_close(struct transport *transport)
{
    const int fds[] = {transport->send_fd, transport->receive_fd, transport->epoll_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        if (fds[i] >= 0 && !(i == 1 && fds[1] == fds[0]))
            (void)close(fds[i]);
    ring_free(transport->ring);
    *transport = (struct transport){.send_fd = -1, .receive_fd = -1, .epoll_fd = -1};
}

/* Sockets by the flag of each call, since a socket between hosts is sent on and received from; the others by descriptor. */
int transport_may_sleep(struct transport *transport, bool may_sleep)
{
    transport->receive_flags = may_sleep ? 0 : MSG_DONTWAIT;
    return transport->mechanism->traits & TRAIT_FILE ? set_nonblocking(transport->receive_fd, !may_sleep) : 0;
}

/*
 * The shutdown wakes a sleeper. A spinner on a UDP socket does not notice it, but finds another file under its descriptor: a
 * socket whose other end is closed. An epoll set forgets the old file, and is given the new one: a sleeper that was woken and
 * finds its set empty would sleep on.
 */
static void cut(struct transport *transport)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fds[2];
    (void)shutdown(transport->receive_fd, SHUT_RDWR);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return;
    (void)close(fds[1]);
    (void)dup3(fds[0], transport->receive_fd, O_CLOEXEC);
    (void)close(fds[0]);
    if (transport->epoll_fd >= 0)
        (void)epoll_ctl(transport->epoll_fd, EPOLL_CTL_ADD, transport->receive_fd, &event);
}

void transport_end(struct transport *transport, bool by_force)
{
    struct message m = {.sequence = SEQUENCE_END};
    transport->is_cut = transport->is_remote || by_force;
    if (transport->is_cut)
        cut(transport);
    else
        (void)transport->mechanism->send(transport, &m);
}

unsigned transport_napi_id(const struct transport *transport)
{
    unsigned id = 0;
    socklen_t length = sizeof(id);
    if (!(transport->mechanism->traits & TRAIT_NAPI) ||
        getsockopt(transport->receive_fd, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &length))
        return 0;
    return id;
}
