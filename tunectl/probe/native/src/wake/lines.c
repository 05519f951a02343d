#include "wake/lines.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/stop.h"

enum { SLICE_MS = 500, CONNECT_LIMIT_S = 15, BACKLOG = 16 };

/* In slices: a signal may come between the look at the flag and the poll. */
int wait_readable(int fd, int timeout_ms)
{
    for (int waited_ms = 0; timeout_ms < 0 || waited_ms < timeout_ms; waited_ms += SLICE_MS) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (stop_is_asked())
            return -EINTR;
        if (poll(&one, 1, SLICE_MS) > 0)
            return 0;
    }
    return -ETIMEDOUT;
}

/* Cuts the first line off what is pending. Returns 0, or -EAGAIN when none is whole. */
static int cut_line(struct lines *lines, char line[LINE_MOST])
{
    char *end = memchr(lines->pending, '\n', lines->bytes);
    size_t length = end ? (size_t)(end - lines->pending) : lines->bytes;
    if (length >= LINE_MOST)
        return -EMSGSIZE;
    if (!end)
        return -EAGAIN;
    memcpy(line, lines->pending, length);
    line[length] = '\0';
    lines->bytes -= length + 1;
    memmove(lines->pending, end + 1, lines->bytes);
    return 0;
}

int lines_read(struct lines *lines, char line[LINE_MOST], int timeout_ms)
{
    for (;;) {
        int rc = cut_line(lines, line);
        if (rc != -EAGAIN)
            return rc;
        rc = wait_readable(lines->fd, timeout_ms);
        if (rc)
            return rc;
        ssize_t got = recv(lines->fd, lines->pending + lines->bytes, sizeof(lines->pending) - lines->bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return -ECONNRESET;
        if (got > 0)
            lines->bytes += (size_t)got;
    }
}

int lines_write(struct lines *lines, const char *format, ...)
{
    char line[LINE_MOST];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (length < 0 || length >= LINE_MOST)
        return -EMSGSIZE;
    /* Short lines, one at a time: they fit the buffer of any socket whose other end reads at all. */
    return send(lines->fd, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) == length ? 0 : -ECONNRESET;
}

/* "HOST:PORT" or "[HOST]:PORT" in two. Returns 0 or -EINVAL. */
static int split_address(const char *address, char *host, size_t size, const char **port)
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || !colon[1])
        return -EINVAL;
    const char *from = address[0] == '[' ? address + 1 : address;
    const char *to = address[0] == '[' ? colon - 1 : colon;
    if (to <= from || (size_t)(to - from) >= size || (address[0] == '[' && *to != ']'))
        return -EINVAL;
    memcpy(host, from, (size_t)(to - from));
    host[to - from] = '\0';
    *port = colon + 1;
    return strspn(*port, "0123456789") == strlen(*port) ? 0 : -EINVAL;
}

bool address_is_one(const char *address)
{
    char host[LINE_MOST];
    const char *port;
    return split_address(address, host, sizeof(host), &port) == 0;
}

static int open_listening(int fd, const struct addrinfo *info)
{
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, BACKLOG) ? -errno : 0;
}

/* SO_SNDTIMEO bounds a connect. */
static int open_connected(int fd, const struct addrinfo *info)
{
    struct timeval limit = {.tv_sec = CONNECT_LIMIT_S};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, info->ai_addr, info->ai_addrlen) == 0)
        return 0;
    return errno == EINPROGRESS ? -ETIMEDOUT : -errno;
}

int address_socket(const char *address, int is_listening, char *reason, size_t size)
{
    char host[LINE_MOST];
    const char *port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = is_listening ? AI_PASSIVE : 0};
    struct addrinfo *info;
    if (split_address(address, host, sizeof(host), &port)) {
        (void)snprintf(reason, size, "expected ADDRESS:PORT, like 10.0.0.2:7000 or [fe80::2]:7000");
        return -1;
    }
    int rc = getaddrinfo(host, port, &hints, &info);
    if (rc) {
        (void)snprintf(reason, size, "%s", gai_strerror(rc));
        return -1;
    }
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rc = fd < 0 ? -errno : is_listening ? open_listening(fd, info) : open_connected(fd, info);
    freeaddrinfo(info);
    if (rc == 0)
        return fd;
    (void)snprintf(reason, size, "%s", strerror(-rc));
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

unsigned socket_port(int fd)
{
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof(own);
    (void)getsockname(fd, (struct sockaddr *)&own, &length);
    in_port_t port = own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port : ((struct sockaddr_in *)&own)->sin_port;
    return ntohs(port);
}
