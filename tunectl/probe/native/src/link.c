#include "link.h"

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

int link_open(struct link *link, const struct mechanism *mechanism)
{
    *link = (struct link){.mechanism = mechanism, .send_fd = -1, .receive_fd = -1, .epoll_fd = -1,
                          .receive_flags = MSG_DONTWAIT};
    return mechanism->open(link);
}

void link_close(struct link *link)
{
    const int fds[] = {link->send_fd, link->receive_fd, link->epoll_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        if (fds[i] >= 0 && !(i == 1 && fds[1] == fds[0]))
            (void)close(fds[i]);
    ring_free(link->ring);
    *link = (struct link){.send_fd = -1, .receive_fd = -1, .epoll_fd = -1};
}

/* Sockets by the flag of each call, since a socket between hosts is sent on and received from; the others by descriptor. */
int link_may_sleep(struct link *link, bool may_sleep)
{
    link->receive_flags = may_sleep ? 0 : MSG_DONTWAIT;
    return link->mechanism->traits & TRAIT_FILE ? set_nonblocking(link->receive_fd, !may_sleep) : 0;
}

/*
 * The shutdown wakes a sleeper. A spinner on a UDP socket does not notice it, but finds another file under its descriptor: a
 * socket whose other end is closed. An epoll set forgets the old file, and is given the new one: a sleeper that was woken and
 * finds its set empty would sleep on.
 */
static void cut(struct link *link)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fds[2];
    (void)shutdown(link->receive_fd, SHUT_RDWR);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return;
    (void)close(fds[1]);
    (void)dup3(fds[0], link->receive_fd, O_CLOEXEC);
    (void)close(fds[0]);
    if (link->epoll_fd >= 0)
        (void)epoll_ctl(link->epoll_fd, EPOLL_CTL_ADD, link->receive_fd, &event);
}

void link_end(struct link *link, bool by_force)
{
    struct message m = {.sequence = SEQUENCE_END};
    link->is_cut = link->is_remote || by_force;
    if (link->is_cut)
        cut(link);
    else
        (void)link->mechanism->send(link, &m);
}

unsigned link_napi_id(const struct link *link)
{
    unsigned id = 0;
    socklen_t length = sizeof(id);
    if (!(link->mechanism->traits & TRAIT_NAPI) ||
        getsockopt(link->receive_fd, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &length))
        return 0;
    return id;
}
