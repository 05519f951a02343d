#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "feed/run.h"
#include "lib/loopback.h"
#include "lib/options.h"

/* All of it, however often it takes. Returns 0 or -errno. */
static int send_back(int fd, const unsigned char *bytes, size_t n)
{
    do {
        ssize_t sent = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
            return -errno;
        bytes += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    } while (n > 0);
    return 0;
}

/* Until the stream ends, or the process does: a datagram without a byte goes back as well, and ends nothing here. */
static void reflect(const struct feed_run *run, int fd)
{
    static unsigned char bytes[FEED_INCOMING];
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    bool blocks = run->waiting->is_busy_poll;
    for (;;) {
        if (!blocks && poll(&polled, 1, run->waiting->timeout_ms) <= 0)
            continue;
        ssize_t got = recv(fd, bytes, sizeof(bytes), blocks ? 0 : MSG_DONTWAIT);
        bool is_over = got == 0 ? run->transport->is_stream : got < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED;
        if (is_over || (got >= 0 && send_back(fd, bytes, (size_t)got)))
            return;
    }
}

int feed_reflect(void *context)
{
    const struct feed_run *run = context;
    int fd = run->pair.options->socket;
    int rc = fd >= 0 && run->waiting->is_busy_poll ? socket_busy_poll(fd, run->pair.options->busy_poll_us) : 0;
    if (rc)
        return print_error(EXIT_FAILED, "the connection cannot be set up: %s", strerror(-rc));
    int status = pair_reflector_say_ready(&run->pair);
    if (!status && fd >= 0)
        reflect(run, fd);
    return status;
}
