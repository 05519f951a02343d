#include "wake/remote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/output.h"
#include "lib/ticks.h"

enum { ANSWER_MS = 15000, HELLO_EVERY_MS = 500, HELLOS = 30 };

int remote_connect(struct remote *remote, const char *address)
{
    char line[LINE_MOST] = "";
    char reason[LINE_MOST];
    *remote = (struct remote){.address = address};
    remote->lines.fd = address_socket(address, 0, reason, sizeof(reason));
    if (remote->lines.fd < 0)
        return print_error(EXIT_FAILED, "--connect %s: %s", address, reason);
    int rc = lines_write(&remote->lines, "tunectl-wake 1\n");
    if (!rc)
        rc = lines_read(&remote->lines, line, ANSWER_MS);
    if (!rc && sscanf(line, "tunectl-wake 1 %lf %u", &remote->hz, &remote->cpu) == 2 && remote->hz > 1e3 && remote->hz < 1e12)
        return EXIT_OK;
    remote_deinit(remote);
    return print_error(EXIT_FAILED, "--connect %s: %s", address,
                       rc ? strerror(-rc) : "no `tunectl-probe wake --listen` of this version answers there");
}

void remote_deinit(struct remote *remote)
{
    if (remote->lines.fd >= 0)
        (void)close(remote->lines.fd);
    remote->lines.fd = -1;
}

/* The other host's address with another port. */
static int connect_to_port(const struct remote *remote, int type, unsigned port)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof(peer);
    int on = 1;
    if (getpeername(remote->lines.fd, (struct sockaddr *)&peer, &length))
        return -errno;
    if (peer.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&peer)->sin6_port = htons((in_port_t)port);
    else
        ((struct sockaddr_in *)&peer)->sin_port = htons((in_port_t)port);
    int fd = socket(peer.ss_family, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (struct sockaddr *)&peer, length) ? -errno : 0;
    if (!rc && type == SOCK_STREAM && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
        rc = -errno;
    if (rc)
        (void)close(fd);
    return rc ? rc : fd;
}

/* Says hello until the other host has heard it: a datagram may be lost, and it must learn our port. */
static int greet(struct remote *remote, struct transport *transport, uint64_t token)
{
    char line[LINE_MOST];
    struct message hello = {.sequence = token};
    for (int i = 0; i < HELLOS; i++) {
        if (i == 0 || transport->mechanism->socket_type == SOCK_DGRAM)
            (void)transport->mechanism->send(transport, &hello);
        int rc = lines_read(&remote->lines, line, HELLO_EVERY_MS);
        if (rc != -ETIMEDOUT)
            return rc ? rc : strcmp(line, "ready") == 0 ? 0 : -EPROTO;
    }
    return -ETIMEDOUT;
}

static int connect_transport(struct remote *remote, struct transport *transport, unsigned port, uint64_t token)
{
    int fd = connect_to_port(remote, transport->mechanism->socket_type, port);
    if (fd < 0)
        return fd;
    transport->receive_fd = fd;
    transport->send_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return transport->send_fd < 0 ? -errno : greet(remote, transport, token);
}

/* The answer to "open" in `line`. Returns the port, or 0 with the reason. */
static unsigned port_answered(struct remote *remote, const char *line, int rc, char *reason, size_t size)
{
    unsigned port = 0;
    if (rc == 0 && sscanf(line, "port %u", &port) == 1 && port > 0 && port < 65536)
        return port;
    remote->is_gone = remote->is_gone || rc != 0;
    if (rc == 0 && strncmp(line, "refused ", 8) == 0)
        (void)snprintf(reason, size, "the other host: %.150s", line + 8);
    else
        (void)snprintf(reason, size, "the other host: %s", rc ? strerror(-rc) : "an answer that is none");
    return 0;
}

int remote_open(struct remote *remote, struct transport *transport, const struct mechanism *mechanism,
                const struct wait_method *method, unsigned busy_poll_us, char *reason, size_t size)
{
    char line[LINE_MOST] = "";
    /* Above every sequence number, and not one of the two with a meaning. */
    uint64_t token = (UINT64_C(1) << 63) | (ticks_now() >> 1);
    *transport = (struct transport){.mechanism = mechanism, .send_fd = -1, .receive_fd = -1, .epoll_fd = -1,
                          .receive_flags = MSG_DONTWAIT, .is_remote = true};
    if (remote->is_gone) {
        (void)snprintf(reason, size, "the other host went away");
        return -1;
    }
    int rc = lines_write(&remote->lines, "open %s %s %u %" PRIu64 "\n", mechanism->name, method->name, busy_poll_us, token);
    if (!rc)
        rc = lines_read(&remote->lines, line, ANSWER_MS);
    unsigned port = port_answered(remote, line, rc, reason, size);
    if (!port)
        return -1;
    rc = connect_transport(remote, transport, port, token);
    if (!rc)
        rc = method->prepare(transport, busy_poll_us);
    if (!rc)
        return 0;
    (void)snprintf(reason, size, "the connection cannot be set up: %s", strerror(-rc));
    remote_close(remote);
    return -1;
}

/* Answers to what came before "close" are passed over. */
void remote_close(struct remote *remote)
{
    char line[LINE_MOST] = "";
    int rc = lines_write(&remote->lines, "close\n");
    while (!rc && strcmp(line, "closed") != 0)
        rc = lines_read(&remote->lines, line, ANSWER_MS);
    /* At a signal nothing more is asked of the other host: it sees the connection end. */
    remote->is_gone = remote->is_gone || rc != 0;
}
