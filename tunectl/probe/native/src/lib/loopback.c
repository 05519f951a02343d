#include "lib/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/vm_sockets.h>     /* behind it: it takes sa_family_t from there */
#include <unistd.h>

/* A socket at the address, its port chosen by the kernel and left there. Returns 0 or -errno. */
static int bound_socket(int *fd, int type, void *address, socklen_t length)
{
    struct sockaddr *at = address;
    *fd = socket(at->sa_family, type | SOCK_CLOEXEC, 0);
    return *fd < 0 || bind(*fd, at, length) || getsockname(*fd, at, &length) ? -errno : 0;
}

static struct sockaddr_in here(void)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static int datagrams(int fds[LOOPBACK_ENDS], struct sockaddr_in *to, struct sockaddr_in *from)
{
    fds[LOOPBACK_SENDS] = -1;
    int rc = bound_socket(&fds[LOOPBACK_RECEIVES], SOCK_DGRAM, to, sizeof(*to));
    return rc ? rc : bound_socket(&fds[LOOPBACK_SENDS], SOCK_DGRAM, from, sizeof(*from));
}

/* Both ends connected to each other: no other process's datagram can come in. */
int loopback_udp(int fds[LOOPBACK_ENDS])
{
    struct sockaddr_in from = here();
    struct sockaddr_in to = here();
    int rc = datagrams(fds, &to, &from);
    if (!rc && (connect(fds[LOOPBACK_SENDS], (struct sockaddr *)&to, sizeof(to)) ||
                connect(fds[LOOPBACK_RECEIVES], (struct sockaddr *)&from, sizeof(from))))
        rc = -errno;
    return rc;
}

static int accept_own(int fds[LOOPBACK_ENDS], int listener, const void *to, void *from, socklen_t length)
{
    struct sockaddr_storage peer = {0};
    socklen_t peer_length = sizeof(peer);
    int rc = bound_socket(&fds[LOOPBACK_SENDS], SOCK_STREAM, from, length);
    if (rc)
        return rc;
    if (listen(listener, 1) || connect(fds[LOOPBACK_SENDS], to, length))
        return -errno;
    fds[LOOPBACK_RECEIVES] = accept4(listener, (struct sockaddr *)&peer, &peer_length, SOCK_CLOEXEC);
    if (fds[LOOPBACK_RECEIVES] < 0)
        return -errno;
    return memcmp(&peer, from, length) ? -ECONNABORTED : 0;     /* somebody else was faster */
}

/* A stream from one address to another. */
static int stream(int fds[LOOPBACK_ENDS], void *to, void *from, socklen_t length)
{
    int listener;
    fds[LOOPBACK_RECEIVES] = fds[LOOPBACK_SENDS] = -1;
    int rc = bound_socket(&listener, SOCK_STREAM, to, length);
    if (!rc)
        rc = accept_own(fds, listener, to, from, length);
    if (listener >= 0)
        (void)close(listener);
    return rc;
}

int loopback_tcp(int fds[LOOPBACK_ENDS])
{
    struct sockaddr_in to = here();
    struct sockaddr_in from = here();
    const int on = 1;
    int rc = stream(fds, &to, &from, sizeof(to));
    for (int end = 0; end < LOOPBACK_ENDS && !rc; end++)
        rc = setsockopt(fds[end], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ? -errno : 0;
    return rc;
}

int loopback_vsock(int fds[LOOPBACK_ENDS])
{
    struct sockaddr_vm to = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_LOCAL, .svm_port = VMADDR_PORT_ANY};
    struct sockaddr_vm from = to;
    return stream(fds, &to, &from, sizeof(to));
}

int loopback_multicast(int fds[LOOPBACK_ENDS], unsigned group)
{
    struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = here();
    /* 239.255.0.0/16 is for use within a site (RFC 2365). */
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(0xefff4d00U | group)}};
    struct ip_mreq membership = {to.sin_addr, loopback};
    const int no_hop = 0;
    int rc = datagrams(fds, &to, &from);
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
