#include "wake/mechanisms.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* A stop and continue of the process interrupts some calls: that is no error, the receiver looks again. */
static int error_of_call(void)
{
    return errno == EINTR || errno == EAGAIN ? -EAGAIN : -errno;
}

/* `got` bytes more have come. A closed stream gives 0 of them. */
static inline int complete(struct transport *transport, struct message *m, ssize_t got)
{
    if (got <= 0)
        return got ? error_of_call() : -ECONNRESET;
    transport->partial_bytes += (size_t)got;
    if (transport->partial_bytes < sizeof(*m))
        return -EAGAIN;
    memcpy(m, transport->partial, sizeof(*m));
    transport->partial_bytes = 0;
    return 0;
}

static int sent_all(ssize_t sent)
{
    if (sent < 0)
        return error_of_call();
    /* The rest of a message cannot be lost from a stream; none is so full that 32 bytes are cut, but it would be said. */
    return sent == (ssize_t)sizeof(struct message) ? 0 : -EMSGSIZE;
}

/* ---- channel: shared memory, and a futex to sleep on */

static int channel_open(struct transport *transport)
{
    transport->ring = ring_new();
    return transport->ring ? 0 : -ENOMEM;
}

static int channel_send(struct transport *transport, const struct message *m)
{
    return ring_send_waking(transport->ring, m);
}

static int channel_take(struct transport *transport, struct message *m)
{
    return ring_take(transport->ring, m);
}

static int channel_spin(struct transport *transport, struct message *m)
{
    return ring_spin(transport->ring, m);
}

static int channel_block(struct transport *transport, struct message *m)
{
    return ring_sleep(transport->ring, m);
}

/* ---- eventfd: says that there is a message, which lies in shared memory */

/* A semaphore, so that the descriptor stays readable until as many were read as were written. */
static int eventfd_open(struct transport *transport)
{
    transport->ring = ring_new();
    if (!transport->ring)
        return -ENOMEM;
    transport->receive_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (transport->receive_fd < 0)
        return -errno;
    transport->send_fd = fcntl(transport->receive_fd, F_DUPFD_CLOEXEC, 0);
    return transport->send_fd < 0 ? -errno : 0;
}

static int eventfd_send(struct transport *transport, const struct message *m)
{
    uint64_t one = 1;
    int rc = ring_send(transport->ring, m);
    if (rc)
        return rc;
    return write(transport->send_fd, &one, sizeof(one)) < 0 ? -errno : 0;
}

static inline int eventfd_take_inline(struct transport *transport, struct message *m)
{
    uint64_t count;
    ssize_t got = read(transport->receive_fd, &count, sizeof(count));
    if (got <= 0)
        return got ? error_of_call() : -ECONNRESET;
    return ring_take(transport->ring, m);
}

static int eventfd_take(struct transport *transport, struct message *m)
{
    return eventfd_take_inline(transport, m);
}

static int eventfd_spin(struct transport *transport, struct message *m)
{
    int rc;
    do
        rc = eventfd_take_inline(transport, m);
    while (rc == -EAGAIN);
    return rc;
}

/* ---- pipe */

static int pipe_open(struct transport *transport)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
        return -errno;
    transport->receive_fd = fds[0];
    transport->send_fd = fds[1];
    return 0;
}

static int pipe_send(struct transport *transport, const struct message *m)
{
    return sent_all(write(transport->send_fd, m, sizeof(*m)));
}

static inline int pipe_take_inline(struct transport *transport, struct message *m)
{
    void *at = transport->partial + transport->partial_bytes;
    return complete(transport, m, read(transport->receive_fd, at, sizeof(*m) - transport->partial_bytes));
}

static int pipe_take(struct transport *transport, struct message *m)
{
    return pipe_take_inline(transport, m);
}

static int pipe_spin(struct transport *transport, struct message *m)
{
    int rc;
    do
        rc = pipe_take_inline(transport, m);
    while (rc == -EAGAIN);
    return rc;
}

/* ---- sockets */

static int socket_send(struct transport *transport, const struct message *m)
{
    return sent_all(send(transport->send_fd, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL));
}

static inline int socket_take_inline(struct transport *transport, struct message *m)
{
    void *at = transport->partial + transport->partial_bytes;
    return complete(transport, m, recv(transport->receive_fd, at, sizeof(*m) - transport->partial_bytes, transport->receive_flags));
}

static int socket_take(struct transport *transport, struct message *m)
{
    return socket_take_inline(transport, m);
}

static int socket_spin(struct transport *transport, struct message *m)
{
    int rc;
    do
        rc = socket_take_inline(transport, m);
    while (rc == -EAGAIN);
    return rc;
}

static int unix_open(struct transport *transport)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return -errno;
    transport->receive_fd = fds[0];
    transport->send_fd = fds[1];
    return 0;
}

/* A socket on 127.0.0.1, its port chosen by the kernel and left in `address`. Returns it or -errno. */
static int loopback_socket(int type, struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)address, length) || getsockname(fd, (struct sockaddr *)address, &length)) {
        int rc = -errno;
        (void)close(fd);
        return rc;
    }
    return fd;
}

/* Both ends connected to each other: no other process's datagram can come in. */
static int udp_open(struct transport *transport)
{
    struct sockaddr_in from;
    struct sockaddr_in to;
    int fd = loopback_socket(SOCK_DGRAM, &to);
    if (fd < 0)
        return fd;
    transport->receive_fd = fd;
    fd = loopback_socket(SOCK_DGRAM, &from);
    if (fd < 0)
        return fd;
    transport->send_fd = fd;
    if (connect(transport->send_fd, (struct sockaddr *)&to, sizeof(to)) ||
        connect(transport->receive_fd, (struct sockaddr *)&from, sizeof(from)))
        return -errno;
    return 0;
}

static int set_nodelay(int fd)
{
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ? -errno : 0;
}

static bool is_from(int fd, const struct sockaddr_in *expected)
{
    struct sockaddr_in peer;
    socklen_t length = sizeof(peer);
    return getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_port == expected->sin_port;
}

static int tcp_open_from(struct transport *transport, int listener, const struct sockaddr_in *to)
{
    struct sockaddr_in from;
    int fd = loopback_socket(SOCK_STREAM, &from);
    if (fd < 0)
        return fd;
    transport->send_fd = fd;
    if (listen(listener, 1) || connect(transport->send_fd, (const struct sockaddr *)to, sizeof(*to)))
        return -errno;
    transport->receive_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (transport->receive_fd < 0)
        return -errno;
    if (!is_from(transport->receive_fd, &from))
        return -ECONNABORTED;
    int rc = set_nodelay(transport->send_fd);
    return rc ? rc : set_nodelay(transport->receive_fd);
}

static int tcp_open(struct transport *transport)
{
    struct sockaddr_in to;
    int listener = loopback_socket(SOCK_STREAM, &to);
    if (listener < 0)
        return listener;
    int rc = tcp_open_from(transport, listener, &to);
    (void)close(listener);
    return rc;
}

const struct mechanism mechanisms[] = {
    {"channel", 0, 0, channel_open, channel_send, channel_take, channel_spin, channel_block},
    {"eventfd", TRAIT_FD | TRAIT_FILE, 0, eventfd_open, eventfd_send, eventfd_take, eventfd_spin, eventfd_take},
    {"pipe", TRAIT_FD | TRAIT_FILE, 0, pipe_open, pipe_send, pipe_take, pipe_spin, pipe_take},
    {"unix", TRAIT_FD, 0, unix_open, socket_send, socket_take, socket_spin, socket_take},
    {"tcp", TRAIT_FD | TRAIT_NAPI, SOCK_STREAM, tcp_open, socket_send, socket_take, socket_spin, socket_take},
    {"udp", TRAIT_FD | TRAIT_NAPI, SOCK_DGRAM, udp_open, socket_send, socket_take, socket_spin, socket_take},
};
const size_t mechanisms_n = sizeof(mechanisms) / sizeof(*mechanisms);
