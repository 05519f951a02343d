#include "lib/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* A socket at the address, its port chosen by the kernel and left there. Returns 0 or -errno. */
static int bound_socket(int *fd, int type, struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    *fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (*fd < 0 || bind(*fd, (struct sockaddr *)address, length) || getsockname(*fd, (struct sockaddr *)address, &length))
        return -errno;
    return 0;
}

static struct sockaddr_in here(void)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* Both ends connected to each other: no other process's datagram can come in. */
int loopback_udp(int fds[LOOPBACK_ENDS])
{
    struct sockaddr_in from = here();
    struct sockaddr_in to = here();
    fds[LOOPBACK_SENDS] = -1;
    int rc = bound_socket(&fds[LOOPBACK_RECEIVES], SOCK_DGRAM, &to);
    if (!rc)
        rc = bound_socket(&fds[LOOPBACK_SENDS], SOCK_DGRAM, &from);
    if (!rc && (connect(fds[LOOPBACK_SENDS], (struct sockaddr *)&to, sizeof(to)) ||
                connect(fds[LOOPBACK_RECEIVES], (struct sockaddr *)&from, sizeof(from))))
        rc = -errno;
    return rc;
}

static int set_nodelay(int fd)
{
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ? -errno : 0;
}

static int accept_own(int fds[LOOPBACK_ENDS], int listener, const struct sockaddr_in *to)
{
    struct sockaddr_in from = here();
    struct sockaddr_in peer;
    socklen_t length = sizeof(peer);
    int rc = bound_socket(&fds[LOOPBACK_SENDS], SOCK_STREAM, &from);
    if (rc)
        return rc;
    if (listen(listener, 1) || connect(fds[LOOPBACK_SENDS], (const struct sockaddr *)to, sizeof(*to)))
        return -errno;
    fds[LOOPBACK_RECEIVES] = accept4(listener, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC);
    if (fds[LOOPBACK_RECEIVES] < 0)
        return -errno;
    if (peer.sin_port != from.sin_port)     /* somebody else was faster */
        return -ECONNABORTED;
    rc = set_nodelay(fds[LOOPBACK_SENDS]);
    return rc ? rc : set_nodelay(fds[LOOPBACK_RECEIVES]);
}

int loopback_tcp(int fds[LOOPBACK_ENDS])
{
    struct sockaddr_in to = here();
    int listener;
    fds[LOOPBACK_RECEIVES] = fds[LOOPBACK_SENDS] = -1;
    int rc = bound_socket(&listener, SOCK_STREAM, &to);
    if (!rc)
        rc = accept_own(fds, listener, &to);
    if (listener >= 0)
        (void)close(listener);
    return rc;
}

int loopback_multicast(int fds[LOOPBACK_ENDS], unsigned group)
{
    struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = here();
    /* 239.255.0.0/16 is for use within a site (RFC 2365). */
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(0xefff4d00U | group)}};
    struct ip_mreq membership = {to.sin_addr, loopback};
    const int no_hop = 0;
    fds[LOOPBACK_SENDS] = -1;
    int rc = bound_socket(&fds[LOOPBACK_RECEIVES], SOCK_DGRAM, &to);
    if (!rc)
        rc = bound_socket(&fds[LOOPBACK_SENDS], SOCK_DGRAM, &from);
    if (!rc && (setsockopt(fds[LOOPBACK_RECEIVES], IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof(membership)) ||
                setsockopt(fds[LOOPBACK_SENDS], IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof(loopback)) ||
                setsockopt(fds[LOOPBACK_SENDS], IPPROTO_IP, IP_MULTICAST_TTL, &no_hop, sizeof(no_hop)) ||
                connect(fds[LOOPBACK_SENDS], (struct sockaddr *)&to, sizeof(to))))
        rc = -errno;
    return rc;
}

int socket_busy_poll(int fd, unsigned us)
{
    return setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof(us)) ? -errno : 0;
}

unsigned socket_napi_id(int fd)
{
    unsigned id = 0;
    socklen_t length = sizeof(id);
    return getsockopt(fd, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &length) ? 0 : id;
}
