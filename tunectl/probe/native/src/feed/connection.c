#include "feed/run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/loopback.h"

#ifndef SOL_TLS
#define SOL_TLS 282             /* include/linux/socket.h; not in every C library */
#endif

static int open_tcp(int fds[LOOPBACK_ENDS], unsigned line)
{
    (void)line;
    return loopback_tcp(fds);
}

static int open_udp(int fds[LOOPBACK_ENDS], unsigned line)
{
    (void)line;
    return loopback_udp(fds);
}

const struct feed_transport feed_transports[] = {
    {"tcp", true, 1, open_tcp},
    {"udp", false, 1, open_udp},
    {"multicast", false, 1, loopback_multicast},
    {"multicast-ab", false, 2, loopback_multicast},
};

int connection_open(struct connection *c, const struct feed_transport *transport)
{
    int rc = 0;
    *c = (struct connection){.failed = "open its sockets"};
    for (; c->n < transport->lines && !rc; c->n++) {
        int fds[LOOPBACK_ENDS];
        rc = transport->open(fds, (unsigned)c->n + 1);
        c->receives[c->n] = fds[LOOPBACK_RECEIVES];
        c->sends[c->n] = fds[LOOPBACK_SENDS];
    }
    return rc;
}

int connection_adopt(struct connection *c, int fd)
{
    *c = (struct connection){.n = 1, .receives = {fd}, .failed = "use its socket"};
    c->sends[0] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return c->sends[0] < 0 ? -errno : 0;
}

uint64_t connection_use_rcvbuf(const struct connection *c, const struct feed_transport *transport, int bytes)
{
    int got = 0;
    for (size_t i = 0; i < c->n && !transport->is_stream; i++) {
        int fd = c->receives[i];
        socklen_t length = sizeof(got);
        if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
            (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
        (void)getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &length);
    }
    return (uint64_t)got;
}

int64_t connection_drops(const struct connection *c)
{
    int64_t sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        uint32_t info[SK_MEMINFO_VARS] = {0};
        socklen_t length = sizeof(info);
        if (getsockopt(c->receives[i], SOL_SOCKET, SO_MEMINFO, info, &length))
            return -1;
        sum += info[SK_MEMINFO_DROPS];
    }
    return sum;
}

int connection_use_tls(struct connection *c)
{
    struct tls12_crypto_info_aes_gcm_128 keys = {.info = {.version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128}};
    c->failed = "use the kernel's TLS (module tls: is it there, and loaded? loading it needs CAP_NET_ADMIN)";
    if (getrandom(keys.key, sizeof(keys.key), 0) < 0 || getrandom(keys.iv, sizeof(keys.iv), 0) < 0 ||
        getrandom(keys.salt, sizeof(keys.salt), 0) < 0 ||
        setsockopt(c->sends[0], IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) ||
        /* Both are one socket where the other end is on another host. */
        (setsockopt(c->receives[0], IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) && errno != EEXIST) ||
        setsockopt(c->sends[0], SOL_TLS, TLS_TX, &keys, sizeof(keys)) ||
        setsockopt(c->receives[0], SOL_TLS, TLS_RX, &keys, sizeof(keys)))
        return -errno;
    return 0;
}
